"""What learns: RLlib's learners, each with one loss."""
