"""Changes that are said relatively: half, twice, two more, one less, another box, a quarter as long, 6 of the 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent.offline.form import Edit
from agent.offline.language.scope import FACTORS
from planner.requests import ALL_PATHS

if TYPE_CHECKING:
    from agent.offline.language.assign import Filled
    from agent.offline.language.reading import Page

_REACH = 7
# What a counted thing is called as a field.
_OF_UNIT = {
    "devices": "count",
    "nodes": "nodes",
    "epochs": "epochs",
    "steps": "steps",
    "tokens": "dataset_tokens",
    "samples": "dataset_samples",
    "users": "concurrency",
    "requests": "requests",
    "rate": "request_rate",
}


def factors(page: Page) -> list[Edit]:
    """'Double the batch', 'half as many GPUs', 'twice that'."""
    found: list[Edit] = []
    for at in page.read.does(*FACTORS):
        if any(one.row.start <= at < one.row.end for one in page.filled):
            continue
        name = next(name for name in FACTORS if page.read.found.does(at, name))
        end = page.read.found.does(at, name) or at + 1
        target = _target(page, at, end)
        if target and (target in page.known or not page.plan) and target in page.known:
            found.append(Edit(target, "times", FACTORS[name], page.read.span(at, end)))
    return (found or _another(page))[:1]


def _another(page: Page) -> list[Edit]:
    """'Another box', 'one node less' without a number: one of them."""
    for at in page.read.does("plus", "minus"):
        end = page.read.found.does(at, "plus", "minus") or at + 1
        sign = 1 if page.read.found.does(at, "plus") else -1
        if any(one.row.start - 3 <= at <= one.row.end + 3 for one in page.filled) or not page.plan:
            continue
        unit = next(
            (
                s.name
                for word in page.read.found.words.get(end, ())
                for s in word.all("unit")
                if s.name in ("nodes", "devices")
            ),
            None,
        )
        if unit:
            return [Edit(_OF_UNIT[unit], "plus", sign, page.read.span(at, end))]
    return []


def _target(page: Page, start: int, end: int) -> str | None:
    """The field that a change is of: what is named behind it, then before it, then what was changed last."""
    ahead = (*range(end, min(end + _REACH, len(page.read.tokens))),)
    back = (*range(start - 1, max(start - _REACH, -1), -1),)
    for at in (*ahead, *back):
        if at in page.read.named_tokens:
            if at in page.read.found.counted:
                return "count"
            continue
        if page.read.tokens[at].ends_sentence:
            break
        names = _fields_at(page, at)
        known = [name for name in names if name in page.known]
        if known:
            return known[0]
    recent = page.topic.get("recent")
    return next((name for name, path in ALL_PATHS.items() if path == recent), None)


def _fields_at(page: Page, at: int) -> list[str]:
    names: list[str] = []
    for word in page.read.found.words.get(at, ()):
        names += [_OF_UNIT[sense.name] for sense in word.all("unit") if sense.name in _OF_UNIT]
        names += [sense.name for sense in word.all("field")]
        names += [sense.name for sense in word.all("asked") if sense.value == "goal"]
    order = {"nodes": "count", "batch": "global_batch", "length": "input_len", "devices": "count"}
    named = [order.get(name, name) for name in names]
    return [*named, *("request_rate" for name in named if name == "requests")]


def differences(page: Page, filled: Sequence[Filled]) -> dict[int, str]:
    """{Glyphs of a number: plus or minus} of numbers that are added or taken away: '2 more nodes', 'lose one of
    them'."""
    found: dict[int, str] = {}
    for one in filled:
        if len(one.values) != 1 or one.field not in (*ALL_PATHS, "nodes", "batch") or not page.plan:
            continue
        around = range(max(one.row.start - 2, 0), min(one.row.end + 4, len(page.read.tokens)))
        for at in around:
            behind = at >= one.row.end
            if behind and any(page.read.tokens[step].ends_clause for step in range(one.row.end, at + 1)):
                break
            words = page.read.found.words.get(at, ())
            does = {sense.name for sense in words[0].all("does")} if words else set()
            if "plus" in does and not (behind and at > one.row.end + 1) and not does & {"at_least"}:
                found[one.row.start] = "plus"
            elif "minus" in does and not does & {"at_most"}:
                found[one.row.start] = "minus"
    return found


def known_fields(plan: Mapping[str, Any]) -> frozenset[str]:
    """Flat names of what a partial plan holds."""
    found: set[str] = set()
    for name, path in ALL_PATHS.items():
        value: Any = plan
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.add(name)
    return frozenset(found)
