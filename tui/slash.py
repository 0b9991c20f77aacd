"""The commands that are typed with a slash: what there is, what a line means, and what it may become.

Pure: tui/actions.py lists them, and the app carries them out (tui/slash_actions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator.errors import PlanError, nearest
from launchers.targets import target_descriptions
from tui.actions import ACTIONS, Action
from tui.catalogue_names import names_of, starting
from tui.plan_fields import fields_of, find_field, kind_of, shown, value_at

Data = Mapping[str, Any]
Rows = tuple[tuple[str, str], ...]

_MOST = 8


@dataclass(frozen=True)
class PromptContext:
    """What completion may look at: the plan, the themes, and (id, title) of earlier conversations."""

    plan: Data
    themes: Sequence[str] = ()
    sessions: Callable[[], Iterable[tuple[str, str]]] = tuple


Completion = Callable[[str, PromptContext], Iterable[tuple[str, str]]]


def find_command(name: str) -> Action:
    """Raises PlanError with the nearest commands."""
    for command in ACTIONS:
        if command.name == name:
            return command
    near = nearest(name, [command.name for command in ACTIONS])
    raise PlanError(f"/{name}", "there is no such command", [f"/{word}" for word in near])


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
        matches = [each for each in ACTIONS if each.name.startswith(name.lower())]
        matches = matches or [each for each in ACTIONS if name.lower() in each.name]
        return tuple((f"/{each.name}{' ' if each.usage else ''}", _told(each)) for each in matches)
    complete = _COMPLETIONS.get(name.lower())
    if complete is None:
        return ()
    head, _, last = text.rpartition(" ")
    rows = [(f"{head} {word}", told) for word, told in complete(last, surroundings)][:_MOST]
    return tuple(rows) if [word for word, _ in rows] != [text] else ()


def _told(command: Action) -> str:
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


def _names(field: str) -> Completion:
    def complete(last: str, _: PromptContext) -> Iterable[tuple[str, str]]:
        return [(word, "") for word in starting(names_of(field), last)]

    return complete


def _of(*words: str) -> Completion:
    return lambda last, _: [(word, "") for word in words if word.startswith(last)]


def _themes(last: str, surroundings: PromptContext) -> Iterable[tuple[str, str]]:
    return [(theme, "") for theme in surroundings.themes if theme.startswith(last)]


def _sessions(last: str, surroundings: PromptContext) -> Iterable[tuple[str, str]]:
    words = last.casefold()
    return [(id, title) for id, title in surroundings.sessions() if words in f"{id} {title}".casefold()]


def _targets(last: str, _: PromptContext) -> Iterable[tuple[str, str]]:
    rows = [("write", "write the files, once you approve them"), *target_descriptions().items()]
    return [(name, told) for name, told in rows if name.startswith(last)]


_COMPLETIONS: Mapping[str, Completion] = {
    "model": _names("model"), "hardware": _names("accelerator"), "plan": _fields, "fit": _fields, "best": _fields,
    "compare": _fields, "cost": _fields, "sweep": _swept, "config": _targets,
    "export": _of("conversation", "json", "plan", "html", "markdown", "pdf"), "resume": _sessions,
    "copy": _of("config"), "think": _of("auto", "offline", "gemini", "openai"), "theme": _themes,
}  # fmt: skip
