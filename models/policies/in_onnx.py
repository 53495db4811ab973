"""A policy that acts by an exported ONNX file, which gets what was measured and keeps no secrets.

Whatever plays policies plays these too, so an export is judged by the same runs as the network that
it was made of.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.onnx_safe import open_session, parsed
from models.policies.decisions import side_by_side, whole_values
from models.policies.policy import Policy, as_weights

if TYPE_CHECKING:
    from models.rl.layout import Layout


@dataclass(frozen=True)
class OnnxPolicy(Policy):
    """A policy without weights of its own.

    Attributes
    ----------
    content : bytes
        The file, as `export.policy.source.onnx_file` writes it.
    """

    content: bytes = b""

    def actor(self, layout: Layout) -> OnnxActor:
        """What acts in a batch of this layout."""
        return OnnxActor(self, layout)


class OnnxActor:
    """Takes the best action everywhere; remembers what the file's states are.

    Parameters
    ----------
    policy : OnnxPolicy
    layout : Layout
        Of the batch that it acts in.
    """

    def __init__(self, policy: OnnxPolicy, layout: Layout) -> None:
        self._policy = policy
        self._session = open_session(policy.content, policy.name)
        said = self._session.get_modelmeta().custom_metadata_map
        self._parts = int(said["parts"])
        self._own = layout.parts_of(policy.kinds[0])
        self._given, self._after = (
            json.loads(said.get(key, "[]")) for key in ("state_in", "state_out")
        )
        self._widths = {
            end.name: int(end.shape[1])
            for end in self._session.get_inputs()
            if end.name in self._given
        }
        if self._parts > 1 and len(self._own) > self._parts:
            raise UserError(f"{policy.name}: {len(self._own)} subflows, its file has {self._parts}")
        self._state: dict[str, NDArray[np.float32]] = {}

    def __call__(self, batch: Any) -> NDArray[np.int64]:
        """Actions, int64 array [N, A]; 0 for parts of other kinds."""
        values, there = whole_values(batch, self._policy, self._own), batch.mask[:, self._own]
        lanes, parts = there.shape
        started = np.asarray(batch.started, bool)
        if self._parts == 1:
            values, there = values.reshape(-1, 1, values.shape[2]), there.reshape(-1, 1)
            started = np.repeat(started, parts)
        rows = side_by_side(values, there, self._parts).astype(np.float32)
        if not self._state:
            self._state = {
                name: np.zeros((len(rows), width), np.float32)
                for name, width in self._widths.items()
            }
        for name, value in self._state.items():
            # What a session returned is its own memory.
            self._state[name] = np.where(started[:, None], np.float32(0.0), value)
        found, *after = self._session.run(
            ["scores", *self._after], {"features": rows, **self._state}
        )
        self._state = dict(zip(self._given, after, strict=True))
        actions = np.zeros(batch.mask.shape, np.int64)
        actions[:, self._own] = found.reshape(lanes, parts, -1).argmax(axis=2)
        return actions


def of_file(path: Path) -> OnnxPolicy:
    """The policy that a file holds, as ``cczoo export NAME -t onnx`` writes it.

    Raises
    ------
    UserError
        When it holds none, or one of another version.
    """
    from models.policies import checked
    from models.policies.entry import Description
    from models.policies.observed import observation_hash

    content = path.read_bytes()
    said = {item.key: item.value for item in parsed(content, str(path)).metadata_props}
    if "policy" not in said:
        raise UserError(f"{path}: no policy: its metadata say nothing of one")
    try:
        tree = json.loads(said["policy"])
    except (ValueError, RecursionError):
        raise UserError(f"{path}: its metadata's policy is no JSON: export it again") from None
    where = f"{path}: policy"
    found = Description.parse(tree, where)
    params = checked.params(found.environment, found.kind, found.params, where)
    if found.observation_hash != observation_hash(found.environment, found.kind, params):
        raise UserError(
            f"{path}: what it observes has been defined anew since (hash differs): export it again"
        )
    return OnnxPolicy(
        name=path.stem,
        agent=found.agent,
        environment=found.environment,
        network=found.network,
        settings=found.settings,
        params=params,
        layout=checked.layout(found.environment, found.kind, params, found.layout, where),
        kinds=(found.kind,),
        weights=as_weights(path.stem, content),
        content=content,
    )
