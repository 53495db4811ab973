"""Turn a model into files that a kernel or a proxy can run, with a manifest that proves them."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import print_json

if TYPE_CHECKING:
    from export.params import Options

EXAMPLE = "example: cczoo export smartsbd-dt --target c -t onnx --out build/smartsbd-dt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument(
        "model", nargs="?", help="name in the zoo, a model's directory, or registry:NAME[@ALIAS]"
    )
    parser.add_argument(
        "-t", "--target", action="append", default=[], help="what to make; may be given again"
    )
    parser.add_argument("--out", type=Path, help="directory for the bundle; an old one is replaced")
    parser.add_argument(
        "--layout", help="trees in C: if-else, array or auto (default: as --params, else auto)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another option of a target; may be given again (export --list names them)",
    )
    parser.add_argument(
        "--params", type=Path, help="YAML file with settings (export: options: ...)"
    )
    parser.add_argument(
        "--sign",
        metavar="KEY",
        type=Path,
        help="sign the manifest with a private SSH key, for cczoo verify --signer",
    )
    parser.add_argument("--list", action="store_true", help="list targets (that fit MODEL)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Export, or list the targets."""
    from data.errors import UserError
    from data.place import check_own
    from export.bundle.manifest import MANIFEST, bundle_files, own_files
    from export.passes import transformed
    from models.store import replace_directory
    from pipelines.sources import open_source

    if args.list:
        return _list(args)
    for given, flag in ((args.model, "MODEL"), (args.target, "--target"), (args.out, "--out")):
        if not given:
            raise UserError(f"{flag} is missing; {EXAMPLE}")
    check_own(args.out, own_files, "cczoo export")
    options = _options(args)
    source = transformed(open_source(args.model, options), options)
    chosen = [f"-t{t}" for t in args.target] + [f"--set={s}" for s in args.set]
    chosen += [] if args.params is None else [f"--params={args.params}"]
    command = shlex.join(["cczoo", "export", args.model, *chosen, f"--layout={options.layout}"])
    files = bundle_files(source, args.target, options, command)
    if args.sign is not None:
        from export.bundle.signature import SIGNATURE, sign

        files[SIGNATURE] = sign(files[MANIFEST], args.sign)
    replace_directory(args.out, files, own_files, "cczoo export")
    result = {
        "name": source.name,
        "kind": source.kind,
        "targets": list(dict.fromkeys(args.target)),
        "out": str(args.out),
        "files": sorted(files),
        "model_hash": source.model_hash,
        "schema_hash": source.schema_hash,
        "scaling": source.quantization_error,
    }
    if args.json:
        print_json(result)
    else:
        print(f"{args.out}: {', '.join(result['files'])}")
        print(f"prove it with: cczoo verify {shlex.quote(str(args.out))}", file=sys.stderr)
    return 0


def _list(args: argparse.Namespace) -> int:
    from export.params import Options
    from export.targets import TARGETS, target, targets_of
    from pipelines.sources import open_model

    fitting = targets_of(open_model(args.model)) if args.model else list(TARGETS)
    rows = [
        {"target": t, "takes": sorted(TARGETS[t].takes), "summary": target(t).SUMMARY}
        for t in fitting
    ]
    if args.json:
        print_json(rows)
    else:
        for row in rows:
            print(f"{row['target']:<8} {row['summary']} [{', '.join(row['takes'])}]")
        print("options (--set KEY=VALUE):")
        for name, field in Options.model_fields.items():
            print(f"  {name}={field.default}  {field.description or ''}")
    return 0


def _options(args: argparse.Namespace) -> Options:
    """Options of the settings file, overridden by those of the command line."""
    from data import yaml_text
    from export.params import Options

    stated: dict[str, Any] = {}
    if args.params is not None:
        from pipelines.params import load

        stated = load(args.params).export.options.model_dump()
    layout = {} if args.layout is None else {"layout": args.layout}
    return Options.parse({**stated, **layout, **yaml_text.assigned(args.set)}, "options")
