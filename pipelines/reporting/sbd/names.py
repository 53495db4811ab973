"""The names of schemes and data sets in the report, and the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterable

_KINDS = {
    "dt": "decision tree",
    "rf": "random forest",
    "svm": "SVM, RBF",
    "lr": "logistic regression",
    "gb": "gradient boosting",
    "mlp": "small neural network",
}
_OTHERS = {
    "smartsbd-plus": "smartsbd-plus, chosen without the family",
    "smartsbd-plus-kernel": "smartsbd-plus-kernel, integers alone",
    "threshold": "One threshold on the RTT correlation",
    "sbd": "SBD (Ferlin; RFC 8382)",
    "dwc": "DWC",
    "ton20": "TON20, loss part",
    "auto-sklearn": "SmartSBD, auto-sklearn",
    "flaml": "SmartSBD, FLAML",
}
SEARCHES = ("auto-sklearn", "flaml")
"""Schemes found by AutoML, whose own table has the paper's features."""
RULES = ("sbd", "dwc", "ton20")
"""Rule-based schemes, with nothing learned."""

_DATASETS = {
    "shanghai": "Shanghai",
    "guangzhou": "Guangzhou",
    "silicon-valley": "Silicon Valley",
    "frankfurt": "Frankfurt",
    "table6": "Table 6, unseen",
    "random": "randomised",
    "ALL": "all four",
}


def scheme(name: str) -> str:
    """Readable name of a model or of a rule."""
    if name in _OTHERS:
        return _OTHERS[name]
    for prefix, label, plain in (
        ("smartsbd-plus-", "smartsbd-plus", ""),
        ("smartsbd-", "SmartSBD", ", top features"),
    ):
        if name.startswith(prefix):
            kind = name.removeprefix(prefix)
            suffix = ", all 18" if kind.endswith("-all") else plain
            kind = kind.removesuffix("-all")
            return f"{label}, {_KINDS.get(kind, kind)}{suffix}"
    return name


def dataset(name: str) -> str:
    """Readable name of a data set."""
    return _DATASETS.get(name, name or "(none)")


def is_plus(name: str) -> bool:
    """Whether a model is of the scale-free family."""
    return name.startswith("smartsbd-plus")


def is_paper(name: str) -> bool:
    """Whether a model is of the paper's family, learned on some or all of its 18 features."""
    return name.startswith("smartsbd-") and not is_plus(name)


def order(names: Iterable[str]) -> list[str]:
    """Order the paper's models, the same on all 18 features, the second family and the rules."""
    kinds = list(_KINDS)

    def key(name: str) -> tuple[int, int, str]:
        if name in _OTHERS:
            return (3, list(_OTHERS).index(name), name)
        kind = name.removesuffix("-all").rsplit("-", 1)[-1]
        group = 2 if is_plus(name) else 1 if name.endswith("-all") else 0
        return (group, kinds.index(kind) if kind in kinds else len(kinds), name)

    return sorted(set(names), key=key)


def datasets(names: Iterable[str]) -> list[str]:
    """Data sets in order: sites in the paper's order, then the others."""
    known = list(_DATASETS)
    return sorted(set(names), key=lambda n: (known.index(n) if n in known else len(known), n))
