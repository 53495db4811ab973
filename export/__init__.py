"""Models to something a kernel or a proxy can run, and the proof that it is the same."""
