"""What stands before a program on a line: wrappers, shells that are given text, containers and what they hand in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from launchers.reading.documents import Item
from launchers.reading.programs import consoles
from launchers.shell.images import image_command, is_known
from launchers.shell.scripts import UNKNOWN, Word
from launchers.shell.setting import ScriptSetting

LAUNCHERS = ("xpk", "torchrun", "accelerate", "deepspeed", "torchx")


def without_mark(words: Sequence[Word]) -> list[Word]:
    """A command as a cell of a notebook has it, behind a mark (!torchrun …), as a shell's."""
    first = words[0] if words else None
    if first is None or len(first.text) < 2 or not first.text.startswith("!"):
        return list(words)
    return [replace(first, text=first.text[1:]), *words[1:]]


# What runs a program that its words name later; also one that is known only where it runs.
_RUNS_PYTHON = ("uv", "poetry", "pixi")


# Options of uv run that take a word (docs.astral.sh/uv/reference/cli).
_OF_UV = ("--extra", "--no-extra", "--group", "--only-group", "--with", "--with-editable", "--with-requirements",
          "--env-file", "--python", "-p", "--project", "--directory", "--package", "--index")  # fmt: skip


WRAPPERS = ("", UNKNOWN, "uv", "poetry", "pixi", "conda", "micromamba", "nsys", "ncu", "rocprofv3")


def is_handed_on(name: str, words: Sequence[Word]) -> bool:
    """Whether Python runs a script that is given another program to start (python data.py torchrun …)."""
    return (
        name.startswith("python")
        and len(words) > 2
        and words[1].text.endswith(".py")
        and (words[2].text == "env" or is_program(words[2].text))
    )


def wrapped_program(name: str, words: Sequence[Word]) -> list[Word]:
    """The program that a wrapper's words name, or the Python source that uv run is given as it is."""
    values = {at + 1 for at, word in enumerate(words) if word.text in _OF_UV} if name == "uv" else set()
    own = [at for at in range(1, len(words)) if at not in values]
    place = next((at for at in own if is_program(words[at].text) or words[at].text == "env"), len(words))
    source = next((at for at in own if at < place and (words[at].text.endswith(".py") or words[at].text == "-m")), None)
    if name in _RUNS_PYTHON and source is not None:
        return [Word("python", words[source].line), *words[source:]]
    return list(words[place:])


def after_dashes(words: Sequence[Word]) -> list[Word] | None:
    """What a command that is not known hands on (submit --gpu 8 -- torchrun …), where that is a program."""
    if is_program(words[0].text):
        return None
    place = next((at for at, word in enumerate(words) if word.text == "--"), None)
    if place is None or place + 1 >= len(words) or not is_program(words[place + 1].text):
        return None
    return list(words[place + 1 :])


def text_of(name: str, words: Sequence[Word]) -> Word | None:
    """The commands that bash -c and eval are given as text."""
    if name == "eval":
        return Word(" ".join(word.text for word in words[1:]), words[0].line)
    at = _command_text(words) if name in ("bash", "sh") else None
    return None if at is None else words[at]


def _command_text(words: Sequence[Word]) -> int | None:
    """Where the text of bash -c stands, behind other options of bash."""
    at = 1
    while at + 1 < len(words) and words[at].text.startswith("-"):
        if re.fullmatch(r"-[a-z]*c", words[at].text):
            return at + 1
        at += 1
    return None


def contained(words: list[Word]) -> list[Word]:
    """What a container is told to run: a program, its image's own, or a command of one's own after an image."""
    # Behind an option stands its value, as in --name vllm.
    values = {at + 1 for at, word in enumerate(words) if re.match(r"--?[a-z][a-z-]*$", word.text)}
    values -= {at + 1 for at, word in enumerate(words) if word.text == "--entrypoint"}
    place = next((at for at, word in enumerate(words) if is_program(word.text) and at and at not in values), None)
    image = next((at for at, word in enumerate(words) if _is_image(word.text)), None)
    if place is not None:
        return _entered(words, place)
    if image is not None:
        begins, chosen = image_command(words[image].text, [word.text for word in words[image + 1 :]])
        return [*(Word(text, words[image].line) for text in begins), *words[image + 1 + chosen :]]
    own = next((at for at, word in enumerate(words) if re.search(r"\.sif$|^docker://", word.text)), None)
    if own is None:
        # An image by a path of one's own, and a script in it.
        own = next((at - 1 for at, word in enumerate(words) if at and word.text.endswith((".sh", ".bash"))), None)
    return words[own + 1 :] if own is not None else []


def handed_in(words: Sequence[Word], setting: ScriptSetting) -> dict[str, Word]:
    """Variables that a container is started with, and the devices that it is let see."""
    environment: dict[str, Word] = {}
    for option, value in pairwise(words):
        name, equals, joined = option.text.partition("=")
        told = joined if equals else value.text
        if name in ("-e", "--env") and "=" in told:
            variable, _, text = told.partition("=")
            environment[variable] = Word(text, option.line)
        elif name == "--gpus":
            listed = re.fullmatch(r"[\"']*device=([0-9]+(?:,[0-9]+)*)[\"']*", told)
            count = str(listed[1].count(",") + 1) if listed else told
            if count.isdigit():
                setting.findings.whole("per_node", Item(setting.file, "--gpus", count, option.line))
    return environment


def _entered(words: list[Word], place: int) -> list[Word]:
    """The program of a container; where it is an entry point, its arguments come after the image."""
    if words[place - 1].text != "--entrypoint":
        return words[place:]
    after = range(place + 1, len(words))
    start = next((at for at in after if re.search(r"^-m$|\.(py|ya?ml|sh)$", words[at].text)), len(words))
    return [words[place], *words[start:]]


def _is_image(text: str) -> bool:
    """Whether a word of docker run names an image whose program is known, and no folder or option."""
    return bool(re.match(r"[a-z0-9.-]+(/[\w.-]+)+(:[\w.-]+)?(@\w+:\w+)?$", text)) and is_known(text)


def is_program(text: str) -> bool:
    name = text.rpartition("/")[2]
    return "=" not in text and (
        name in LAUNCHERS or name in consoles() or bool(re.fullmatch(r"python[0-9.]*", name)) or name in ("bash", "sh")
    )
