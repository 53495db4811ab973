"""Comparisons of the simulator with kernels and papers."""
