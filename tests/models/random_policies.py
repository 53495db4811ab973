"""Policies with random weights: to be played, not to be good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from data.netsim.scenario import Scenario
from models.envs.macc import MaccParams
from models.envs.nuwa import NuwaParams
from models.envs.tcco import TccoParams
from models.policies.policy import SCALES, Policy
from models.rl.layout import Layout
from models.rl.networks.dueling import TeamModule
from models.rl.networks.lstm import RecurrentModule
from models.rl.networks.transformer import TransformerModule

SMALL = {"subflow_width": 8, "width": 16, "heads": 2, "layers": 1, "context": 5, "cells": 8,
         "hidden": [8, 8], "logs": True}  # fmt: skip
MADE: dict[str, tuple[str, Callable[..., Any], Layout, Any]] = {
    "tcco": ("transformer", TransformerModule, Layout((0, 0), (5,), (6,), 20), TccoParams()),
    "nuwa": ("lstm", RecurrentModule, Layout((0,), (5,), (7,), 8), NuwaParams()),
    "macc": ("dueling", TeamModule, Layout((0, 0, 0, 1, 1), (3, 2), (3, 3), 1), MaccParams()),
}


def policy(environment: str, seed: int = 3) -> Policy:
    network, kind, layout, params = MADE[environment]
    torch.manual_seed(seed)
    module = kind(model_config={"layout": layout.plain(), "network": SMALL})
    if network == "lstm":
        torch.nn.init.normal_(module.net.actor.weight)
    state = {name: value.numpy().copy() for name, value in module.state_dict().items()}
    kinds = tuple(range(len(layout.action_counts)))
    first = [layout.kinds.index(kind) for kind in kinds]
    weights = {name: value for name, value in state.items() if name.startswith("net.")}
    weights |= {name: state[name][first] for name in SCALES}
    plain = params.model_dump(mode="json")
    return Policy(
        environment, environment, environment, network, SMALL, plain, layout, kinds, weights
    )


def scenario(paths: int = 1, flows: int = 1, **more: Any) -> Scenario:
    """Flows over links of their own, and a plain queue."""
    links: dict[str, Any] = {"back": {"delay_ms": 5.0}}
    for k in range(paths):
        links[f"link{k}"] = {"rate_mbps": 8.0 + k, "delay_ms": 5.0, "queue_packets": 30}
    routes = [{"forward": [f"link{k}"], "back": ["back"]} for k in range(paths)]
    tree = {
        "duration_s": 2.0,
        "sample_s": 0.1,
        "bottleneck": "link0",
        "links": links,
        "flows": [{"name": "f", "count": flows, "start_gap_s": 0.1, "target_delay_ms": 20.0,
                   "paths": routes}],
        **more,
    }  # fmt: skip
    return Scenario.parse(tree, "test")
