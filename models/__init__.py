"""Observations to decisions: estimators, their training and their evaluation."""
