"""Settings of SmartSBD's trainings, from a file and the command line."""

from __future__ import annotations

from pathlib import Path

from models.sbd.params import Params
from pipelines.params import load as load_settings


def load_params(path: Path | None, seed: int | None = None) -> Params:
    """Settings from ``models.sbd`` of a YAML file, defaults without one."""
    settings: Params = load_settings(path).models.sbd
    return settings if seed is None else settings.model_copy(update={"seed": seed})
