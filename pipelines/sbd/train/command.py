"""``cczoo train sbd``: the dict of its trainings, each with a command line of its own."""

from __future__ import annotations

import argparse

from pipelines import lazy

TRAININGS: dict[str, tuple[str, str]] = {
    "all": ("pipelines.sbd.train.all", "search, protocol and fit in this order, then register"),
    "search": ("pipelines.sbd.train.search", "mutual information and grid search (Table 4)"),
    "protocol": ("pipelines.sbd.train.protocol", "everything out of sample: all result tables"),
    "fit": ("pipelines.sbd.train.fit", "fit the models that are kept and write them"),
    "budget": ("pipelines.sbd.train.budget", "the most accurate model within measured costs"),
    "groups": ("pipelines.sbd.train.groups", "a model for each group, where it beats the pooled"),
    "auto": ("pipelines.sbd.train.auto", "an AutoML search; the best member is kept"),
    "auto-protocol": ("pipelines.sbd.train.auto_protocol", "AutoML on each split of Table 5"),
    "neural": ("pipelines.sbd.train.neural", "the network on raw series, step by step"),
}
"""name -> (module with ``add_arguments``, ``run`` and ``EXAMPLE``, one line of help)."""

EXAMPLE = """examples:
  cczoo train sbd all --features data/processed/sbd.parquet --events data/interim/events
  cczoo train sbd fit --zoo models/trained
  cczoo train sbd budget ns=40,bytes=4000,insns=2000 --model dt --out build/small
  cczoo train sbd groups --by dataset,cc --out reports/groups    # docs/groups.md
  cczoo train sbd auto --seconds 300 --out build/auto            # docs/automl.md
  cczoo train sbd neural fit --out build/neural                  # docs/neural.md"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd``."""
    lazy.add(parser, "training", TRAININGS)


def run(args: argparse.Namespace) -> int:
    """Hand over to the training that was asked for."""
    return lazy.run(TRAININGS, args.training, args)
