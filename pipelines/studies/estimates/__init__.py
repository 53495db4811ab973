"""Estimates from logs beside what the simulator says: how far they can be trusted."""
