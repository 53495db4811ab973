"""Trained policies as files: a network that takes plain numbers, and what proves it."""
