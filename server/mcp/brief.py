"""An answer as an assistant's model gets it: the page's first lines as text, and the result with its long lists cut.

Some clients give a model the text, others the structured part alone, so either is enough; what was left out of both is
a resource for a while.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from estimator.errors import PlanError
from pages.blocks import Block, Chart, Folded, ranked
from pages.rendering import markdown
from server.work import CallAnswer, dumps
from tools.registry import Tool, typed

DETAILS = "details"
NOT_KEPT = "this result is not kept any more; call the tool again"
_WIDTH = 100
# A result of so many bytes goes whole; of a longer one each list gets so many, and one that lies deeper fewer.
_WHOLE_BYTES, _LIST_BYTES, _DEEP_BYTES = 4000, 2000, 500
_LONGEST_TEXT = 16_000
_MOST_KEPT = 256


class KeptResults(Protocol):
    """Where whole results are kept for a while."""

    def keep(self, text: str) -> str: ...

    def read(self, id: str) -> str: ...


@dataclass
class Results:
    """The whole results of what was answered in brief, by ids that nobody can guess."""

    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _kept: OrderedDict[str, str] = field(default_factory=OrderedDict, repr=False)

    def keep(self, text: str) -> str:
        """The same result has the same id, as long as the server runs."""
        id = hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()[:20]
        self._kept[id] = text
        self._kept.move_to_end(id)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return id

    def read(self, id: str) -> str:
        """Raises PlanError."""
        if id not in self._kept:
            raise PlanError("results", NOT_KEPT)
        return self._kept[id]


def brief(tool: Tool, answer: CallAnswer, results: KeptResults) -> tuple[str, dict[str, Any]]:
    """(text, structured content) of an answer that is no failure. What it takes to make them is kept with the answer,
    which many may get."""
    if answer.brief is None:
        answer.brief = _made(tool, answer)
    text, short = answer.brief
    shown = json.loads(short)
    if short is not answer.text:
        shown[DETAILS] = f"shardwise://results/{results.keep(answer.text)}"
    if not text:
        return json.dumps(shown, separators=(",", ":")), shown
    return f"{text}\n\nEverything: {shown[DETAILS]}" if DETAILS in shown else text, shown


def _made(tool: Tool, answer: CallAnswer) -> tuple[str, str]:
    """The page's first lines, '' where there is no page, and the result with its lists cut."""
    from pages.answers.page import page_of  # what estimates comes along, of which the list of tools has no need

    value = answer.value
    shown = value if len(answer.text) <= _WHOLE_BYTES else _cut(value, _LIST_BYTES)
    result = typed(tool.name, value)
    text = "" if result is None else _text(page_of(result, _WIDTH))
    return text, answer.text if shown == value else dumps(shown)


def _text(blocks: list[Block]) -> str:
    lead, _ = ranked([block for block in blocks if not isinstance(block, Chart | Folded)])
    text = markdown.render(lead)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT].rpartition(chr(10))[0]}\n…"


def _cut(value: Any, room: int) -> Any:
    """Lists end where they have used up their `room`; their first entry is always there, and files are whole."""
    if isinstance(value, Mapping):
        return {key: _cut(item, room) for key, item in value.items()}
    if not isinstance(value, list) or _are_files(value):
        return value
    kept: list[Any] = []
    for item in value:
        short = _cut(item, _DEEP_BYTES)
        room -= len(json.dumps(short))
        if kept and room < 0:
            break
        kept.append(short)
    return kept


def _are_files(rows: list[Any]) -> bool:
    return all(isinstance(row, Mapping) and "text" in row for row in rows)
