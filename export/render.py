"""Renders forms as text: Jinja2 templates and the few filters that C and Python code need."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from export.fixed import INT32_MIN, Q16, limits
from export.forms.nodes import Nodes
from export.forms.siblings import LANES, side_by_side
from export.forms.tree import Tree
from export.forms.trees import Trees
from export.ir import Form
from features.spec import Feature

if TYPE_CHECKING:
    import jinja2

TEMPLATES = tuple(
    Path(__file__).parent / "templates" / language
    for language in ("c", "bpf", "policy", "python", "sbd")
)
"""Folders of templates; a template is named without its folder."""


def render(template: str, **values: Any) -> str:
    """Fill one template of ``export/templates``."""
    return str(_environment().get_template(template).render(**values))


@functools.cache
def _environment() -> jinja2.Environment:
    """Made once, so that each template is compiled once."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {"c_comment": c_comment, "c_int": c_int, "c_name": c_name}
    environment.filters |= {"c_string": c_string, "label_names": label_names, "of": _item}
    environment.globals |= {"lines": lines, "ranges": ranges}
    environment.globals |= {"side_by_side": side_by_side, "lanes": LANES}
    return environment


def lines(form: Form, nodes: Nodes) -> Iterator[dict[str, Any]]:
    """A tree as nested ifs, line by line.

    Yields
    ------
    dict
        ``depth``, ``meaning`` and either ``feature`` and ``threshold`` (an if), these with
        ``pair`` (a comparison between two leaves), ``leaf`` (a return), ``turn`` (else) or
        ``end``.
    """
    # A flat walk with its own stack: what still has to be written, the nearest last.
    waiting: list[tuple[str, int]] = [("node", 0)]
    while waiting:
        what, i = waiting.pop()
        line: dict[str, Any] = {"depth": nodes.depths[i], "meaning": ""}
        left, right = i + 1, nodes.right[i]
        if what != "node":
            yield line | {what: True}
            continue
        if nodes.feature[i] < 0:
            yield line | {"leaf": nodes.value[i], "meaning": _leaf(form, nodes.value[i])}
            continue
        feature = form.features[nodes.feature[i]]
        line |= {
            "feature": feature.name,
            "threshold": nodes.value[i],
            "meaning": _quantity(nodes.value[i], feature),
        }
        if nodes.feature[left] < 0 and nodes.feature[right] < 0:
            # As one expression it compiles to a conditional move, which is never mispredicted.
            pair = nodes.value[left], nodes.value[right]
            line["meaning"] += _pair(form, pair)
            yield line | {"pair": pair}
        else:
            yield line
            waiting += [("end", i), ("node", right), ("turn", i), ("node", left)]


def _quantity(integer: int, feature: Feature) -> str:
    """An integer threshold in the feature's unit, without what the unit explains in brackets."""
    unit = feature.unit.split(" (")[0]
    return f"{integer / feature.scale:.6g} {'' if unit == '1' else unit}".strip()


def _leaf(form: Form, value: int) -> str:
    if isinstance(form, Trees) and form.rows and len(form.trees) == 1:
        return form.labels[form.classes[value]]
    if not isinstance(form, Tree):
        return ""
    label = form.labels[1] if value > form.decision_threshold else form.labels[0]
    return f"{label}, P({form.labels[1]}) = {value / Q16:.3f}"


def _pair(form: Form, values: tuple[int, int]) -> str:
    found = [_leaf(form, value) for value in values] if isinstance(form, Trees) else [""]
    return f": {found[0]}, {found[1]}" if found[0] else ""


def ranges(form: Form) -> list[dict[str, Any]]:
    """Spec and integer range of each feature."""
    low, high = limits(form.features)
    return [
        {"spec": f, "low": int(a), "high": int(b)}
        for f, a, b in zip(form.features, low, high, strict=True)
    ]


def label_names(labels: Sequence[str]) -> list[str]:
    """A constant's name per label; labels that would share one get their index behind it."""
    names = [c_name(label) for label in labels]
    # What an index makes may be another label's own name. Two names with an index never agree, so
    # that every round has one name without an index less.
    while len(set(names)) < len(names):
        names = [n if names.count(n) == 1 else f"{n}_{i}" for i, n in enumerate(names)]
    return names


def _item(index: int, items: Sequence[Any]) -> Any:
    return items[index]


def c_comment(text: str) -> str:
    """Text that can't end or open a C comment, nor break its line or hide what stands in it."""
    # What isn't printable includes marks that turn the direction of writing.
    shown = "".join(c if c.isprintable() else " " for c in text.replace("\\", "/"))
    return re.sub(r"\s+", " ", re.sub(r"\*(?=/)|/(?=\*)", r"\g<0> ", shown))


def c_string(text: str) -> str:
    """Text that can't end a string between double quotes either, in C or in Python."""
    return c_comment(text).replace('"', "'").replace("%", "/").replace("?", ".")


def c_int(value: int) -> str:
    """A C99 integer constant of at least the size that the value needs."""
    if value == INT32_MIN:
        return "(-2147483647 - 1)"
    if -(2**31) < value < 2**31:
        return str(value)
    return f"(-{2**63 - 1}LL - 1)" if value == -(2**63) else f"{value}LL"


def c_name(text: str) -> str:
    """A name in capitals for constants."""
    return re.sub(r"[^0-9A-Z_]", "_", text.upper())
