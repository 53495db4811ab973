"""RLlib algorithms: what is sampled when, and what is learned from it."""
