"""``cczoo`` with the throw-away family's line, for one command after the other.

Commands come as JSON lists on standard input, one a line; each is answered by a line with its exit
status and what it printed. The registry's line comes before anything else is imported, as if it
stood in the file.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

from models.families import FAMILIES
from tests.families import paced

FAMILIES["paced"] = paced.LINE


def run(words: list[str]) -> int:
    """One command; ``register`` is the stage of that name."""
    from pipelines.cli import main
    from pipelines.registry import register

    if words[0] != "register":
        return main(words)
    parser = register.argparse.ArgumentParser()
    register.add_arguments(parser)
    return register.run(parser.parse_args(words[1:]))


if __name__ == "__main__":
    from pipelines import tracking

    tracking.ROOT = Path.cwd()
    answers = sys.stdout
    for line in sys.stdin:
        sys.argv = ["cczoo", *json.loads(line)]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = run(sys.argv[1:])
            except SystemExit as ended:
                code = int(ended.code or 0)
        print(json.dumps([code, out.getvalue(), err.getvalue()]), file=answers, flush=True)
