"""The commands that are typed with a slash: what there is, what a line means, and what it may become.

Pure: the app carries them out (tui/slash_actions.py). A row of tui/screens is a command of its own, by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator.errors import PlanError, nearest
from launchers.targets import target_descriptions
from tui.catalogue_names import names_of, starting
from tui.plan_fields import fields_of, find_field, kind_of, shown, value_at
from tui.screens import SCREENS

Data = Mapping[str, Any]
Rows = tuple[tuple[str, str], ...]

_MOST = 8


@dataclass(frozen=True)
class PromptContext:
    """What completion may look at: the plan, the themes, and (id, title) of earlier conversations."""

    plan: Data
    themes: Sequence[str] = ()
    sessions: Callable[[], Iterable[tuple[str, str]]] = tuple


@dataclass(frozen=True)
class Command:
    """`usage` is what may follow the name."""

    name: str
    usage: str
    meaning: str
    complete: Callable[[str, PromptContext], Iterable[tuple[str, str]]] | None = None

    @property
    def shown(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


def find_command(name: str) -> Command:
    """Raises PlanError with the nearest commands."""
    for command in commands():
        if command.name == name:
            return command
    near = nearest(name, [command.name for command in commands()])
    raise PlanError(f"/{name}", "there is no such command", [f"/{word}" for word in near])


def commands() -> list[Command]:
    """Every command: those below, and a screen of another name each."""
    named = {command.name for command in COMMANDS}
    return [*COMMANDS, *(Command(row.name, "", row.title) for row in SCREENS if row.name not in named)]


def split(text: str) -> tuple[str, list[str]] | None:
    """(name, words) of a line with a slash; None for any other text, also for a path (/models/x/config.json)."""
    if not text.startswith("/"):
        return None
    name, *words = text[1:].split() or [""]
    return None if "/" in name or "\n" in text.strip() else (name.lower(), words)


def completions(text: str, surroundings: PromptContext) -> Rows:
    """What the line may become, each with what it means: whole lines, ready to be sent or typed on."""
    if not text.startswith("/") or "\n" in text:
        return ()
    name, space, _ = text[1:].partition(" ")
    if not space:
        matches = [each for each in commands() if each.name.startswith(name.lower())]
        matches = matches or [each for each in commands() if name.lower() in each.name]
        return tuple((f"/{each.name}{' ' if each.usage else ''}", _told(each)) for each in matches)
    command = next((each for each in commands() if each.name == name.lower()), None)
    if command is None or command.complete is None:
        return ()
    head, _, last = text.rpartition(" ")
    rows = [(f"{head} {word}", told) for word, told in command.complete(last, surroundings)][:_MOST]
    return tuple(rows) if [word for word, _ in rows] != [text] else ()


def _told(command: Command) -> str:
    return f"{command.usage}  {command.meaning}".strip()


# What may follow each command


def _fields(last: str, surroundings: PromptContext) -> Iterable[tuple[str, str]]:
    """`field=`, and after it the values that the field is known to take."""
    name, sign, typed = last.partition("=")
    if sign:
        try:
            field = find_field(name, surroundings.plan)
        except PlanError:
            return []
        return [(f"{name}={word}", field.meaning) for word in starting(field.choices or names_of(field.name), typed)]
    fields = [field for field in fields_of(kind_of(surroundings.plan)) if field.name.startswith(last.replace("-", "_"))]
    values = [shown(value_at(surroundings.plan, field.path)) for field in fields]
    return [
        (f"{field.name}=", f"{f'now {now}. ' if now else ''}{field.meaning}")
        for field, now in zip(fields, values, strict=True)
    ]


def _swept(last: str, surroundings: PromptContext) -> Iterable[tuple[str, str]]:
    return [(word.removesuffix("="), told) for word, told in _fields(last, surroundings) if word.endswith("=")]


def _names(field: str) -> Callable[[str, PromptContext], Iterable[tuple[str, str]]]:
    def complete(last: str, _: PromptContext) -> Iterable[tuple[str, str]]:
        return [(word, "") for word in starting(names_of(field), last)]

    return complete


def _of(*words: str) -> Callable[[str, PromptContext], Iterable[tuple[str, str]]]:
    return lambda last, _: [(word, "") for word in words if word.startswith(last)]


def _themes(last: str, surroundings: PromptContext) -> Iterable[tuple[str, str]]:
    return [(theme, "") for theme in surroundings.themes if theme.startswith(last)]


def _sessions(last: str, surroundings: PromptContext) -> Iterable[tuple[str, str]]:
    words = last.casefold()
    return [(id, title) for id, title in surroundings.sessions() if words in f"{id} {title}".casefold()]


def _targets(last: str, _: PromptContext) -> Iterable[tuple[str, str]]:
    rows = [("write", "write the files, once you approve them"), *target_descriptions().items()]
    return [(name, told) for name, told in rows if name.startswith(last)]


COMMANDS = (
    Command("model", "[NAME]", "the model to train or serve", _names("model")),
    Command("hardware", "[NAME [COUNT]]", "the accelerators to run on", _names("accelerator")),
    Command("plan", "[FIELD=VALUE …]", "change the plan; alone it opens the form", _fields),
    Command("fit", "[FIELD=VALUE …]", "does it fit, what would make it fit", _fields),
    Command("best", "[FIELD=VALUE …]", "the best layout, or the best way to serve", _fields),
    Command("compare", "FIELD=A,B … | NAME …", "variants or saved plans, side by side", _fields),
    Command("sweep", "FIELD VALUES", "the plan over a range: count 8..128 doubling", _swept),
    Command("cost", "[FIELD=VALUE …]", "what it costs, by provider", _fields),
    Command("config", "[TARGET …] | write [FOLDER]", "the launch files; write puts them on disk", _targets),
    Command("save", "NAME [overwrite]", "keep the plan under a name"),
    Command("export", "[FORMAT] [FILE]", "conversation (md), plan or report (pdf) as a file",
            _of("markdown", "json", "plan", "html", "pdf")),
    Command("resume", "[ID or words]", "go on with an earlier conversation", _sessions),
    Command("new", "", "start a new conversation"),
    Command("undo", "", "take back the last change of the plan"),
    Command("copy", "[config|N|FILE]", "the answer as Markdown, or a block of it", _of("config")),
    Command("think", "auto|offline|gemini|openai", "who thinks", _of("auto", "offline", "gemini", "openai")),
    Command("theme", "[NAME]", "colours; alone: dark or light", _themes),
    Command("help", "", "every command and key"),
    Command("quit", "", "leave; the conversation is kept"),
)  # fmt: skip
