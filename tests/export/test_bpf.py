"""What the eBPF target writes and what its loader refuses, without a kernel's consent."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from random_forms import SPECS, forests, trees
from test_targets_c import source_of

from data.errors import UserError
from export.bpf import build
from export.bpf.coupling import LABELS, NAME
from export.bpf.files import MAX_IF_ELSE_NODES
from export.bpf.nodes import HEADER, ROW, mirrored, nodes_file
from export.bundle.manifest import bundle_files
from export.forms.forest import Forest
from export.forms.linear import Linear
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.params import Options
from export.targets import emit
from models.store import replace_directory
from pipelines.cli import main

STUMP = Nodes((0, -1, -1), (7, 10, 20), (2, 0, 0))
TREE = Tree(SPECS, LABELS, 15, STUMP)
FOREST = Forest(SPECS, LABELS, 15, (STUMP, STUMP))
LINEAR = Linear(SPECS, LABELS, 0, (1, 2, 3, 4), 5, 10)


def made(form, asked="both"):
    return set(emit("bpf", source_of(form), Options(bpf=asked)))


def test_files_of_each_kind_and_way():
    programs = {"a_model_test.bpf.c", "a_model_cc.bpf.c", "a_model_cc.h", "lia.h"}
    code = programs | {"a_model.bpf.h"}
    table = {"a_model_map.bpf.h", "a_model_table.h", "a_model_load.c", "a_model.nodes.bin"}
    assert made(TREE) == code | table
    assert made(TREE, "if-else") == code
    assert made(TREE, "map") == made(FOREST) == made(FOREST, "map") == programs | table
    assert made(LINEAR) == made(LINEAR, "if-else") == code


def test_only_a_verdict_on_bottlenecks_gets_a_congestion_control():
    assert not any("_cc" in name for name in made(replace(TREE, labels=("slow", "fast"))))


def test_what_cannot_be_written_as_asked_says_what_can():
    comb = 2 * MAX_IF_ELSE_NODES
    deep = Nodes((0, -1) * comb + (-1,), (0,) * (2 * comb + 1), tuple(
        i + 2 if i % 2 == 0 and i < 2 * comb else 0 for i in range(2 * comb + 1)
    ))  # fmt: skip
    for form, asked, said in (
        (FOREST, "if-else", "use bpf=map"),
        (replace(TREE, nodes=deep), "if-else", "use bpf=map"),
        (LINEAR, "map", "use bpf=if-else"),
    ):
        with pytest.raises(UserError, match=said):
            made(form, asked)
    assert "a_model.bpf.h" not in made(replace(TREE, nodes=deep))


def test_the_name_of_the_congestion_control_fits_the_kernel():
    text = emit("bpf", source_of(TREE), Options())["a_model_cc.bpf.c"].decode()
    assert f'#define CC_NAME "{NAME}"' in text
    assert len(NAME) <= 15


def walk(content, x):
    """Answers of a table's file, as a_model_map.bpf.h gets them."""
    _, _, _, n_trees, n_nodes, _, cut = HEADER.unpack_from(content)
    roots = np.frombuffer(content, "<u4", n_trees, HEADER.size)
    nodes = np.frombuffer(content, ROW, n_nodes, HEADER.size + roots.nbytes)
    assert len(content) == HEADER.size + roots.nbytes + nodes.nbytes
    total = 0
    for root in roots:
        at = int(root)
        while turn := int(nodes["turn"][at]):
            at += 1 if x[turn % 1024] <= nodes["value"][at] else turn // 1024
        total += int(nodes["value"][at])
    return total, int(total > cut)


@given(form=trees | forests)
def test_the_file_walked_as_documented_is_the_form(form):
    x = np.random.default_rng(1).integers(-(2**31), 2**31, (20, 4))
    for each in (form, mirrored(form)):
        content, meant = nodes_file(each, "ab" * 32), each.evaluate(x)
        found = [walk(content, row) for row in x]
        assert [score for score, _ in found] == meant.scores.tolist()
        assert [label for _, label in found] == meant.classes.tolist()
    assert (mirrored(form).evaluate(x).scores == -form.evaluate(x).scores - len(form.trees)).all()


@pytest.fixture(scope="module")
def loader(tmp_path_factory):
    if not shutil.which("gcc") or not Path("/usr/include/bpf/bpf.h").exists():
        reason = "no gcc or libbpf-dev on this machine"
        print(f"loader of the eBPF table not run: {reason}")
        pytest.skip(reason)
    work = tmp_path_factory.mktemp("loader")
    for name, content in emit("bpf", source_of(FOREST), Options()).items():
        (work / name).write_bytes(content)
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    command = ["gcc", *flags, "a_model_load.c", "-o", "load", "-lbpf"]
    subprocess.run(command, cwd=work, check=True)
    return work


def refusal(loader, content):
    (loader / "given.bin").write_bytes(content)
    # No map has this id, so that a file that is right gets as far and no further.
    command = [loader / "load", loader / "given.bin", str(2**31 - 1)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Sanitizer" not in done.stderr, done.stderr
    assert done.returncode == 1
    return done.stderr.removeprefix(f"{loader / 'given.bin'}: ")


def test_the_loader_takes_the_file_and_refuses_all_else(loader):
    good = (loader / "a_model.nodes.bin").read_bytes()
    assert refusal(loader, good).startswith(("no map a_model_models here", "map "))
    head = HEADER.unpack_from(good)

    def with_head(at, value):
        changed = [*head]
        changed[at] = value
        return HEADER.pack(*changed) + good[HEADER.size :]

    first_node = HEADER.size + 8

    def with_turn(turn):
        return good[: first_node + 4] + turn.to_bytes(4, "little") + good[first_node + 8 :]

    for content, said in (
        (b"", "not a table"),
        (good[: HEADER.size - 1], "not a table"),
        (with_head(0, b"cczooXXX"), "not a table"),
        (with_head(1, 2), "another version"),
        (with_head(2, 5), "other features"),
        (with_head(5, b"\0" * 32), "other features"),
        (with_head(3, 0), "more trees"),
        (with_head(3, 257), "more trees"),
        (with_head(4, 0), "more nodes"),
        (with_head(4, 2**32 - 1), "more nodes"),
        (with_head(4, 7), "not as long"),
        (good[:-1], "not as long"),
        (good + b"\0", "not as long"),
        (good[: HEADER.size] + b"\x06" + good[HEADER.size + 1 :], "root beyond"),
        (with_turn(2 * 1024 + 4), "feature that isn't there"),
        (with_turn(1024), "beyond the nodes"),
        (with_turn(6 * 1024), "beyond the nodes"),
        (with_turn(2**32 - 1024), "beyond the nodes"),
    ):
        assert said in refusal(loader, content), said


def test_the_loader_refuses_a_tree_too_deep(loader):
    depth = 129
    nodes = np.zeros(2 * depth + 1, dtype=ROW)
    nodes["turn"][0 : 2 * depth : 2] = 2 * 1024
    head = [*HEADER.unpack_from((loader / "a_model.nodes.bin").read_bytes())]
    head[3:5] = [1, len(nodes)]
    assert "a tree is too deep" in refusal(loader, HEADER.pack(*head) + b"\0" * 4 + nodes.tobytes())
    nodes, head[4] = nodes[2:], len(nodes) - 2
    said = refusal(loader, HEADER.pack(*head) + b"\0" * 4 + nodes.tobytes())
    assert said.startswith(("no map", "map "))


def test_where_bpf_cannot_run_verify_says_what_is_missing(tmp_path, monkeypatch, capsys):
    values = np.arange(8.0).reshape(2, 4)
    source = replace(source_of(TREE), values=values, probability=np.zeros(2))
    files = bundle_files(source, ["bpf"], Options(), "the tests")
    replace_directory(tmp_path / "bundle", files)
    command = ["verify", str(tmp_path / "bundle"), "--random", "10"]
    for change, said in (
        (lambda m: m.setenv("PATH", "/nowhere"), "clang-14 (apt-get install)"),
        (lambda m: m.setattr(build, "BTF", Path("/nowhere")), "CONFIG_DEBUG_INFO_BTF=y"),
        (lambda m: m.setattr(build.os, "geteuid", lambda: 1000), "needs root"),
    ):
        with monkeypatch.context() as changed:
            if said != "clang-14 (apt-get install)":
                changed.setattr(build.shutil, "which", lambda name: name)
                changed.setattr(build, "PACKAGES", {})
            change(changed)
            assert main(command) == 1
        assert said in capsys.readouterr().err
