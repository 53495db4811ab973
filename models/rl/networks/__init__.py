"""Networks of the agents, as RLlib's modules."""
