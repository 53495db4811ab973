"""One classifier per user group, if that is better than one for all."""
