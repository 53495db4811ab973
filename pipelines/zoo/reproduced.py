"""``cczoo zoo reproduced``: whether the models trained here are those that were released.

A machine that sums in another order gets other last digits, and a network another path through its
training. So two models are the same if all files under their checksums are, or else if their
answers are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from pipelines.output import print_json
from pipelines.results import FORMAT, REPRODUCTION, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from models.store import ZooModel

PROVENANCE = ("version", "created_by", "git_commit", "checksum", "files", "feature_specs")
"""Fields of ``meta.json`` that aren't about the model (``schema_hash`` is about the features)."""
NUMBERS = ("calibration", "scaling")
"""Fields of ``meta.json`` that are compared as numbers."""
LEARNED = ("calibration", "accumulation", "scaling")
"""Fields of ``meta.json`` that are fitted to a network's answers and so vary as these do."""
NETWORKS = ("neural", "mlp")
"""Kinds whose training takes another path if a sum has another last digit."""


@dataclass(frozen=True)
class Limits:
    """The differences up to which two models count as equal.

    Attributes
    ----------
    probability : float
        Largest difference of an answer.
    verdicts : float
        Largest share of verdicts that differ.
    figure : float
        Largest difference of a number in ``metrics.json`` and of calibration.
    """

    probability: float
    verdicts: float
    figure: float


EXACT = Limits(probability=1e-4, verdicts=0.0, figure=0.002)
"""Limits for trees, forests, linear and kernel machines: float32 ONNX errs by up to 1e-5, and one
window of the smallest reported test set is 0.002."""
TRAINED_PATH = Limits(probability=1.0, verdicts=0.03, figure=0.02)
"""Limits for networks: a probability near the threshold may move far, verdicts and figures hardly.
"""


def run(args: argparse.Namespace) -> int:
    """Compare; returns 1 if a model isn't reproduced, or with ``--out`` writes the file only."""
    from models import store

    verdicts = compare_all(args.trained or store.TRAINED, args.zoo or store.ZOO)
    report = {"format": FORMAT, "models": [asdict(verdict) for verdict in verdicts]}
    if args.out is not None:
        REPRODUCTION.write_at(args.out, report)
        return 0
    wrong = [verdict.name for verdict in verdicts if verdict.verdict == "differs"]
    absent = [verdict.name for verdict in verdicts if verdict.verdict == "missing"]
    if args.json:
        print_json({"ok": not (wrong or absent), **report})
    else:
        for verdict in verdicts:
            print(f"{verdict.name:<24} {verdict.text}")
        if wrong:
            print(
                f"not reproduced: {', '.join(wrong)}. Where settings, data or code were changed on "
                f"purpose: cczoo zoo release {' '.join(wrong)}; else look at what differs: "
                "docs/zoo.md#reproduced"
            )
        if absent:
            print(f"not trained here: {', '.join(absent)}: make repro")
    return 1 if wrong or absent else 0


def compare_all(trained: Path, zoo: Path) -> list[Verdict]:
    """Verdict on each released model, by name."""
    from models import store

    found = []
    for name in store.names(zoo):
        if not (trained / name / "meta.json").is_file():
            found.append(Verdict(name, "missing", "not trained here"))
            continue
        try:
            found.append(compare(store.load(zoo / name), store.load(trained / name)))
        except UserError as error:
            found.append(Verdict(name, "differs", f"differs: {error}"))
    return found


def compare(released: ZooModel, trained: ZooModel) -> Verdict:
    """Compare a model trained here with the released one.

    Returns
    -------
    Verdict
        ``identical`` if all files and facts are the same, except those that state how the
        entry came about (`PROVENANCE`, also in the card); ``equal`` if the answers to the stored
        observations and the figures are within `EXACT` or, for a network, `TRAINED_PATH`.
    """
    old, new = released.meta, trained.meta
    names = sorted(old.files | new.files)
    files = [name for name in names if old.files.get(name) != new.files.get(name)]
    if "card.md" in files and _card(released) == _card(trained):
        files.remove("card.md")
    facts = [m.model_dump(mode="json", exclude=set(PROVENANCE)) for m in (old, new)]
    changed = sorted(k for k in facts[0] | facts[1] if facts[0].get(k) != facts[1].get(k))
    common: dict[str, Any] = {"name": old.name, "version": old.version, "files": tuple(files)}
    if not files and not changed:
        return Verdict(verdict="identical", text="identical", **common)
    network = old.kind in NETWORKS
    limits = TRAINED_PATH if network else EXACT
    apart = LEARNED if network else NUMBERS
    problems = [f"other {name}" for name in changed if name not in apart]
    if old.schema_hash != new.schema_hash:
        text = f"differs: {', '.join(problems)}"
        return Verdict(verdict="differs", text=text, **common)
    values = observations(released, trained)
    largest, differing = _answers(released, trained, values)
    form = _form(released, trained)
    if form == "differs":
        differing = max(differing, _form_verdicts(released, trained, values))
    figure = _largest(*(_figures(model, network) for model in (released, trained)))
    if not network:
        figures = [_largest(facts[0][name], facts[1][name]) for name in NUMBERS if name in changed]
        figure = max([figure, *figures])
    if largest > max(limits.probability, 2 * float(old.quantization_error.get("float_error", 0.0))):
        problems.append(f"probabilities by up to {largest:.2g}")
    if differing > limits.verdicts * len(values):
        problems.append(f"{differing} of {len(values)} verdicts")
    if figure > limits.figure:
        problems.append(f"figures by up to {figure:.2g}")
    common |= {
        "form": form,
        "answers": len(values),
        "differing": differing,
        # Two digits suffice, and are the same wherever they are computed.
        "largest": float(f"{largest:.2g}"),
        "figure": float(f"{figure:.2g}"),
    }
    if problems:
        return Verdict(verdict="differs", text=f"differs: {'; '.join(problems)}", **common)
    return Verdict(verdict="equal", text=_equal(common), **common)


def observations(*models: ZooModel) -> NDArray[np.float64]:
    """Stored vectors and test rows of both entries: float64 array [N, d]."""
    import numpy as np

    parts = []
    for model in models:
        for file in ("vectors.json", "test.json"):
            if file in model.meta.files:
                values = np.array(model.read_json(file)["values"], dtype=np.float64)
                parts.append(values.reshape(-1, len(model.meta.features)))
    return np.unique(np.concatenate(parts), axis=0)


def _card(model: ZooModel) -> str:
    """The card without the command that made it, which may be spelled anew since."""
    return model.read("card.md").decode().replace(model.meta.created_by, "")


def _answers(
    released: ZooModel, trained: ZooModel, values: NDArray[np.float64]
) -> tuple[float, int]:
    """Largest difference of an answer, and how many decisions differ; 0 for a function."""
    import numpy as np

    if "model.onnx" not in released.meta.files or "model.onnx" not in trained.meta.files:
        return 0.0, 0
    old, new = released.answers(values), trained.answers(values)
    if old.shape != new.shape:
        return float("inf"), len(values)
    differing = released.predict(values) != trained.predict(values)
    return float(np.abs(old - new).max(initial=0.0)), int(differing.sum())


def _form(released: ZooModel, trained: ZooModel) -> str:
    forms = [model.meta.files.get("model.json", "") for model in (released, trained)]
    if not any(forms):
        return ""
    return "same" if forms[0] == forms[1] else "differs"


def _form_verdicts(released: ZooModel, trained: ZooModel, values: NDArray[np.float64]) -> int:
    """How many verdicts of the integer forms differ; all of them if one entry has no form."""
    from export.fixed import to_integers
    from export.source import source_of

    forms = [source_of(model).form for model in (released, trained)]
    if forms[0] is None or forms[1] is None:
        return len(values)
    integers = to_integers(values, released.features)
    old, new = (form.evaluate(integers) for form in forms if form is not None)
    return int((old.classes != new.classes).sum())


def _figures(model: ZooModel, network: bool) -> dict[str, Any]:
    """Content of ``metrics.json``; of a network's course of training only the end is kept."""
    metrics: dict[str, Any] = model.read_json("metrics.json")
    if network and "training" in metrics:
        ended = metrics["training"].get("validation", {}).get("validation_accuracy", 0.0)
        metrics = {**metrics, "training": {"validation_accuracy": ended}}
    return metrics


def _largest(old: Any, new: Any) -> float:
    """Largest difference of the numbers in two documents; infinite if anything else differs."""
    numbers, others = zip(*(_parted(tree) for tree in (old, new)), strict=True)
    if others[0] != others[1] or numbers[0].keys() != numbers[1].keys():
        return float("inf")
    return max((abs(numbers[0][key] - numbers[1][key]) for key in numbers[0]), default=0.0)


def _parted(tree: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Shares and errors of a document (path -> number), and all else in it (path -> value)."""
    leaves = dict(_leaves(tree))
    numbers = {k: v for k, v in leaves.items() if isinstance(v, float)}
    return numbers, {k: v for k, v in leaves.items() if k not in numbers}


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _leaves(value, f"{path}.{key}")
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _leaves(value, f"{path}.{number}")
    else:
        yield path, tree


def _equal(found: Mapping[str, Any]) -> str:
    parts = [f"{found['largest']:.1g} in {found['answers']} probabilities"]
    if found["form"]:
        parts.insert(0, "integer form identical" if found["form"] == "same" else "integers differ")
    parts.append(f"{found['differing']} verdicts")
    if found["figure"]:
        parts.append(f"{found['figure']:.1g} in figures")
    return f"equal within {', '.join(parts)}"
