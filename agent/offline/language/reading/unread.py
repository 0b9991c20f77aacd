"""What was left unread of a turn: words, numbers and refusals that nothing was made of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from agent.offline.calls.wishes import ROWS
from agent.offline.form import BESIDE, Reading
from agent.offline.language.asking import clauses
from agent.offline.language.lexicon import lexicon
from agent.offline.language.own.tool import FREE
from agent.offline.language.reading.meant import SAME_MEMORY
from agent.offline.language.reading.numbers import AS_OTHERS
from agent.offline.language.reading.page import Page
from agent.offline.language.rows import Row
from agent.offline.language.scope import FACTORS
from planner.asked.facts import HardwareQuestion
from planner.partial import get
from planner.requests import ALL_PATHS

# Limits of a deployment, and the tools that look for one within them.
_LIMITS = {"usd_per_million", "e2e_limit_s"}
_LIMITING = ("size_serving", "best_serving", "find_limit", "estimate_inference", "estimate_cost", "check_fit", None)
# Terms that devices by themselves are priced on.
_OF_DEVICES_ALONE = {*HardwareQuestion.model_fields, "utilisation"}
# How long hardware is paid for.
_MACHINES = ("count", "nodes", "per_node")
_SPANS = ("deadline_h", "years")
_OF_FACTS = ("describe_hardware", "describe_model")
_LATIN = ("word", "number")
_MARKS = " ,;:.!?'\"()，。？！；：、"


def unknown_words(page: Page) -> list[str]:
    """Runs of words that the lexicon does not have and no name is made of, with the numbers that touch them."""
    text, known = page.read.tokens, set(page.read.named_tokens)
    for at, words in page.read.found.words.items():
        known.update(range(at, words[0].end))
    known.update(at for row in page.read.rows for at in range(row.start, row.end))
    ordinary = lexicon().ordinary | lexicon().pixels
    known.update(at for at, token in enumerate(text) if token.norm in ordinary)
    found: list[str] = []
    at = 0
    while at < len(text):
        if at in known or text[at].kind not in ("word", "single"):
            at += 1
            continue
        start = at
        while start and not text[start].space and start - 1 not in known:
            start -= 1
        while at < len(text) and at not in known and (text[at].kind in ("word", "single") or not text[at].space):
            at += 1
        end = at
        inside = page.read.named_tokens
        while end < len(text) and not text[end].space and text[end].kind in _LATIN and end not in inside:
            end += 1
        found.append(page.read.said(start, end).strip(_MARKS))
    return [words for words in found if words]


def unused_numbers(page: Page, reading: Reading) -> list[str]:
    """Numbers whose meaning was found and of which nothing was made: no field of a plan, no argument, no device."""
    spans = sorted({edit.span for edits in (reading.edits, *reading.options) for edit in edits})
    firsts, reached = [first for first, _ in spans], [0, *accumulate((last for _, last in spans), max)]
    limited = reading.own if reading.tool in _LIMITING else {*reading.own} - _LIMITS
    named = page.read.of("model") or any(edit.field == "model" for edit in reading.edits)
    paid_by = {*reading.pricing} & _OF_DEVICES_ALONE if reading.tool in _OF_FACTS else {*reading.pricing}
    made = {*limited, *paid_by, *(("model_size", "active_size") if named else ())}
    sizes = {size for device in {*_devices_meant(page)} if (size := page.catalogue.memory_gb(device))}
    own = {*_listed(reading.own.values())}
    paid = [*reading.own.get("paid_for", {}).values(), reading.own.get("of_these", {})]
    paid_hours, counted = (any(name in each for each in paid) for name in ("hours", "count"))
    found: list[str] = []
    for one in page.filled:
        if one.row in page.left:
            continue
        start, end = page.read.span(one.row.start, one.row.end)
        # Of facts nothing is planned: what a number is used for says the call.
        used = reading.tool not in _OF_FACTS and one.field in (*ALL_PATHS, *BESIDE, *AS_OTHERS)
        used = used or one.field in made
        used = used or reached[bisect_right(firsts, start)] >= end
        used = used or (one.field not in _LIMITS and any(value in own for value in one.values))
        used = used or (one.field in _SPANS and paid_hours) or (one.field in _MACHINES and counted)
        if one.field == "vram":
            used = used or any(abs(one.values[0] / size - 1) < SAME_MEMORY for size in sizes)
        if not used:
            found.append(page.read.said(one.row.start, one.row.end))
    fitting = {at for value in page.read.values if page.fits(value) for at in range(value.start, value.end)}
    fitting |= {at for number in page.filled for at in range(number.row.start, number.row.end)}
    # 'On average' 600 tokens a sample is the name of a number, no statistic of a latency.
    numbered = {number.field for number in page.filled}
    fitting |= {at for name in page.read.found.fields if name.field in numbered for at in range(name.start, name.end)}
    # What only the other kind of work has is not used.
    found += [
        page.read.said(value.start, value.end)
        for value in page.read.values
        if not page.fits(value) and value.field in ALL_PATHS and not fitting.intersection(range(value.start, value.end))
    ]
    return found


def unused_names(page: Page, reading: Reading) -> list[str]:
    """Devices that are asked about and of which nothing was made: another one was taken."""
    edits = [edit for each in (reading.edits, *reading.options) for edit in each]
    taken = {str(edit.value) for edit in edits} | {str(value) for value in _listed(reading.own.values())}
    names = [name for name in page.read.now("accelerator") if name.id and name.start not in page.refused.things]
    if page.read.does("swap", "correct", "contrast"):
        return []
    heard, planned = page.read.found, get(page.plan, "cluster.accelerator")
    told = {at for part in clauses(heard) if any(heard.sense(at, "asserts") for at in part) for at in part}
    asked = [name for name in names if name.start not in page.read.telling | told and name.id != planned]
    spans = [page.read.span(name.start, name.end) for name in asked]
    left = [
        name.text
        for name, (start, end) in zip(asked, spans, strict=True)
        if name.id not in taken and not any(first <= start and end <= last for first, last in (e.span for e in edits))
    ]
    return left if taken & {name.id for name in names} else []


def says_nothing(reading: Reading) -> bool:
    """Whether nothing of a turn was understood but that it goes on: 'async?' repeats the answer."""
    said = (reading.edits, reading.options, reading.own, reading.refs, reading.focus, reading.figures, reading.pricing)
    return not any(said)


def _listed(values: Iterable[object]) -> Iterator[object]:
    """Values with those of lists and mappings one by one."""
    for value in values:
        if isinstance(value, Mapping):
            yield from _listed(value.values())
        else:
            yield from value if isinstance(value, list) else (value,)


def _devices_meant(page: Page) -> list[str]:
    planned = get(page.plan, "cluster.accelerator")
    return [str(edit.value) for edit in page.named if edit.field == "accelerator"] + ([planned] if planned else [])


def _leads_on(page: Page, row: Row) -> bool:
    """Whether an arrow leads from a number to one that was used."""
    return any(number.row.amounts[0].before == "->" and 0 < number.row.start - row.end <= 3 for number in page.filled)


def _factors(page: Page) -> list[tuple[int, int]]:
    """'Half of each' where there is nothing yet that it could be half of."""
    read = page.read
    numbers = [amount for row in read.rows for amount in row.amounts]
    taken = {at for amount in numbers for at in range(amount.start, max(amount.number, amount.end))}
    taken |= {at for value in read.values for at in range(value.start, value.end)}
    spans: list[tuple[int, int]] = []
    for at in [] if page.plan else read.does(*FACTORS):
        end = read.found.does(at, *FACTORS) or at
        goes_on = end < len(read.tokens) and not read.tokens[end].ends_clause
        # 'As a third'
        goes_on = goes_on and not any(read.found.does(step, "also") == end for step in range(max(at - 1, 0), at))
        whole = read.found.words[at][0].end == end and taken.isdisjoint(range(at, end))
        if goes_on and whole and not (spans and at < spans[-1][1]):
            spans.append((at, end))
    return spans


def lost_words(page: Page, tool: str | None = None) -> list[str]:
    """Numbers and refusals that no meaning was found for."""
    # 'From 8 -> 512' is about 512.
    left = [row for row in page.left if not _leads_on(page, row)]
    found = [page.read.said(row.start, row.end) for row in left]
    # 'Don't save it yet', 'drop the first one'
    refused = () if tool in (*ROWS, "delete_scenario") else page.refused.unread
    found += [page.read.said(start, end) for start, end in (*refused, *page.lost)]
    # 'Sweep it, doubling' is no change.
    found += [page.read.said(start, end) for start, end in (() if tool in ("sweep", *FREE) else _factors(page))]
    return list(dict.fromkeys(found))
