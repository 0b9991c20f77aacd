"""What a result says of its own: without what the call itself brought along, names, file texts and errors.

A language model chooses its arguments, and files are anybody's; a figure that comes back from either is no figure of a
tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent.wire import Outcome

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T[\d:.+Z-]+)?\Z")
# What a sentence of ours quotes is somebody else's.
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
# Shorter ones would be cut out of words that have nothing to do with them.
_SHORTEST = 3


def own_figures(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """The results from which an answer's figures may come."""
    return [_own(outcome) for outcome in outcomes if outcome.error is None]


def _own(outcome: Outcome) -> dict[str, Any]:
    brought = list(_brought(outcome.call.arguments, ""))
    numbers = {(key, float(value)) for key, value in brought if isinstance(value, int | float)}
    # A limit of latency comes back in seconds.
    numbers |= {("limit_s", value / 1e3) for key, value in numbers if key.endswith("_ms")}
    texts = {value for _, value in brought if isinstance(value, str) and len(value) >= _SHORTEST}
    echoes = re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))), re.IGNORECASE)
    return _cleaned(outcome.response, "", numbers, echoes if texts else None)


def _brought(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """(name, value) of every number and text of the arguments, at any depth."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _brought(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _brought(item, key)
    elif value is not None and not isinstance(value, bool):
        yield key, value


def _cleaned(value: Any, key: str, numbers: set[tuple[str, float]], echoes: re.Pattern[str] | None) -> Any:
    if isinstance(value, Mapping):
        return {
            name if str(name).isidentifier() else f"key{place}": _cleaned(item, str(name), numbers, echoes)
            for place, (name, item) in enumerate(value.items())
        }
    if isinstance(value, list | tuple):
        return [_cleaned(item, key, numbers, echoes) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None if (key, float(value)) in numbers else value
    return _sentence(value, echoes) if isinstance(value, str) else value


def _sentence(text: str, echoes: re.Pattern[str] | None) -> str:
    """A sentence of ours, or a date; nothing of a name or of the text of a file."""
    if _DATE.match(text):
        return text
    if "\n" in text or " " not in text.strip():
        return ""
    text = _QUOTED.sub(" ", text)
    return echoes.sub(" ", text) if echoes else text
