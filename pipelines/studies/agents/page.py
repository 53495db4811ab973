"""The page of trained agents, from what is kept of them alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.studies.agents.figures import DRAWINGS
from pipelines.studies.agents.kept import COMMAND, Estimate, Published
from pipelines.studies.agents.statistics import best_of


def page(found: Mapping[str, Published], folder: str) -> str:
    """Markdown of the whole page.

    Parameters
    ----------
    found : mapping
        Agent -> what is published of it.
    folder : str
        Where the drawings are, from the page.
    """
    import jinja2

    template = Path(__file__).with_name("page.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=False, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    text = environment.from_string(template).render(
        command=COMMAND,
        folder=folder,
        agents=[summary(one) | _section(one, folder) for one in found.values()],
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def summary(one: Published) -> dict[str, Any]:
    """What an agent's figures are of: for the page and for programs.

    Returns
    -------
    dict
        ``agent``, ``problem``, ``command``, ``settings``, ``episodes``, ``seeds`` (their numbers),
        ``steps`` of each; ``cpu_h``, hours of the processor over the seeds whose cost is known, and
        ``costed``, how many these are; and what they were made with, in the order of seeds:
        ``commands``, ``commits``, ``locks``, ``cpus``.
    """
    costs = [seed.cost for seed in one.seeds.values() if seed.cost is not None]
    return {
        "agent": one.agent,
        "problem": one.problem,
        "command": one.command,
        "settings": one.settings,
        "episodes": one.episodes,
        "seeds": [int(seed) for seed in one.seeds],
        "steps": one.settings["steps"],
        "cpu_h": round(sum(cost.cpu_s for cost in costs) / 3600, 3),
        "costed": len(costs),
        "commands": list(dict.fromkeys(cost.command for cost in costs)),
        "commits": list(dict.fromkeys(cost.commit for cost in costs)),
        "locks": list(dict.fromkeys(cost.lock for cost in costs)),
        "cpus": list(dict.fromkeys(cost.cpu for cost in costs)),
    }


def line(one: Published) -> str:
    """An agent's figures in a line."""
    figures = one.statistics
    beside = ", ".join(
        f"{row.difference.value:+.3f} over the best {kind}" for kind, row in figures.beside.items()
    )
    return (
        f"{one.agent}: {_estimate(figures.iqm)} a step over {len(one.seeds)} seeds and "
        f"{one.episodes} episodes; {beside}"
    )


def _section(one: Published, folder: str) -> dict[str, Any]:
    figures = one.statistics
    rows = []
    for kind, row in figures.beside.items():
        best = best_of(one.by_hand, kind)
        rows.append(
            [f"best {kind}: {row.name}" if kind != row.name else kind, f"{row.iqm:.3f}",
             _estimate(row.difference, "+"), _estimate(row.improvement),
             *([f"{best.mbps:.1f}", f"{best.rtt_ms:.1f}"] if best else ["", ""])]
        )  # fmt: skip
    seeds = [
        [number, f"{np.mean(seed.played.returns):.3f}", f"{seed.played.mbps:.1f}",
         f"{seed.played.rtt_ms:.1f}", f"{seed.best_steps}",
         f"{seed.cost.cpu_s / 60:.1f}" if seed.cost else ""]
        for number, seed in one.seeds.items()
    ]  # fmt: skip
    played = [seed.played for seed in one.seeds.values()]
    own = [f"**{one.agent}**", _estimate(figures.iqm), "", "",
           f"{np.mean([p.mbps for p in played]):.1f}",
           f"{np.mean([p.rtt_ms for p in played]):.1f}"]  # fmt: skip
    return {
        "count": len(one.seeds),
        "stratified": f"[{figures.stratified.low:.3f}, {figures.stratified.high:.3f}]",
        "next": figures.next_seed,
        "table": _table(
            ["policy", "return", "difference", "improvement", "Mbps", "RTT, ms"], [own, *rows]
        ),
        "by_seed": _table(
            ["seed", "mean return", "Mbps", "RTT, ms", "best after", "CPU-minutes"], seeds
        ),
        "drawings": [
            (caption, f"{folder}/{one.agent}-{name}.svg") for name, (_, caption) in DRAWINGS.items()
        ],
        "twin": one.settings["env"].get("twin_k"),
    }


def _estimate(one: Estimate, sign: str = "") -> str:
    return f"{one.value:{sign}.3f} [{one.low:{sign}.3f}, {one.high:{sign}.3f}]"


def _table(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
