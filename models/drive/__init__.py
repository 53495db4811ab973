"""Policies that drive live connections: what they observe there, and the windows they choose."""
