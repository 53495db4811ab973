"""Draw the picture of the README: ``python -m pipelines.reporting.overview``.

SVG written by hand: it follows the reader's light or dark theme, which matplotlib's doesn't.
"""

from __future__ import annotations

import math
import sys
from html import escape
from pathlib import Path

PICTURE = Path("docs/img/overview.svg")
WIDTH, BOX, GAP, TOP, TALL = 980, 172, 30, 34, 128

STEPS = (
    ("Kernel logs", "cczoo lab"),
    ("Events", "cczoo ingest"),
    ("Features", "cczoo features"),
    ("Classifiers", "cczoo train"),
    ("Verified code", "cczoo export, verify"),
)

STYLE = Path(__file__).with_name("overview.css")


def draw() -> str:
    """Draw the picture as an SVG document."""
    parts = []
    drawings = (_logs, _events, _features, _classifiers, _code)
    for i, ((title, command), drawing) in enumerate(zip(STEPS, drawings, strict=True)):
        x = i * (BOX + GAP)
        parts.append(f'<text x="{x + BOX / 2:.0f}" y="20" text-anchor="middle">{title}</text>')
        parts.append(
            f'<rect class="box" x="{x + 1}" y="{TOP}" width="{BOX - 2}" height="{TALL}" rx="9"/>'
            f'<g transform="translate({x + 14},{TOP + 12})">{drawing()}</g>'
            f'<text class="command" x="{x + BOX / 2:.0f}" y="{TOP + TALL + 22}" '
            f'text-anchor="middle">{command}</text>'
        )
        if i:
            y = TOP + TALL / 2
            parts.append(
                f'<path class="arrow" d="M{x - GAP + 5} {y}H{x - 9}"/>'
                f'<path class="head" d="M{x - 4} {y}l-9 -5v10z"/>'
            )
    height = TOP + TALL + 32
    style = STYLE.read_text(encoding="utf-8")
    label = "Kernel logs become events, features, classifiers and verified code"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="{label}"><style>{style}</style>'
        f"{''.join(parts)}</svg>\n"
    )


def _logs() -> str:
    lines = (
        "812.104 probe 1 rtt 54113",
        "812.107 probe 2 rtt 98021",
        "812.109 state 1 0→3",
        "812.109 retransmit 1",
        "812.131 probe 2 rtt 97640",
        "812.140 probe 1 rtt 31877",
        "812.152 state 1 3→0",
    )
    shown = (
        f'<text class="mono" textLength="{round(len(line) * 5.7)}" lengthAdjust="spacingAndGlyphs" '
        f'x="0" y="{10 + 16 * i}">{line}</text>'
        for i, line in enumerate(lines)
    )
    return "".join(shown)


def _events() -> str:
    rtt = _line([(x, 20 - 9 * math.sin(x / 11) - 5 * math.sin(x / 4.3)) for x in range(0, 96, 3)])
    return (
        '<text class="small" x="0" y="24">RTT</text>'
        f'<g transform="translate(46,0)"><path class="a" d="{rtt}"/></g>'
        '<text class="small" x="0" y="62">state</text>'
        '<path class="a" d="M46 64H70V50H80V64H112V50H126V64H142"/>'
        '<text class="small" x="0" y="100">ACK</text>'
        '<path class="a" d="M46 102H58V98H74V93H84V90H104V84H120V80H142"/>'
    )


def _features() -> str:
    def wave(shift: float, lift: float) -> str:
        return _line(
            [
                (x, lift - 10 * math.sin((x + shift) / 13) - 4 * math.sin(x / 4))
                for x in range(0, 145, 3)
            ]
        )

    bars = "".join(
        f'<rect class="{"fb" if i % 3 == 1 else "fa"}" x="{i * 18}" y="{104 - h}" width="11" '
        f'height="{h}"/>'
        for i, h in enumerate((26, 19, 12, 22, 9, 15, 6, 11))
    )
    return (
        '<rect class="frame" x="30" y="-2" width="84" height="70"/>'
        f'<path class="b" d="{wave(4, 18)}"/>'
        f'<path class="a" d="{wave(0, 48)}"/>{bars}'
    )


def _classifiers() -> str:
    edges = (
        (72, 10, 36, 48),
        (72, 10, 108, 48),
        (36, 48, 16, 90),
        (36, 48, 56, 90),
        (108, 48, 88, 90),
        (108, 48, 128, 90),
    )
    lines = "".join(f'<path class="edge" d="M{a} {b}L{c} {d}"/>' for a, b, c, d in edges)
    inner = "".join(
        f'<circle class="node" cx="{x}" cy="{y}" r="7"/>'
        for x, y in ((72, 10), (36, 48), (108, 48))
    )
    leaves = "".join(
        f'<rect class="{"fa" if i % 3 == 0 else "fb"}" x="{x - 11}" y="82" width="22" height="16" '
        'rx="4"/>'
        for i, x in enumerate((16, 56, 88, 128))
    )
    return lines + inner + leaves


def _code() -> str:
    lines = ("if (x[3] <= 1842)", "    return SB;", "return NSB;")
    shown = "".join(
        f'<text class="mono" xml:space="preserve" x="0" y="{10 + 16 * i}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f"{shown}<text class='small' x='0' y='68'>integer C99, ONNX</text>"
        '<path class="ok" d="M2 90l8 9L25 80"/>'
        '<text class="small good" x="36" y="95">same answers</text>'
    )


def _line(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.0f} {y:.1f}" for x, y in points)


def main() -> int:
    """Write the picture below the current directory."""
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(), encoding="utf-8")
    print(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
