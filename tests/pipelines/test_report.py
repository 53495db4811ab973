from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from data.lab.compact import Events
from data.lab.compact import write as write_log
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from features.spec import Feature
from pipelines import cli, datasheet
from pipelines.reporting import figures, markup, overview
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.page import SECTIONS, render
from pipelines.reporting.sbd import headline, paper, rawdata, search_blocks, tree
from pipelines.reporting.sbd.site_blocks import pooled
from tests.pipelines.written_tables import tables_with

ROOT = Path(__file__).resolve().parents[2]


def of(mean: float, half: float = 0.01) -> dict[str, float]:
    return {"mean": mean, "low": mean - half, "high": mean + half}


def write(root: Path, name: str, value: Any) -> None:
    path = root / "reports" / "sbd" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def tables(root: Path, tree_accuracy: float = 0.93, rule: float = 0.7) -> None:
    """Result tables as `cczoo train sbd` writes them, with known figures."""
    for name, value in tables_with(tree_accuracy, rule).items():
        write(root, name, value)


def block(html: str, anchor: str) -> str:
    return html.split(f'<h2 id="{anchor}">')[1].split("<h2 ")[0]


def test_a_page_without_any_input_says_what_is_missing_and_how_to_make_it(tmp_path: Path) -> None:
    html, missing = render(Inputs(tmp_path))
    for anchor, title, _ in SECTIONS:
        assert f'<h2 id="{anchor}">{title}</h2>' in unescape(html)
        assert f'href="#{anchor}"' in html
        assert block(html, anchor).count("Not shown") >= 1
    assert "cczoo train sbd search" in block(html, "search")
    assert block(html, "sites").count("table5.json") == 1
    for name in (
        "table5.json",
        "lofo.json",
        "sbd.parquet",
        "model.json",
        "certificate.json",
        "reproduction.json",
    ):
        assert sum(f"{name} is missing" in line for line in missing) == 1
        assert name in html
    assert html.count("not measured") == len(headline.aims(Inputs(tmp_path)))
    assert headline.numbers(Inputs(tmp_path)) == {}


def test_a_table_of_another_version_costs_its_own_block_alone(tmp_path: Path) -> None:
    tables(tmp_path)
    write(tmp_path, "delay.json", {"smartsbd-dt": [{"unknown": 1}]})
    html, missing = render(Inputs(tmp_path))
    path = tmp_path / "reports" / "sbd" / "delay.json"
    why = "of another version of cczoo: smartsbd-dt.0.dataset: field required"
    assert any(line.startswith(f"{path}: {why}") for line in missing)
    assert f"{path} is of another version." in html
    assert "Windows by truth and answer" in html


def test_an_aim_whose_table_is_of_another_version_is_not_measured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables(tmp_path)
    write(tmp_path, "table6.json", {"unseen": [{"model": "smartsbd-dt"}], "unseen-varied": []})
    html, missing = render(Inputs(tmp_path))
    assert html.count("not measured") == 2
    assert sum("table6.json: of another version" in line for line in missing) == 1
    assert "table6.json: of another version of cczoo: unseen.0: " in caplog.text
    assert "Accuracy of both classes per site" in html


def test_results_are_drawn_and_the_page_is_offline(tmp_path: Path) -> None:
    tables(tmp_path)
    html, missing = render(Inputs(tmp_path))
    for anchor in ("sites", "conditions", "verdicts"):
        assert "Not shown" not in block(html, anchor)
    assert not [line for line in missing if "Error" in line]
    assert "<script" not in html
    assert "<link" not in html
    assert not re.findall(r"(?:src|href)=[\"'](?!#)", html)
    assert not re.findall(r"url\((?!#)", html)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("accuracy", "met"), [(0.93, True), (0.8999, False)])
def test_an_aim_is_measured_from_the_tables(tmp_path: Path, accuracy: float, met: bool) -> None:
    tables(tmp_path, tree_accuracy=accuracy)
    found = {aim.key: aim for aim in headline.aims(Inputs(tmp_path))}
    assert found["tree_within"].met is met
    assert found["best_within"].met is True
    assert found["unseen_18"].met is False
    assert found["unseen_18_varied"].met is None
    assert found["plus_window"].met is True
    assert found["plus_connection"].met is False
    numbers = headline.numbers(Inputs(tmp_path))
    assert numbers["best_within"] == 0.97
    assert numbers["unseen_18"] == 0.86
    assert "unseen_18_varied" not in numbers


def test_one_learned_classifier_below_a_rule_is_enough_to_miss_the_aim(tmp_path: Path) -> None:
    tables(tmp_path, tree_accuracy=0.93, rule=0.94)
    aim = next(a for a in headline.aims(Inputs(tmp_path)) if a.key == "best_rule")
    assert aim.met is False
    tables(tmp_path, tree_accuracy=0.93, rule=0.92)
    aim = next(a for a in headline.aims(Inputs(tmp_path)) if a.key == "best_rule")
    assert aim.met is True


def test_shortfalls_come_from_the_tables_and_the_notes(tmp_path: Path) -> None:
    tables(tmp_path)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "deviations.md").write_text(
        "# Notes\n\n## Windows\nnot this\n\n## Why unseen cases fall short\nBecause `NSB1` <b>.\n"
    )
    html, _ = render(Inputs(tmp_path))
    why = html.split('class="why"')[1].split("</div>")[0]
    assert "NSB1 0.700" in why
    assert "lossy 0.900" in why
    assert "<code>NSB1</code> &lt;b&gt;" in why
    assert "not this" not in why


def test_pooling_weighs_by_windows_and_narrows_the_interval() -> None:
    whole = pooled([of(0.8, 0.06), of(0.6, 0.08)], [300, 100])
    assert whole["mean"] == pytest.approx(0.75)
    half = ((0.06 * 0.75) ** 2 + (0.08 * 0.25) ** 2) ** 0.5
    assert whole["low"] == pytest.approx(0.75 - half)
    assert pooled([{"mean": None, "low": None, "high": None}], [3])["mean"] is None


def test_the_papers_table_5_was_copied_rightly() -> None:
    for (scheme, site), row in paper.TABLE5.items():
        assert row["both"] == pytest.approx((row["sb"] + row["nsb"]) / 2, abs=0.0011)
        if site == "ALL":
            sites = [paper.TABLE5[scheme, s]["both"] for s in paper.SITES]
            assert row["both"] == pytest.approx(sum(sites) / 4, abs=0.0011)
    ranks = [rank for _, rank in paper.MUTUAL_INFORMATION.values()]
    assert sorted(ranks) == list(range(1, 19))
    ordered = sorted(paper.MUTUAL_INFORMATION.values(), key=lambda pair: -pair[0])
    assert [rank for _, rank in ordered] == sorted(ranks)


def test_fig_6_panels_hold_the_other_hyperparameter_at_its_best() -> None:
    rows = [
        {
            "model": "svm-rbf",
            "k": k,
            "c": c,
            "gamma": g,
            "accuracy": 0.9 - abs(c - 10) / 1e3 - g / 9,
        }
        for k in (1, 2, 3)
        for c in (1.0, 10.0)
        for g in (0.1, 0.5)
    ]
    frame = pl.DataFrame(rows)
    best = search_blocks.best_values(frame)
    assert (best["svm-rbf"]["k"], best["svm-rbf"]["c"], best["svm-rbf"]["gamma"]) == (2, 10.0, 0.1)
    curve = search_blocks.panel(frame, "svm-rbf", "c", best)
    assert set(curve["gamma"]) == {0.1}
    assert curve.height == 6


def test_what_a_table_is_given_is_escaped_unless_it_is_markup() -> None:
    columns = [markup.Column("a<b", number=False, group="both"), markup.Column("n", group="both")]
    rows = [["<i>&", 12345], [None, 0.12345], [markup.code("x<y"), True], ["all <"]]
    text = markup.table(columns, rows, "caption <", best=(1,))
    assert "<i>" not in text
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    assert cells == [
        "&lt;i&gt;&amp;", "12\u202f345", '<span class="none">–</span>', "0.123",
        "<code>x&lt;y</code>", "yes",
    ]  # fmt: skip
    assert '<th colspan="2" scope="rowgroup">all &lt;</th>' in text
    assert '<tr><th colspan="2" class=over>both</th></tr>' in text
    assert text.count('class="n best"') == 1
    assert "<caption>caption &lt;</caption>" in text
    with pytest.raises(ValueError, match="3 values for 2 columns"):
        markup.table(columns, [[1, 2, 3]])


def small_tree() -> Tree:
    spec = Feature("RTT<ED", "ms", 0, 100, 4, "", "")
    nodes = Nodes((0, 0, -1, -1, -1), (40, 8, 0, 65536, 16384), (4, 3, 0, 0, 0))
    return Tree((spec,), ("NSB", "SB"), 32768, nodes)


def test_a_tree_is_drawn_with_its_thresholds_in_the_features_unit() -> None:
    drawn = tree.draw(small_tree())
    assert drawn.count('class="question"') == 2
    assert drawn.count('class="nsb"') == 2
    assert drawn.count('class="sb"') == 1
    assert "RTT&lt;ED" in drawn
    assert "≤ 10 ?" in drawn
    top = tree.draw(small_tree(), 1)
    assert top.count('class="question"') == 1
    assert "2 leaves" in top


def test_figures_take_the_pages_colour_and_are_the_same_each_time() -> None:
    from matplotlib import pyplot

    def draw() -> str:
        with figures.style():
            fig, axis = pyplot.subplots()
            axis.plot([1, 2], [3, 4])
            return figures.svg(fig, "some", 'a "title"')

    text = draw()
    assert text == draw()
    assert figures.INK not in text
    assert "currentColor" in text
    assert 'aria-label="a &quot;title&quot;"' in text
    assert all(name.startswith("some-") for name in re.findall(r'\bid="([^"]+)"', text))
    for reference in re.findall(r"url\(#([^)]+)\)", text):
        assert f'id="{reference}"' in text


def test_values_in_tables_are_escaped_and_the_best_is_marked() -> None:
    columns = [markup.Column("<a>", number=False), markup.Column("x")]
    text = markup.table(columns, [["<b>", of(0.5)], ["c", of(0.7)], ["d", None]], best=(1,))
    assert "&lt;a&gt;" in text
    assert "&lt;b&gt;" in text
    assert '<td class="n best">0.700<small class="ci">0.690–0.710</small>' in text
    assert text.count("best") == 1


def test_where_tells_the_place_or_how_to_make_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "out" / "index.html"
    assert cli.main(["report", "--where", "--out", str(page)]) == 0
    said = capsys.readouterr().out
    assert "make repro" in said
    assert cli.main(["report", "--root", str(tmp_path), "--out", str(page), "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["bytes"] == page.stat().st_size
    assert json.loads((page.parent / "headline.json").read_text()) == done["headline"]
    assert cli.main(["report", "--where", "--out", str(page)]) == 0
    assert page.as_uri() in capsys.readouterr().out
    assert [p.name for p in page.parent.iterdir() if p.name.startswith(".")] == []


def test_what_dvc_has_made_read_only_is_told_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, locked = tmp_path / "out" / "index.html", tmp_path / "locked"
    page.parent.mkdir()
    page.write_text("old")
    page.chmod(0o444)
    locked.mkdir(mode=0o555)

    def access(path: Path | str, mode: int) -> bool:  # as an ordinary user, whoever runs this
        return bool(Path(path).stat().st_mode & 0o222)

    monkeypatch.setattr("data.place.os.access", access)
    root = ["--root", str(tmp_path)]
    assert cli.main(["report", *root, "--out", str(page)]) == 0
    assert "<html" in page.read_text()
    refused = ["report", *root, "--out", str(locked / "index.html")]
    assert cli.main(refused) == 2
    assert f"{locked} is not writable" in capsys.readouterr().err
    assert cli.main([*refused, "--verdicts"]) != 2
    assert "not writable" not in capsys.readouterr().err
    # Elsewhere an option of that name has a value, and something is written.
    words = ["predict", "sbd", "--model", "smartsbd-dt", "--events", str(tmp_path)]
    assert cli.main([*words, "--out", str(locked / "predicted")]) == 2
    assert f"{locked} is not writable" in capsys.readouterr().err


def test_series_for_dvc_plots(tmp_path: Path) -> None:
    from pipelines.report import write_plots

    tables(tmp_path)
    written = {path.name for path in write_plots(Inputs(tmp_path), tmp_path / "plots")}
    assert written == {"calibration.csv", "coverage.csv"}
    told = json.loads((tmp_path / "reports" / "sbd" / "calibration.json").read_text())
    windows = [bin["windows"] for row in told for bin in row["bins"]]
    assert pl.read_csv(tmp_path / "plots" / "calibration.csv")["windows"].to_list() == windows


@pytest.mark.parametrize("arguments", [["--root", "nowhere"], ["--out", "."]])
def test_a_users_mistake_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def campaign(root: Path) -> None:
    """Two kept logs, one run refused, one line cut off by a kill."""
    base = root / "data" / "raw" / "small"
    (base / "shanghai").mkdir(parents=True)
    n = 40
    rows = []
    for label in ("SB", "NSB"):
        zeros = np.zeros(n, np.int64)
        subflow = np.arange(n, dtype=np.int64) % 2 + 1
        rtt = np.where(subflow == 1, 20_000, 50_000) + np.arange(n)
        time_us = np.arange(n, dtype=np.int64) * 1000
        events = Events(0, time_us, zeros, subflow, time_us, rtt, zeros + 10, zeros, zeros, zeros)
        about = {"subflows": {"1": {"sport": 7, "dport": 5000}, "2": {"sport": 8, "dport": 5000}}}
        source = f"shanghai/{label}.klog.zst"
        write_log(base / source, events, about)
        rows.append(f"{source},{label},shanghai,shanghai,lia,7,20,50,8,8")
    columns = "source,label,dataset,family,cc,wifi_sport,rtt_wifi_ms,rtt_lte_ms,rate_wifi_mbps"
    (base / "labels.csv").write_text("\n".join([columns + ",rate_lte_mbps", *rows]) + "\n")
    record = {"kernel": "6.18.1", "started": "2026-11-20T18:04:14+00:00"}
    records = [
        {**record, "id": "a", "valid": True, "reasons": []},
        {**record, "id": "b", "valid": False, "reasons": ["idle:wifi", "idle:lte"]},
        {**record, "id": "c", "valid": True, "reasons": []},
    ]
    text = "\n".join(json.dumps(r) for r in records) + '\n{"id": "d", "val'
    (base / "campaign.jsonl").write_text(text)


def test_the_datasheet_tells_what_the_records_tell(tmp_path: Path) -> None:
    campaign(tmp_path)
    assert datasheet.main(["--root", str(tmp_path)]) == 0
    text = (tmp_path / "data" / "README.md").read_text()
    assert "2 connections (1 SB, 1 NSB)" in text
    assert "| small | 3 | 2 | 2 | 66.7 % | 2026-11-20 18:04 |" in text
    assert "| `idle` | a path's bottleneck was busy too little | 1 |" in text
    assert "| Shanghai | shanghai | 1 | 1 | 20–50 | 8–8 | lia |" in text
    assert (tmp_path / datasheet.PICTURE).read_text().startswith("<svg")
    samples = rawdata.rtt_samples(Inputs(tmp_path))
    cellular, wifi, logs = samples["shanghai"]
    assert logs == 2
    assert 50 <= np.median(cellular) < 51
    assert 20 <= np.median(wifi) < 21


def test_a_datasheet_of_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert datasheet.main(["--root", str(tmp_path)]) == 2
    assert "make lab-data" in capsys.readouterr().err


def test_the_readmes_picture_is_the_one_that_is_drawn() -> None:
    assert (ROOT / overview.PICTURE).read_text(encoding="utf-8") == overview.draw()


def test_the_page_says_which_models_were_reproduced(tmp_path: Path) -> None:
    from dataclasses import asdict

    from pipelines.reporting.reproduction import reproduction
    from pipelines.results import Verdict

    rows = [
        Verdict("smartsbd-dt", "identical", "identical", version="2"),
        Verdict("smartsbd-svm", "differs", "differs: 3 of 9 verdicts", version="2", answers=9),
    ]
    (tmp_path / "reports").mkdir()
    path = tmp_path / "reports" / "reproduction.json"
    path.write_text(json.dumps({"format": 1, "models": [asdict(row) for row in rows]}))
    page = reproduction(Inputs(tmp_path))
    assert "differs: 3 of 9 verdicts" in page
    assert "Of 2 released models 1 came out identical and 0 equal" in page
