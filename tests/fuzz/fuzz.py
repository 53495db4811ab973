"""Fuzz what reads files and samples: each target for some seconds, one after the other.

    python tests/fuzz/fuzz.py --seconds 600 [TARGET ...]

Corpora grow under .fuzz/, from the seeds in tests/fuzz/corpus; a finding's input is left there and
its path printed. Needs clang with libFuzzer (Debian: clang-14, libclang-rt-14-dev) for C, atheris
for Python; a target whose tool is missing is named with what to install.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "fuzz"
RUNTIME = ROOT / "export" / "runtime"
ATHERIS = "atheris==3.0.0"
FLAGS = ["-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]


class Missing(Exception):
    """A tool isn't here; the message says which and how to get it."""


def clang() -> str:
    """A clang that links libFuzzer."""
    for name in ("clang-14", "clang"):
        found = shutil.which(name)
        if found:
            return found
    raise Missing("no clang: apt-get install clang-14 libclang-rt-14-dev")


def compiled(source: str, *flags: str) -> Callable[[Path], tuple[list[str], dict[str, str]]]:
    """A libFuzzer target in C."""

    def command(work: Path) -> tuple[list[str], dict[str, str]]:
        executable = work / Path(source).stem
        build = [clang(), *FLAGS, *flags, str(HERE / source), "-o", str(executable)]
        done = subprocess.run(build, capture_output=True, text=True, check=False)
        if done.returncode and "libclang_rt" in done.stderr:
            raise Missing("clang has no libFuzzer: apt-get install libclang-rt-14-dev")
        if done.returncode:
            raise SystemExit(done.stderr)
        return [str(executable)], {}

    return command


def interpreted(source: str) -> Callable[[Path], tuple[list[str], dict[str, str]]]:
    """An atheris target in Python; atheris lives outside the environment of the project."""

    def command(work: Path) -> tuple[list[str], dict[str, str]]:
        site = ROOT / ".fuzz" / "site"
        if not (site / "atheris").is_dir():
            raise Missing(f"no atheris: uv pip install --target .fuzz/site --no-deps {ATHERIS}")
        path = os.pathsep.join([str(ROOT), str(site)])
        return [sys.executable, str(HERE / source)], {"PYTHONPATH": path}

    return command


def with_features(source: str) -> Callable[[Path], tuple[list[str], dict[str, str]]]:
    """A libFuzzer target in C around the exported computation of all of SmartSBD's features."""

    def command(work: Path) -> tuple[list[str], dict[str, str]]:
        from export.fixed import limits
        from export.forms.nodes import Nodes
        from export.forms.tree import Tree
        from export.params import Options
        from export.source import Source
        from export.targets import emit
        from features.params import SbdParams
        from features.smartsbd import FEATURES

        labels = ("NSB", "SB")
        form = Tree(FEATURES, labels, 0, Nodes((0, -1, -1), (9, 0, 1), (2, 0, 0)))
        nothing = np.zeros((0, len(FEATURES)))
        model = Source(
            "watched", "1", "smartsbd", form.kind, FEATURES, labels, 0.5, form, "", b"",
            nothing, nothing[:, 0],
            # Small windows: a DTW costs their square, and their bound is one number in the code.
            feature_settings=SbdParams(max_points=32).model_dump(),
        )  # fmt: skip
        for name, content in emit("c", model, Options()).items():
            (work / name).write_bytes(content)
        (work / "ranges.h").write_text(
            "".join(
                f"static const int32_t {name}[] = {{ {', '.join(map(str, bound))} }};\n"
                for name, bound in zip(("lowest", "highest"), limits(FEATURES), strict=True)
            )
        )
        return compiled(source, f"-I{work}")(work)

    return command


TARGETS: dict[str, Callable[[Path], tuple[list[str], dict[str, str]]]] = {
    "table": compiled("table_fuzz.c", f"-I{RUNTIME}"),
    "network": compiled("table_fuzz.c", "-DNETWORK", f"-I{RUNTIME}"),
    "feature_code": with_features("feature_code_fuzz.c"),
    "document": interpreted("document_fuzz.py"),
    "manifest": interpreted("manifest_fuzz.py"),
}
"""Name -> what makes its command and environment; its seeds are in corpus/<name>."""


def fuzz(name: str, seconds: int, work: Path, executions: int = -1) -> dict[str, str]:
    """Fuzz one target for some time, or until there were so many executions.

    Returns
    -------
    dict
        ``executions``, ``edges`` covered, ``inputs`` kept, ``finding`` (empty, or the path of the
        input that did it).
    """
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    command, environment = TARGETS[name](work)
    command += [
        f"-max_total_time={seconds}",
        f"-runs={executions}",
        "-print_final_stats=1",
        "-timeout=60",
        "-rss_limit_mb=4096",
        f"-artifact_prefix={work}/",
        str(corpus),
        str(HERE / "corpus" / name),
    ]
    log = work / "log"
    with log.open("wb") as stream:
        status = subprocess.run(
            command, stderr=stream, stdout=stream, env=os.environ | environment, check=False
        ).returncode
    said = log.read_text(errors="replace")
    found = re.findall(r"Test unit written to (\S+)", said)
    # The last line of progress has what the final statistics leave out.
    progress = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)", said)
    executed = re.findall(r"number_of_executed_units: (\d+)|DONE\D+(\d+)", said)
    return {
        "executions": next((a or b for a, b in reversed(executed)), "0"),
        "edges": progress[-1][0] if progress else "0",
        "inputs": progress[-1][1] if progress else "0",
        "finding": found[0] if found else (f"exit status {status}, see {log}" if status else ""),
    }


def main() -> int:
    """Fuzz the chosen targets; 1 when there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=600, help="for each target (default 600)")
    args = parser.parse_args()
    unknown = [name for name in args.targets if name not in TARGETS]
    if unknown:
        parser.error(f"unknown target {unknown[0]!r}: choose from {', '.join(TARGETS)}")
    failed = False
    for name in args.targets or TARGETS:
        try:
            found = fuzz(name, args.seconds, ROOT / ".fuzz" / name)
        except Missing as error:
            print(f"skipped {name}: {error}")
            continue
        finding = found.pop("finding")
        failed |= bool(finding)
        print(
            f"{'FAILED' if finding else 'ok':<7} {name}: "
            + ", ".join(f"{number} {what}" for what, number in found.items())
            + (f", finding: {finding}" if finding else ""),
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
