"""One classifier per user group, where that is better than one for all."""
