"""Print docs/features.md: ``python -m features.docs > docs/features.md``."""

from __future__ import annotations

import sys

from features.params import SbdParams
from features.sbd import FAMILIES, features_of, settings_for
from features.spec import schema_hash

_HEAD = """\
# Features of shared-bottleneck detection

Made by `python -m features.docs > docs/features.md` from the entries in `features/`; a test
compares. `cczoo features sbd` writes one row per window with all of them as columns; what is
decided where the paper is silent stands in `docs/deviations.md`.

A window lasts {factor} times the larger min RTT. The first starts when the later of the two
subflows enters Recovery or Loss for the first time, the others follow without gap. RTT
(linear interpolation), throughput (an EWMA of weight {weight}, linear) and congestion state (step)
are resampled at the smaller min RTT. `rtt_kind` tells whether the log had raw RTTs (`raw`), only
smoothed ones (`srtt`) or one of each (`mixed`). "Other" is the subflow that isn't WiFi.

A connection with three and more subflows has a row for each pair (`subflow_a`, `subflow_b`) of
each window, at times of the connection (smartsbd.txt section 7). Members of a window are the
subflows that had been in Recovery or Loss by its start; the first window starts when the second
one gets there. It lasts {factor} times the members' largest min RTT and is sampled at their
smallest; of two subflows that is the same as above. Of a pair without WiFi the one whose min RTT
was smaller when it became a member stands for it. [partition.md](partition.md) tells what comes of
the rows.

Exported code sees `floor(value * scale + 0.5)` of the value clipped to its range.
"""

_ABOUT = {
    "smartsbd": "The paper's own, as the reproduction. Distances grow with the RTTs themselves.",
    "smartsbd-plus-kernel": "Those of the family before that integers compute cheaply: one "
    "definition, in whole numbers, for logs, trainings and exported code (docs/deploy.md).",
    "smartsbd-plus": "Scale-free and symmetric in the subflows, for conditions never trained on.",
}


def _hash(family: str) -> str:
    return schema_hash(features_of(family), settings_for(family, {}))


def page() -> str:
    """The whole page as Markdown."""
    params = SbdParams()
    parts = [_HEAD.format(factor=params.window_factor, weight=params.ewma_weight)]
    for family in FAMILIES:
        features = features_of(family)
        parts.append(
            f"## `{family}`: {len(features)} features\n\n{_ABOUT[family]}\n"
            f"Schema hash at the default settings `{_hash(family)[:16]}`.\n\n"
            "| name | range | unit | scale | meaning | source |\n"
            "| --- | --- | --- | --- | --- | --- |"
        )
        parts[-1] += "".join(
            f"\n| `{f.name}` | {f.low:g} … {f.high:g} | {f.unit} | 2^{f.scale.bit_length() - 1} "
            f"| {f.doc} | {f.source} |".replace("|ln|", "abs(ln)")
            for f in features
        )
        parts[-1] += "\n"
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
