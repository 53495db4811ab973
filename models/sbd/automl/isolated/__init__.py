"""The code that runs in the environment of auto-sklearn; it must not import the project."""
