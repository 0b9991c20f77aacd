"""How the app looks at three sizes, in every state. Accept a wanted change: --snapshot-update."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_session import FakeSession, estimator
from textual.pilot import Pilot

from tui.app import ShardwiseApp
from tui.widgets.prompt import Prompt

SIZES = {"small": (80, 24), "middle": (120, 40), "large": (200, 60)}
# What is asked, and the keys pressed after it.
STATES: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "welcome": (None, ()),
    "answer": ("Does it fit?", ()),
    "card": ("Does it fit?", ("shift+tab", "shift+tab", "enter")),
    "approval": ("Does it fit? Then write the files.", ()),
    "changes": ("Does it fit? Then write the files.", ("down", "down", "enter")),
    "choices": ("which one?", ()),
    "form": ("Does it fit?", ("f3", "down", "down")),
    "refused": ("Does it fit?", ("f3", "down", "down", "1", "3")),
    "failed": ("explode", ()),
    "completion": (None, ("/", "s", "w")),
}


def typing(question: str | None, keys: tuple[str, ...]) -> Callable[[Pilot[Any]], Awaitable[None]]:
    async def before(pilot: Pilot[Any]) -> None:
        prompt = pilot.app.query_one(Prompt)
        prompt.cursor_blink = False
        prompt.sent = []
        if question is not None:
            prompt.text = question
            await pilot.press("enter")
            await pilot.pause()
            await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.2)
        await pilot.press(*keys)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.2)
        for field in pilot.app.query("Input"):
            field.cursor_blink = False  # type: ignore[attr-defined]
        await pilot.pause(0.1)

    return before


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("state", STATES)
def test_screen(snap_compare: Any, state: str, size: tuple[int, int]) -> None:
    app = ShardwiseApp(opener=FakeSession, estimator=estimator, model="offline")
    app.animation_level = "none"
    assert snap_compare(app, terminal_size=size, run_before=typing(*STATES[state]))


@pytest.mark.parametrize(
    ("look", "size"),
    [("light", "small"), ("light", "middle"), ("light", "large"), ("colourless", "middle")],
)
def test_look(snap_compare: Any, monkeypatch: pytest.MonkeyPatch, look: str, size: str) -> None:
    if look == "colourless":
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.setenv("SHARDWISE_THEME", "textual-light")
    app = ShardwiseApp(opener=FakeSession, estimator=estimator, model="offline")
    app.animation_level = "none"
    assert snap_compare(app, terminal_size=SIZES[size], run_before=typing("Does it fit?", ()))
