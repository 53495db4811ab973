"""No file of the project imports, by whatever way, a file that imports it."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pipelines", "export", "models", "features", "data")


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, known: set[str]) -> set[str]:
    """Modules that a file names, also within functions and for the type checker alone."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return found & known


def circle(files: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(files).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_there_is_no_circle_of_imports() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    names = {name_of(path): path for path in paths}
    assert len(names) > 400
    graph = {
        name: imported(ast.parse(path.read_text(encoding="utf-8")), {*names}) - {name}
        for name, path in names.items()
    }
    assert circle(graph) == []


def test_a_circle_is_found() -> None:
    tree = ast.parse("def run():\n    from models import store\n")
    assert imported(tree, {"models", "models.store"}) == {"models.store"}
    assert {*circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})} == {"a", "b", "c"}
