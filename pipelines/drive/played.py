"""Policies in the simulator, trees of bundles among them, beside the same ones in a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.bundle.manifest import Bundle
from export.bundle.reemit import read_emitted
from export.feature_code import policy as derived
from pipelines.drive.tasks import AQM, INSIDE, behind_ms
from pipelines.drive.trees import is_bundle, params_of

if TYPE_CHECKING:
    from models.closedloop import Player

MOST_PARTS = 8
"""Parts of a kind: each has the tree to itself."""


@dataclass(frozen=True)
class Playing:
    """What of a driven run the simulator can play.

    Attributes
    ----------
    policy : str, optional
        What sets windows; None of a policy by hand, which isn't played.
    queue : str, optional
        Bundle of the tree that runs the bottleneck's queue.
    """

    policy: str | None
    queue: str | None = None

    def player(self, control: str) -> Player | None:
        """Who plays a control, where that takes a policy; None if nobody can."""
        from models.closedloop import Player, player

        sending = control.removesuffix(AQM)
        sends = sending in INSIDE or behind_ms(sending) is not None
        if not control.endswith(AQM):
            bundle = _tree(self.policy) if self.policy and sends else None
            if bundle is not None:
                return Player(_tree_policy([bundle]), float(behind_ms(sending) or 0))
            named = self.policy if sends else None
            return None if named is None else player(named, float(behind_ms(sending) or 0))
        queue = _tree(self.queue or "")
        if queue is None or not (sends or sending == "reno"):
            return None
        sender = _tree(self.policy or "") if sends else None
        if sends and sender is None:
            return None
        return Player(_tree_policy([queue] if sender is None else [sender, queue]))


def _tree(name: str) -> Bundle | None:
    """The bundle of a policy's tree; None if a name is none."""
    if not is_bundle(name):
        return None
    bundle = read_emitted(Path(name))
    return None if derived.whose(bundle.features) is None else bundle


def _tree_policy(bundles: Sequence[Bundle]) -> Any:
    """Trees of one environment as one policy."""
    from models.policies.in_tree import NETWORK, TreePolicy
    from models.policies.observed import OBSERVED, actions, observed
    from models.policies.policy import as_weights
    from models.rl.layout import Layout

    trees: dict[int, bytes] = {}
    environment = ""
    for bundle in bundles:
        content = bundle.contents.get(f"{bundle.identifier}.onnx")
        if content is None:
            raise UserError(f"{bundle.directory}: the simulator plays ONNX: add -t onnx")
        environment, kind = derived.whose(bundle.features) or ("", 0)
        trees[kind] = content
    params = params_of(environment)
    known = sorted(number for name, number in OBSERVED if name == environment)
    layout = Layout(
        kinds=tuple(kind for kind in sorted(trees) for _ in range(MOST_PARTS)),
        action_counts=tuple(len(actions(environment, k, params)) for k in known),
        feature_counts=tuple(len(observed(environment, k)[0]) for k in known),
        context=1,
    )
    name = "+".join(bundle.manifest["name"] for bundle in bundles)
    weights = as_weights(name, next(iter(trees.values())))
    return TreePolicy(
        name=name, agent=environment, environment=environment, network=NETWORK, settings={},
        params=params, layout=layout, kinds=tuple(sorted(trees)), weights=weights,
        trees=tuple(sorted(trees.items())),
    )  # fmt: skip
