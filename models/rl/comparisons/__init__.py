"""What the agents are compared with: other algorithms, ablations, and values as papers print them.

Each algorithm of its own is one file; `lines.py` has all of them by name.
"""
