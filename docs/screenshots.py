"""Makes the README's picture from the real app (`make screenshots`): the demo question, answered offline."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

QUESTION = "Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens? How long, what does it cost?"
SIZE = (150, 46)
PICTURE = Path(__file__).parent / "app.svg"


async def picture() -> str:
    from tui.app import ShardwiseApp
    from tui.widgets.prompt import Prompt

    app = ShardwiseApp(model="offline")
    async with app.run_test(size=SIZE) as pilot:
        app.query_one(Prompt).post_message(Prompt.Submitted(QUESTION))
        await pilot.pause(0.5)
        await app.workers.wait_for_complete()
        await pilot.pause(1.0)
        return app.export_screenshot(title="shardwise")


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"SHARDWISE_HOME": home, "TEXTUAL_ANIMATIONS": "none"}
        os.chdir(home)
        PICTURE.write_text(asyncio.run(picture()), encoding="utf-8")


if __name__ == "__main__":
    main()
