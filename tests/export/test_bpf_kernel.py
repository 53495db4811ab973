"""Exported eBPF inside the running kernel."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_forms import SPECS
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from small_models import FEATURES
from test_export_verify import answered, rewrite
from test_targets_c import source_of

from export.bpf import build
from export.bpf.coupling import LABELS
from export.bpf.files import MAX_IF_ELSE_NODES
from export.bundle.manifest import bundle_files
from export.forms.forest import Forest
from export.forms.linear import Linear
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.lower import lower
from export.params import Options, VerifyParams
from export.verify import verify
from models.store import replace_directory

pytestmark = pytest.mark.kernel
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
INTEGERS = VerifyParams(random=200)


@pytest.fixture(scope="module", autouse=True)
def _kernel():
    if reason := build.why_not():
        print(f"eBPF not run in the kernel: {reason}")
        pytest.skip(reason)


def grown(rng, depth, low, high):
    """A full tree whose leaves can all be reached."""
    if depth == 0:
        return Nodes((-1,), (int(rng.integers(1 << 16)),), (0,))
    column = int(rng.integers(4))
    value = int(rng.integers(low[column], high[column]))
    ends, starts = high.copy(), low.copy()
    ends[column], starts[column] = value, value + 1
    left, right = grown(rng, depth - 1, low, ends), grown(rng, depth - 1, starts, high)
    turn = 1 + len(left)
    return Nodes(
        (column, *left.feature, *right.feature),
        (value, *left.value, *right.value),
        (
            turn,
            *(r + 1 if r else 0 for r in left.right),
            *(r + turn if r else 0 for r in right.right),
        ),
    )


def tree(depth, seed=3):
    span = np.full(4, 10**9)
    return grown(np.random.default_rng(seed), depth, -span, span)


def spine(depth, column):
    """A tree as deep as a full one of which only the last leaf is as deep."""
    inner = range(depth)
    return Nodes(
        (*(f for _ in inner for f in (column, -1)), -1),
        (*(v for i in inner for v in (i * 10**8 - 4 * 10**8, 655 * i)), 1 << 16),
        (*(r for i in inner for r in (2 * i + 2, 0)), 0),
    )


def exported(form, directory, asked="both"):
    values = np.arange(8.0).reshape(2, 4)
    source = replace(source_of(form), values=values, probability=np.zeros(2))
    files = bundle_files(source, ["bpf"], Options(bpf=asked), "the tests")
    replace_directory(directory, files)
    return directory


def proved(form, directory, asked="both"):
    report = verify(exported(form, directory, asked), INTEGERS)
    assert report["ok"], report
    return report["targets"][0]


LEAF = Nodes((-1,), (5,), (0,))
EXTREMES = Nodes((0, 1, -1, -1, -1), (2**31 - 2, -(2**31), 2**31 - 1, -(2**31), 0), (4, 3, 0, 0, 0))


def rbf_machine():
    """A small machine, the same in every run."""
    rng = np.random.default_rng(3)
    low, high = (np.array([getattr(f, end) for f in FEATURES]) for end in ("low", "high"))
    x = rng.uniform(low, high, (200, len(FEATURES)))
    y = (x[:, 0] / 1000 + rng.normal(0, 0.2, 200) > 0.5).astype(int)
    return lower(make_pipeline(StandardScaler(), SVC(gamma=0.5)).fit(x, y), FEATURES)


@pytest.mark.parametrize(
    "form",
    [
        Tree(SPECS, LABELS, 1 << 15, tree(7)),
        Tree(SPECS, LABELS, 4, LEAF),
        Tree(SPECS, LABELS, -1, EXTREMES),
        Forest(SPECS, LABELS, 5 << 15, tuple(tree(6, seed) for seed in range(5))),
        Forest(SPECS, LABELS, -(2**63), (EXTREMES, LEAF)),
        Linear(SPECS, LABELS, 2**61, (2**30, -(2**30), 0, 1), 2**61, 10),
        rbf_machine(),
    ],
    ids=["tree", "leaf", "extremes", "forest", "extreme forest", "linear", "rbf"],
)
def test_every_kind_answers_as_its_form_says(form, tmp_path):
    report = proved(form, tmp_path / "bundle")
    for part in report["ways"].values():
        assert part["vectors"] >= 400
        assert part["mismatches"] == 0
        assert part["verified_insns"] > 0
        assert part["congestion_control"]["verified_insns"] > 0
        assert part["stack_bytes"] <= 512
    if isinstance(form, Tree | Forest):
        swap = report["ways"]["map"]["swap"]
        assert swap["first"] > 0
        assert swap["second"] > 0
        assert swap["mixed"] == 0


def test_the_largest_tree_that_if_else_is_offered_for_passes_the_verifier(tmp_path):
    nodes = tree(12)
    assert len(nodes) == MAX_IF_ELSE_NODES - 1
    part = proved(Tree(SPECS, LABELS, 1 << 15, nodes), tmp_path / "bundle", "if-else")
    assert part["mismatches"] == 0
    assert part["xlated_bytes"] > 8 * len(nodes)


def test_a_hundred_deep_trees_walk_within_the_stack(tmp_path):
    trees = [*(tree(8, seed) for seed in range(4)), *(spine(8, column) for column in range(4))]
    form = Forest(SPECS, LABELS, 100 << 15, (*trees, *(trees[4:] * 23)))
    assert len(form.trees) == 100
    part = proved(form, tmp_path / "bundle", "map")
    assert part["mismatches"] == 0
    assert part["stack_bytes"] <= 128


def rewritten(directory, name, old, new):
    content = (directory / name).read_bytes()
    assert old in content
    (directory / name).write_bytes(content.replace(old, new, 1))
    rewrite(directory)
    return answered(directory, "bpf", INTEGERS)


def test_a_threshold_off_by_one_is_found_in_code_and_in_the_table(tmp_path):
    form = Tree(SPECS, LABELS, 1 << 15, tree(5))
    threshold = form.nodes.value[0]
    for asked, name, old, new in (
        ("if-else", "a_model.bpf.h", b"<= %d)" % threshold, b"<= %d)" % (threshold + 1)),
        (
            "map",
            "a_model.nodes.bin",
            struct.pack("<i", threshold),
            struct.pack("<i", threshold - 1),
        ),
    ):
        directory = exported(form, tmp_path / asked, asked)
        report = rewritten(directory, name, old, new)
        assert report["mismatches"] > 0
        assert report["first_mismatch"]["features"][form.nodes.feature[0]] in (
            threshold, threshold + 1,
        )  # fmt: skip


def test_what_the_verifier_or_the_loader_refuses_is_an_error_with_their_reason(tmp_path):
    form = Tree(SPECS, LABELS, 1 << 15, tree(3))
    for number, (asked, name, old, new, said) in enumerate(
        (
            ("map", "a_model.nodes.bin", b"cczoo", b"", "the loader refuses"),
            (
                "map",
                "a_model_map.bpf.h",
                b"_NODES - 1",
                b"_NODES * 4 - 1",
                "outside of the allowed memory",
            ),
            ("if-else", "a_model.bpf.h", b"return", b"retrun", "refuses the code"),
            (
                "if-else",
                "a_model_cc.bpf.c",
                b"decision->decided_ns",
                b"decision[1].decided_ns",
                "outside of the allowed memory",
            ),
        )
    ):
        directory = exported(form, tmp_path / f"bundle-{number}", asked)
        report = rewritten(directory, name, old, new)
        assert said in report["error"], report


def maps(**like):
    """Maps in the kernel whose fields are these."""
    listed = subprocess.run(["bpftool", "-j", "map", "list"], capture_output=True, check=True)
    return [m for m in json.loads(listed.stdout) if m | like == m]


ODD_ROWS = 8209
"""By so many entries nobody else's map is taken for these tests'."""


@pytest.mark.parametrize("after_s", [0.02, 0.1, 0.3])
def test_nothing_stays_in_the_kernel_when_killed(after_s, tmp_path):
    form = Forest(SPECS, LABELS, 5 << 15, tuple(tree(9, seed) for seed in range(40)))
    directory = exported(form, tmp_path / "bundle")
    (tmp_path / "work").mkdir()
    shop = build.Workshop(directory, tmp_path / "work", 600)
    name = f"czt_k{os.getpid()}"
    cc = shop.program("a_model_cc.bpf.c", "cc.o", {"CC_NAME": f'"{name}"'})
    test = shop.program("a_model_test.bpf.c", "test.o", {"TIMED_ROWS": str(ODD_ROWS)})
    load = shop.host(directory / "a_model_load.c", "load")
    rows = np.random.default_rng(0).integers(-(10**9), 10**9, (2 * ODD_ROWS, 4))
    (tmp_path / "rows").write_bytes(rows.astype(np.int32).tobytes())
    table = directory / "a_model.nodes.bin"
    numbers = [str(ODD_ROWS), str(ODD_ROWS), load, "a_model_models", table, table]
    for command in (
        [shop.runtime("bpf_run"), test, *numbers],
        [shop.runtime("bpf_register"), cc, name],
    ):
        with (tmp_path / "rows").open("rb") as given:
            running = subprocess.Popen(
                command, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(after_s)
            running.send_signal(signal.SIGKILL)
            running.wait()
    assert soon(lambda: not maps(name="observations", max_entries=ODD_ROWS))
    assert soon(lambda: name not in AVAILABLE.read_text().split())


def soon(condition, within_s=120):
    """Whether it comes true; the kernel frees things a grace period later."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


IPPROTO_MPTCP, SOL_MPTCP, MPTCP_INFO, TOKEN_AT = 262, 284, 1, 12


@pytest.fixture
def registered(tmp_path):
    """The congestion control as a user registers it, the form that it obeys, and its map."""
    form = Tree(SPECS, LABELS, 1 << 15, tree(6))
    (tmp_path / "work").mkdir()
    shop = build.Workshop(exported(form, tmp_path / "bundle"), tmp_path / "work", 600)
    name = f"czt_{os.getpid()}"
    program = shop.program("a_model_cc.bpf.c", "cc.o", {"CC_NAME": f'"{name}"'})
    command = ["bpftool", "struct_ops", "register", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    number = re.search(r"id (\d+)", done.stderr + done.stdout)[1]
    try:
        yield form, name, decisions_of(number)
    finally:
        command = ["bpftool", "struct_ops", "unregister", "id", number]
        subprocess.run(command, capture_output=True, check=True)
        assert name not in AVAILABLE.read_text().split()


def decisions_of(number):
    """The map of this struct_ops' programs: others may register one of the same name meanwhile."""
    dumped = bpftool("struct_ops", "dump", "id", number)
    programs = {int(found) for found in re.findall(r"prog_id:(\d+)", dumped)}
    shown = [json.loads(bpftool("prog", "show", "id", program)) for program in programs]
    used = {one for program in shown for one in program["map_ids"]}
    (found,) = {m["id"] for m in maps(name="decisions", bytes_value=DECISION.size)} & used
    return found


def bpftool(*words):
    call = ["bpftool", "-j", *map(str, words)]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


def token_of(connection):
    info = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 64)
    return struct.unpack_from("=I", info, TOKEN_AT)[0]


DECISION = struct.Struct("=I4iIQII")
"""``struct a_model_decision``."""


def bpftool_map(command, number, token, *value):
    key = ["key", "hex", *f"{token.to_bytes(4, 'little').hex(' ')}".split()]
    call = ["bpftool", "-j", "map", command, "id", str(number), *key, *value]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def decision(number, token):
    found = json.loads(bpftool_map("lookup", number, token).stdout)
    if not found or "value" not in found:
        return None
    return DECISION.unpack(bytes(int(b, 16) for b in found["value"]))


def test_a_live_mptcp_connection_obeys_the_kernels_own_answer(registered):
    form, name, number = registered
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        print("live connection not run: no MPTCP in this kernel")
        pytest.skip("no MPTCP in this kernel")
    x = np.random.default_rng(2).integers(-(10**9), 10**9, (64, 4))
    classes = form.evaluate(x).classes
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    with server, client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        client.connect(server.getsockname())
        peer, _ = server.accept()
        with peer:
            token = token_of(client)
            assert decision(number, token) is None
            begun_ns = time.monotonic_ns()
            for sequence, row in enumerate((0, 1), start=1):
                features = x[np.flatnonzero(classes == row)[0]].tolist()
                asked = DECISION.pack(sequence, *features, 1 - row, 0, 7, sequence - 1)
                bpftool_map("update", number, token, "value", "hex", *asked.hex(" ").split())

                def answered(sequence=sequence):
                    client.sendall(bytes(1000))
                    peer.recv(1000)
                    return decision(number, token)[-1] == sequence

                assert soon(answered)
                found = decision(number, token)
                assert found[-2] == row, "the kernel's answer, not the one that user space gave"
                assert found[:6] == (sequence, *features, 1 - row)
                assert begun_ns <= found[6] <= time.monotonic_ns()
    assert soon(lambda: decision(number, token) is None), "the last subflow takes it with it"
