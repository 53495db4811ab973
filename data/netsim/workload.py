"""A scenario that would take too much memory, too many packets or samples is refused here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from data.netsim.bounds import (
    MOST_FLOWS,
    MOST_MBPS,
    MOST_PACKETS,
    MOST_SAMPLES,
    MOST_WAITING,
    TRACE_MBPS,
)

if TYPE_CHECKING:
    from data.netsim.elements import Flow, Link, Source


class Asked(Protocol):
    """The part of a scenario that its amount of work follows from."""

    @property
    def duration_s(self) -> float:
        """How long it is simulated."""
        ...

    @property
    def sample_s(self) -> float:
        """How often values are sampled."""
        ...

    @property
    def links(self) -> Mapping[str, Link]:
        """Links by their names."""
        ...

    @property
    def flows(self) -> Sequence[Flow]:
        """Flows, each with how many of them there are."""
        ...

    @property
    def sources(self) -> Sequence[Source]:
        """Cross traffic."""
        ...


def check(spec: Asked) -> None:
    """Refuse a scenario that would take too much memory or time.

    Raises
    ------
    ValueError
        The message has the figure and says what to lower.
    """
    flows = sum(flow.count for flow in spec.flows)
    if flows > MOST_FLOWS:
        raise ValueError(f"flows: {flows} of them, at most {MOST_FLOWS}: lower count")
    subflows = sum(flow.count * len(flow.paths) for flow in spec.flows)
    samples = spec.duration_s / spec.sample_s * (subflows + len(spec.links))
    if samples > MOST_SAMPLES:
        raise ValueError(f"sample_s: {samples:.2g} values, at most {MOST_SAMPLES:.0e}: raise it")
    waiting = sum(flow.count * _window(flow) for flow in spec.flows)
    if waiting > MOST_WAITING:
        raise ValueError(
            f"flows: windows of {waiting} packets together, at most {MOST_WAITING}: "
            "lower window_bytes or raise segment_bytes"
        )


def check_work(spec: Asked) -> None:
    """Refuse a scenario of too many packets; its links' names have been checked.

    Raises
    ------
    ValueError
        The message says about how many there would be.
    """
    # A link's flows share its rate: what all may send over their narrowest one is cut to that.
    through: dict[str, float] = defaultdict(float)
    total = 0.0
    for flow in spec.flows:
        for path in flow.paths:
            for copy in range(flow.count):
                forward = [name.replace("{i}", str(copy)) for name in path.forward]
                back = [name.replace("{i}", str(copy)) for name in path.back]
                rtt_s = sum(_delay_ms(spec.links[name]) for name in forward + back) / 1e3
                per_s = _window(flow) / rtt_s if rtt_s else float("inf")
                if flow.rate_mbps is not None:
                    per_s = min(per_s, flow.rate_mbps * 1e6 / 8 / flow.segment_bytes)
                if flow.size_bytes is not None:
                    per_s = min(per_s, 2 * flow.size_bytes / flow.segment_bytes / spec.duration_s)
                most, name = min((_most_mbps(spec.links[name]), name) for name in forward)
                if most == float("inf"):
                    total += per_s
                else:
                    wire = flow.segment_bytes + flow.header_bytes
                    through[name] += min(per_s, most * 1e6 / 8 / wire)
    for source in spec.sources:
        per_s = source.rate_mbps * 1e6 / 8 / source.packet_bytes
        total += per_s
        link = min((spec.links[name] for name in source.path), key=_most_mbps)
        too_much = per_s * spec.duration_s * (_most_mbps(link) < source.rate_mbps)
        if min(too_much, _room(link, source.packet_bytes)) > MOST_WAITING:
            raise ValueError(
                f"sources: about {too_much:.2g} packets would wait in a queue, at most "
                f"{MOST_WAITING}: give the link queue_packets or lower the source's rate_mbps"
            )
    smallest = min((flow.segment_bytes + flow.header_bytes for flow in spec.flows), default=1500)
    total += sum(
        min(per_s, _most_mbps(spec.links[name]) * 1e6 / 8 / smallest)
        for name, per_s in through.items()
    )
    if total * spec.duration_s > MOST_PACKETS:
        raise ValueError(
            f"about {total * spec.duration_s:.2g} packets, at most {MOST_PACKETS:.0e} can be: "
            "shorten duration_s, lower rates or windows, or give the links a delay"
        )


def _window(flow: Flow) -> int:
    return max(2, flow.window_bytes // flow.segment_bytes)


def _room(link: Link, packet_bytes: int) -> float:
    """Packets that a link's queue holds."""
    in_packets = float("inf") if link.queue_packets is None else link.queue_packets
    in_bytes = float("inf") if link.queue_bytes is None else link.queue_bytes / packet_bytes
    return min(in_packets, in_bytes)


def _delay_ms(link: Link) -> float:
    if link.delay_steps is not None:
        return min(delay for _, delay in link.delay_steps)
    return link.delay_ms


def _most_mbps(link: Link) -> float:
    """Largest rate of a link, infinite for one that only delays."""
    if link.steps is not None:
        return max(rate for _, rate in link.steps)
    if link.generate is not None:
        return min(MOST_MBPS, 10 * link.generate.mean_mbps)
    if link.trace is not None:
        return TRACE_MBPS
    return float("inf") if link.rate_mbps is None else link.rate_mbps
