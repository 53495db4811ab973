"""Find in the code itself which of this project's files a stage of ``dvc.yaml`` runs.

A dependency that is missing lets ``dvc repro`` keep results of code that has changed; one too many
makes it repeat hours of work. So the list is computed: from the functions that a stage's commands
call, along the names that they use, to every file that is imported on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

PACKAGES = ("pipelines", "export", "models", "features", "data")
TEXTS = (".j2", ".c", ".h", ".yaml", ".json")
"""Endings of files that code reads by name."""
_NO_CODE = {"raw", "interim", "processed", "reference", "zoo", "trained", "build"}
"""Folders of data, models and compiled code within the packages."""
Symbol = tuple[str, str]
"""A module's name and the name of one of its functions, classes or constants."""


@dataclass
class Module:
    """One Python file and what it binds at its top."""

    name: str
    path: Path
    tree: ast.Module
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    top: list[ast.stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Sort the statements into definitions and what runs at import."""
        for statement in self.tree.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.definitions.setdefault(statement.name, []).append(statement)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                targets = getattr(statement, "targets", None) or [getattr(statement, "target", 0)]
                for target in targets:
                    for node in ast.walk(target):
                        if isinstance(node, ast.Name):
                            self.definitions.setdefault(node.id, []).append(statement)
            elif not _never_imported(statement):
                self.top.append(statement)

    @cached_property
    def bindings(self) -> dict[str, Symbol]:
        """Names that imports at the top bind."""
        return dict(_bindings(self.top))


class Project:
    """The checkout's modules by name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = {_module_name(root, path): path for path in _sources(root)}
        self._modules: dict[str, Module] = {}

    @cached_property
    def files(self) -> set[str]:
        """Every file of code, and every text that code may read by name."""
        found = {path for path in self.paths.values() if path.stat().st_size}
        for package in PACKAGES:
            for paths in _texts(self.root, package).values():
                found.update(paths)
        return {str(path.relative_to(self.root)) for path in found}

    def module(self, name: str) -> Module | None:
        """Module of this project by its name; None for a module of another's."""
        if name not in self.paths:
            return None
        if name not in self._modules:
            path = self.paths[name]
            self._modules[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
        return self._modules[name]

    def closure(self, symbols: Iterable[Symbol], without: Iterable[Symbol] = ()) -> set[str]:
        """Files that run when these symbols are used.

        Parameters
        ----------
        symbols : iterable of (module, name)
            Symbols that a stage begins with; the name ``""`` only imports the module.
        without : iterable of (module, name)
            Symbols that the stage never reaches, although a name leads to them.

        Returns
        -------
        set of str
            Paths relative to the root: Python files, and the texts that they read by name.
        """
        walk = _Walk(self)
        walk.todo += [*symbols]
        walk.seen |= {*without}
        while walk.todo:
            walk.visit(walk.todo.pop())
        return {str(path.relative_to(self.root)) for path in walk.files}


class _Walk:
    """A search through names, with the files found so far and the symbols still to look at."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.todo: list[Symbol] = []
        self.seen: set[Symbol] = set()
        self.loaded: set[str] = set()
        self.files: set[Path] = set()

    def load(self, name: str) -> Module | None:
        """Import a module and the packages it lies in."""
        module = self.project.module(name)
        if module is None or name in self.loaded:
            return module
        self.loaded.add(name)
        if len(module.tree.body) > 1:  # A docstring alone runs nothing.
            self.files.add(module.path)
        if "." in name:
            self.load(name.rpartition(".")[0])
        for target, _ in _bindings(module.top, targets=True):
            self.load(target)
        self._use(module, module.top, module.bindings)
        for name_, statements in module.definitions.items():
            self._use(module, _run_at_import(statements), module.bindings)
            if name_.startswith("__"):
                self.todo.append((name, name_))
        return module

    def visit(self, symbol: Symbol) -> None:
        """Look at what one definition uses."""
        if symbol in self.seen:
            return
        self.seen.add(symbol)
        name, attribute = symbol
        module = self.load(name)
        if module is None:
            return
        if attribute == "*":
            self.todo += [(name, one) for one in module.definitions]
        elif attribute in module.definitions:
            body = module.definitions[attribute]
            self._use(module, body, module.bindings)
            if any("import_module" in ast.dump(statement) for statement in body):
                self._open_registries(module)
        elif attribute in module.bindings:
            self._follow(module.bindings[attribute])
        elif f"{name}.{attribute}" in self.project.paths:
            self.load(f"{name}.{attribute}")

    def _follow(self, symbol: Symbol) -> None:
        name, attribute = symbol
        if attribute and f"{name}.{attribute}" in self.project.paths:
            self.load(f"{name}.{attribute}")
        else:
            self.todo.append(symbol)

    def _use(self, module: Module, statements: Iterable[ast.AST], outer: dict[str, Symbol]) -> None:
        nodes = [node for statement in statements for node in _walk(statement)]
        local = {**outer, **dict(_bindings(nodes))}
        for target, _ in _bindings(nodes, targets=True):
            self.load(target)
        for node in nodes:
            if isinstance(node, ast.Attribute) and (dotted := _dotted(node)):
                self._attribute(dotted, local)
            elif isinstance(node, ast.Name):
                if node.id in local:
                    self._follow(local[node.id])
                elif node.id in module.definitions:
                    self.todo.append((module.name, node.id))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._text(module, node.value)
            elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                self._package(str(node.values[0].value))

    def _attribute(self, dotted: list[str], local: dict[str, Symbol]) -> None:
        """Follow ``module.function``, also through packages."""
        if dotted[0] not in local:
            return
        name, attribute = local[dotted[0]]
        path = f"{name}.{attribute}" if attribute else name
        for part in dotted[1:]:
            if path not in self.project.paths:
                return
            self.todo.append((path, part))
            path = f"{path}.{part}"

    def _open_registries(self, module: Module) -> None:
        """Follow the names of modules in a module that imports by name."""
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and node.value in self.project.paths:
                self.todo.append((str(node.value), "*"))

    def _text(self, module: Module, text: str) -> None:
        """Follow the name of a file that is read."""
        if text.endswith(TEXTS) and "/" not in text:
            for path in _texts(self.project.root, module.name.partition(".")[0]).get(text, ()):
                if path not in self.files:
                    self.files.add(path)
                    self._included(path, module)

    def _included(self, path: Path, module: Module) -> None:
        """Templates and headers that a template or C file includes."""
        content = path.read_text(encoding="utf-8")
        for name in _texts(self.project.root, module.name.partition(".")[0]):
            if f'"{name}"' in content:
                self._text(module, name)

    def _package(self, prefix: str) -> None:
        """Follow ``f"pipelines.reporting.{module}"`` to every module of the package."""
        if prefix.endswith(".") and prefix[:-1] in self.project.paths:
            inside = [name for name in self.project.paths if name.startswith(prefix)]
            self.todo += [(name, "*") for name in inside]


def _walk(statement: ast.AST) -> Iterator[ast.AST]:
    """Every node but annotations, which never run, and imports for the type checker."""
    if isinstance(statement, ast.stmt) and _never_imported(statement):
        return
    yield statement
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child)


def _run_at_import(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The parts of a definition that run when its module is imported.

    A registry that is merely defined imports nothing: its strings count in the code that uses it.
    """
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from statement.decorator_list
            yield from (one for one in statement.args.defaults)
            yield from (one for one in statement.args.kw_defaults if one is not None)
        elif isinstance(statement, ast.ClassDef):
            yield from (*statement.decorator_list, *statement.bases)
            for inner in statement.body:
                if isinstance(inner, ast.AnnAssign | ast.Assign) and inner.value is not None:
                    yield inner.value
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield from (n for n in _walk(statement.value) if isinstance(n, ast.Call))


def _bindings(nodes: Iterable[ast.AST], targets: bool = False) -> Iterator[tuple[str, Symbol]]:
    """Name -> symbol of every import among the nodes; with ``targets`` the modules imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield (
                    (alias.name, ("", ""))
                    if targets
                    else (
                        bound,
                        (alias.name if alias.asname else bound, ""),
                    )
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if targets:
                    yield node.module, ("", "")
                    yield f"{node.module}.{alias.name}", ("", "")
                else:
                    yield alias.asname or alias.name, (node.module, alias.name)


def _dotted(node: ast.Attribute) -> list[str]:
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    return [inner.id, *reversed(parts)] if isinstance(inner, ast.Name) else []


def _never_imported(statement: ast.stmt) -> bool:
    """Whether a block is for the type checker alone, or for a module that is run as a program."""
    if not isinstance(statement, ast.If):
        return False
    names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
    return bool(names & {"TYPE_CHECKING", "__name__"})


def _sources(root: Path) -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((root / package).rglob("*.py"))


@cache
def _texts(root: Path, package: str) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted((root / package).rglob("*")):
        parts = path.relative_to(root).parts
        if path.suffix in TEXTS and not _NO_CODE & {*parts}:
            found.setdefault(path.name, []).append(path)
    return found


def _module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
