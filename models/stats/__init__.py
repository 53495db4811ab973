"""Intervals, aggregates, two-sample distances, calibration: statistics that any model may use."""
