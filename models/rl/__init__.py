"""The trainer that all agents share: runners, ring, networks, learners and checkpoints."""
