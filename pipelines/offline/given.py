"""Settings that an evaluation of a policy takes over from its training, with a user's changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.offline.params import Evaluation

KEPT = (
    "gamma", "held_out", "split", "subflows", "subflow_width", "width", "heads", "layers",
    "context", "logs", "env", "seed", "batch", "shuffle",
)  # fmt: skip
"""What the policy's network and the split of its data must agree on, and what suited it."""


def evaluation(training: Mapping[str, Any], changes: Mapping[str, Any]) -> Evaluation:
    """Settings of an evaluation.

    Parameters
    ----------
    training : mapping
        As of `models.offline.acting.settings_of`; empty for a policy that has none.
    changes : mapping
        As the user gives them by ``--set``.

    Raises
    ------
    UserError
        When one has no such key or value.
    """
    from models.envs.tcco import TccoSettings
    from models.offline.params import Evaluation

    tree = {key: training[key] for key in KEPT if key in training}
    if "subflows" not in tree:
        tree["subflows"] = TccoSettings.parse(tree.get("env", {}), "env").params.subflows
    return Evaluation.parse({**tree, **changes}, "--set")
