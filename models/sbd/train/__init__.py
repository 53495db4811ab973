"""The classifiers, their settings and features, and how these are chosen."""
