"""The page of offline agents, from what is kept of them alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from models.offline.methods import METHODS
from pipelines.league.families import STANDINGS
from pipelines.studies.offline import kept, words
from pipelines.studies.offline.drawing import CAPTIONS
from pipelines.studies.offline.kept import EPISODE, LAST, ONLINE, SCRATCH
from pipelines.studies.offline.lines import CLONE, HINDSIGHT, LOGGED
from pipelines.studies.offline.results import Study
from pipelines.studies.offline.statistics import AIM, GROUPS, Estimate

Table = tuple[list[str], list[list[str]]]
"""Head and rows."""


def page(study: Study, folder: str) -> str:
    """Markdown of the whole page.

    Parameters
    ----------
    study : Study
    folder : str
        Where the drawings are, from the page.
    """
    import jinja2

    learned, played = study.learned, study.played
    pictures = {
        name: f"![{caption}]({folder}/{name}.svg)\n\n*{caption}.*"
        for name, caption in CAPTIONS.items()
    }
    found = {
        "command": kept.COMMAND,
        "decisions": f"{learned.decisions:,}",
        "runs": f"{learned.runs:,}",
        "share": "all of the open data set" if learned.share == 1
        else f"a sample of {100 * learned.share:.2g} % of the open data set",
        "every": played.every,
        "sentences": "\n".join(f"- {one}" for one in study.sentences),
        "table": lined(*table(study)),
        "drawings": pictures,
        "online": ONLINE,
        "episodes": len(next(iter(played.returns.values()))[0]),
        "sampler": played.sampler,
        "logged": " ".join(logged(study)),
        "updates": f"{learned.updates:,}",
        "batch": learned.batch,
        "context": learned.context,
        "costs": lined(*costs(study)),
        "tuning": "",
    }  # fmt: skip
    if study.tuning is not None:
        numbers = {"steps": f"{study.tuning.steps:,}", "between": f"{study.tuning.every:,}"}
        shown = f"{lined(*tuning(study))}\n\n{sentence(study)}"
        found |= {"tuning": shown, "episode": EPISODE, "last": LAST, **numbers}
    template = Path(__file__).with_name("page.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined)
    text = environment.from_string(template).render(found)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def table(study: Study) -> Table:
    """A line for each method, and for everybody beside them."""
    names = [STANDINGS.get(group, "all families") for group in GROUPS]
    head = ["who decides", "seeds", *(f"power, {name}" for name in names),
            f"less {words.title(CLONE)}", f"less {LOGGED}", "reward"]  # fmt: skip
    rows = []
    for row in study.rows:
        who = f" ({row.who})" if row.player in (LOGGED, HINDSIGHT) else ""
        name = METHODS[row.player].summary if row.player in METHODS else f"{row.player}{who}"
        scores = [words.shown(row.scores[group]) for group in GROUPS]
        beside = [_signed(one) for one in (row.to_clone, row.to_logged)]
        rows.append([name, str(row.seeds), *scores, *beside,
                     words.shown(row.reward) if row.reward else ""])  # fmt: skip
    return head, rows


def logged(study: Study) -> list[str]:
    """The controls that the logs say are best, standing by standing."""
    found = []
    for standing, rewards in study.learned.rewards.items():
        best = sorted(rewards, key=lambda name: -rewards[name])[:3]
        shown = words.listed([f"`{name}` ({rewards[name]:.3f} a decision)" for name in best])
        found.append(f"On {STANDINGS[standing]} the logs put {shown} first.")
    return found


def costs(study: Study) -> Table:
    """What each method's trainings took."""
    rows = []
    for name, mine in study.learned.costs.items():
        cpu_s = sum(one.cpu_s for one in mine) / len(mine)
        rows.append([METHODS[name].summary, f"{cpu_s:.0f}", f"{max(o.peak_mb for o in mine):.0f}"])
    return ["method", "CPU seconds of a seed", "peak of memory, MB"], rows


def tuning(study: Study) -> Table:
    """A line for each method."""
    assert study.tuning is not None
    scratch = study.tuning.curves[SCRATCH]
    rows = []
    for one in study.ratios:
        mine = study.tuning.curves[one.method]
        first = [curve.validation[0] - scratch[seed].end for seed, curve in mine.items()]
        rows.append([METHODS[one.method].summary, f"{one.seeds - one.missed} of {one.seeds}",
                     words.shown(one.whole), words.shown(one.own),
                     f"{sum(first) / len(first):+.3f}"])  # fmt: skip
    head = ["begins with", "got there", "steps, of all from nothing", "steps, of those until then",
            "first validation, less the return from nothing"]  # fmt: skip
    return head, rows


def sentence(study: Study) -> str:
    """Which methods meet the aim, by either measure."""
    parts = []
    measures = {"whole": "of all steps from nothing", "own": "of the steps until then"}
    for key, text in measures.items():
        met = [words.title(one.method) for one in study.ratios if getattr(one, key).high <= AIM]
        parts.append(f"{text} with {words.listed(met) if met else 'no method'}")
    return f"At most a half, by the whole interval: {', '.join(parts)}."


def lined(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


def _signed(one: Estimate | None) -> str:
    return "" if one is None else words.shown(one, "+")
