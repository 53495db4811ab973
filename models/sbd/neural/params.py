"""Settings of the neural classifier: ``models.sbd.neural`` in ``params.yaml``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from data.strict import Strict


class Neural(Strict):
    """How the network is built and trained."""

    seed: int = Field(7, ge=0, le=2**31 - 1)
    width: int = Field(16, ge=4, le=64, multiple_of=4)
    """Channels of the encoders."""
    dilations: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (1, 2, 4, 8), min_length=1, max_length=16
    )
    """Dilations of the window's encoder, one block each, in pairs of cells."""
    hidden: int = Field(32, ge=1, le=256)
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of numbers dropped before the head."""
    long: bool = False
    """Look also at the RTTs of the windows before."""
    augment: tuple[str, ...] = ()
    """Names of `models.sbd.neural.augment.AUGMENTATIONS`."""
    epochs: int = Field(8, ge=1, le=10_000)
    patience: int = Field(3, ge=1, le=10_000)
    """Epochs without a better validation loss after which training ends."""
    batch: int = Field(128, ge=2, le=100_000)
    rate: float = Field(4e-3, gt=0, le=10)
    """Highest learning rate: risen to in the first fifth, then a cosine down to zero."""
    decay: float = Field(1e-2, ge=0, le=10)
    validation: float = Field(0.12, gt=0, lt=0.5)
    """Share of the training connections that early stopping looks at."""
    validation_folds: int = Field(2, ge=2, le=100)
    """Groups of families left out in turn when settings are chosen."""
    splits: int = Field(5, ge=1, le=1000)
    """How many of the shuffle splits that the others are tested on, counted from the first."""
    repeats: int = Field(3, ge=1, le=1000)
    """Seeds of protocols that have a single split."""


VARIANTS: dict[str, dict[str, object]] = {
    "base": {},
    "long": {"long": True},
    "wide": {"width": 24, "dilations": (1, 2, 4, 8, 16)},
    "moved": {"augment": ("stretch", "jitter")},
}
"""What was tried, as differences from the first; chosen on validation, see `selection`."""
