"""The released models: list, verify, prove and release them."""
