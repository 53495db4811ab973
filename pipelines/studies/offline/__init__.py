"""Learns from logged decisions alone, and says who loses to whom in closed loop."""
