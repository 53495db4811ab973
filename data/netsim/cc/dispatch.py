"""Calls to the congestion control of a subflow, by its number.

One chain of comparisons per hook is written from the registry, so that the compiler sees
plain calls, which it inlines, and no function pointers.
"""

from __future__ import annotations

from typing import Any

from data.netsim.cc import CONTROLS, module, reno
from data.netsim.jit import compiled

HOOKS: dict[str, str] = {
    "start": "subs, c, s, now",
    "restart": "s, now",
    "ssthresh": "subs, c, s, now",
    "avoid": "subs, c, s, acked, now",
    "acked": "subs, c, s, acked, rtt, marks, now",
    "set_state": "subs, c, s, state, now",
    "control": "subs, c, s, acked, flight, now",
    "receive": "s, sent, now",
}
"""hook -> arguments.

``subs`` all subflows, ``c`` the connection, ``s`` the subflow (records), ``now`` ns:

- ``start``: the handshake is done;
- ``restart``: a segment is about to be sent while nothing is unacknowledged;
- ``ssthresh``: the slow-start threshold on entering CWR, Recovery or Loss (segments);
- ``avoid``: ``acked`` segments were delivered in a state in which the window may grow;
- ``acked``: every ACK: segments delivered, RTT (ns, -1 none), segments marked by ECN;
- ``set_state``: before a congestion state is entered;
- ``control``: whether the control has set window and pacing rate itself; ``flight`` is what
  was in flight before the ACK;
- ``receive``: at the receiver, a segment sent at ``sent`` has come.
"""


def _build(hook: str) -> Any:
    arguments = HOOKS[hook]
    scope: dict[str, Any] = {}
    lines = [f"def cc_{hook}({arguments}):"]
    for position, name in enumerate(CONTROLS):
        function = getattr(module(name), hook, None)
        if function is not None and function is not getattr(reno, hook):
            scope[f"of_{name}"] = function
            lines.append(f"    if s.cc == {position}:")
            lines.append(f"        return of_{name}({arguments})")
    scope["otherwise"] = getattr(reno, hook)
    lines.append(f"    return otherwise({arguments})")
    exec("\n".join(lines), scope)
    return compiled(scope[f"cc_{hook}"])


cc_start = _build("start")
cc_restart = _build("restart")
cc_ssthresh = _build("ssthresh")
cc_avoid = _build("avoid")
cc_acked = _build("acked")
cc_set_state = _build("set_state")
cc_control = _build("control")
cc_receive = _build("receive")
