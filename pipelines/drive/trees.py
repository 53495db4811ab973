"""Exported trees inside the control: what of a bundle is compiled into it, and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import queues
from data.lab.follow import Settings
from export.bpf.files import header_name
from export.bundle.manifest import MANIFEST, Bundle
from export.bundle.plain_files import Broken
from export.bundle.reemit import read_emitted, source_of
from export.feature_code import policy as derived
from export.params import Options
from export.render import c_name

SENDERS: dict[tuple[str, int], str] = {("tcco", 0): "TREE_OF_PATHS", ("macc", 0): "TREE_OF_SENDER"}
"""Environment and kind of part that set windows -> what `native/follow_tree.h` is told of them."""
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


def window_tree(name: str) -> Bundle:
    """A bundle of a tree that sets windows; see `opened`.

    Raises
    ------
    UserError
        It isn't one.
    """
    bundle = opened(name, "control")
    if derived.whose(bundle.features) not in SENDERS:
        raise UserError(
            f"{name}: a tree of {bundle.manifest['family']}, which sets no windows: give one of "
            "tcco or macc-tcp"
        )
    return bundle


def queue_tree(name: str, work: Path) -> Path:
    """Shared object of a bundle's tree that runs a queue, for the link emulator.

    Parameters
    ----------
    name : str
        The bundle's folder.
    work : Path
        Folder for what is made.

    Raises
    ------
    UserError
        It is no such tree.
    """
    bundle = opened(name, "queue")
    if derived.whose(bundle.features) != ("macc", 1):
        raise UserError(f"{name}: a tree of {bundle.manifest['family']}, which runs no queue: give "
                        "one of macc-aqm")  # fmt: skip
    own, folder = bundle.identifier, copied(bundle, work)
    drop = list(bundle.manifest["labels"]).index("drop")
    headers = folder / header_name(own, "if-else"), folder / f"{own}_observe.h"
    schema = bundle.manifest["schema_hash"]
    return queues.compiled(*headers, own, c_name(own), drop, schema, work)


def tree_header(bundle: Bundle, work: Path) -> Path:
    """Header that defines ``follow_action()`` by a bundle's tree, of `window_tree`."""
    whose = derived.whose(bundle.features)
    assert whose is not None
    include = f'#define {SENDERS[whose]}\n#include "follow_tree.h"'
    return _header(bundle, work, "TREE_STEP", steps_of(bundle), 0, include)


def receiver_tree(name: str, work: Path) -> tuple[Path, str]:
    """Header of a bundle's tree that chooses k of Nuwa's receiver, and its schema hash.

    Raises
    ------
    UserError
        It is no such tree.
    """
    bundle = opened(name, "receiver")
    if derived.whose(bundle.features) != ("nuwa", 0):
        raise UserError(f"{name}: a tree of {bundle.manifest['family']}, which is no receiver's: "
                        "give one of nuwa-rl")  # fmt: skip
    factors = [round(1000 * float(one.removeprefix("k x "))) for one in bundle.manifest["labels"]]
    header = _header(bundle, work, "TREE_FACTOR", factors, 1000, '#include "nuwa_tree.h"')
    return header, bundle.manifest["schema_hash"]


def _header(
    bundle: Bundle, work: Path, kind: str, meanings: list[int], otherwise: int, include: str
) -> Path:
    name, header = bundle.identifier, copied(bundle, work) / HEADER
    cases = "\n".join(f"\tcase {i}: return {meaning};" for i, meaning in enumerate(meanings))
    text = TEXT.format(
        name=name, upper=c_name(name), kind=kind, meanings=cases, otherwise=otherwise,
        include=include,
    )  # fmt: skip
    header.write_text(text, encoding="ascii")
    return header


def steps_of(bundle: Bundle) -> list[int]:
    """By how many units each action moves a window, in the order of the labels."""
    named = {"up": 1, "down": -1, "hold": 0}
    return [named[one] if one in named else int(one) for one in bundle.manifest["labels"]]


def tree_settings(bundle: Bundle) -> Settings:
    """What the control is loaded with for a bundle's tree: the settings of its training.

    A bundle holds no more of them than its actions; the others are the environment's own.
    """
    whose = derived.whose(bundle.features)
    assert whose is not None
    params = params_of(whose[0])
    seen = params["observation"]
    own = ("min_cwnd", "max_cwnd", "most_held", "start_cwnd", "start_intervals",
           "probe_intervals", "step_share", "step_segments")  # fmt: skip
    given: dict[str, Any] = {name: params[name] for name in own if name in params}
    if whose[0] == "macc":
        # Its agents know no share of what a path holds, no bound but one, and no Probe phase.
        given |= {"min_cwnd": 2, "most_held": 0.0, "step_share": 0.0, "probe_intervals": 0}
    else:
        given |= {
            "life_intervals": seen["lifetime_us"] // seen["interval_us"],
            "span_intervals": seen["peak_intervals"],
            "explore_after": seen["explore_after"],
        }
    return Settings(
        interval_us=seen["interval_us"],
        schema=bundle.manifest["schema_hash"],
        reach=max(abs(step) for step in steps_of(bundle)),
        orders=False,
        **given,
    )


def params_of(environment: str) -> dict[str, Any]:
    """Settings of an environment as trainings have them by themselves."""
    from models.policies.scenes import ENVIRONMENTS

    made: Any = ENVIRONMENTS[environment].settings().parse({}, environment)
    params: dict[str, Any] = made.params.model_dump()
    return params
