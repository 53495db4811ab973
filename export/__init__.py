"""Exports models as code that a kernel or a proxy can run, and proves that it is the same."""
