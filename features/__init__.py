"""Events become observations here; each feature is defined once."""
