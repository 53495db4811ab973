"""Skips that nobody accepted fail the run where CI is set; what shares a fixture runs together."""

from __future__ import annotations

import gc
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from models import parallel

# One process runs many tests, and any of them may be the first to import Ray.
parallel.set_switches()
# Its workers would stand behind everything else on a busy machine, and the tests wait for them.
os.environ.setdefault("RAY_worker_niceness", "0")
# How long an example takes, or takes to be made, says nothing on a machine that others use, too.
settings.register_profile(
    "any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Collecting imports half a million objects that stay: looking for garbage among them finds none.
gc.disable()

ALLOWED = Path(__file__).with_name("allowed_skips.txt")


def allowed(root: bool, text: str) -> list[re.Pattern[str]]:
    """Patterns of the reasons that are accepted of this user."""
    rows = [row.split("\t") for row in text.splitlines() if row and not row.startswith("#")]
    return [re.compile(pattern) for who, pattern, _ in rows if who == "any" or not root]


class Skips:
    """Collects the reasons; with xdist in the controller, which every report reaches."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        self.patterns = allowed(os.geteuid() == 0, ALLOWED.read_text(encoding="utf-8"))

    def _look(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        longrepr = report.longrepr
        reason = str(longrepr[2]) if isinstance(longrepr, tuple | list) else str(longrepr)
        if not any(pattern.search(reason) for pattern in self.patterns):
            self.refused[report.nodeid] = reason.removeprefix("Skipped: ")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._look(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._look(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.refused:
            return
        terminalreporter.section("skips that CI doesn't accept", red=True)
        for test, reason in self.refused.items():
            terminalreporter.line(f"{test}: {reason}")
        terminalreporter.line(f"make tools installs tools; {ALLOWED.name} lists what is accepted")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a fixture of their module in one worker, which makes it once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    """Collect garbage again, and leave out what was imported, here and at the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables: making them takes longer than a test."""
    from pipelines import tracking

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{path}")
        tracking.client().search_registered_models()
    return path


def _shares(item: pytest.Item) -> bool:
    """Whether a test uses a fixture that its module's tests have in common."""
    known = getattr(item, "_fixtureinfo", None)
    found = known.name2fixturedefs.values() if known is not None else ()
    module = getattr(getattr(item, "module", None), "__name__", "")
    return any(
        one.scope == "module" and one.func.__module__ == module for ones in found for one in ones
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--strict-skips",
        action="store_true",
        default=bool(os.environ.get("CI")),
        help="fail on a skip that tests/allowed_skips.txt doesn't list (default where CI is set)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--strict-skips") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips(), "strict-skips")
