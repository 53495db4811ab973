"""Groups of trainings that stand beside each other, and what each is trained with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.rl import agents
from pipelines.rl.budget import Budget


@dataclass(frozen=True)
class Group:
    """An agent and what it is compared with, in one environment.

    Attributes
    ----------
    agent : str
        As ``cczoo train`` takes it; its small budget in ``params.yaml`` is that of all of them.
    beside : tuple of str
        Its comparisons.
    sampler : str or None
        Scenarios other than the budget's.
    title : str
    """

    agent: str
    beside: tuple[str, ...]
    sampler: str | None
    title: str

    @property
    def names(self) -> tuple[str, ...]:
        """The agent first."""
        return self.agent, *self.beside


_NUWA = ("nuwa-dqn", "nuwa-ppo", "nuwa-a2c")
_LINKS = {"wired": "a wired link", "wifi": "WiFi", "4g": "4G", "5g": "5G"}
GROUPS: dict[str, Group] = {
    "macc": Group(
        "macc",
        ("macc-independent", "macc-qmix", "macc-printed", "macc-rl-tcp", "macc-rl-tcp-red",
         "macc-rl-aqm"),
        None,
        "MA-CC beside other ways to learn as a team, as its Table 1 prints it, and its parts alone",
    ),
    **{
        f"nuwa-{link}": Group("nuwa", _NUWA, f"nuwa_{link}", f"Nuwa's Fig. 12: {words}")
        for link, words in _LINKS.items()
    },
    "tcco": Group(
        "tcco",
        ("tcco-printed", "tcco-joint", "tcco-one-step", "tcco-stacked", "tcco-context-5",
         "tcco-context-10", "tcco-context-40", "tcco-1000ms", "tcco-no-expflag"),
        None,
        "TCCO without its parts, with other contexts, and as its Table I prints it",
    ),
}  # fmt: skip
"""Name -> group; a new one is one line."""


def settings(group: Group, name: str, budget: Budget) -> dict[str, Any]:
    """What one of a group is trained with, but for the seed.

    The small budget's settings, without those that the comparison changes or its type doesn't know.

    Parameters
    ----------
    group : Group
    name : str
        One of its names.
    budget : Budget
        The agent's, as ``params.yaml`` has it.
    """
    line = agents.agent(name)
    fields = line.settings().model_fields
    known = {one.alias or key for key, one in fields.items()} | set(fields)
    given = dict(budget.settings)
    env = {**given.pop("env", {}), **({"sampler": group.sampler} if group.sampler else {})}
    preset = dict(line.preset)
    chosen = {key: value for key, value in given.items() if key in known and key not in preset}
    own_env: Mapping[str, Any] = preset.get("env", {})
    chosen["env"] = {**env, **own_env}
    return chosen
