"""A page that is longer than the terminal, shown by the reader that the person uses for such."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

_USUAL = "less"
# Of less: colours as they are, the page stays on the screen, and what fits is not held.
_OPTIONS = {"LESS": "FRX"}


def paged(text: str) -> None:
    """Prints the text; where people read it in a terminal that is too short for it, through $PAGER."""
    command = shlex.split(os.environ.get("PAGER", _USUAL))
    rows = shutil.get_terminal_size().lines
    seen = sys.stdout.isatty() and sys.stdin.isatty()
    if not seen or text.count("\n") < rows or not command or not shutil.which(command[0]):
        print(text)
        return
    sys.stdout.flush()
    subprocess.run(command, input=text, text=True, errors="replace", env=_OPTIONS | os.environ, check=False)
