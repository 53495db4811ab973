"""Each congestion control is a module, found by name in ``CONTROLS``.

A control's module has ``SUMMARY`` (one line), optionally ``FIELDS`` (its own fields of a
subflow's record, name -> numpy type), ``PACING`` (1 the kernel's pacing, 2 its own),
``OWN_WINDOW`` (its ``control`` sets the window in every state), ``ECN``, and any of the hooks
of `data.netsim.cc.dispatch`. What a module doesn't define is Reno's.
"""

from __future__ import annotations

import importlib
from types import ModuleType

CONTROLS: dict[str, str] = {
    "reno": "data.netsim.cc.reno",
    "cubic": "data.netsim.cc.cubic",
    "bbr": "data.netsim.cc.bbr",
    "vegas": "data.netsim.cc.vegas",
    "westwood": "data.netsim.cc.westwood",
    "veno": "data.netsim.cc.veno",
    "illinois": "data.netsim.cc.illinois",
    "yeah": "data.netsim.cc.yeah",
    "htcp": "data.netsim.cc.htcp",
    "highspeed": "data.netsim.cc.highspeed",
    "scalable": "data.netsim.cc.scalable",
    "hybla": "data.netsim.cc.hybla",
    "cdg": "data.netsim.cc.cdg",
    "nv": "data.netsim.cc.nv",
    "dctcp": "data.netsim.cc.dctcp",
    "lia": "data.netsim.cc.lia",
    "olia": "data.netsim.cc.olia",
    "balia": "data.netsim.cc.balia",
    "wvegas": "data.netsim.cc.wvegas",
    "mpcdg": "data.netsim.cc.mpcdg",
    "nuwa": "data.netsim.cc.nuwa",
    "agent": "data.netsim.cc.agent",
}
"""name -> module; the place in this dict is the number that the event loop knows it by."""
COUPLED = ("lia", "olia", "balia", "wvegas", "mpcdg")
"""Controls that a connection's subflows share; with one they are Reno, Vegas, or much like CDG."""


def module(name: str) -> ModuleType:
    """Import the module of a control."""
    return importlib.import_module(CONTROLS[name])


def number(name: str) -> int:
    """Number of a control inside the event loop."""
    return list(CONTROLS).index(name)


def fields() -> tuple[tuple[str, str], ...]:
    """The fields that all controls together add to a subflow's record, with their types."""
    result: dict[str, str] = {}
    for name in CONTROLS:
        for field, kind in getattr(module(name), "FIELDS", {}).items():
            if field in result:
                raise ValueError(f"field {field} of control {name} is taken")
            result[field] = kind
    return tuple(result.items())
