"""Exported now, built and run here: every target answers as the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.strict import Strict
from pipelines.gates import Finding

if TYPE_CHECKING:
    from models.store import ZooModel
    from pipelines.gates.comparison import Comparison

TARGETS = ("c", "table", "bpf", "mlp-c", "python", "json", "onnx")


class Settings(Strict):
    """``promotion.gates.certificate``.

    Attributes
    ----------
    targets : tuple of str
        Those of them that can carry the model are proved.
    signer : str
        Public SSH key, or file of allowed signers, of whom a signed bundle of the candidate is
        demanded; empty: no signature is.
    bundle : str
        Directory of that bundle (``cczoo export ... --sign KEY``); ``{name}`` in it stands for the
        candidate's name.
    """

    targets: tuple[str, ...] = TARGETS
    signer: str = ""
    bundle: str = "build/{name}"


def check(comparison: Comparison, settings: Settings) -> Finding:
    """At least one target proved, none differing; what can't run on this machine is named."""
    certificate = comparison.proof(comparison.candidate, settings.targets)
    targets = certificate["targets"]
    proved = [t["target"] for t in targets if t.get("mismatches") == 0 and "error" not in t]
    unproved = [t["target"] for t in targets if "missing" in t]
    wrong = [t["target"] for t in targets if t["target"] not in (*proved, *unproved)]
    problems = [*certificate["problems"], *(f"{name} differs or fails" for name in wrong)]
    if not proved:
        problems.append("no target was proved")
    evidence: dict[str, Any] = {"certificate": certificate}
    if settings.signer:
        signer, problem = signed(comparison.candidate, settings)
        evidence["signer"] = signer
        problems += [problem] if problem else []
    if problems:
        return Finding(False, "; ".join(problems), evidence)
    by = f"; signed by {evidence['signer']['principal']}" if settings.signer else ""
    not_here = f"; can't run here: {', '.join(unproved)}" if unproved else ""
    return Finding(True, f"0 mismatches in {', '.join(proved)}{not_here}{by}", evidence)


def signed(model: ZooModel, settings: Settings) -> tuple[dict[str, str], str]:
    """Who signed a bundle of this very model, and what is wrong with it (empty: nothing)."""
    from export.bundle.manifest import read_bundle
    from export.bundle.plain_files import Broken
    from export.bundle.reemit import differing, refusal
    from export.source import source_of

    directory = Path(settings.bundle.replace("{name}", model.meta.name))
    try:
        bundle = read_bundle(directory, Path(settings.signer))
        foreign = differing(bundle)
    except (Broken, UserError) as error:
        return {}, f"no signed bundle: {directory}: {error}"
    if foreign:
        return {}, f"{directory}: {refusal(bundle, next(iter(foreign.values()))[0])}"
    if bundle.manifest["model_hash"] != source_of(model).model_hash:
        return {}, f"{directory}: signed, but of another model"
    return bundle.signer or {}, ""
