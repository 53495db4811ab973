"""Decisions as tables: what was observed, what was done, what it earned, one row after another."""
