"""Speed of ingest beside a straightforward pandas and regular-expression reader.

One run, one core, the same generated file, the same result: from the file to a Parquet file of
events, damaged lines kept apart. CPU seconds are compared, since the machine may be shared.
`python benchmarks/ingest.py [--megabytes 24] [--json]`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from data.formats.base import Options  # noqa: E402
from data.formats.probe_csv import HEADER  # noqa: E402
from data.ingest import Settings, ingest  # noqa: E402
from data.stream import blocks  # noqa: E402

TARGET_RATIO = 10
TOKEN, SPORTS, MSS = "79b8026a", (40001, 40002), 1424


def acks(seed: int = 1) -> Iterator[tuple[int, int, int, int, int, int, int, int]]:
    """Endless ACKs of two subflows: time_us, index, una, ack, rtt, srtt, cwnd, delivered."""
    rng = random.Random(seed)
    now, una, srtt, delivered, cwnd = 10**9, [2**31, 77], [40_000, 70_000], [1, 1], [10, 10]
    while True:
        now += rng.randrange(50, 3000)
        i = rng.randrange(2)
        step = MSS * rng.choice((0, 1, 1, 2))
        rtt = srtt[i] + rng.randrange(-5000, 5000)
        ack = (una[i] + step) % 2**32
        cwnd[i] = max(4, min(200, cwnd[i] + rng.choice((-1, 0, 0, 0, 1))))
        yield now, i, una[i], ack, rtt, srtt[i], cwnd[i], delivered[i]
        una[i] = ack
        srtt[i] = max(20_000, (7 * srtt[i] + rtt) // 8)
        delivered[i] += step > 0


def write_probe(path: Path, size: int) -> None:
    with path.open("w") as file:
        file.write(HEADER.decode() + "\n")
        state = [0, 0]
        for n, (now, i, una, ack, rtt, srtt, cwnd, delivered) in enumerate(acks()):
            stamp = f"{now // 10**6}.{now % 10**6:06d}137"
            head = f"{9 + i},{TOKEN},4026532177,{i + 1},{SPORTS[i]},5000,{state[i]}"
            tail = f"{una},{ack},0,{cwnd},89,{srtt},{rtt},{20000},{delivered},0,0,0,{cwnd},12\n"
            if n % 400 == 399:
                new = 3 if state[i] == 0 else 0
                file.write(f"{stamp},state,{head},{new},0,{tail}")
                state[i] = new
            file.write(f"{stamp},probe,{head},0,{ack},{tail}")
            if n % 1000 == 0 and file.tell() > size:
                return


def write_ftrace(path: Path, size: int) -> None:
    with path.open("w") as file:
        state = 0
        for n, (now, i, una, _, _, srtt, cwnd, _) in enumerate(acks()):
            head = f"           klink-24928   [001] b..1.  {now // 10**6}.{now % 10**6:06d}: "
            if n % 400 == 399:
                state = 3 - state
                file.write(
                    f"{head}tcp_cong_state_set: family=AF_INET sport={SPORTS[i]} dport=5000 "
                    f"saddr=10.0.{i + 1}.1 daddr=10.0.1.2 saddrv6=::ffff:10.0.{i + 1}.1 "
                    f"daddrv6=::ffff:10.0.1.2 cong_state={state}\n"
                )
            file.write(
                f"{head}tcp_probe: family=AF_INET src=10.0.{i + 1}.1:{SPORTS[i]} "
                f"dest=10.0.1.2:5000 mark=0x0 data_len=0 snd_nxt={una:#x} snd_una={una:#x} "
                f"snd_cwnd={cwnd} ssthresh=48 snd_wnd=2797568 srtt={srtt} rcv_wnd=64512 "
                "sock_cookie=9 skbaddr=00000000f0b9bbe5 skaddr=00000000556f9b92\n"
            )
            if n % 1000 == 0 and file.tell() > size:
                return


PROBE_LINE = re.compile(
    r"^(?P<ts>\d+\.\d+),(?P<ev>probe|state|rtx),\w+,(?P<token>\w+),(?P<netns>\d+),(?P<sfid>\d+),"
    r"(?P<sport>\d+),(?P<dport>\d+),(?P<ca_state>\d+),(?P<arg>\d+),(?P<ack_seq>\d+),"
    r"(?P<snd_una>\d+),\d+,\d+,(?P<cwnd>\d+),\d+,(?P<srtt_us>\d+),(?P<rtt_us>\d+),\d+,"
    r"(?P<delivered>\d+),\d+,\d+,\d+,\d+,\d+$"
)
FTRACE_LINE = re.compile(
    r"\s(?P<ts>\d+\.\d+): tcp_probe:.* src=(?P<src>\S+):(?P<sport>\d+) "
    r"dest=(?P<dst>\S+):(?P<dport>\d+) .*snd_una=(?P<snd_una>\w+) snd_cwnd=(?P<cwnd>\d+)"
    r".* srtt=(?P<srtt_us>\d+)"
)
STATE_LINE = re.compile(
    r"\s(?P<ts>\d+\.\d+): tcp_cong_state_set:.* sport=(?P<sport>\d+) dport=(?P<dport>\d+) "
    r"saddr=(?P<src>\S+) daddr=(?P<dst>\S+) .*cong_state=(?P<arg>\d+)"
)


def _frame(path: Path, patterns: dict[str, re.Pattern[str]]) -> tuple[pd.DataFrame, list[int]]:
    rows, bad = [], []
    with path.open(errors="replace") as file:
        for number, line in enumerate(file, start=1):
            for kind, pattern in patterns.items():
                match = pattern.search(line)
                if match:
                    rows.append({"kind": kind, **match.groupdict()})
                    break
            else:
                bad.append(number)
    frame = pd.DataFrame(rows)
    frame["time_us"] = (frame["ts"].astype(float) * 1e6).astype("int64")
    return frame, bad


def _events(frame: pd.DataFrame, key: list[str], shifted: list[str]) -> pd.DataFrame:
    """Long table of (key, time_us, variable, value); shifted columns take the previous time."""
    parts = []
    for column in (*shifted, "snd_cwnd", "ca_state"):
        rows = frame[frame[column].notna()]
        group = rows.groupby(key, sort=False)
        fresh = rows[column] != group[column].shift()
        time_us = group["time_us"].shift() if column in shifted else rows["time_us"]
        part = rows.loc[fresh, key].assign(time_us=time_us[fresh], value=rows.loc[fresh, column])
        parts.append(part.assign(variable=column).dropna(subset=["time_us"]))
    return pd.concat(parts).sort_values([*key, "variable", "time_us"], kind="stable")


def peer_probe(path: Path, out: Path) -> int:
    frame, _ = _frame(path, {"row": PROBE_LINE})
    key = ["token", "netns", "sport", "dport"]
    probe = frame["ev"] == "probe"
    for column in ("ca_state", "arg", "ack_seq", "cwnd", "rtt_us"):
        frame[column] = frame[column].astype("int64")
    frame["ca_state"] = frame["ca_state"].where(probe, frame["arg"])
    frame["snd_cwnd"] = frame["cwnd"].where(probe)
    frame["rtt_us"] = frame["rtt_us"].where(probe)
    frame["ack"] = frame["ack_seq"].where(probe)
    events = _events(frame, key, ["rtt_us", "ack"])
    events.to_parquet(out, compression="zstd")
    return len(events)


def peer_ftrace(path: Path, out: Path) -> int:
    frame, _ = _frame(path, {"probe": FTRACE_LINE, "state": STATE_LINE})
    frame["ack"] = frame["snd_una"].map(lambda text: int(text, 16), na_action="ignore")
    frame["snd_cwnd"] = frame["cwnd"].astype(float)
    frame["srtt_us"] = frame["srtt_us"].astype(float)
    frame["ca_state"] = frame["arg"].astype(float)
    events = _events(frame, ["src", "sport", "dst", "dport"], ["srtt_us", "ack"])
    events.to_parquet(out, compression="zstd")
    return len(events)


def ours(path: Path, out: Path) -> int:
    report = ingest([path], out, settings=Settings(jobs=1))
    assert report["quarantined_lines"] == 0
    return int(report["events"])


def parse_only(path: Path, name: str) -> None:
    """Reading and parsing alone, without Parquet."""
    from data.formats import load

    reader = load(name).reader(Options())
    for block in blocks(path):
        reader.parse(block.lines)


def timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall seconds and result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def measure(name: str, megabytes: float, repeats: int, folder: Path) -> dict[str, Any]:
    write, peer = {"probe-csv": (write_probe, peer_probe), "ftrace": (write_ftrace, peer_ftrace)}[
        name
    ]
    small, path = folder / "small", folder / name
    write(small, 100_000)
    write(path, int(megabytes * 1e6))
    size = path.stat().st_size / 1e6
    # Compilation, imports and first use of every library stay out of the figures.
    ours(small, folder / "out")
    peer(small, folder / "peer.parquet")
    best = min(timed(lambda: ours(path, folder / "out")) for _ in range(repeats))
    alone = min(timed(lambda: parse_only(path, name)) for _ in range(repeats))
    other = timed(lambda: peer(path, folder / "peer.parquet"))
    assert pq.read_metadata(folder / "peer.parquet").num_rows > 0
    return {
        "format": name,
        "megabytes": round(size, 1),
        "ingest_mb_per_cpu_s": round(size / best[0], 1),
        "parse_mb_per_cpu_s": round(size / alone[0], 1),
        "pandas_re_mb_per_cpu_s": round(size / other[0], 2),
        "ratio": round(other[0] / best[0], 1),
        "ingest_wall_s": round(best[1], 2),
        "pandas_re_wall_s": round(other[1], 2),
        "ingest_events": best[2],
        "pandas_re_events": other[2],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measure(name, args.megabytes, args.repeats, Path(folder))
            for name in ("probe-csv", "ftrace")
        ]
    if args.json:
        print(json.dumps({"rows": rows, "target_ratio": TARGET_RATIO}, indent=2))
    else:
        print(f"{'format':<10} {'MB':>6} {'ingest':>8} {'parse':>8} {'pandas+re':>10} {'ratio':>6}")
        for row in rows:
            print(
                f"{row['format']:<10} {row['megabytes']:>6} {row['ingest_mb_per_cpu_s']:>8} "
                f"{row['parse_mb_per_cpu_s']:>8} {row['pandas_re_mb_per_cpu_s']:>10} "
                f"{row['ratio']:>5}x"
            )
        print("MB per CPU second; ingest and pandas+re go from the file to Parquet")
    return 0 if all(row["ratio"] >= TARGET_RATIO for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
