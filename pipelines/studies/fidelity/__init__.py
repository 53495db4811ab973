"""Compare the simulator with the kernel, scenario by scenario."""
