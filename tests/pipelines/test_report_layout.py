"""The report fits a screen of any width and paper: nothing is cut off at the right."""

import html
import json
import re
import shutil
import subprocess

import pytest

from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, Html, details, table
from pipelines.reporting.page import render
from pipelines.reporting.sbd import automl_rows, neural

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAPER_PX = 703
"""A4 upright without its margins of 12 mm, at 96 pixels an inch."""
MEASURE = """<iframe id="f" src="page.html" style="border:0;width:%dpx;height:5000px"></iframe>
<script>document.getElementById("f").addEventListener("load", event => {
  const page = event.target.contentDocument, root = page.documentElement;
  const right = element => Math.round(element.getBoundingClientRect().right);
  const said = document.createElement("pre");
  said.textContent = JSON.stringify({
    width: root.clientWidth, scroll: root.scrollWidth,
    tables: [...page.querySelectorAll("table")].map(right),
    boxes: [...page.querySelectorAll("table")].map(table => right(table.parentElement)),
  });
  document.body.appendChild(said);
});</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with the widest tables that the report has."""
    long = "SmartSBD, logistic regression, top features"
    value = {"mean": 0.957, "low": 0.951, "high": 0.962}
    heads = [Column("model", number=False), *(Column(long, group="less that of") for _ in range(4))]
    differences = [automl_rows._signed(value) for _ in range(4)]
    wide = [Column("bundle", number=False), *(Column(f"accuracy {i}") for i in range(13))]
    made = (
        table(heads, [[long, *differences]], "What AutoML was given and what it gains")
        + table(wide, [[long, *[value] * 13]], "Many columns")
        + details("More", table(wide, [[long, *[value] * 13]], "Folded"))
    )
    text, _ = render(Inputs(tmp_path_factory.mktemp("empty")))
    return text.replace("</main>", f"{made}</main>")


def test_every_table_stands_in_a_box_of_its_own_that_scrolls(page):
    assert page.count("<table") > 3
    assert page.count("<table") == page.count('<div class="scroll" tabindex="0"><table')
    assert ".scroll { overflow-x: auto; }" in page
    assert re.search(r"\ntd\.n, th\.n \{ text-align: right; \}", page), "long headings may wrap"


def test_paper_has_rules_of_its_own(page):
    printed = page[page.index("@media print") : page.index("</style>")]
    assert ".scroll { overflow: visible; }" in printed, "nothing scrolls on paper"
    assert "white-space: normal" in printed
    assert "details-content" in printed, "folded tables are printed too"


def test_an_interval_stands_beneath_its_mean():
    made = automl_rows._signed({"mean": 0.01, "low": -0.02, "high": 0.04})
    assert made == Html('+0.010<small class="ci">-0.020 to +0.040</small>')


def test_the_learning_curve_is_a_picture(tmp_path):
    path = tmp_path / "reports" / "neural" / "curve.json"
    path.parent.mkdir(parents=True)
    point = {"epoch": 0, "loss": 0.5, "validation_loss": 0.4, "validation_accuracy": 0.9}
    path.write_text(json.dumps([point] * 2))
    assert neural.learning_curve(Inputs(tmp_path)).startswith("<figure")
    text, _ = render(Inputs(tmp_path))
    assert "Learning curve of smartsbd-neural" in text
    assert "Html(" not in text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [1280, 390, PAPER_PX])
def test_a_browser_finds_nothing_beyond_the_edge(width, page, tmp_path):
    paper = width == PAPER_PX
    shown = page.replace("<details", "<details open")
    if paper:
        shown = shown.replace("@media print", "@media all")
    (tmp_path / "page.html").write_text(shown)
    (tmp_path / "frame.html").write_text(MEASURE % width)
    found = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
         f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=5000", "--dump-dom",
         (tmp_path / "frame.html").as_uri()],
        check=True, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    said = json.loads(html.unescape(re.search(r"<pre>(.*?)</pre>", found.stdout)[1]))
    assert said["scroll"] <= said["width"] <= width
    assert max(said["boxes"]) <= said["width"]
    if paper:
        assert max(said["tables"]) <= width
