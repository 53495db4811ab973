"""Where a model comes from: the part of its description that its training alone knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Origin:
    """What a model was made from, and by what; its card and its ``meta.json`` say the same.

    Attributes
    ----------
    family : str
        Family of its features.
    command : str
        What was run to make it.
    settings : mapping
        What its features were computed with; empty where they have no settings.
    data_hash : str
        Of the training table; empty where nothing was learned from one.
    """

    family: str
    command: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    data_hash: str = ""

    def meta(self) -> dict[str, Any]:
        """The same as fields of :class:`models.meta.Meta`."""
        return {
            "family": self.family,
            "feature_settings": dict(self.settings),
            "data_hash": self.data_hash,
            "created_by": self.command,
        }
