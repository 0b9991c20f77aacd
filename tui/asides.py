"""What is told beside the output of a command: it goes to standard error, so that a pipe gets the output alone."""

from __future__ import annotations

import os
import sys


def say(text: str) -> None:
    """A line on standard error, dimmed where that is possible."""
    dim = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    print(f"\x1b[2m{text}\x1b[0m" if dim else text, file=sys.stderr, flush=True)
