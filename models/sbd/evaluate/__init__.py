"""Classifiers are compared here: splits, held-out rows, scores and the papers' tables."""
