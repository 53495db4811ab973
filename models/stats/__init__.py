"""Intervals, two-sample distances and calibration: statistics that any model may use."""
