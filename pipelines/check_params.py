"""The first stage of all: ``python -m pipelines.check_params``, settings are valid or nothing runs.

``dvc exp run -S key=value`` writes the value into ``params.yaml`` before the first stage, and
leaves it there when a stage fails: DVC knows no schema, and has no hook that could ask for one. So
this stage, which runs before all others, puts back what ``-S`` has changed where it refuses it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data import yaml_text
from data.errors import UserError
from data.files import write_file, write_text
from pipelines.params import load


def main() -> int:
    """Check the settings; returns 2 if they are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--out", type=Path, required=True, help="written where all are valid")
    args = parser.parse_args()
    try:
        load(args.params).agents.check(str(args.params))
    except UserError as error:
        again = put_back(args.params) if _is_experiment() else ""
        print(f"{error}{again and f' ({again})'}", file=sys.stderr)
        return 2
    # Always the same content: stages that wait for it run again for their own settings alone.
    write_text(args.out, "valid\n")
    return 0


def put_back(path: Path) -> str:
    """Undo what ``dvc exp run -S`` has written into a settings file.

    Parameters
    ----------
    path : Path
        The settings file, relative to the repository's root.

    Returns
    -------
    str
        Report for people; empty if ``-S`` didn't change this file. A file that differs from its
        last commit in nothing else is that of the commit again, byte for byte; in any other file
        the keys of ``-S`` have their committed values again.
    """
    keys = _set_keys(path)
    shown = subprocess.run(
        ["git", "show", f"HEAD:{path}"], capture_output=True, text=True, check=False
    )
    if not keys or shown.returncode:
        return ""
    before = yaml_text.loads(shown.stdout, f"HEAD:{path}")
    now = yaml_text.read(path)
    for key in keys:
        _copy(before, now, key.split("."))
    if now == before:
        write_text(path, shown.stdout)
        return f"{path} is as it was before -S"
    from ruamel.yaml import YAML

    plain = YAML()
    kept = plain.load(path.read_text(encoding="utf-8"))
    for key in keys:
        _copy(before, kept, key.split("."))
    write_file(path, lambda part: plain.dump(kept, part))
    return f"{path} has its committed {', '.join(keys)} again, and your other changes"


def _is_experiment() -> bool:
    """Whether DVC runs an experiment in the user's own folder, not in a copy of it."""
    root = os.environ.get("DVC_ROOT")
    return bool(os.environ.get("DVC_EXP_NAME") and root and Path(root).samefile(Path.cwd()))


def _set_keys(path: Path) -> list[str]:
    """Dotted keys that the running ``dvc exp run`` was asked to set in this file."""
    from dvc.cli.parser import get_main_parser
    from dvc.utils.cli_parse import to_path_overrides
    from dvc.utils.hydra import to_hydra_overrides

    for words in _ancestors():
        if "exp" in words and "run" in words:
            given = get_main_parser().parse_args(words[words.index("exp") :]).set_param
            overrides = to_path_overrides(given or []).get(str(path), [])
            return [one.key_or_group for one in to_hydra_overrides(overrides)]
    return []


def _ancestors() -> list[list[str]]:
    """Command lines of the processes above this one, the nearest first."""
    found, pid = [], os.getppid()
    while pid > 1:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            break
        found.append(words[:-1])
        # The name before may hold anything, blanks and brackets too.
        pid = int(status.rpartition(")")[2].split()[1])
    return found


def _copy(source: Any, target: Any, key: list[str]) -> None:
    """Give ``target`` the value that ``source`` has for a key; remove the key if it has none."""
    for part in key[:-1]:
        if not isinstance(target, Mapping) or part not in target:
            return
        target = target[part]
        source = source.get(part) if isinstance(source, Mapping) else None
    if not isinstance(target, dict):
        return
    if isinstance(source, Mapping) and key[-1] in source:
        target[key[-1]] = source[key[-1]]
    else:
        target.pop(key[-1], None)


if __name__ == "__main__":
    raise SystemExit(main())
