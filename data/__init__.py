"""Events are made here: where they come from, how they are read and what they mean."""
