"""Decisions of logs and of simulated controls, as tables to learn from."""
