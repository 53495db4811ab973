"""Trees that set no windows: those that run a queue, and those that choose k of a receiver."""

from __future__ import annotations

from pathlib import Path

from data.errors import UserError
from data.lab import queues
from export.bpf.files import header_name
from export.bundle.manifest import Bundle
from export.feature_code import policy as derived
from export.render import c_name
from pipelines.drive.trees import copied, opened, written_header


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
    bundle = _tree_of(name, "queue", ("macc", 1), "runs no queue: give one of macc-aqm")
    own, folder = bundle.identifier, copied(bundle, work)
    drop = list(bundle.manifest["labels"]).index("drop")
    headers = folder / header_name(own, "if-else"), folder / f"{own}_observe.h"
    schema = bundle.manifest["schema_hash"]
    return queues.compiled(*headers, own, c_name(own), drop, schema, work)


def receiver_tree(name: str, work: Path) -> tuple[Path, str]:
    """Header of a bundle's tree that chooses k of Nuwa's receiver, and its schema hash.

    Raises
    ------
    UserError
        It is no such tree.
    """
    bundle = _tree_of(name, "receiver", ("nuwa", 0), "is no receiver's: give one of nuwa-rl")
    factors = [round(1000 * float(one.removeprefix("k x "))) for one in bundle.manifest["labels"]]
    header = written_header(bundle, work, "TREE_FACTOR", factors, 1000, '#include "nuwa_tree.h"')
    return header, bundle.manifest["schema_hash"]


def _tree_of(name: str, part: str, agent: tuple[str, int], but: str) -> Bundle:
    """A bundle whose features are an agent's; ``but`` says what another one isn't."""
    bundle = opened(name, part)
    if derived.whose(bundle.features) != agent:
        raise UserError(f"{name}: a tree of {bundle.manifest['family']}, which {but}")
    return bundle
