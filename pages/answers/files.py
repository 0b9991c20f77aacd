"""Launch files: shown, written, or withheld."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pages import units
from pages.answers.markdown import bullets

if TYPE_CHECKING:
    from planner.results import RenderedConfigs, WrittenConfigs

WITHHELD = (
    "**No files were written**, because this run would run out of memory. Say *write them anyway* if you want them as "
    "they are."
)
_LANGUAGES = {"yaml": "yaml", "yml": "yaml", "json": "json", "sbatch": "bash", "sh": "bash", "py": "python"}


def written(configs: WrittenConfigs) -> list[str]:
    lines = [f"`{file.path}` ({units.size(file.bytes)})" for file in configs.files]
    return [
        *bullets(f"**Files written** to `{configs.folder}`:", lines),
        start(configs.launch_command),
        *_fill_in(configs.needs_from_user),
    ]


def rendered(configs: RenderedConfigs) -> list[str]:
    blocks: list[str] = []
    for file in configs.files:
        language = _LANGUAGES.get(file.path.rpartition(".")[2], "")
        fence = "````" if "```" in file.text else "```"
        blocks.append(f"`{file.path}`\n{fence}{language}\n{file.text.rstrip()}\n{fence}")
    last = "Nothing is on disk yet; say *write the files* to save them."
    return [*blocks, start(configs.launch_command), *_fill_in(configs.needs_from_user), last]


def start(command: str) -> str:
    return f"Start it with `{command}`."


def _fill_in(needs: Sequence[str]) -> list[str]:
    return bullets("You still have to fill in:", needs)
