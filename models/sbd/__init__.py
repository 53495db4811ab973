"""Shared-bottleneck detection: estimators, rules, protocol, verdicts."""
