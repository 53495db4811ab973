"""The kernel lab: labelled Linux MPTCP connections over emulated paths."""
