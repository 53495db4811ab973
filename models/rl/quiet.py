"""RLlib, as it comes, advises on every start what isn't meant for who trains."""

from __future__ import annotations

import logging
import warnings


def hush() -> None:
    """Let Ray say only what went wrong."""
    import ray.rllib.algorithms.algorithm  # noqa: F401 - it sets levels of its own when imported

    for name in ("ray", "ray.rllib", "ray.tune", "ray._common.deprecation"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="ray")
