"""The page of comparisons, from what is kept of them alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.rl import agents
from models.stats import aggregate
from pipelines.studies.agents.statistics import over_seeds
from pipelines.studies.comparisons.groups import GROUPS
from pipelines.studies.comparisons.kept import COMMAND, Compared, Entry

INTRO = f"""\
# Agents beside other ways to learn

Made by `{COMMAND}` (`pipelines/studies/comparisons`): nothing on this page was typed in but these
explanations. Everybody is trained with the agent's small budget of `params.yaml`, but for what its
line says ([training](training.md#comparisons)); the reference trainings, which take longer, are in
[agents](agents.md). The network that did best in validation plays the same test episodes greedily.

*Return* is the mean reward of a step: the interquartile mean over seeds and episodes. *Difference*
is that of the return less the agent's with the same seed in the same episode. *Improvement* is how
likely a seed gets more than the agent's in an episode, ties counting half. Brackets are 95 %
intervals of a bootstrap that draws whole seeds anew: of few seeds they are narrow by chance, and
they aren't corrected for the number of comparisons. Where the reward is another one only goodput
and RTT compare.
"""
HEADS = ("trained", "seeds", "return", "difference", "improvement", "Mbps", "RTT, ms", "CPU-s")


def page(found: Mapping[str, Compared], folder: str) -> str:
    """Markdown of the whole page.

    Parameters
    ----------
    found : mapping
        Group -> what is kept of it.
    folder : str
        Where the drawings are, from the page.
    """
    lines = [INTRO]
    for name, one in found.items():
        lines += [f"## {name}", "", f"{GROUPS[name].title}. {one.episodes} test episodes.", "",
                  f"    {COMMAND} {name} --train --seeds {most_seeds(one)}", "", _line(HEADS),
                  _line(["---", *["---:"] * (len(HEADS) - 1)])]  # fmt: skip
        lines += [_line(row) for row in rows(one)]
        lines += ["", f"![Greedy returns in validation]({folder}/{name}.svg)", ""]
        lines += ["*Mean reward of a step in validation, which is greedy: each seed, and their "
                  "mean. Curves of another reward are left out, but for those of the papers' "
                  "printed values.*", ""]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def most_seeds(one: Compared) -> int:
    """Seeds of that entry which has most."""
    return max(len(entry.seeds) for entry in one.entries.values())


def summary(one: Compared) -> list[dict[str, Any]]:
    """A row for each entry, for programs: figures as ``{value, low, high}``."""
    base = one.entries.get(GROUPS[one.group].agent)
    return [{"name": name, **_figures(entry, base)} for name, entry in one.entries.items()]


def rows(one: Compared) -> list[list[str]]:
    """A row for each entry, in words."""
    found = []
    for row in summary(one):
        alone = "own reward" if row["own_reward"] else ""
        cells = [row["return"], row["difference"], row["improvement"]]
        words = [_words(cell) if cell else "" for cell in cells]
        found.append(
            [f"`{row['name']}`: {agents.agent(row['name']).summary}", str(row["seeds"]),
             alone or words[0], *words[1:], f"{row['mbps']:.4g}", f"{row['rtt_ms']:.4g}",
             f"{row['cpu_s']:.0f}" if row["cpu_s"] else ""]
        )  # fmt: skip
    return found


def _figures(entry: Entry, base: Entry | None) -> dict[str, Any]:
    seeds = list(entry.seeds.values())
    own = np.array([seed.returns for seed in seeds])
    costs = [seed.cpu_s for seed in seeds if seed.cpu_s]
    row: dict[str, Any] = {
        "seeds": len(seeds),
        "own_reward": entry.own_reward,
        "return": _estimate(aggregate.iqm, own),
        "difference": None,
        "improvement": None,
        "mbps": float(np.mean([seed.mbps for seed in seeds])),
        "rtt_ms": float(np.mean([seed.rtt_ms for seed in seeds])),
        "cpu_s": float(np.mean(costs)) if costs else None,
    }
    common = [] if base is None or base is entry else sorted({*entry.seeds} & {*base.seeds})
    if base is None or not common or entry.own_reward:
        return row
    less = np.array([entry.seeds[seed].returns for seed in common])
    less = less - np.array([base.seeds[seed].returns for seed in common])
    row["difference"] = _estimate(aggregate.iqm, less)
    row["improvement"] = _estimate(_above, less)
    return row


def _above(differences: NDArray[np.float64]) -> Any:
    """Share of differences above zero; ties count half."""
    return ((np.sign(differences) + 1) / 2).mean(axis=(-2, -1))


def _estimate(statistic: Callable[..., Any], scores: NDArray[np.float64]) -> dict[str, float]:
    found = over_seeds(statistic, scores)
    return {"value": found.value, "low": found.low, "high": found.high}


def _words(cell: Mapping[str, float]) -> str:
    return f"{cell['value']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]"


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"
