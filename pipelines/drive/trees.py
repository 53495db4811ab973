"""Exported trees inside the control: what of a bundle is compiled into it, and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data.errors import UserError
from export.bpf.files import header_name
from export.bundle.manifest import MANIFEST, Bundle
from export.bundle.plain_files import Broken
from export.bundle.reemit import read_emitted, source_of
from export.feature_code import policy as derived
from export.params import Options
from export.render import c_name

HEADER = "follow_policy.h"
TEXT = """\
/* Written by cczoo lab drive: the tree {name} inside a kernel. */
#include "{name}.bpf.h"
#include "{name}_observe.h"

#define TREE(part) {name}##part
#define TREE_O(column) {upper}_O_##column
#define TREE_OBSERVED {upper}_OBSERVED
#define TREE_FEATURES {upper}_FEATURES
#define TREE_SCHEMA {upper}_SCHEMA_HASH
#define TREE_INTERVAL_US {upper}_INTERVAL_US
#define {kind}(action) meaning_of(action)

static __always_inline __s32 meaning_of(__s32 action)
{{
	switch (action) {{
{meanings}
	default: return {otherwise};
	}}
}}

{include}
"""


def is_bundle(name: str) -> bool:
    """Whether a name is a bundle's folder."""
    return (Path(name) / MANIFEST).is_file()


def opened(name: str, part: str) -> Bundle:
    """A bundle of a policy's tree, of which everything may be compiled.

    Parameters
    ----------
    name : str
        Its folder.
    part : str
        What it is wanted for, for messages.

    Raises
    ------
    UserError
        It isn't intact, has no code for BPF, or its features are none that a policy's tree sees.
    """
    try:
        bundle = read_emitted(Path(name))
    except Broken as error:
        raise UserError(f"{name}: {error}") from None
    if header_name(bundle.identifier, "if-else") not in bundle.contents:
        raise UserError(f"{name}: no code for BPF: export it with -t bpf")
    if derived.whose(bundle.features) is None:
        raise UserError(
            f"{name}: schema {bundle.manifest['schema_hash'][:12]} is of features that no {part} "
            "here observes: export the tree of a policy (cczoo distill)"
        )
    return bundle


def copied(bundle: Bundle, work: Path) -> Path:
    """Folder with a bundle's code and the header of its derived features, made anew."""
    folder = work / f"{bundle.identifier}-code"
    options = Options.parse(bundle.manifest["options"], f"{MANIFEST}: options")
    beside = derived.emit(source_of(bundle), options)
    bundle.copied(folder)
    for file, text in beside.items():
        (folder / file).write_text(text, encoding="ascii")
    return folder


def written_header(
    bundle: Bundle, work: Path, kind: str, meanings: list[int], otherwise: int, include: str
) -> Path:
    """A tree's header for a kernel's program, in a folder with the code that it includes.

    Parameters
    ----------
    bundle : Bundle
    work : Path
        Folder for what is written.
    kind : str
        Macro of what an action means.
    meanings : list of int
        What each action means, in the order of the labels.
    otherwise : int
        What no action means.
    include : str
        The end of the header, which uses all that.
    """
    name, header = bundle.identifier, copied(bundle, work) / HEADER
    cases = "\n".join(f"\tcase {i}: return {meaning};" for i, meaning in enumerate(meanings))
    text = TEXT.format(
        name=name, upper=c_name(name), kind=kind, meanings=cases, otherwise=otherwise,
        include=include,
    )  # fmt: skip
    header.write_text(text, encoding="ascii")
    return header


def params_of(environment: str) -> dict[str, Any]:
    """Settings of an environment as trainings have them by themselves."""
    from models.policies.scenes import ENVIRONMENTS

    made: Any = ENVIRONMENTS[environment].settings().parse({}, environment)
    params: dict[str, Any] = made.params.model_dump()
    return params
