"""Events to observations: one definition of each feature."""
