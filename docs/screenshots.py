"""Makes the README's pictures from the real thing (`make screenshots`): the app with the demo question answered
offline, its clusters, and the command line."""

from __future__ import annotations

import asyncio
import contextlib
import html
import io
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

QUESTION = "Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens? How long, what does it cost?"
_LONGEST_S, _QUIET = 120, 10
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Scene:
    """What is asked and pressed, and `words` that the picture is there to show."""

    name: str
    size: tuple[int, int]
    asked: Sequence[str]
    keys: Sequence[str]
    words: Sequence[str]


SCENES = (
    Scene(
        "app", (140, 44), (QUESTION, "and with LoRA?"), (), ("GiB", "tokens/s", "Llama-3.1-8B", "$", "Before", "Next")
    ),
    Scene("clusters", (140, 26), (QUESTION,), ("f5", "down"), ("CLUSTER", "COST", "RUN", "━", "$")),
)
# The command line: its words, and the columns of the terminal.
COMMANDS = (
    ("fit", "llama-3.1-70b", "2xh100"),
    ("estimate", "llama-3.1-8b", "8xh100", "--dataset-tokens", "1B"),
)
_COLUMNS = 100


async def picture(scene: Scene) -> str:
    from tui.app import ShardwiseApp
    from tui.widgets.prompt import Prompt

    app = ShardwiseApp(model="offline")
    async with app.run_test(size=scene.size) as pilot:
        for question in scene.asked:
            app.query_one(Prompt).post_message(Prompt.Submitted(question))
            await _at_rest(pilot)
        for key in scene.keys:
            await pilot.press(key)
            await _at_rest(pilot)
        shown = alone(app.export_screenshot(title="shardwise"))
        words = html.unescape(re.sub(r"<[^>]+>", " ", shown)).replace("\xa0", " ")
        if missing := [word for word in scene.words if word not in words]:
            raise SystemExit(f"the picture {scene.name} lacks {', '.join(missing)}")
        return shown


async def _at_rest(pilot: Pilot[None]) -> None:
    await pilot.pause(1.0)
    quiet = 0
    for _ in range(_LONGEST_S * 10):
        await pilot.pause(0.1)
        working = pilot.app.turns.current is not None or not all(worker.is_finished for worker in pilot.app.workers)  # type: ignore[attr-defined]
        quiet = 0 if working else quiet + 1
        if quiet > _QUIET:
            return


def command_line() -> str:
    from rich.console import Console
    from rich.text import Text

    from pages.rendering import terminal
    from tui.cli import main

    console = Console(record=True, width=_COLUMNS + 4, file=io.StringIO())
    has_colour, terminal.has_colour = terminal.has_colour, lambda: True
    try:
        for words in COMMANDS:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                code = main(words)
            if code:
                raise SystemExit(f"shardwise {' '.join(words)} gave {code}")
            console.print(Text(f"$ shardwise {' '.join(words)}", "bold"))
            console.print(Text.from_ansi(printed.getvalue()))
    finally:
        terminal.has_colour = has_colour
    return alone(console.export_svg(title="shardwise", unique_id="cli"))


def alone(svg: str) -> str:
    """The picture without the font that it would load from elsewhere."""
    return re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg)


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"SHARDWISE_HOME": home, "TEXTUAL_ANIMATIONS": "none", "COLUMNS": str(_COLUMNS)}
        os.chdir(home)
        pictures = {scene.name: asyncio.run(picture(scene)) for scene in SCENES} | {"cli": command_line()}
    for name, svg in pictures.items():
        (_FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
