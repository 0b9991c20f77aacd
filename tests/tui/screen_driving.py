"""Opens one of the app's screens and presses keys there until everything has come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fake_session import FakeSession
from textual.pilot import Pilot

from tui.app import ShardwiseApp
from tui.screens import ScreenResult, find_screen, load_screen

PLAN = {
    "model": "llama-3.1-8b",
    "workload": {"kind": "training", "seq_len": 2048, "dataset_tokens": 1e9},
    "cluster": {"accelerator": "h100-sxm", "count": 8},
    "layout": {"tp": 1, "pp": 1, "dp": 8, "zero_stage": 3, "recompute": "full"},
}


async def until(pilot: Pilot[Any], holds: Callable[[], object]) -> None:
    """Until that holds, however slow the machine is."""
    await _waited(holds)
    await pilot.pause(0)


async def _waited(holds: Callable[[], object]) -> None:
    # To wait for each widget every time is most of such a test's work.
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came")


async def settle(pilot: Pilot[Any]) -> None:
    """Until no thread works and no timer is about to ask for more."""
    quiet = 0

    def rests() -> bool:
        nonlocal quiet
        quiet = quiet + 1 if all(worker.is_finished for worker in pilot.app.workers) else 0
        return quiet > 5

    while quiet <= 5:
        await _waited(rests)
        await pilot.pause(0)
        quiet = quiet if rests() else 0


async def press(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


class Opened:
    def __init__(self, pilot: Pilot[Any], outcomes: list[ScreenResult | None]) -> None:
        self.pilot = pilot
        self.outcomes = outcomes

    @property
    def screen(self) -> Any:
        return self.pilot.app.screen

    async def press(self, *keys: str) -> None:
        await press(self.pilot, *keys)

    async def type(self, text: str) -> None:
        """Into the input that has the focus, in place of what is there."""
        self.screen.focused.value = text
        await settle(self.pilot)

    def names(self) -> list[str]:
        return [str(getattr(row, self.screen.key)) for row in self.screen.shown]

    def text(self) -> str:
        """What is on the screen."""
        strips = self.screen._compositor.render_strips(self.pilot.app.size)
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


@asynccontextmanager
async def opened(name: str, plan: Mapping[str, Any] = PLAN, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Opened]:
    row = find_screen(name)
    assert row is not None
    app = ShardwiseApp(opener=FakeSession, estimator=lambda plan: [])
    outcomes: list[ScreenResult | None] = []
    async with app.run_test(size=size) as pilot:
        await app.push_screen(load_screen(row, plan), outcomes.append)
        await settle(pilot)
        yield Opened(pilot, outcomes)
