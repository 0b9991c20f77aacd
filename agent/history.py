"""A conversation kept short as it grows: what the models go by, not what was said (the store keeps every turn).

The last turns stay whole. Of those before, the words stay and each tool result becomes a line of its main figures.
Older ones are folded into one summary, a few lines a turn. The plan is kept apart from the messages and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.figures import headlines
from agent.wire import Content, text_of, turn_outcomes

WHOLE_TURNS = 4
_WORDY_TURNS = 16
_LONGEST_SUMMARY = 12_000
_LONGEST_LINE = 400
_BY = "history"
_SAID = "- user: "
_HEAD = "[Earlier in this conversation, shortened; its figures are from tool results of then]"


def shortened(messages: Sequence[Content]) -> list[Content]:
    """The messages for a new turn. What has been shortened is not shortened again, so this can run at every turn."""
    summary, turns = _split(messages)
    folded, kept = turns[:-_WORDY_TURNS], turns[-_WORDY_TURNS:]
    lines = [line for turn in folded for line in _lines(turn)]
    wordy, whole = kept[:-WHOLE_TURNS], kept[-WHOLE_TURNS:]
    short = [content for turn in wordy for content in words_only(turn)]
    return [*_summary(summary, lines), *short, *(content for turn in whole for content in turn)]


def turns_of(messages: Sequence[Content]) -> list[list[Content]]:
    """The messages turn by turn, each from what the person said."""
    return _split(messages)[1]


def person_words(messages: Sequence[Content]) -> Iterator[str]:
    """What the person said themselves, as far as it is still known."""
    for content in messages:
        if content.get("by") == "person":
            yield text_of(content)
        elif content.get("by") == _BY:
            yield from (line[len(_SAID) :] for line in text_of(content).splitlines() if line.startswith(_SAID))


def words_only(turn: Sequence[Content]) -> list[Content]:
    """A past turn without its calls and results, whose main figures follow the answer as a line of their own.

    Thought signatures go too: only those of the turn at hand are asked for.
    """
    short: list[Content] = []
    for content in turn:
        text = text_of(content)
        if not text or content.get("by") in ("tools", "check"):
            continue
        short.append({"role": content["role"], "parts": [{"text": text}], "by": content.get("by", "")})
    if figures := headlines(turn_outcomes(turn)):
        short.append({"role": "user", "parts": [{"text": f"[Tool results of then] {'; '.join(figures)}"}], "by": _BY})
    return short


def _split(messages: Sequence[Content]) -> tuple[list[Content], list[list[Content]]]:
    """What stands before anything was said (a summary), and the turns."""
    before: list[Content] = []
    turns: list[list[Content]] = []
    for content in messages:
        if content.get("by") == "person":
            turns.append([content])
        elif turns:
            turns[-1].append(content)
        else:
            before.append(content)
    return before, turns


def _lines(turn: Sequence[Content]) -> list[str]:
    """A turn in short: what was asked, what the tools gave, how the answer began."""
    short = words_only(turn)
    lines = [f"{_SAID}{_cut(text_of(turn[0]))}"]
    lines += [f"  {_cut(text_of(content))}" for content in short if content.get("by") == _BY]
    answers = [content for content in short if content["role"] == "model"]
    if answers:
        lines.append(f"  answer: {_cut(text_of(answers[-1]))}")
    return lines


def _summary(before: Sequence[Content], lines: Sequence[str]) -> list[Content]:
    """The summary with more lines; its oldest ones go when it is full."""
    earlier = [line for content in before for line in text_of(content).splitlines()[1:]]
    held = [*earlier, *lines]
    while held and sum(map(len, held)) > _LONGEST_SUMMARY:
        held.pop(0)
    text = "\n".join([_HEAD, *held])
    return [{"role": "user", "parts": [{"text": text}], "by": _BY}] if held else []


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
