"""The card of a policy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from models import card
from models.policies import RELEASED
from models.policies.entry import Description
from models.policies.judged import BESIDE, PAPER, lost
from models.rl import agents

SHOWN = (
    ("goodput_mbps", "Mbps"),
    ("rtt_ms", "RTT, ms"),
    ("queue_delay_ms", "queue, ms"),
    ("loss_rate", "loss"),
    ("jain", "Jain"),
)
"""Metric -> heading."""
POINTS = 12
"""Of a training's curve."""


def render(
    name: str,
    description: Description,
    curve: Sequence[Mapping[str, float]],
    rows: Sequence[Mapping[str, Any]],
    command: str,
) -> str:
    """The card as Markdown.

    Parameters
    ----------
    name : str
        Of the entry.
    description : Description
    curve : sequence of mapping
        Points of the training.
    rows : sequence of mapping
        Of `models.policies.judged.rows`; empty where nothing was evaluated.
    command : str
        What made the entry.
    """
    env = description.settings.get("env", {})
    facts = {
        "Kind": f"{description.network}, decides among {', '.join(description.actions)} every "
        f"{description.interval_us / 1e3:g} ms",
        f"Observes ({len(description.inputs)})": ", ".join(
            f"{one['name']} ({one['unit'] or 'flag'})" for one in description.inputs
        ),
        "Trained in": str(env.get("sampler", "the scenarios that its environment has by default")),
        "Trained by": f"`{training(description.agent, description.settings)}`",
        "Feature schema": f"`{description.observation_hash}`",
        "Made by": f"`{command}`",
    }
    summary = (RELEASED.get(name) or agents.agent(description.agent)).summary
    shown = [(*one, *_numbers(row)) for one, row in zip(_heads(rows), rows, strict=True)]
    figures = (
        card.Table(
            tuple(shown) + tuple(_paper(description.environment, rows)),
            ("scenario", "control", *(title for _, title in SHOWN)),
            before=f"Beside {' and '.join(BESIDE)}: means over "
            f"{rows[0]['seeds'] if rows else 0} seeds and their 95 % intervals.",
            after="`cczoo evaluate cc --scenario ... --cc cubic,bbr,"
            f"{name}` prints the same rows. What a decision costs stands in `costs.md`.",
        ),
        card.Table(
            tuple(_curve(curve)),
            ("steps", "return", "in validation"),
            before="The training's curve: mean return of its last episodes, and that of the greedy "
            "policy in episodes of their own. The network that did best there is this one.",
        ),
    )
    limits = (
        "One training of one seed; it was trained and judged in a simulator alone.",
        *(f"Less power than a classical control: {line}." for line in lost(name, rows)),
    )
    purpose = (
        "To be compared with, in the simulator: `cczoo evaluate cc --cc " + name + "`. "
        "`--delay MS` says how long its actions take to have an effect."
    )
    return card.render(
        card.Card(name, summary[0].upper() + summary[1:] + ".", facts, purpose, figures,
                  limits=limits)
    )  # fmt: skip


def training(agent: str, settings: Mapping[str, Any]) -> str:
    """The command that trains an agent again: what differs from the settings' defaults."""
    words = ["cczoo", "train", agent]
    default = agents.settings(agent, {}).model_dump(mode="json")
    for key, value in sorted(settings.items()):
        if key == "env":
            words += [word for one in _flat(value, "env") for word in ("--set", one)]
        elif default.get(key) != value:
            shown = "lambda" if key == "lambda_" else key
            words += ["--set", f"{shown}={value}"]
    return shlex.join(words)


def _flat(tree: Mapping[str, Any], prefix: str) -> list[str]:
    found: list[str] = []
    for key, value in sorted(tree.items()):
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}.{key}")
        else:
            found.append(f"{prefix}.{key}={value}")
    return found


def _heads(rows: Sequence[Mapping[str, Any]]) -> list[card.Row]:
    return [(" ".join(filter(None, (r["scenario"], r["variant"]))), r["cc"]) for r in rows]


def _numbers(row: Mapping[str, Any]) -> card.Row:
    cells = []
    for metric, _ in SHOWN:
        value = row["metrics"].get(metric)
        if value is None:
            cells.append(card.DASH)
        elif value["lo"] is None:
            cells.append(f"{value['mean']:.4g}")
        else:
            cells.append(f"{value['mean']:.4g} [{value['lo']:.4g}, {value['hi']:.4g}]")
    return tuple(cells)


def _paper(environment: str, rows: Sequence[Mapping[str, Any]]) -> list[card.Row]:
    """Rows of the numbers that the paper prints of its own agent, where it prints any."""
    from data.netsim.scenario import load

    found, agent = [], PAPER[environment]
    for name in dict.fromkeys(row["scenario"] for row in rows):
        paper = next(iter(load(name).values())).paper
        printed = [*paper.numbers(), *paper.numbers(other=True)]
        numbers = {metric: value for metric, _, cc, value in printed if cc == agent}
        if any(metric in numbers for metric, _ in SHOWN):
            cells = [f"{numbers[m]:g}" if m in numbers else card.DASH for m, _ in SHOWN]
            found.append((name, "the paper's agent", *cells))
    return found


def _curve(curve: Sequence[Mapping[str, float]]) -> list[card.Row]:
    step = max(1, -(-len(curve) // POINTS))
    picked = [p for i, p in enumerate(curve) if i % step == 0 or i == len(curve) - 1]
    return [
        (f"{p['steps']:.0f}", *(f"{p[k]:.4g}" if k in p else card.DASH for k in ("return",
                                                                              "validation")))
        for p in picked
    ]  # fmt: skip
