"""Show the agents that were trained here: how they learned, what they beat, and how they drive."""

from __future__ import annotations

from html import escape
from typing import Any

from pipelines.reporting.figures import COLOURS, style, svg
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, Html, figure, mark, paragraph, stacked, table
from pipelines.rl.results import (
    CURVE,
    FOLDER,
    TRAJECTORY,
    VERDICT,
    Curve,
    Over,
    Trajectory,
    Verdict,
)

LINES = {"random": ":", "untrained": "-.", "constant": "--", "script": (0, (6, 2, 1, 2))}
"""Kind of a policy -> how its level is drawn beside the learning curve."""
NAMES = {
    "random": "random actions",
    "untrained": "untrained",
    "constant": "best constant",
    "script": "best script",
}


def tcco(inputs: Inputs) -> str:
    """The small training of TCCO."""
    return _section(inputs, "tcco")


def nuwa(inputs: Inputs) -> str:
    """The small training of Nuwa-RL."""
    return _section(inputs, "nuwa")


def macc(inputs: Inputs) -> str:
    """The small training of MA-CC."""
    return _section(inputs, "macc")


def _section(inputs: Inputs, name: str) -> str:
    place, command = inputs.root / "reports" / FOLDER / name, f"dvc repro agent-{name}"
    found = inputs.result(VERDICT, place / VERDICT.name, command)
    curve = inputs.result(CURVE, place / CURVE.name, command)
    shown = inputs.result(TRAJECTORY, place / TRAJECTORY.name, command)
    word = mark("met", "met") if found.met else mark("unmet", "not met")
    head = paragraph(
        Html(
            f"To beat random actions, its untrained network and the best constant action: "
            f"{word.text}. Trained by <code>{escape(found.command)}</code> in "
            f"{found.cpu_s:.0f} CPU seconds ({found.steps} steps, seed "
            f"{', '.join(map(str, found.seeds))}) on <code>{found.sampler}</code>."
        )
    )
    over = {kind: one for kind, one in found.over.items() if one is not None}
    rows: list[list[Any]] = [
        [
            NAMES[kind],
            one.policy,
            stacked(f"{one.mean:+.3f}", f"{one.low:+.3f} to {one.high:+.3f}"),
            _word(kind, one),
        ]
        for kind, one in over.items()
    ]
    columns = [
        Column("over", number=False),
        Column("which is", number=False),
        Column("reward of a step"),
        Column("", number=False),
    ]
    caption = f"{name} less what it is measured by, paired in {found.episodes} test episodes"
    played = [
        [
            row.policy,
            row.kind,
            row.episodes,
            stacked(f"{row.mean:.3f}", f"{row.low:.3f} to {row.high:.3f}"),
            f"{row.mbps:.1f}",
            f"{row.rtt_ms:.1f}",
        ]
        for row in found.rows
    ]
    every = [
        Column("policy", number=False),
        Column("kind", number=False),
        Column("episodes"),
        Column("reward of a step"),
        Column("Mbps"),
        Column("RTT, ms"),
    ]
    return (
        head
        + table(columns, rows, caption)
        + "".join(paragraph(line) for line in found.text[1 + len(over) :])
        + _curve(name, curve, _less_a_twin(found))
        + _trajectory(name, shown)
        + table(every, played, "Everybody who played")
    )


def _word(kind: str, one: Over) -> Html:
    if kind == "script":
        return mark("met", "beaten") if one.beaten else mark("unknown", "not asked")
    return mark("met", "beaten") if one.beaten else mark("unmet", "not beaten")


def _less_a_twin(found: Verdict) -> bool:
    """Whether the training's rewards were differences to those of a twin."""
    env = found.settings.get("env")
    return isinstance(env, dict) and env.get("twin_k") is not None


def _curve(name: str, curve: Curve, less_a_twin: bool) -> str:
    with style():
        from matplotlib import pyplot

        drawn, axes = pyplot.subplots(figsize=(7.2, 3.2))
        own = [(p.steps, p.validation) for p in curve.points if p.validation is not None]
        seen = [(p.steps, p.reward) for p in curve.points if p.reward is not None]
        if less_a_twin:
            # Rewards of training are differences then, and nothing else here is.
            seen = []
        axes.plot([at for at, _ in seen], [value for _, value in seen], color=COLOURS[6], alpha=0.6,
                  label="while it explores")  # fmt: skip
        axes.plot([at for at, _ in own], [value for _, value in own], "o-", color=COLOURS[0],
                  markersize=3, label="its best actions")  # fmt: skip
        for i, (kind, level) in enumerate(curve.levels.items()):
            axes.axhline(level, color=COLOURS[1 + i], linestyle=LINES[kind], label=NAMES[kind])
        axes.set_xlabel("steps")
        axes.set_ylabel("mean reward of a step")
        shown = [*curve.levels.values(), *(value for _, value in own)]
        room = 0.08 * (max(shown) - min(shown) or 1.0)
        # Rewards while exploring may lie far below all that is compared.
        axes.set_ylim(min(shown) - room, max(shown) + room)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        text = svg(drawn, f"curve-{name}", f"Learning curve of {name}")
    return figure(
        text,
        f"How {name} learned (seed {curve.seed}): its best actions in the episodes of validation, "
        "which everybody whose level is drawn has played"
        + ("." if less_a_twin else "; grey is what it got while exploring, in other episodes."),
        wide=True,
    )


def _trajectory(name: str, shown: Trajectory) -> str:
    with style():
        from matplotlib import pyplot

        drawn, rows = pyplot.subplots(3, 1, figsize=(7.2, 5.4), sharex=True)
        for colour, (who, run) in zip(COLOURS, shown.runs.items(), strict=False):
            rows[0].plot(run.time_s, run.mbps, color=colour, label=who)
            rtts = [float("nan") if value is None else value for value in run.rtt_ms]
            rows[1].plot(run.time_s, rtts, color=colour)
            for window in run.windows:
                rows[2].plot(run.time_s, window, color=colour, alpha=0.8, linewidth=1.0)
        for axes, what in zip(rows, ("Mbps", "RTT, ms", "window, segments"), strict=True):
            axes.set_ylabel(what)
            axes.set_ylim(bottom=0)
        rows[2].set_xlabel("time, s")
        rows[0].legend(fontsize=7, loc="lower right")
        text = svg(drawn, f"run-{name}", f"{name} beside CUBIC in {shown.title}")
    return figure(
        text,
        f"{name} and CUBIC in {shown.title} (seed {shown.seed}), each alone in the same network: "
        "goodput and mean RTT of the flows under test together, and the window of each subflow.",
        wide=True,
    )
