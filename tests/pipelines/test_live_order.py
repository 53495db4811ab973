"""The agent's samples are those that training reads from the log of the same events."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.ingest import ingest
from data.lab import compact
from data.lab.build import NATIVE
from data.store import iter_connections

DRIVER = Path(__file__).with_name("order_driver.c")

Event = tuple[int, int, int, int, int, int, int, int]
"""Kind, ns, subflow number, ack_seq, snd_una, rtt_us, cwnd, new state."""


def events(seed: int, pause_us: int = 0) -> Iterator[Event]:
    """Two subflows with duplicates, repeated RTTs, a wrapping sequence number and states."""
    rng = random.Random(seed)
    now_us = 5_000_000
    ack = {1: 2**32 - 20_000, 2: 77}
    una, rtt, cwnd = dict(ack), {1: 0, 2: 0}, {1: 10, 2: 10}
    for number in range(3000):
        now_us += rng.choice((0, 1, 700, 1300))
        if number == 1500:
            now_us += pause_us
        sf = 1 if number == 0 or rng.random() < 0.6 else 2
        if rng.random() < 0.04 and number > 20:
            state = rng.randrange(5)
            yield 1, now_us * 1000 + 7, sf, 0, 0, 0, 0, state
            continue
        if rng.random() < 0.8:
            ack[sf] = (ack[sf] + rng.choice((0, 1420, 2840))) % 2**32
        if rng.random() < 0.7:
            rtt[sf] = rng.choice((0, 21_000, 22_000)) if number < 60 else rng.randint(20, 90) * 1000
        if rng.random() < 0.1:
            cwnd[sf] += 1
        yield 0, now_us * 1000 + 7, sf, ack[sf], una[sf], rtt[sf], cwnd[sf], 0


def logged(found: list[Event], folder: Path) -> list[tuple[int, int, int, int]]:
    """(time_us, subflow, rtt_us, state) as ingest reads them from the kept log."""
    columns = (
        "ts,ev,cookie,token,netns,sfid,sport,dport,ca_state,arg,ack_seq,snd_una,snd_nxt,data_len,"
        "cwnd,ssthresh,srtt_us,rtt_us,min_rtt_us,delivered,lost,retrans_out,sacked_out,"
        "packets_out,total_retrans"
    )
    lines = [columns]
    for kind, ns, sf, ack, una, rtt, cwnd, state in found:
        ts = f"{ns // 10**9}.{ns % 10**9:09d}"
        ev = ("probe", "state")[kind]
        lines.append(
            f"{ts},{ev},a{sf},0badcafe,1,{sf},{4000 + sf},5000,0,{state},{ack},{una},0,0,"
            f"{cwnd},0,0,{rtt},0,0,0,0,0,0,0"
        )
    csv = folder / "probe.csv"
    csv.write_text("\n".join([*lines, "#lost=0"]) + "\n")
    kept, probed = compact.read_probe(csv)
    compact.write(folder / "x.klog.zst", kept, {"token": probed["token"]})
    ingest([folder / "x.klog.zst"], folder / "events")
    samples = []
    for _, variables in iter_connections(folder / "events"):
        for subflow, series in variables.items():
            for time_us, value in zip(*series["rtt_us"], strict=True):
                samples.append((int(time_us), subflow, int(value), -1))
            for time_us, value in zip(*series["ca_state"], strict=True):
                samples.append((int(time_us), subflow, 0, int(value)))
    return samples


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        print("the agent's order is not tested: gcc not found")
        pytest.skip("gcc not found: apt-get install -y gcc")
    folder = tmp_path_factory.mktemp("order")
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    command += [f"-I{NATIVE}", "-o", str(folder / "driver"), str(DRIVER)]
    subprocess.run(command, check=True)
    return folder / "driver"


def run(driver: Path, found: list[Event]) -> tuple[list[tuple[int, int, int, int]], int]:
    text = "\n".join(" ".join(map(str, event)) for event in found)
    done = subprocess.run([str(driver)], input=text, capture_output=True, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return [(a, b, c, d) for a, b, c, d in rows], int(done.stderr)


@pytest.mark.parametrize("seed", range(4))
def test_agent_sees_what_training_reads(driver: Path, tmp_path: Path, seed: int) -> None:
    found = list(events(seed))
    live, late = run(driver, found)
    assert [row[0] for row in live] == sorted(row[0] for row in live)
    assert late == 0
    # Ingest adds each subflow's first state, Open, which isn't an event.
    first_us = {sf: min(row[1] for row in found if row[2] == sf) // 1000 for sf in (1, 2)}
    read = [row for row in logged(found, tmp_path) if row != (first_us[row[1]], row[1], 0, 0)]
    # What waits for its RTT at the end is cut on both sides.
    end_us = live[-1][0]
    assert len(live) > 1500
    assert sorted(row for row in live if row[0] < end_us) == sorted(
        row for row in read if row[0] < end_us
    )


def test_silent_subflow_holds_the_other_up_for_a_second_at_most(driver: Path) -> None:
    found = [event for event in events(1, pause_us=3_000_000) if event[2] == 1 or event[1] < 6e9]
    live, _ = run(driver, found)
    assert live[-1][0] > max(event[1] for event in found) // 1000 - 1_100_000
