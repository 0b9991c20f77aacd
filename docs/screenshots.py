"""Makes the README's picture from the real app (`make screenshots`): the demo question, answered offline."""

from __future__ import annotations

import asyncio
import html
import os
import re
import tempfile
from pathlib import Path

QUESTION = "Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens? How long, what does it cost?"
SIZE = (150, 46)
# What the picture is there to show: the plan, what it comes to, and the answer.
WORDS = ("GiB", "tokens/s", "Llama-3.1-8B", "H100", "$")
_LONGEST_S, _QUIET = 120, 10
PICTURE = Path(__file__).parent / "app.svg"


async def picture() -> str:
    from tui.app import ShardwiseApp
    from tui.widgets.prompt import Prompt

    app = ShardwiseApp(model="offline")
    async with app.run_test(size=SIZE) as pilot:
        app.query_one(Prompt).post_message(Prompt.Submitted(QUESTION))
        await pilot.pause(1.0)
        quiet = 0
        for _ in range(_LONGEST_S * 10):
            await pilot.pause(0.1)
            working = app.turns.current is not None or not all(worker.is_finished for worker in app.workers)
            quiet = 0 if working else quiet + 1
            if quiet > _QUIET:
                break
        # From the question and the cards of the tools on.
        app.conversation.scroll_home(animate=False)
        await pilot.pause(0.5)
        shown = app.export_screenshot(title="shardwise")
        words = html.unescape(re.sub(r"<[^>]+>", " ", shown)).replace("\xa0", " ")
        if missing := [word for word in WORDS if word not in words]:
            raise SystemExit(f"the picture lacks {', '.join(missing)}")
        return shown


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"SHARDWISE_HOME": home, "TEXTUAL_ANIMATIONS": "none"}
        os.chdir(home)
        PICTURE.write_text(asyncio.run(picture()), encoding="utf-8")


if __name__ == "__main__":
    main()
