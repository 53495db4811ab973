"""Scenarios: links, flows and cross traffic, from YAML."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from data import yaml_text
from data.errors import UserError, unknown_name
from data.netsim import bounds, workload
from data.netsim.bounds import (
    Length,
    Seconds,
)
from data.netsim.elements import Flow, Link, Part, Source
from data.netsim.paper import Paper

SCENARIO_DIR = Path(__file__).resolve().parent.parent / "scenarios" / "netsim"


class Scenario(Part):
    """Everything about a simulation but the seed and the controller under test.

    ``variants`` (label -> dotted key -> value) are scenarios that differ from this one;
    ``paper`` holds what the publication says, to be printed beside our numbers.
    """

    title: str = ""
    source: str = ""
    paper: Paper = Paper()
    duration_s: Length = 30.0
    warmup_s: Seconds = 0.0
    sample_s: Length = 0.1
    bottleneck: str | None = None
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    links: dict[str, Link] = Field(min_length=1, max_length=bounds.MOST_LINKS)
    flows: list[Flow] = Field(default_factory=list, max_length=bounds.MOST_FLOWS)
    sources: list[Source] = Field(default_factory=list, max_length=bounds.MOST_FLOWS)

    @model_validator(mode="after")
    def _links_exist(self) -> Scenario:
        if self.flows and self.warmup_s >= self.duration_s:
            raise ValueError(f"warmup_s {self.warmup_s:g} leaves nothing of {self.duration_s:g} s")
        workload.check(self)
        for flow in self.flows:
            if flow.ccs is not None and len(flow.ccs) != len(flow.paths):
                raise ValueError(f"flow {flow.name}: ccs: give one for each of its paths")
            for path in flow.paths:
                for i in range(flow.count):
                    self._check([n.replace("{i}", str(i)) for n in path.forward + path.back])
        for source in self.sources:
            self._check(source.path)
        if self.bottleneck is not None:
            self._check([self.bottleneck])
        workload.check_work(self)
        return self

    def _check(self, names: list[str]) -> None:
        for name in names:
            if name not in self.links:
                raise ValueError(str(unknown_name("link", name, self.links)))


def names() -> list[str]:
    """Names of the simulator's scenarios that come with the project."""
    return sorted(path.stem for path in SCENARIO_DIR.glob("*.yaml"))


def load(name: str, settings: dict[str, Any] | None = None) -> dict[str, Scenario]:
    """Read a scenario by name, or a user's own YAML file.

    Parameters
    ----------
    name : str
        A name of `names`, or the path of a ``.yaml`` file.
    settings : mapping, optional
        Dotted key -> value, laid over the file and its variants: ``links.NAME.trace``.

    Returns
    -------
    dict
        Label -> scenario: the file's variants, or the scenario itself under "".

    Raises
    ------
    UserError
        Unknown name or key, unreadable file.
    """
    path = Path(name)
    if path.suffix not in {".yaml", ".yml"}:
        if name not in names():
            raise unknown_name("scenario", name, names())
        path = SCENARIO_DIR / f"{name}.yaml"
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: not a file: give a readable scenario file")
    tree = yaml_text.read(path)
    if not isinstance(tree, dict):
        raise UserError(f"{path}: a mapping with links and flows was expected at the top")
    for key in ("links", "variants"):
        if not isinstance(tree.get(key) or {}, dict):
            raise UserError(f"{path}: {key}: a mapping of names was expected")
    tree = expand(tree, str(path))
    variants = tree.get("variants") or {"": {}}
    result: dict[str, Scenario] = {}
    for label, changes in variants.items():
        if not isinstance(changes or {}, dict):
            raise UserError(f"{path}: variants.{label}: give dotted keys and their values")
        varied = copy.deepcopy(tree)
        for key, value in {**(changes or {}), **(settings or {})}.items():
            _set(varied, key, value, str(path))
        result[str(label)] = Scenario.parse(varied, str(path))
    return result


def expand(tree: dict[str, Any], where: str) -> dict[str, Any]:
    """Write out links given once for many: ``access{0..2}: {...}`` makes three.

    Raises
    ------
    UserError
        If the range isn't two whole numbers; ``where`` is the file's name.
    """
    links: dict[str, Any] = {}
    for name, link in (tree.get("links") or {}).items():
        head, brace, tail = str(name).partition("{")
        if brace and ".." in tail:
            first, _, last = tail.rstrip("}").partition("..")
            if not (first.isdecimal() and last.isdecimal()):
                raise UserError(f"{where}: links.{name}: give a range such as {head}{{0..2}}")
            if int(last) - int(first) >= bounds.MOST_LINKS:
                raise UserError(f"{where}: links.{name}: at most {bounds.MOST_LINKS} links")
            links |= {f"{head}{i}": link for i in range(int(first), int(last) + 1)}
        else:
            links[str(name)] = link
    return {**tree, "links": links}


def _set(tree: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Lay one setting over a tree; setting a link's rate takes its other rates away."""
    parts = key.split(".")
    node: Any = tree
    for part in parts[:-1]:
        try:
            node = node[int(part)] if isinstance(node, list) else node[part]
        except (KeyError, IndexError, ValueError, TypeError):
            there = range(len(node)) if isinstance(node, list) else ()
            known = node if isinstance(node, dict) else map(str, there)
            raise UserError(f"{where}: --set {key}: {unknown_name('key', part, known)}") from None
    if not isinstance(node, dict):
        raise UserError(f"{where}: --set {key}: {'.'.join(parts[:-1])} has no settings")
    rates = ("rate_mbps", "steps", "trace", "generate")
    if parts[0] == "links" and parts[-1] in rates:
        for rate in rates:
            node.pop(rate, None)
    node[parts[-1]] = value
