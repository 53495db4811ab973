"""Make the report's page from sections of blocks; a block that fails doesn't harm the others."""

from __future__ import annotations

import importlib
import logging
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.reporting import family_blocks
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.markup import Column, mark, note, prose, table
from pipelines.reporting.sbd import headline, names

logger = logging.getLogger(__name__)

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "data",
        "The data",
        tuple(f"sbd.data_blocks:{n}" for n in ("kept", "boxes", "validity", "windows", "without")),
    ),
    ("series", "What the classifier sees", ("sbd.series_blocks:examples",)),
    (
        "search",
        "Features and hyperparameters",
        tuple(
            f"sbd.search_blocks:{n}"
            for n in ("information", "information_plus", "curves", "chosen")
        ),
    ),
    (
        "sites",
        "The paper's experiment",
        tuple(f"sbd.site_blocks:{n}" for n in ("overview", "classes", "unseen", "unseen_table")),
    ),
    (
        "conditions",
        "Other conditions",
        tuple(f"sbd.general_blocks:{n}" for n in ("overview", "families", "coverage")),
    ),
    (
        "verdicts",
        "Delay, confusion, calibration",
        tuple(f"sbd.general_blocks:{n}" for n in ("delay", "confusion", "calibration")),
    ),
    ("neural", "Raw series", ("sbd.neural:comparison", "sbd.neural:learning_curve")),
    (
        "groups",
        "A model for each group",
        ("sbd.groups:groups", "sbd.scale:many", "sbd.scale:drift"),
    ),
    (
        "export",
        "Into the kernel",
        (
            *(f"export_blocks:{n}" for n in ("drawn", "scaling", "certificates")),
            "peers:exporters",
            "proofs:proofs",
            "reproduction:reproduction",
        ),
    ),
    ("league", "The league", ("league:standings", "league:drawings")),
    (
        "streams",
        "MP-CDG: streams, network, throughput",
        ("qos:streams", "qos:network", "qos:throughput"),
    ),
    ("tcco", "TCCO, trained here", ("trained:tcco",)),
    ("nuwa", "Nuwa-RL, trained here", ("trained:nuwa",)),
    ("macc", "MA-CC, trained here", ("trained:macc",)),
    ("trees", "Policies as trees", ("distilled:trees",)),
    ("offline", "Offline agents", ("offline:agents", "offline:tuning")),
    ("agents", "Environments and their trainer", ("agents:environments", "agents:trainer")),
)
"""Anchor, title, blocks as ``module:function``; each takes the inputs and returns HTML."""


def render(inputs: Inputs) -> tuple[str, list[str]]:
    """Make the page.

    Parameters
    ----------
    inputs : Inputs
        The files that everything is read from.

    Returns
    -------
    html : str
        One document without any external resource.
    missing : list of str
        One line for each block that could not be shown.
    """
    import jinja2

    missing: list[str] = []
    sections = []
    for anchor, title, names_ in SECTIONS:
        # Blocks of one section that lack the same input share one note.
        blocks = dict.fromkeys(_block(inputs, name, missing) for name in names_)
        sections.append({"anchor": anchor, "title": title, "blocks": list(blocks)})
    sections += family_blocks.sections(inputs.root, missing)
    aims = headline.aims(inputs)
    unmet = [aim for aim in aims if aim.met is False]
    template = Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    html = environment.from_string(template).render(
        sections=sections,
        facts=_facts(inputs),
        aims=_aims_table(aims),
        met=sum(aim.met is True for aim in aims),
        unmet=unmet,
        total=len(aims),
        shortfalls=headline.shortfalls(inputs, unmet),
        explanations=[
            (title, prose(text)) for title, text in headline.explanations(inputs) if unmet
        ],
        missing=missing,
    )
    return html, missing


def _block(inputs: Inputs, name: str, missing: list[str]) -> str:
    module, function = name.split(":")
    try:
        made = getattr(importlib.import_module(f"pipelines.reporting.{module}"), function)(inputs)
    except MissingInput as error:
        line = f"{error}: make it with `{error.command}`"
        if line not in missing:
            missing.append(line)
        return note(f"Not shown: {error.path} {error.why}.", error.command)
    except Exception as error:  # one table of another version must not cost the whole page
        logger.warning("report: %s could not be drawn: %s: %s", name, type(error).__name__, error)
        missing.append(f"{function}: {type(error).__name__}: {error}")
        return note(f"Not shown: the tables behind “{function}” could not be read.", "make repro")
    return str(made)


def _facts(inputs: Inputs) -> list[tuple[str, str]]:
    from data.files import file_hash
    from pipelines.tracking import git_commit

    facts = []
    found = headline.numbers(inputs)
    if "windows" in found:
        rows = inputs.features
        labels = rows.unique(["source", "connection"])["label"].value_counts()
        counts = {str(name): int(n) for name, n in labels.iter_rows()}
        facts.append(
            (
                "connections",
                f"{found['connections']} ({counts.get('SB', 0)} SB, {counts.get('NSB', 0)} NSB)",
            )
        )
        facts.append(("windows", str(found["windows"])))
        path = inputs.root / "data" / "processed" / "sbd.parquet"
        facts.append(("features table", file_hash(path)[:16]))
    try:
        records = [r for rows in inputs.campaigns.values() for r in rows]
        kernels = sorted({str(r["kernel"]) for r in records if r.get("kernel")})
        facts.append(("logs from kernel", ", ".join(kernels)))
    except MissingInput:
        pass
    commit = git_commit()
    dirty = " with local changes" if commit.endswith("-dirty") else ""
    facts.append(("git commit", commit.removesuffix("-dirty")[:12] + dirty))
    facts.append(
        (
            "report made",
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}",
        )
    )
    return facts


def _aims_table(aims: list[headline.Aim]) -> str:
    marks = {
        True: mark("met", "met"),
        False: mark("unmet", "not met"),
        None: mark("unknown", "not measured"),
    }
    rows: list[list[Any]] = [
        [
            aim.text,
            aim.measured,
            aim.paper,
            names.scheme(aim.of) if aim.of else "",
            marks[aim.met],
        ]
        for aim in aims
    ]
    columns = [
        Column("aim", number=False),
        Column("measured"),
        Column("paper"),
        Column("by", number=False),
        Column("", number=False),
    ]
    return table(columns, rows)
