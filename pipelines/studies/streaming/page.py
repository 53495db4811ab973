"""The page of schedulers: tables of what viewers see, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.studies.streaming.kept import COMMAND, SHOWN, Estimate, Streaming

TITLES = {
    "generated": "Generated pairs",
    "measured": "Measured pairs",
}
HOW = {
    "generated": "Links are drawn by seed (`pipelines/studies/streaming/pairs.py`): 60 s, mean "
    "rates of 0.5 to 6 Mbps.",
    "measured": "WiFi and cellular links measured at the same time and place while walking, about "
    "100 s each. Their rates are taken as a tenth: the ladder ends at 6 Mbps, and links of 32 and "
    "38 Mbps would be idle mostly. Delays (10 and 40 ms one way), losses (0.1 %) and queues "
    "(300 ms) are ours.",
}
NOTE = """\
MP-CDG's scheduler has fewer stalls than minRTT over generated pairs, with both controls, at a
better picture and goodput: the intervals of these differences have no zero in them. What helps is
to wait: while the slower path has room but would deliver its one segment later than the faster path
delivers all that waits, nothing is sent, and the end of a video's segment comes sooner. Over
measured pairs it has fewer stalls with LIA; with MP-CDG's control the interval has zero in it (23
pairs). This reading of the paper was chosen on pairs of seeds from 10,000 on, after a first look at
the first 200 of those below and at the measured ones. Read word by word, with a window of data
given to the best path at once, the scheduler had no fewer stalls than minRTT.

Sending everything twice (`redundant`) has the fewest stalls over measured pairs, whose WiFi pauses
for seconds, and with LIA over generated ones. There the picture is 0.6 dB worse for it, as every
segment takes the capacity of two. Data out of order are a little more with `qos` than with minRTT.
"""
"""What the page says of its figures, which are printed below it each time."""


def tables(found: Streaming) -> str:
    """Tables of all rows, means and differences to minRTT."""
    lines: list[str] = []
    for links, cc in dict.fromkeys((row.links, row.cc) for row in found.rows):
        own = [row for row in found.rows if (row.links, row.cc) == (links, cc)]
        lines += ["", f"### With `{cc}`"]
        for more in (False, True):
            lines += ["", f"| {'more than minRTT' if more else 'scheduler'} | "
                      f"{' | '.join(SHOWN.values())} |"]  # fmt: skip
            lines.append(f"| --- |{' ---: |' * len(SHOWN)}")
            for row in own:
                if more and row.scheduler == "minrtt":
                    continue
                values = row.more if more else row.mean
                cells = " | ".join(_cell(values[name]) for name in SHOWN)
                lines.append(f"| `{row.scheduler}` | {cells} |")
    return "\n".join(lines).strip()


def text(found: Streaming, pairs: int, pictures: Mapping[str, tuple[str, str]]) -> str:
    """The page.

    Parameters
    ----------
    found : Streaming
    pairs : int
        How many were drawn.
    pictures : mapping
        Kind of links -> path of its figure from the page, and caption.
    """
    parts = [
        "# Streams over two paths, by scheduler",
        f"Made by `{COMMAND.replace('1000', str(pairs))}`; DIR has the measured pairs, which can't "
        "be kept here. A DASH-like live session (`data/video/dash.py`: segments of 1 s, 3 s of "
        "buffer) over each pair of a wireless LAN and a cellular link, with every scheduler of the "
        "simulator. `qos` is MP-CDG's (mp-cdg.txt section 4.1, `data/netsim/qos_scheduler.py`). "
        "Means over pairs with 95 % intervals (Student's t); differences are paired.",
        NOTE.strip(),
    ]
    for links in dict.fromkeys(row.links for row in found.rows):
        rows = tuple(row for row in found.rows if row.links == links)
        picture, caption = pictures[links]
        parts += [f"## {TITLES[links]}", f"{rows[0].pairs} pairs. {HOW[links]}",
                  f"![{caption}]({picture})", tables(Streaming(rows=rows))]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _cell(value: Estimate) -> str:
    return f"{value.mean:.3g} [{value.low:.3g}, {value.high:.3g}]"
