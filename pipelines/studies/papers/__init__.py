"""What the papers report of classical congestion controls, simulated."""
