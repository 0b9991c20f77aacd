"""How long a person waits: for a key while an answer streams, for the figures after a key in the form, for an earlier
conversation. Times are of the processor; limits are twice what is usual."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from fake_session import FakeSession, done, estimator
from pace import slower
from textual import events

from agent.events import Event, TextPiece
from tui.app import ShardwiseApp
from tui.widgets.markdown_block import drawn
from tui.widgets.plan_form import FieldInput
from tui.widgets.prompt import Prompt

_ROWS = "".join(f"| part {i} | {i * 3} GiB |\n" for i in range(30))
_ITEMS = "".join(f"- item {i} of a list that goes on\n" for i in range(60))
_CODE = "```yaml\n" + "".join(f"key{i}: value\n" for i in range(60)) + "```\n\n"
TEXT = (f"Some **text** with `code`.\n\n| a | b |\n|---|---|\n{_ROWS}\n{_ITEMS}\n{_CODE}") * 2
CHUNKS = 1500


class Streaming(FakeSession):
    async def send(self, text: str) -> AsyncIterator[Event]:
        size = -(-len(TEXT) // CHUNKS)
        for start in range(0, len(TEXT), size):
            yield TextPiece(TEXT[start : start + size])
            await asyncio.sleep(0.001)
        yield done(TEXT.strip())


async def test_keys_are_heard_while_an_answer_streams() -> None:
    app = ShardwiseApp(opener=Streaming, estimator=estimator)
    waits: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        drawn("`what is imported` with the first block", 20, dark=True)
        prompt = app.query_one(Prompt)
        prompt.text = "go"
        # The pilot would wait until the answer has nearly come.
        app.post_message(events.Key("enter", "\r"))
        while app.turns.current is None:
            await asyncio.sleep(0.001)
        while app.turns.current is not None or not waits:
            before, started = len(prompt.text), time.process_time()
            app.post_message(events.Key("a", "a"))
            while len(prompt.text) == before:
                await asyncio.sleep(0.001)
            waits.append(time.process_time() - started)
            await asyncio.sleep(0.02)
        await pilot.pause()
    # The last key came as the turn ended.
    waits = sorted(waits[:-1])
    print(f"{len(waits)} keys: median {waits[len(waits) // 2] * 1e3:.1f} ms, last {waits[-1] * 1e3:.1f} ms")
    assert len(waits) >= 8
    pace = slower()
    assert waits[len(waits) // 2] < 0.02 * pace
    assert waits[len(waits) * 9 // 10] < 0.06 * pace


async def test_a_key_in_the_form_changes_the_figures_at_once() -> None:
    app = ShardwiseApp(opener=FakeSession)
    async with app.run_test(size=(120, 40)) as pilot:
        app.pane.show({"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}})
        await app.workers.wait_for_complete()
        await app.open_form()
        await pilot.pause()
        row = next(row for row in app.query(FieldInput) if row.field.name == "global_batch")
        waits: list[float] = []
        for batch in (64, 128, 256, 512, 64, 128, 256, 512):
            shown, started = app.pane.overview, time.process_time()
            row.value = str(batch)
            while app.pane.overview is shown:
                await asyncio.sleep(0.01)
            waits.append(time.process_time() - started)
            await pilot.pause()
    waits.sort()
    print(f"median {waits[len(waits) // 2] * 1e3:.1f} ms")
    assert waits[len(waits) // 2] < 0.15 * slower()


def test_a_block_is_laid_out_within_its_width() -> None:
    for width in (20, 40, 110):
        lines = drawn(TEXT, width, dark=True).plain.splitlines()
        assert max(map(len, lines)) <= width
        assert "part 29" in drawn(TEXT, 110, dark=False).plain
