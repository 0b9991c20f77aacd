"""How the app looks, at the smallest usual terminal and at a large one. Accept a wanted change: --snapshot-update."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_session import FakeSession
from textual.pilot import Pilot

from tui.app import ShardwiseApp
from tui.widgets.prompt import Prompt


def typing(question: str | None) -> Callable[[Pilot[Any]], Awaitable[None]]:
    async def before(pilot: Pilot[Any]) -> None:
        prompt = pilot.app.query_one(Prompt)
        prompt.cursor_blink = False
        if question is not None:
            prompt.text = question
            await pilot.press("enter")
            await pilot.pause()
            await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.1)

    return before


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["small", "large"])
@pytest.mark.parametrize(
    "question", [None, "Does it fit?", "Does it fit? Then write the files."], ids=["welcome", "answer", "approval"]
)
def test_screen(snap_compare: Any, size: tuple[int, int], question: str | None) -> None:
    app = ShardwiseApp(opener=FakeSession)
    app.animation_level = "none"
    assert snap_compare(app, terminal_size=size, run_before=typing(question))
