"""Agents that learn from logged decisions alone, and what logs can say of a policy."""
