"""A Bayesian network from a stream's context to its quality (mp-cdg.txt section 4.2)."""
