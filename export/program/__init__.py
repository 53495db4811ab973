"""Networks as programs of integer steps, which C and eBPF run as they are."""
