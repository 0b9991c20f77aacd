"""What is on the screen while the app is still being imported, and that the terminal is as it was afterwards."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator

import pytest

from tui.first_picture import ABOUT, HEADING, PROMPT, drawn, shown_at_once

termios = pytest.importorskip("termios")


def placed(picture: str) -> dict[int, tuple[int, str]]:
    """Column and words of each row that is drawn."""
    parts = re.split(r"\x1b\[(\d+);(\d+)H", picture)[1:]
    rows = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {int(row): (int(column), re.sub(r"\x1b\[\d*m", "", text)) for row, column, text in rows}


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 60), (100, 30), (12, 4)])
def test_it_stays_within_the_screen(width: int, height: int) -> None:
    rows = placed(drawn(width, height, empty=True))
    assert all(1 <= row <= height for row in rows)
    if width >= 80:
        assert all(column + len(text) <= width + 1 for column, text in rows.values())
        words = " ".join(text for _, text in rows.values())
        assert HEADING in words
        assert ABOUT in words
    assert rows[height - 1][1].startswith("› " + PROMPT[: max(width - 4, 0)])


def test_an_earlier_conversation_has_no_welcome() -> None:
    assert HEADING not in drawn(80, 24, empty=False)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    leader, follower = os.openpty()
    with open(follower, closefd=False) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "__stderr__", io.StringIO())
        yield follower
    os.close(follower)
    os.close(leader)


def echoes(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


def test_nothing_is_echoed_until_the_app_has_ended(terminal: int) -> None:
    with shown_at_once(empty=True):
        assert not echoes(terminal)
        # Enter arrives as Enter.
        assert not termios.tcgetattr(terminal)[0] & termios.ICRNL
        assert HEADING in sys.__stderr__.getvalue()  # type: ignore[union-attr]
    assert echoes(terminal)
    # Textual has left the screen itself.
    assert "\x1b[?1049l" not in sys.__stderr__.getvalue()  # type: ignore[union-attr]


def test_a_start_that_fails_leaves_the_screen_as_it_was(terminal: int) -> None:
    with pytest.raises(RuntimeError), shown_at_once(empty=True):
        raise RuntimeError("no such session")
    assert echoes(terminal)
    assert sys.__stderr__.getvalue().endswith("\x1b[?25h\x1b[?1049l")  # type: ignore[union-attr]
