"""The certificate gate: exported now, the candidate must be proved on its targets here."""

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
    """Settings under ``promotion.gates.certificate``.

    Attributes
    ----------
    targets : tuple of str
        Targets to prove, as far as they can carry the model.
    signer : str
        Public SSH key, or file of allowed signers, of whom a signed bundle of the candidate is
        demanded; if empty, no signature is demanded.
    bundle : str
        Directory of that bundle (``cczoo export ... --sign KEY``); ``{name}`` in it stands for the
        candidate's name.
    """

    targets: tuple[str, ...] = TARGETS
    signer: str = ""
    bundle: str = "build/{name}"


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Pass if at least one target is proved and none differs; name what can't be run here."""
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
    """Signer of a bundle of this very model, and what is wrong with it; empty if nothing is."""
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
