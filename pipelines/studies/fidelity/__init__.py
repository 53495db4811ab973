"""The simulator beside the kernel, scenario by scenario."""
