"""What the figures of results are, and the inputs of their formulas: names, units, labels, formulas and sources."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from estimator.errors import PlanError
from knowledge.data_files import document


@dataclass(frozen=True)
class FigureFacts:
    """`label` is what tables call it, `rounding` how it is written where its unit's rule does not serve, `ends` the
    keys beside it that hold its interval. `formula`, `source` and `code` are empty for inputs, `origin` for what is
    computed of other figures."""

    key: str
    name: str
    unit: str
    label: str = ""
    rounding: str = ""
    better: Literal["higher", "lower", ""] = ""
    ends: tuple[str, ...] = ()
    symbol: str = ""
    formula: str = ""
    source: str = ""
    code: str = ""
    origin: str = ""
    words: tuple[str, ...] = ()


@cache
def figures() -> dict[str, FigureFacts]:
    """By dotted key, in which * stands for a number or name."""
    return {
        key: FigureFacts(key=key, **(row | {name: tuple(row.get(name, ())) for name in ("words", "ends")}))
        for key, row in document("figures.yaml").items()
    }


def known_figure(key: str) -> FigureFacts | None:
    """What a key of a result is: its whole name, or the last part where that has one unit. None where nothing says."""
    return figures().get(key) or _by_last_part().get(key.rpartition(".")[2])


@cache
def _by_last_part() -> dict[str, FigureFacts]:
    """The first figure of each last part, a labelled one before others; parts that have several units are left out."""
    units: dict[str, set[str]] = {}
    first: dict[str, FigureFacts] = {}
    for key, row in sorted(figures().items(), key=lambda item: not item[1].label):
        part = key.rpartition(".")[2]
        units.setdefault(part, set()).add(row.unit)
        first.setdefault(part, row)
    return {part: row for part, row in first.items() if len(units[part]) == 1 or row.key == part}


def figure(key: str, kind: str = "training") -> FigureFacts:
    """What a key is, of the stages' memory that of the whole; `kind` is training or serving where the two differ.

    Raises KeyError for what is not described.
    """
    known = figures()
    plain = re.sub(r"^memory\.stages\.\d+\.", "memory.", key)
    for name in (f"{plain}.{kind}", plain, re.sub(r"_\d+", "_*", plain), f"{plain.rpartition('.')[0]}.*"):
        if name in known:
            return known[name]
    raise KeyError(key)


def find_figure(query: str, offered: Iterable[str], kind: str = "training") -> str:
    """The key among `offered` that a key or plain words mean. Raises PlanError with the nearest that there are."""
    keys = list(offered)
    if match := meant(query, keys, kind):
        return match
    named = _named(keys, kind)
    alike = difflib.get_close_matches(_plain(query)[:200], named, n=8, cutoff=0.5)
    # Where nothing is like it, those that people ask for by words of their own.
    close = [named[words] for words in alike] or [key for key in keys if figure(key, kind).words]
    raise PlanError("figure", f"there is no figure {query[:80]!r} of a {kind} plan", list(dict.fromkeys(close))[:12])


def meant(query: str, keys: list[str], kind: str = "training") -> str | None:
    """The key that a key or plain words mean in so many words; None where they mean none."""
    if query.strip() in keys:
        return query.strip()
    named, wanted = _named(keys, kind), _plain(query)
    if match := named.get(wanted):
        return match
    bare = {_bare(words): key for words, key in reversed(named.items())}
    return bare.get(_bare(wanted)) if _bare(wanted) else None


def _named(keys: list[str], kind: str) -> dict[str, str]:
    """Keys by the words that mean them, those that people say before the names of parts."""
    whole = [key for key in keys if not key.startswith("memory.stages.")]
    named: dict[str, str] = {}
    for key in whole:
        for words in figure(key, kind).words:
            named.setdefault(_plain(words), key)
    for key in keys:
        named.setdefault(_plain(key), key)
    for key in whole:
        for words in (figure(key, kind).name, key.rpartition(".")[2]):
            named.setdefault(_plain(words), key)
    return named


_UNITS = {"bytes", "s", "usd", "seconds"}
_FILLERS = {
    "the", "a", "an", "of", "per", "my", "is", "what", "whats", "how", "why", "come", "comes", "from", "does", "where",
    "number", "figure", "this", "that", "estimated", "total", "explain", "much", "many", "gpu", "gpus", "device",
}  # fmt: skip


def _plain(words: str) -> str:
    """Lower case, words apart."""
    return " ".join(re.findall(r"[a-z0-9/*]+", words.lower().replace("_", " ").replace(".", " ")))


def _bare(plain: str) -> str:
    """Without units and words that mean little."""
    return " ".join(word for word in plain.split() if word not in _UNITS | _FILLERS)
