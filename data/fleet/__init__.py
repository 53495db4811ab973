"""A store is a data set of logs that grows: each log is taken once, and every change is one commit.

``docs/fleet.md`` says how it is used, ``data.fleet.layout`` what is in it.
"""
