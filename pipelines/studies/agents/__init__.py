"""Publishes trainings of several seeds: statistics, curves, and what one more seed gives."""
