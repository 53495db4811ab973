"""Simulate streaming sessions, and ask which settings make a wanted quality most probable."""

from __future__ import annotations

import argparse

from pipelines import lazy

EXAMPLE = """examples:
  cczoo qos advise --target psnr=good,buffer=high --given bw1=low
  cczoo qos sessions --out data/processed/qos.parquet"""
ACTIONS = {
    "advise": ("pipelines.qos.advise", "the settings with which a quality is most probable"),
    "sessions": ("pipelines.qos.sessions", "simulate streaming sessions over two paths each"),
}
"""Name -> (module, one line of help)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    lazy.add(parser, "action", ACTIONS)


def run(args: argparse.Namespace) -> int:
    """Hand over to the action."""
    return lazy.run(ACTIONS, args.action, args)
