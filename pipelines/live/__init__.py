"""The live comparison: an exported classifier in a running kernel beside the offline one."""
