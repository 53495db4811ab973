"""Video over the simulator: what a viewer sees of a stream whose data arrive as they do."""
