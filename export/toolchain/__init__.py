"""Compilers, the sandbox and sanitizers: what builds and runs generated code."""
