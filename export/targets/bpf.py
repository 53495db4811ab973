"""CO-RE eBPF: if/else and map walk, a test program, and a congestion control that obeys it."""

from __future__ import annotations

from export.bpf.files import STRAIGHT, WALKED, sources
from export.params import Options
from export.source import Source

SUMMARY = "eBPF C for the kernel's verifier (--set bpf=if-else, map or both)"
TAKES = frozenset(STRAIGHT) | WALKED


def emit(source: Source, options: Options) -> dict[str, str | bytes]:
    """``<identifier>.bpf.h`` (code), ``<identifier>_map.bpf.h`` (walk), and programs."""
    return sources(source, options.bpf)
