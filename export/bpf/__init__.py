"""eBPF: the table that a map holds, the build, and the run inside the kernel."""
