"""The command line and the DVC stages: one file runs one stage."""
