"""Makes the files of a bundle again from its model, and compares them with the bundle's.

A bundle's code is compiled, imported or run only if it is, byte for byte, what its own
``model.json`` and manifest give here: then it is our code, whoever sent the bundle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from data.errors import UserError, one_line
from export.bundle.manifest import MANIFEST, Bundle, maker, read_bundle
from export.bundle.plain_files import Broken
from export.forms.table import Table
from export.params import Options
from export.source import Source
from export.tanh import bound
from export.targets import TARGETS, emit, target


def differing(bundle: Bundle) -> dict[str, list[str]]:
    """Emit every target again, and compare.

    Parameters
    ----------
    bundle : Bundle

    Returns
    -------
    dict
        Target -> names of its files that aren't what is emitted here, missing and additional ones
        included; only targets that have some.

    Raises
    ------
    Broken
        When a target isn't known here, can't be made of this model, or what a bundle holds as data
        (an ONNX file, a table) isn't fit to be read.
    """
    try:
        options = Options.parse(bundle.manifest["options"], f"{MANIFEST}: options")
    except UserError as error:
        raise Broken(f"{one_line(str(error))}: {again(bundle)}") from None
    # Made when the first target asks, so that what is wrong with it is said as any target's.
    source = cache(lambda: source_of(bundle))
    found = {}
    for name, listed in bundle.manifest["targets"].items():
        if name not in TARGETS:
            raise Broken(f"this cczoo has no target {one_line(name)!r}: {again(bundle)}")
        made = _made(name, bundle, source, options)
        wrong = sorted(made.keys() ^ set(listed["files"]))
        wrong += [file for file in sorted(made) if bundle.contents.get(file) != made[file]]
        if wrong:
            found[name] = list(dict.fromkeys(wrong))
    return found


def source_of(bundle: Bundle) -> Source:
    """The bundle's model as emitters take it, from its data alone."""
    manifest = bundle.manifest
    quantization_error = dict(manifest["scaling"])
    if isinstance(bundle.form, Table):
        # The header states it, so it is computed and not believed.
        quantization_error["error_bound"] = bound(bundle.form.curve)
    return Source(
        name=manifest["name"],
        version=manifest["model_version"],
        family=manifest["family"],
        kind=manifest["kind"],
        features=bundle.features,
        feature_settings=bundle.manifest["feature_settings"],
        labels=tuple(manifest["labels"]),
        threshold=bundle.threshold,
        form=bundle.form,
        no_form="",
        onnx=_float_model(bundle),
        values=bundle.values,
        probability=bundle.probability,
        quantization_error=quantization_error,
        passes=tuple(manifest["passes"]),
        source_model_hash=manifest["source_model_hash"],
        output=bundle.output,
        verdicts=dict(manifest.get("verdicts", {})),
    )


def _float_model(bundle: Bundle) -> bytes:
    """The float model as it was trained, if the bundle has it; see the onnx target."""
    names = (f"{bundle.identifier}_trained.onnx", f"{bundle.identifier}.onnx")
    return next((bundle.contents[name] for name in names if name in bundle.contents), b"")


def read_emitted(directory: Path) -> Bundle:
    """A bundle of which everything may be run; as :func:`export.bundle.manifest.read_bundle`.

    Raises
    ------
    UserError
        When the directory holds no readable manifest.
    Broken
        When a hash is wrong or any file isn't what this cczoo emits.
    """
    bundle = read_bundle(directory)
    for files in differing(bundle).values():
        raise Broken(refusal(bundle, files[0]))
    return bundle


def refusal(bundle: Bundle, file: str) -> str:
    """Why a file isn't run."""
    return f"{file}: isn't what this cczoo emits for the model: {again(bundle)}"


def again(bundle: Bundle) -> str:
    """What to do with a bundle of another version."""
    return f"the bundle says it was made by {maker(bundle.manifest)}: export again"


def _made(
    name: str, bundle: Bundle, source: Callable[[], Source], options: Options
) -> dict[str, bytes]:
    own = getattr(target(name), "again", None)
    try:
        if own is not None:
            return dict(own(bundle, source(), options))
        return emit(name, source(), options)
    except (UserError, ValueError, ArithmeticError, LookupError) as error:
        raise Broken(f"{name}: {one_line(str(error))}: {again(bundle)}") from None
