"""Trees of bundles in the simulator, beside the same trees in a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.bundle.manifest import Bundle
from export.bundle.reemit import read_emitted
from export.feature_code import policy as derived
from pipelines.drive.trees import is_bundle, params_of

if TYPE_CHECKING:
    from models.closedloop import Player

MOST_PARTS = 8
"""Subflows of a connection: each has the tree to itself."""


def player_of(name: str, delay_ms: float = 0.0) -> Player:
    """The policy of a name in the simulator: as `models.closedloop.player`, trees' bundles too.

    Raises
    ------
    UserError
        There is none, or a bundle lacks the ONNX file that the simulator plays.
    """
    from models.closedloop import Player, player

    if is_bundle(name):
        bundle = read_emitted(Path(name))
        if (whose := derived.whose(bundle.features)) is not None:
            return Player(_tree_policy(bundle, *whose), delay_ms)
    return player(name, delay_ms)


def _tree_policy(bundle: Bundle, environment: str, kind: int) -> Any:
    from models.policies.in_tree import NETWORK, TreePolicy
    from models.policies.observed import OBSERVED, actions, observed
    from models.policies.policy import as_weights
    from models.rl.layout import Layout

    content = bundle.contents.get(f"{bundle.identifier}.onnx")
    if content is None:
        raise UserError(f"{bundle.directory}: the simulator plays ONNX: export it with -t onnx too")
    params = params_of(environment)
    kinds = sorted(number for name, number in OBSERVED if name == environment)
    layout = Layout(
        kinds=(kind,) * MOST_PARTS,
        action_counts=tuple(len(actions(environment, k, params)) for k in kinds),
        feature_counts=tuple(len(observed(environment, k)[0]) for k in kinds),
        context=1,
    )
    return TreePolicy(
        name=bundle.manifest["name"], agent=environment, environment=environment, network=NETWORK,
        settings={}, params=params, layout=layout, kinds=(kind,),
        weights=as_weights(bundle.manifest["name"], content), trees=((kind, content),),
    )  # fmt: skip
