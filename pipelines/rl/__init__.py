"""Train the agents: the command, its progress, its curves and its search."""
