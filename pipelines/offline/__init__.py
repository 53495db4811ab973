"""Agents that learn from logged decisions: trainings, what logs cover, estimates from logs."""
