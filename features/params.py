"""Settings of the feature stage, as they stand in ``params.yaml``."""

from __future__ import annotations

from pydantic import Field

from data.strict import Strict


class SbdParams(Strict):
    """How windows of a connection become features of shared-bottleneck detection."""

    window_factor: int = Field(50, ge=4, le=1000)
    """Window length in units of the larger min RTT (smartsbd.txt section 3.2)."""
    min_window_us: int = Field(100_000, ge=1000, le=3_600_000_000)
    """Shortest window: keeps RTTs of a few microseconds (one host) from making myriads of them."""
    ewma_weight: float = Field(0.125, gt=0, le=1)
    """Weight of a new throughput sample, TCP's own for the smoothed RTT; the paper has no value."""
    max_points: int = Field(1024, ge=16, le=65_536)
    """Grid points of a window at most: bounds the DTW when the two min RTTs are very unlike."""
    min_samples: int = Field(4, ge=2, le=100_000)
    """RTT samples that each subflow must have within a window."""
    history_windows: int = Field(7, ge=0, le=20)
    """Earlier windows that the long features of ``smartsbd-plus`` look back on."""
