"""Exports the congestion control that couples subflows by a verdict on their bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from export.feature_code.verdicts import integer_verdicts, verdict_files
from export.render import render
from export.source import Source

LABELS = ("NSB", "SB")
"""Labels of the models that it obeys: uncoupled, coupled."""
NAME = "cczoo_sbd"
"""Its name in the kernel, 15 characters at most."""


def sources(source: Source, given: Mapping[str, Any]) -> dict[str, str]:
    """``<identifier>_cc.bpf.c`` and what it includes, beside the model's own eBPF headers.

    Parameters
    ----------
    source : Source
    given : mapping
        What the templates of the eBPF target get.
    """
    name = source.identifier
    given = {**given, "verdicts": integer_verdicts(source.verdicts, source.form)}
    return {
        f"{name}_cc.h": render("sbd_cc.h.j2", **given),
        f"{name}_cc.bpf.c": render("sbd_cc.bpf.c.j2", **given, ops=NAME),
        **verdict_files(source),
        "lia.h": files("data.lab").joinpath("native/lia.h").read_text(encoding="utf-8"),
    }
