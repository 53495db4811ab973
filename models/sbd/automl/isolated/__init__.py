"""What runs in the environment of auto-sklearn; nothing here may import the project."""
