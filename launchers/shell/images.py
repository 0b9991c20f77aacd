"""Container images whose entry point is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class _Image:
    """Images whose name, and tag where `tag` says one, are these. `chosen_by` are first arguments of an entry point
    that starts one of several programs, this one by them."""

    name: re.Pattern[str]
    words: tuple[str, ...]
    tag: re.Pattern[str] = re.compile("")
    chosen_by: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Of an entry point that has several, which it is given as a word; the first where it is given none."""


# Programs that images start where no command is named. Of llama.cpp's (.devops/*.Dockerfile) server starts the server,
# full a script (tools.sh), light a command line that serves nothing. SGLang's starts nothing of itself, and who gives
# it options alone means its server.
_IMAGES = (
    _Image(re.compile(r"vllm"), ("vllm", "serve")),
    _Image(re.compile(r"llama\.cpp.*server|llama-server"), ("llama-server",)),
    _Image(re.compile(r"llama\.cpp$"), ("llama-server",), re.compile(r"server")),
    _Image(re.compile(r"llama\.cpp$"), ("llama-server",), re.compile(r"full"), ("--server", "-s")),
    _Image(re.compile(r"(^|/)sglang$"), ("sglang", "serve")),
    _Image(re.compile(r"(^|/)text-generation-inference$"), ("text-generation-launcher",)),
    _Image(re.compile(r"(^|/)ollama$"), ("ollama",), commands=("serve", "run", "pull", "create")),
)


def is_known(image: str) -> bool:
    """Whether it is known what a container image starts."""
    return bool(_rows(image))


def image_command(image: str, arguments: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """The words that the entry point of a container image stands for, and how many of the `arguments` say no more than
    which program is meant; (), 0 where that is not known."""
    first = arguments[0] if arguments else ""
    row = next((row for row in _rows(image) if not row.chosen_by or first in row.chosen_by), None)
    if row is None:
        return (), 0
    usual = row.commands[:1] if not arguments else ()
    return row.words + usual, int(bool(row.chosen_by))


def takes(image: str, command: str) -> bool:
    """Whether a bare word is a command of the image's entry point, and no program of its own."""
    return any(command in row.commands for row in _rows(image))


def _rows(image: str) -> list[_Image]:
    """A tag may name what else is in an image, so that it says what the image starts for a name that leaves it open
    alone."""
    name, _, tag = re.sub(r"@.*", "", image).rpartition(":") if re.search(r":[^/]*$", image) else (image, "", "")
    return [row for row in _IMAGES if row.name.search(name) and row.tag.match(tag)]
