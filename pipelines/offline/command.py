"""Say what logged decisions cover, and what they tell of a policy's worth without playing it."""

from __future__ import annotations

import argparse

from pipelines import lazy

EXAMPLE = """examples:
  cczoo offline coverage --decisions build/decisions.parquet
  cczoo offline coverage --decisions data/mine --ask "snd_cwnd > 200 and base_rtt_ms > 100"
  cczoo offline estimate reports/offline/tcco-iql/seed-7 --decisions build/decisions.parquet"""
ACTIONS = {
    "coverage": ("pipelines.offline.coverage", "where logs hold decisions, and what they don't"),
    "estimate": ("pipelines.offline.estimate", "what logs say that a policy is worth"),
}
"""Name -> (module, one line of help)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    lazy.add(parser, "action", ACTIONS)


def run(args: argparse.Namespace) -> int:
    """Hand over to the action."""
    return lazy.run(ACTIONS, args.action, args)
