"""Simulate what papers report of classical congestion controls."""
