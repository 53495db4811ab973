"""Distil a policy's network into a small tree that a kernel can run."""
