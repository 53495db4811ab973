"""Write the summary of live runs as Markdown, as docs/live.md has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NAMES = {"smartsbd": "SmartSBD", "lia": "LIA", "mpcdg": "MP-CDG", "reno": "MP Reno"}


def markdown(summary: Mapping[str, Any]) -> str:
    """Make tables of all scenarios in the summary, then of verdicts and cost."""
    parts = []
    for scenario, sites in summary["scenarios"].items():
        parts.append(f"### {scenario}\n\n{_scenario(sites)}")
    parts.append(f"### Verdicts\n\n{_verdicts(summary['scenarios'])}")
    parts.append(f"### Cost\n\n{_cost(summary)}")
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _number(found: Mapping[str, Any] | None, digits: int = 2) -> str:
    if not found or found["mean"] is None:
        return ""
    text = f"{found['mean']:.{digits}f}"
    if found["low"] is None:
        return text
    return f"{text} [{found['low']:.{digits}f}, {found['high']:.{digits}f}]"


def _scenario(sites: Mapping[str, Any]) -> str:
    first = next(iter(next(iter(sites.values()))["controls"].values()))
    if "mptcp_mbps" not in first:
        return _moving(sites)
    with_rival = "rival_mbps" in first
    head = ["site", "control", "MPTCP, Mbps", "of SmartSBD's"]
    head += ["competing TCP, Mbps", "MPTCP / TCP"] if with_rival else []
    rows = []
    for site, found in sites.items():
        for cc, control in found["controls"].items():
            relative = found["relative_to_smartsbd"].get(cc)
            row = [site, NAMES[cc], _number(control["mptcp_mbps"]), _number(relative)]
            if with_rival:
                row += [_number(control["rival_mbps"]), _number(control["mptcp_over_rival"])]
            rows.append(row)
    return table(head, rows)


def _moving(sites: Mapping[str, Any]) -> str:
    head = ["site", "control", "phase", "MPTCP, Mbps", "of SmartSBD's", "competing TCP, Mbps"]
    rows = []
    for site, found in sites.items():
        for phase, relative in found["relative_to_smartsbd"].items():
            for cc, control in found["controls"].items():
                mine = control[phase]
                rows.append(
                    [site, NAMES[cc], f"{phase.removeprefix('phase ')} ({mine['label']})",
                     _number(mine["mptcp_mbps"]), _number(relative.get(cc)),
                     _number(mine["rival_mbps"])]
                )  # fmt: skip
    return table(head, rows)


def _verdicts(scenarios: Mapping[str, Any]) -> str:
    head = ["scenario", "site", "T, s", "first verdict after, s", "right", "SB to NSB after, s",
            "NSB to SB after, s"]  # fmt: skip
    rows = []
    for scenario, sites in scenarios.items():
        for site, found in sites.items():
            mine = found["controls"].get("smartsbd", {}).get("verdicts")
            if mine is None:
                continue
            row = [scenario, site, f"{found['window_s']:.1f}", _number(mine["first_at_s"], 1),
                   _right(mine)]  # fmt: skip
            rows.append(row + [_shift(mine.get(f"shift {n}")) for n in (1, 2)])
    return table(head, rows)


def _right(found: Mapping[str, Any]) -> str:
    whole = f"{found['right']} of {found['judged']}"
    # Summaries made before models could say that they don't know have no such count.
    if found.get("not_known"):
        whole += f", {found['not_known']} by the verdict before"
    phases = [of for name, of in found.items() if name.startswith("phase ")]
    each = ", ".join(f"{of['right']} of {of['judged']}" for of in phases)
    return f"{whole} ({each})" if each else whole


def _shift(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    words = [_number(found["delay_s"], 1)]
    words += [f"{found['already']} already wrong so"] if found["already"] else []
    words += [f"{found['not_detected']} never"] if found["not_detected"] else []
    return "; ".join(word for word in words if word)


def _cost(summary: Mapping[str, Any]) -> str:
    rows = []
    for control, found in summary["cost"]["bpf"].items():
        each = found["ns_per_ack"]
        rows.append([f"`{control}`, BPF per ACK", "" if each is None else f"{each:.0f} ns",
                     f"{found['acks']} ACKs"])  # fmt: skip
    agent, verdicts = summary["cost"]["agent"], summary["verdicts"]
    for name, unit in (("features_us", "µs"), ("classify_ns", "ns")):
        found = agent[name]
        if found["mean"] is not None:
            rows.append([f"agent: {name.split('_')[0]} of a window",
                         f"{found['mean']:.1f} {unit}, at most {found['max']:.1f}",
                         f"median {found['median']:.1f} {unit}"])  # fmt: skip
    share = agent["cpu_share"]["mean"]
    if share is not None:
        rows.append(["agent: share of a core", f"{100 * share:.2f} %",
                     f"{agent['us_per_event']['mean']:.1f} µs an event"])  # fmt: skip
    median = verdicts["answered_after_us"]["median"]
    if median is not None:
        rows.append(["the kernel's answer comes after", f"{median / 1e3:.1f} ms",
                     "median; at the next ACK"])  # fmt: skip
    return table(["what", "mean", "of"], rows)
