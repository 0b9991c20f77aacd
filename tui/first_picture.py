"""The first picture of the app, drawn with bare escape codes before Textual is imported: most of a start is imports.

Textual draws over it. What is typed meanwhile waits in the terminal, and is at the prompt once that is there.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
from collections.abc import Iterator

HEADING = "What do you want to train, fine-tune or serve?"
ABOUT = (
    "Name the model, the accelerators and what is to be done. You get memory, speed and cost with "
    "their intervals, the best layout, and launch files."
)
PROMPT = "Ask, or say what to change…  (/ for commands)"
_WIDEST = 108
_PANE = 46
_WIDE = 100
_ENTER, _LEAVE = "\x1b[?1049h\x1b[2J\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[m"


def drawn(width: int, height: int, *, empty: bool) -> str:
    """The lines of an app that starts; `empty` says that no earlier conversation follows."""
    beside = width - _PANE if width >= _WIDE else width
    room = max(min(beside - 4, _WIDEST), 10)
    rows = [(1, 2, f"{_DIM}Shardwise · starting…{_PLAIN}"), (height - 1, 2, f"› {_DIM}{PROMPT[: width - 4]}{_PLAIN}")]
    if empty:
        lines = [f"{_BOLD}{HEADING}{_PLAIN}", "", *textwrap.wrap(ABOUT, room)]
        rows += [(3 + place, 3, line) for place, line in enumerate(lines) if 3 + place < height - 2]
    return "".join(f"\x1b[{max(row, 1)};{column}H{text}" for row, column, text in rows)


@contextlib.contextmanager
def shown_at_once(*, empty: bool) -> Iterator[None]:
    """Draws it on the alternate screen and stops the echo, as long as the app runs: Textual leaves that screen when it
    ends, and this where it does not come to that."""
    try:
        import termios

        before = termios.tcgetattr(sys.stdin)
    except (ImportError, OSError, ValueError):
        # No terminal of that kind: Textual's own first picture comes first.
        yield
        return
    silent = [*before]
    # Enter is to arrive as Enter, not as the end of a line.
    silent[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    size = shutil.get_terminal_size()
    _write(_ENTER + drawn(*size, empty=empty))
    try:
        yield
    except BaseException:
        _write(_LEAVE)
        raise
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _write(codes: str) -> None:
    # Where Textual writes, too.
    if sys.__stderr__ is not None:
        sys.__stderr__.write(codes)
        sys.__stderr__.flush()
