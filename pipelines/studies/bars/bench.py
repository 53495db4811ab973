"""Runs of one agent and of what it is compared with, all kept as soon as they are finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from data.netsim.cc import CONTROLS
from data.netsim.scenario import Scenario, load
from pipelines.studies.episodes import Act, digest, returns
from pipelines.studies.papers.runs import Kept, Run, Task, flat, sources

if TYPE_CHECKING:
    from models.closedloop import Player
    from models.envs.batching import Batching

Floats = NDArray[np.float64]
Episode = tuple[Scenario, int]
FOLDER = Path(__file__).parent
_UNREAD = ("__init__.py", "beyond.py", "command.py", "judge.py", "kept.py", "page.py")
"""Files of the folder on which no return depends."""
AGENT = "trained"
"""Who plays, where a control could be named."""
_CARRIED = ("goodput_mbps", "transferred_mb", "flows.")
"""Beginnings of the metrics that are known of a run in which nothing arrived."""
_AT_ONCE = 8
"""Runs of an agent that are played side by side; a killed command loses as many at most."""


class Script(Protocol):
    """A policy by hand, as something that plays."""

    @property
    def identity(self) -> str:
        """Hash of all that its runs depend on besides the simulator."""
        ...

    def play(self, episodes: Sequence[Episode]) -> list[dict[str, Any]]:
        """Run scenarios, each with a seed."""
        ...


class Bench:
    """Where an agent is measured.

    Parameters
    ----------
    player : Player
        The agent.
    seeds : int
        Runs of each.
    kept : Kept
        Finished runs.
    """

    def __init__(self, player: Player, seeds: int, kept: Kept) -> None:
        self.player, self.seeds, self.kept = player, seeds, kept

    @cached_property
    def identity(self) -> str:
        """Hash of what plays as the agent."""
        from models.policies.identity import identity

        return identity(self.player.policy)

    def named(self, name: str, label: str = "", **settings: Any) -> list[Episode]:
        """Episodes of a named scenario, one a seed; settings are keys with ``__`` for dots."""
        changes = {key.replace("__", "."): value for key, value in settings.items()}
        return self.of(load(name, changes)[label])

    def of(self, spec: Scenario) -> list[Episode]:
        """Episodes of one scenario, one a seed."""
        return [(spec, seed) for seed in range(self.seeds)]

    def runs(self, episodes: Sequence[Episode], who: str | Script = AGENT) -> list[Run]:
        """Metrics of all episodes in their order: those that are kept, or of runs made now.

        Parameters
        ----------
        episodes : sequence of (Scenario, int)
        who : str or Script, optional
            A control's name, `AGENT`, or a policy by hand.
        """
        from data.netsim.metrics import simulate

        name = who if isinstance(who, str) else AGENT
        own = self.identity if who == AGENT else ""
        identity = own if isinstance(who, str) else who.identity
        keys = [_key(Task("bars", "", name, seed, spec), identity) for spec, seed in episodes]
        missing = [(key, one) for key, one in zip(keys, episodes, strict=True)
                   if self.kept.found(key) is None]  # fmt: skip
        if name in CONTROLS:
            for key, (spec, seed) in missing:
                self.kept.keep(key, flat(simulate(spec, name, seed)))
        else:
            player: Any = self.player if isinstance(who, str) else who
            for at in range(0, len(missing), _AT_ONCE):
                part = missing[at : at + _AT_ONCE]
                for (key, _), row in zip(part, player.play([one for _, one in part]), strict=True):
                    row.pop("decision_us", None)
                    self.kept.keep(key, flat(row))
        found = [self.kept.found(key) for key in keys]
        return [run for run in found if run is not None]

    def values(
        self,
        episodes: Sequence[Episode],
        metric: str,
        who: str | Script = AGENT,
        otherwise: Floats | None = None,
    ) -> Floats:
        """One metric of all episodes.

        Parameters
        ----------
        episodes : sequence of (Scenario, int)
        metric : str
        who : str or Script, optional
            As of `runs`.
        otherwise : float64 array [episodes], optional
            What stands for the metric where a run lacks it; NaN by default.

        Returns
        -------
        float64 array [episodes]
        """
        found = np.array([_of(run, metric) for run in self.runs(episodes, who)])
        result: Floats = found if otherwise is None else np.where(np.isnan(found), otherwise, found)
        return result

    def best(
        self,
        episodes: Sequence[Episode],
        metric: str,
        among: Sequence[str],
        most: bool = True,
        otherwise: Floats | None = None,
    ) -> Floats:
        """A metric of that control whose mean is the best, of those that have it in every run.

        It is NaN everywhere when there is no such control.
        """
        found = [self.values(episodes, metric, cc, otherwise) for cc in among]
        whole = [one for one in found if not np.isnan(one).any()]
        if not whole:
            return np.full(len(episodes), np.nan)
        means = [float(one.mean()) for one in whole]
        return whole[int(np.argmax(means) if most else np.argmin(means))]

    def rewards(
        self, facts: Sequence[Any], make: Callable[[], Batching], act: Callable[[Batching], Act]
    ) -> Floats:
        """Mean rewards of a step in the environments that a batch has, kept or played now.

        Parameters
        ----------
        facts : sequence
            All that the result depends on besides the code, as JSON has it.
        make : callable
            Makes the batch.
        act : callable
            Makes what plays in it.
        """
        from models.policies.identity import code_digest

        controls = frozenset(CONTROLS) - {"agent"}
        code = [code_digest(), sources(controls), digest(_decide())]
        text = json.dumps([*facts, self.seeds, *code], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        found = self.kept.found(key)
        if found is None:
            batch = make()
            got = returns(batch, act(batch)).tolist()
            found = self.kept.keep(key, {str(i): value for i, value in enumerate(got)})
        return np.array(list(found.values()))


def over(one: Floats, other: Floats) -> Floats:
    """Ratios of pairs, float64 array [N]; NaN if there is nothing to divide by."""
    result: Floats = np.divide(one, other, out=np.full(len(one), np.nan), where=other > 0)
    return result


def _decide() -> list[Path]:
    """Files of the bars whose code decides what an agent is paid for."""
    return [path for path in sorted(FOLDER.glob("*.py")) if path.name not in _UNREAD]


def _of(run: Run, metric: str) -> float:
    """A run that carries nothing has no delay and no calm queue, only its goodput of 0."""
    if not metric.startswith(_CARRIED) and run.get("goodput_mbps") == 0.0:
        return float("nan")
    return run.get(metric, float("nan"))


def _key(task: Task, identity: str) -> str:
    """As the papers' study keeps its runs, so that each is simulated once for both."""
    key = task.key()
    return hashlib.sha256(f"{key}{identity}".encode()).hexdigest() if identity else key
