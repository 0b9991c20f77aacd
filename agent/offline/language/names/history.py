"""Runs of one's own history, named by their id or their name, or as the last one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.offline.language.lexicon import lexicon
from agent.offline.language.names.known import Name, said_of
from agent.offline.language.tokens import Glyphs
from estimator.errors import PlanError
from measure.history.store import find, names_of_words, runs

# Tokens of an id or a name, words that may stand behind 'my last', and the shortest that is looked up.
_MOST_TOKENS, _SHORTEST = 9, 4


def runs_in(text: Sequence[Glyphs], whole: str) -> Iterator[Name]:
    """'Is run 29e48b7797 good?', 'rate run llama-lora-3', 'is my last run ok?', 'compare run 29e48b7797 with 55bdfc83'.
    The history is looked up only where a word for a run stands beside what is no word of the field."""
    behind = len(text)
    if any(word.get("run_of_ones_own") for at in range(len(text)) for word in lexicon().at(text, at)):
        yield from _of_several_words(text, whole)
    for at in range(len(text)):
        if at >= behind and (end := _chunk_end(text, at)) and (id := _known(said_of(whole, text, at, end))):
            yield Name("run", at, end, said_of(whole, text, at, end), id)
            behind = end
        if not any(word.get("run_of_ones_own") for word in lexicon().at(text, at)):
            continue
        if at and text[at - 1].norm in lexicon().newest and (last := runs()):
            yield Name("run", at - 1, at + 1, said_of(whole, text, at - 1, at + 1), last[-1].id)
        elif (end := _chunk_end(text, at + 1)) and (id := _known(said_of(whole, text, at + 1, end))):
            yield Name("run", at + 1, end, said_of(whole, text, at + 1, end), id)
            behind = end


def _of_several_words(text: Sequence[Glyphs], whole: str) -> Iterator[Name]:
    """Runs whose name holds a space, which stand in the text as they were called."""
    for id, name in names_of_words():
        start = whole.lower().find(name.lower())
        end = start + len(name)
        inside = [at for at, token in enumerate(text) if start <= token.start and token.end <= end and start >= 0]
        if inside and text[inside[0]].start == start and text[inside[-1]].end == end:
            yield Name("run", inside[0], inside[-1] + 1, name, id)


def _chunk_end(text: Sequence[Glyphs], start: int) -> int | None:
    """Where what is written in one piece ends, if that is a name or an id: it has a digit or a hyphen in it."""
    end = start + 1
    while end < min(len(text), start + _MOST_TOKENS) and not text[end].space and not text[end].ends_clause:
        end += 1
    chunk = text[start:end]
    marked = any(token.kind == "number" for token in chunk) or len(chunk) > 1
    words = any(token.kind == "word" for token in chunk) or (chunk and len(chunk[0].norm) > _SHORTEST)
    return end if marked and words else None


def _known(name: str) -> str | None:
    try:
        return find(name).id if len(name) >= _SHORTEST else None
    except PlanError:
        return None
