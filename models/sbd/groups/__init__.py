"""A user group gets a classifier of its own if that is better than the one for all."""
