"""Registered models: addresses, the audit log, the outbox and who may write."""
