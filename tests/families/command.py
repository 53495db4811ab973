"""``cczoo`` with the throw-away family's line: ``python -m tests.families.command``.

The registry's line comes before anything else is imported, as if it stood in the file.
"""

import sys
from pathlib import Path

from models.families import FAMILIES
from tests.families import paced

FAMILIES["paced"] = paced.LINE

if __name__ == "__main__":
    from pipelines import tracking

    tracking.ROOT = Path.cwd()
    if sys.argv[1] == "register":
        from pipelines.registry import register

        parser = register.argparse.ArgumentParser()
        register.add_arguments(parser)
        raise SystemExit(register.run(parser.parse_args(sys.argv[2:])))
    from pipelines.cli import main

    raise SystemExit(main(sys.argv[1:]))
