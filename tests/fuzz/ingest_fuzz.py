"""Mutational fuzzer of ingest: golden samples are damaged in seeded ways and read.

Run `python tests/fuzz/ingest_fuzz.py --seconds 60 [--seed N]`. A failure prints the seed of the
case, which `--case SEED` repeats. What must hold: no exception, every line accounted for.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from backports import zstd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from data.formats import FORMATS  # noqa: E402
from data.ingest import Settings, ingest  # noqa: E402
from data.store import iter_connections  # noqa: E402

SAMPLES = {name: next((ROOT / "tests/golden").glob(f"{name}.*")).read_bytes() for name in FORMATS}
NASTY = [
    b"", b"\0", b"-1", b"9" * 40, b"18446744073709551616", b"9223372036854775807", b"nan", b"inf",
    b"1e308", b"0x", b"\xff\xfe", b"\n", b"\r\n", b",", b" ", b"=", b":", b"{", b'"', b"#",
    b"\x1f\x8b",
    "é".encode("latin-1"), b"\xf0\x9f\x90\xa2", b"A" * 5000,
]  # fmt: skip


def _flip(text: bytearray, rng: random.Random) -> None:
    text[rng.randrange(len(text))] = rng.randrange(256)


def _insert(text: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(text) + 1)
    text[at:at] = rng.choice(NASTY)


def _replace_number(text: bytearray, rng: random.Random) -> None:
    digits = [i for i, byte in enumerate(text) if 48 <= byte <= 57]
    if digits:
        at = rng.choice(digits)
        text[at : at + rng.randrange(1, 4)] = rng.choice(NASTY)


def _cut(text: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(text))
    del text[at : at + rng.randrange(1, 200)]


def _truncate(text: bytearray, rng: random.Random) -> None:
    del text[rng.randrange(len(text)) :]


def _shuffle_lines(text: bytearray, rng: random.Random) -> None:
    lines = bytes(text).split(b"\n")
    rng.shuffle(lines)
    text[:] = b"\n".join(lines)


def _repeat_lines(text: bytearray, rng: random.Random) -> None:
    lines = bytes(text).split(b"\n")
    at = rng.randrange(len(lines))
    text[:] = b"\n".join(lines + lines[at:] * rng.randrange(1, 4))


def _mix(text: bytearray, rng: random.Random) -> None:
    other = rng.choice(list(SAMPLES.values())).split(b"\n")
    lines = bytes(text).split(b"\n")
    lines[rng.randrange(len(lines)) :] = other[rng.randrange(len(other)) :]
    text[:] = b"\n".join(lines)


MUTATIONS: list[Callable[[bytearray, random.Random], None]] = [
    _flip, _insert, _replace_number, _replace_number, _cut, _truncate, _shuffle_lines,
    _repeat_lines, _mix,
]  # fmt: skip


def mutate(text: bytes, rng: random.Random) -> bytes:
    """Damage a log; sometimes it is compressed before or after."""
    result = bytearray(text)
    for _ in range(rng.randrange(1, 8)):
        if result:
            rng.choice(MUTATIONS)(result, rng)
    pack = rng.choice([None, None, None, gzip.compress, zstd.compress])
    if pack is None:
        return bytes(result)
    packed = bytearray(pack(bytes(result)))
    if rng.random() < 0.5:
        rng.choice([_flip, _truncate, _cut, _insert])(packed, rng)
    return bytes(packed)


def run_case(seed: int, folder: Path) -> str:
    """One case; returns what is wrong, or nothing."""
    rng = random.Random(seed)
    paths = []
    for i in range(rng.choice([1, 1, 1, 2])):
        name = rng.choice(list(SAMPLES))
        paths.append(folder / f"log{i}")
        paths[-1].write_bytes(mutate(SAMPLES[name], rng))
    chosen = rng.choice(["auto", "auto", rng.choice(list(FORMATS))])
    report = ingest(paths, folder / "out", settings=Settings(format=chosen, jobs=1))
    lines = report["event_lines"] + report["skipped_lines"] + report["quarantined_lines"]
    if report["lines_read"] != lines:
        return f"{report['lines_read']} lines read, {lines} accounted for"
    events = sum(
        len(time_us)
        for _, series in iter_connections(folder / "out")
        for variables in series.values()
        for time_us, _ in variables.values()
    )
    return "" if events == report["events"] else f"{report['events']} events, {events} stored"


def fuzz(seconds: float, seed: int) -> tuple[int, list[str]]:
    """Run cases for some time; returns their number and the failures."""
    failures: list[str] = []
    end, cases = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and len(failures) < 10:
            case = seed * 1_000_000 + cases
            try:
                wrong = run_case(case, Path(folder))
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            if wrong:
                failures.append(f"case {case}: {wrong}")
            cases += 1
    return cases, failures


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="repeat one case with its traceback")
    args = parser.parse_args()
    if args.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(run_case(args.case, Path(folder)) or "ok")
        return 0
    cases, failures = fuzz(args.seconds, args.seed)
    print(f"{cases} cases, {len(failures)} failures")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
