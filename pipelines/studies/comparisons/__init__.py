"""Trains agents beside other algorithms, ablations, and values as the papers print them."""
