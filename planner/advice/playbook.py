"""The playbook to look things up in: full-text search over its entries."""

from __future__ import annotations

import math
import re
import sqlite3
from functools import cache
from threading import Lock

from pydantic import Field

from estimator.errors import nearest
from knowledge.playbook import PlaybookAdvice, entries, topics
from planner.advice.advise import find_topic
from planner.advice.conditions import holes_in
from planner.asked.facts import PlaybookRequest
from planner.result import Result

_MOST_WORDS = 24
# Of title, settings, other words of the topic, and advice with its source: where a hit counts how much.
_WEIGHTS = (6.0, 4.0, 3.0, 1.0)
_COMPOUND = re.compile(r"\w+(?:[-/]\w+)+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STOP = {
    "a", "about", "across", "after", "again", "always", "an", "and", "any", "anyone", "are", "as", "at", "be",
    "because", "been", "better", "between", "but", "by", "can", "compare", "compared", "could", "did", "differ",
    "difference", "differences", "do", "does", "doing", "ever", "every", "everyone", "few", "first", "for", "from",
    "get", "gets", "getting", "give", "go", "good", "got", "has", "have", "help", "here", "how", "i", "if", "in",
    "into", "is", "it", "its", "just", "keep", "keeps", "know", "last", "like", "make", "many", "me", "mean",
    "means", "much", "must", "my", "need", "never", "no", "now", "of", "often", "on", "or", "our", "people",
    "please", "say", "says", "sense", "should", "so", "some", "sometimes", "stop", "switch", "switched",
    "switching", "tell", "than", "that", "the", "their", "them", "then", "there", "they", "thing", "things", "this",
    "thousand", "to", "us", "use", "versus", "very", "vs", "want", "was", "we", "well", "what", "when", "where",
    "which", "while", "who", "why", "will", "with", "worth", "would", "you", "your",
}  # fmt: skip
_lock = Lock()


class PlaybookEntry(Result):
    id: str
    topic: str
    title: str
    advice: str = Field(description="What holds for any plan; advise says more of one.")
    settings: dict[str, str]
    source: str
    score: float = Field(description="More is nearer; 0 where a topic is listed.")


class PlaybookTopic(Result):
    id: str
    title: str
    entries: int


class PlaybookFound(Result):
    query: str
    topic: str | None
    entries: list[PlaybookEntry]
    matches: int = Field(description="How many entries match, told or not.")
    topics: list[PlaybookTopic] = Field(
        description="Where nothing was found or asked for: topics to look in, the nearest first."
    )


def search_playbook(request: PlaybookRequest) -> PlaybookFound:
    """Search the playbook."""
    topic = find_topic(request.topic) if request.topic is not None else None
    terms = _terms(request.query)
    if terms:
        hits = _search(terms, topic)
    else:
        hits = [(entry, 0.0) for entry in entries() if topic is not None and entry.topic == topic]
    return PlaybookFound(
        query=request.query,
        topic=topic,
        entries=[_shown(entry, score) for entry, score in hits[: request.limit]],
        matches=len(hits),
        topics=[] if hits else _nearest_topics(request.query),
    )


def _general(advice: str) -> str:
    """What holds for any plan: the sentences without a plan's figures."""
    return " ".join(sentence for sentence in re.split(r"(?<=\.)\s+", advice) if not holes_in(sentence))


def _shown(entry: PlaybookAdvice, score: float) -> PlaybookEntry:
    return PlaybookEntry(
        id=entry.id,
        topic=entry.topic,
        title=entry.title,
        advice=_general(entry.advice),
        settings=dict(entry.settings),
        source=entry.source,
        score=score,
    )


def _terms(query: str) -> list[str]:
    """What a query looks for, as full-text search has it: its words that say something, from their beginnings on, and
    compounds in one piece or as a phrase (all-gather, AllGather, allgather)."""
    text = _CAMEL.sub("-", query)
    compounds = _COMPOUND.findall(text)
    terms = {word: f'("{re.sub("[-/]", " ", word)}" OR "{re.sub("[-/]", "", word)}"*)' for word in compounds}
    words = [word.casefold() for word in re.findall(r"[^\W_]+", _COMPOUND.sub(" ", text))]
    told = [word for word in words if word not in _STOP] or ([] if terms else words)
    terms |= {word: f'"{word}"*' if len(word) > 2 else f'"{word}"' for word in told}
    return list(terms.values())[:_MOST_WORDS]


def _spread(text: str) -> str:
    """Text with other spellings of its compounds: all-gather as allgather, AllGather as all gather and allgather."""
    joined = [re.sub(r"[-/]", "", word) for word in _COMPOUND.findall(text)]
    parted = _CAMEL.sub(" ", text)
    return " ".join([text, *joined, *([parted] if parted != text else [])])


def _search(terms: list[str], topic: str | None) -> list[tuple[PlaybookAdvice, float]]:
    """Entries with any of the terms. How near one is, is BM25 times the part of the question that it has: of its terms,
    each by how rare it is."""
    known = {entry.id: entry for entry in entries()}
    hits = {term: {id for id, _ in _rows(term)} for term in terms}
    rare = {term: math.log1p(len(known) / len(ids)) for term, ids in hits.items() if ids}
    scores: dict[str, float] = {}
    for id, score in _rows(" OR ".join(terms)):
        part = sum(weight for term, weight in rare.items() if id in hits[term]) / sum(rare.values())
        scores[id] = round(part * score, 4)
    ordered = sorted(scores.items(), key=lambda row: (-row[1], row[0]))
    return [(known[id], score) for id, score in ordered if topic is None or known[id].topic == topic]


def _rows(match: str) -> list[tuple[str, float]]:
    weights = ", ".join(map(str, (0.0, *_WEIGHTS)))
    sql = f"SELECT id, -bm25(playbook, {weights}) AS score FROM playbook WHERE playbook MATCH ? ORDER BY score DESC, id"
    with _lock:
        return [(id, round(float(score), 4)) for id, score in _index().execute(sql, (match,))]


@cache
def _index() -> sqlite3.Connection:
    """The entries in memory. Reads are one at a time, under the lock."""
    base = sqlite3.connect(":memory:", check_same_thread=False)
    base.execute(
        "CREATE VIRTUAL TABLE playbook"
        " USING fts5(id UNINDEXED, title, settings, also, advice, tokenize='porter unicode61')"
    )
    also = {topic.id: " ".join((topic.id, topic.title, *topic.also)) for topic in topics()}
    for entry in entries():
        settings = " ".join(f"{name} {text}" for name, text in entry.settings.items())
        # Names of figures are none of an entry's words.
        advice = entry.advice
        for hole in holes_in(advice):
            advice = advice.replace("{" + hole + "}", " ")
        title = " ".join((entry.title, entry.id, *entry.also))
        row = (title, settings, also[entry.topic], f"{advice} {entry.source}")
        base.execute("INSERT INTO playbook VALUES (?, ?, ?, ?, ?)", (entry.id, *map(_spread, row)))
    return base


def _nearest_topics(query: str) -> list[PlaybookTopic]:
    """All topics where nothing was asked, else those whose names look most like the words."""
    counts = {topic.id: sum(entry.topic == topic.id for entry in entries()) for topic in topics()}
    told = [PlaybookTopic(id=topic.id, title=topic.title, entries=counts[topic.id]) for topic in topics()]
    if not query.strip():
        return told
    names = {word: topic.id for topic in topics() for word in (*topic.also, topic.title, topic.id)}
    near = dict.fromkeys(names[name] for name in nearest(query.strip()[:80], names, limit=8))
    return [next(item for item in told if item.id == id) for id in near]
