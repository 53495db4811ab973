"""The report's sections of SmartSBD: data, features, accuracies, groups, drawings."""
