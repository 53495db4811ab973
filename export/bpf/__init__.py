"""Exports models to eBPF: the table that a map holds, the build, and the run in the kernel."""
