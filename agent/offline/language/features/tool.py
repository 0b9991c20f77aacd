"""What of a turn shows which tool answers it: beside its words and senses what is named and set, and its signs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.offline.language.features.mode import Context, beginnings, pairs, words
from agent.offline.language.features.signs import signs
from agent.offline.language.machines_changed import another
from agent.offline.language.mentions import Mentions
from agent.offline.language.own.limits import limit_goal

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_SETTING_BESIDE = ("compare", "versus", "or", "and")
_FEW = 3
_ENGINES = {"vllm", "sglang", "trtllm", "llamacpp"}
_GOING_ON = ("with", "on", "in", "at", "same")
_SAID = ("asked", "does", "unit")
# Wishes that the words of a relative change may be taken for.
_OF_CHANGES = frozenset({"sweep", "scaling", "load"})
# Words of wishes that stand beside changes, too: 'at 2 dollars an hour', 'for 64 users'.
_BESIDE = {"users", "hourly", "describe", "playbook", "list", "saved", "peak"}


def of_tool(page: Page, context: Context) -> list[str]:
    """What shows which tool answers a text."""
    heard = words(page.read)
    said = [f"{sense.kind}:{sense.name}" for sense in page.read.senses(page.read.telling) if sense.kind in _SAID]
    said += [f"value:{value.field}" for value in page.read.values]
    named = [*(f"fills:{number.field}" for number in page.filled), *_kinds(page)]
    has = _has(context)
    shown = list(signs(page, context.tool))
    return [
        f"plan={context.plan}",
        f"before={context.tool}",
        has,
        f"mode={page.mode}",
        *said,
        *named,
        *(f"{has}&{name}" for name in (*said, *named)),
        *(f"before={context.tool}&{one}" for one in said),
        *(f"told:{sense.name}" for sense in page.read.told() if sense.kind == "asked"),
        *(f"{form}{sign}" for sign in shown for form in ("s:", f"{has}&s:", f"{context.tool}&s:")),
        *_opening(page.read),
        *_wishes(page, context),
        *_focus(page, context),
        *_forms(page, context),
        *(f"w:{one}" for one in (*heard, *pairs(heard), *beginnings(heard))),
    ]


def only_changes(page: Page) -> bool:
    """Whether a text asks nothing: it says numbers, values or names, and no word of a question or of a wish."""
    asked = page.read.asked("focus") or page.read.does("compare", "why", "or", "versus")
    wishes = set(page.read.asked("wish")) - _BESIDE - (_OF_CHANGES if page.marks else frozenset())
    said = page.filled or page.kept or page.read.names or page.marks or another(page)
    asks = "?" in page.read.text and not _goes_on(page.read)
    return bool(said) and not (asked or wishes or listed(page) or page.read.of("path", "provider") or asks)


def _goes_on(read: Mentions) -> bool:
    """Whether a question goes on with the one before: 'and with LoRA?', 'what if we use fp8?', '40?'."""
    first = next((at for at, token in enumerate(read.tokens) if token.kind != "sign"), 0)
    begins = read.found.does(first, "and_then", "and", "suppose") or read.tokens[first].norm in _GOING_ON
    inside = sum(name.end - name.start - 1 for name in read.names)
    return bool(begins) or len(read.tokens) - inside <= _FEW


def wished(read: Mentions) -> list[str]:
    """What is to be done, by name: a program that is only written for is one, too."""
    files = set(read.asked("target")) - _ENGINES
    return [*read.asked("wish"), *(["target"] if files else [])]


def listed(page: Page) -> list[str]:
    """Fields that several values are said of: in a row, from one to another, or side by side."""
    rows = [number.field for number in page.filled if len(number.values) > 1 and not number.ranged]
    ranges = [number.field for number in page.filled if number.ranged]
    values: dict[str, set[str]] = {}
    for one in page.kept:
        values.setdefault(one.field, set()).add(str(one.value))
    several = [name for name, said in values.items() if len(said) > 1]
    found = [
        *(f"listed:{name}" for name in rows),
        *(f"ranged:{name}" for name in ranges),
        *(f"several:{name}" for name in several),
    ]
    if rows or any(len(row.amounts) > 1 for row in page.left):
        found.append("listed")
    return [*found, *(["ranged"] if ranges else []), *(["several"] if several else [])]


def _has(context: Context) -> str:
    return f"has={context.plan is not None}"


def _kinds(page: Page) -> list[str]:
    kinds = [name.kind for name in page.read.names if name.start not in page.read.past]
    return [f"name:{kind}x{min(kinds.count(kind), 2)}" for kind in sorted(set(kinds))]


def _named(page: Page, most: int) -> str:
    """How many models and devices are named, up to `most`."""
    models = {str(name.id or name.text) for name in page.read.now("model")}
    devices = {str(name.id or name.text) for name in page.read.now("accelerator", "instance")}
    return f"m{min(len(models), most)}a{min(len(devices), most)}"


def _opening(read: Mentions) -> list[str]:
    tokens = [token for at, token in enumerate(read.tokens) if at not in read.asides and at not in read.telling]
    tokens = tokens[next((at for at, token in enumerate(tokens) if token.kind != "sign"), 0) :]
    return [
        f"long={min(sum(token.kind != 'sign' for token in tokens) // 6, 5)}",
        f"asks={'?' in read.text}",
        *(f"first:{token.norm}" for token in tokens[:1]),
        "open:" + " ".join(token.norm for token in tokens[:2] if token.kind != "number"),
    ]


def _wishes(page: Page, context: Context) -> Iterator[str]:
    """What is to be done, by name, with what there is and what is said beside it."""
    has, named, lists = _has(context), _named(page, 1), listed(page)
    wishes, focus = wished(page.read), page.read.asked("focus")
    for one in wishes:
        yield f"wish:{one}"
        yield f"{has}&wish:{one}"
        yield f"{has}&{named}&wish:{one}"
        yield f"{context.tool}&wish:{one}"
        yield f"{page.mode}&w:{one}"
        yield from (f"{one}&{each}" for each in lists)
        yield from (f"fw:{each}+{one}" for each in focus)
    if not wishes:
        yield f"nowish&{has}"


def _focus(page: Page, context: Context) -> Iterator[str]:
    """The figures that are asked for, and those together."""
    has, named, lists = _has(context), _named(page, 1), listed(page)
    focus = page.read.asked("focus")
    yield from (f"f2:{one}+{other}" for one, other in itertools.combinations(sorted(focus), 2))
    yield from (f"{page.mode}&f:{one}" for one in focus)
    yield from (f"{one}&{each}" for one in focus for each in lists)
    first = f"f1:{focus[0]}" if focus else "nofocus"
    yield from (first, f"{has}&{first}", f"{has}&{named}&{first}", f"{named}&{first}")
    if goal := limit_goal(page):
        yield from (f"goal:{goal}", f"{has}&goal:{goal}", f"goal:{goal}&{page.mode}")
        yield from (f"goal&{one}" for one in focus)


def _forms(page: Page, context: Context) -> Iterator[str]:
    """What is named and set, what is set side by side, and whether anything is asked at all."""
    has, named, lists = _has(context), _named(page, 1), listed(page)
    several = _named(page, 2)
    whole = f"{several}{'p' * bool(page.read.of('provider'))}{'v' * bool(page.kept)}{'n' * bool(page.filled)}"
    for one in (named, whole):
        yield from (f"sig:{one}", f"{has}&sig:{one}")
    yield f"{context.tool}&sig:{named}"
    yield f"nothing={not page.filled and not page.read.names}"
    yield from lists
    beside = [one for one in _SETTING_BESIDE if page.read.does(one)]
    yield from (f"{one}&{each}" for one in beside for each in lists)
    yield from (f"{one}&{each}" for one in beside for each in (several, has) if one != "and")
    only = f"only:{only_changes(page)}"
    yield from (only, f"{only}&{has}&{context.tool}")
    yield from (f"{only}&{has}&fills:{number.field}" for number in page.filled)
