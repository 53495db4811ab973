"""Names and docstrings use the words that a newcomer expects, and one notation of shapes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = ("data", "features", "models/envs", "models/sbd/automl", "pipelines")
DESCRIBED = (
    *NAMED, "models/stats", "models/parallel.py",
    *(f"models/sbd/{name}" for name in (
        "conditions", "drift", "evaluate", "groups", "neural", "rules", "train",
    )),
)  # fmt: skip
OTHER_SHAPES = re.compile(
    r"\bshape \(|\bndarray\b|\barray_like\b|\b(?:bool|int\d*|uint\d+|float\d*) \[(?=[\w(.])"
)
FRAGMENTS = re.compile(r"(?m)^\s*Of (?!three and more)|manieth|\btold by\b|\bhangs? on\b")
FRAGMENT_START = re.compile(r"(?:What|Which|Whether|How|Who|When|Where|Why|From|Of)\b")
WHERE_FOR_IF = re.compile(
    r"(?:\b(?:[Nn]one|empty|NaN|[012])|\"\")`* where\b"
    r"|\b[Ww]here (?:none|nothing|there (?:is|are|was))\b"
)
NAMES = re.compile(r"(?:^|_)(?:told|said|say|tell|lo|hi)$")


def modules(places: tuple[str, ...]) -> Iterator[tuple[str, ast.Module]]:
    for place in places:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8"))


def texts(tree: ast.Module) -> Iterator[str]:
    """Docstrings, those of attributes too."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node.value.value, str):
            yield node.value.value


def names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_shapes_have_one_notation() -> None:
    found = [
        (file, match.group())
        for file, tree in modules(DESCRIBED)
        for text in texts(tree)
        if (match := OTHER_SHAPES.search(text))
    ]
    assert not found, "write `float64 array [N, d]`"


def test_docstrings_are_no_fragments() -> None:
    found = [
        (file, match.group())
        for file, tree in modules(DESCRIBED)
        for text in texts(tree)
        if (match := FRAGMENTS.search(text))
    ]
    assert not found


def test_if_means_if() -> None:
    found = [
        (file, match.group())
        for file, tree in modules(NAMED)
        for text in texts(tree)
        if (match := WHERE_FOR_IF.search(text))
    ]
    assert not found


def test_modules_begin_with_what_they_are_or_do() -> None:
    found = [
        (file, text)
        for file, tree in modules(DESCRIBED)
        if FRAGMENT_START.match(text := ast.get_docstring(tree) or "")
    ]
    assert not found


def test_names_are_nouns_and_ranges_go_from_low_to_high() -> None:
    found = [
        (file, name) for file, tree in modules(NAMED) for name in names(tree) if NAMES.search(name)
    ]
    assert not found


def test_kernel_is_the_one_of_linux() -> None:
    decorated = [
        file
        for file, tree in modules(("data/netsim",))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Name) and decorator.id == "kernel"
    ]
    assert not decorated
    assert not (ROOT / "data/netsim/kernel.py").exists()
