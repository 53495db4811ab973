"""Measures trained agents against bars, in conditions out of range, and for fairness."""
