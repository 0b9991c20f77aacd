"""What is read in English is read in nine other languages, too: a share of the sentences of a table, by language."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from conversations import begun, reading

from agent.offline.form import Edit
from knowledge.prices.energy import find_place

# How many sentences at least are read as the English ones: of those that the lexicon was filled for, and of others.
LEAST = {
    "de": (0.97, 0.95),
    "es": (0.97, 0.95),
    "fr": (0.95, 0.92),
    "it": (0.94, 0.95),
    "pt": (0.94, 0.88),
    "nl": (0.97, 0.92),
    "zh": (0.95, 0.92),
    "ja": (0.93, 0.95),
    "ko": (0.87, 0.88),
}
FIELDS = 0.96
"""Of what is set and set side by side, in every language."""
# What is asked again by a change alone.
_REPEATED = {"training": "estimate_training", "serving": "estimate_inference", "": None}


@cache
def _table() -> dict[str, Any]:
    text = (Path(__file__).parents[2] / "data" / "tongues.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@cache
def _before(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    first = begun(_table()["openings"][name]) if name else None
    return (first.plan, first.topic) if first else ({}, {})


def _set(edits: list[Edit]) -> list[str]:
    return sorted(f"{edit.field} {edit.op} {round(edit.value, 6) if isinstance(edit.value, float) else edit.value}"
                  for edit in edits)  # fmt: skip


@cache
def _read(text: str, after: str) -> tuple[Any, Any]:
    """(What is set and set side by side, what else a sentence is read as)."""
    read = reading(text, *_before(after))
    priced = read.pricing | ({"region": find_place(read.pricing["region"]).name} if "region" in read.pricing else {})
    tool = read.tool or (None if "control" in read.own else _REPEATED[after])
    return (_set(read.edits), [_set(option) for option in read.options]), (tool, read.own, priced)


def _said(part: str, tongue: str) -> Iterator[tuple[str, str, str]]:
    for row in _table()[part]:
        for text in row[tongue].split(" | "):
            yield row["en"], text, row.get("after", "")


@pytest.mark.parametrize("part", ["rows", "later"])
@pytest.mark.parametrize("tongue", LEAST)
def test_it_is_read_as_in_english(tongue: str, part: str) -> None:
    rows = list(_said(part, tongue))
    wrong = [text for english, text, after in rows if _read(text, after) != _read(english, after)]
    unlike = [text for english, text, after in rows if _read(text, after)[0] != _read(english, after)[0]]
    assert 1 - len(wrong) / len(rows) >= LEAST[tongue][part == "later"], wrong
    assert 1 - len(unlike) / len(rows) >= FIELDS, unlike


@pytest.mark.parametrize("tongue", LEAST)
def test_every_row_has_each_language(tongue: str) -> None:
    assert all(row.get(tongue) for part in ("rows", "later") for row in _table()[part])


def test_nothing_is_lost_of_the_english_ones() -> None:
    lost = [row["en"] for part in ("rows", "later") for row in _table()[part]
            if reading(row["en"], *_before(row.get("after", ""))).lost]  # fmt: skip
    assert lost == []


# Numbers of tens and ones, alone in a follow-up.
NUMBERS = {
    "And with {}?": {21: "twenty-one", 48: "forty-eight", 96: "ninety-six"},
    "Und mit {}?": {21: "einundzwanzig", 48: "achtundvierzig", 96: "sechsundneunzig"},
    "¿Y con {}?": {21: "veintiuna", 48: "cuarenta y ocho", 96: "noventa y seis"},
    "Et avec {} ?": {21: "vingt et un", 48: "quarante-huit", 96: "quatre-vingt-seize"},
    "E con {}?": {21: "ventuno", 48: "quarantotto", 96: "novantasei"},
    "E com {}?": {21: "vinte e uma", 48: "quarenta e oito", 96: "noventa e seis"},
    "En met {}?": {21: "eenentwintig", 48: "achtenveertig", 96: "zesennegentig"},
    "那{}张呢？": {21: "二十一", 48: "四十八", 96: "九十六"},
    "{}枚だと？": {21: "二十一", 48: "四十八", 96: "九十六"},
    "{} 장이면?": {21: "스물한", 48: "마흔여덟", 96: "아흔여섯"},
}


@pytest.mark.parametrize("way", NUMBERS)
def test_numbers_in_words_are_read_in_follow_ups(way: str) -> None:
    for number, word in NUMBERS[way].items():
        read = reading(way.format(word), *_before("training"))
        counts = [edit.value for edits in (read.edits, *read.options) for edit in edits if edit.field == "count"]
        assert counts == [number], word


@pytest.mark.parametrize("city", ["Frankfurt", "Francfort", "Francoforte", "法兰克福", "프랑크푸르트"])
def test_a_city_of_a_cloud_region_is_a_place(city: str) -> None:
    place = {"法": "在{}", "프": "{}에서"}.get(city[0], "in {}").format(city)
    read = reading(f"How much CO2 {place}?", *_before("training"))
    assert find_place(read.pricing["region"]).name == "Germany"
