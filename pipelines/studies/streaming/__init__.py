"""Schedulers of MPTCP judged by what viewers of a stream see."""
