"""``python -m ballast``: the program, with the arguments that are given.

BALLAST names it; else it is beside the interpreter, where pip put it, or on the
path.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def find() -> str | None:
    """The program's path; None: there is none."""
    named = os.environ.get("BALLAST")
    if named:
        return named
    beside = Path(sys.executable).with_name("ballast")
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("ballast")


def main() -> int:
    """Become the program; returns only if that fails."""
    program = find()
    if program is None:
        print("ballast: no program 'ballast' is installed", file=sys.stderr)
        return 127
    sys.stdout.flush()
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        print(f"ballast: '{program}': {error.strerror}", file=sys.stderr)
    return 126


if __name__ == "__main__":
    sys.exit(main())
