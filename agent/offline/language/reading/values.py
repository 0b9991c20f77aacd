"""The edits of words: values, versions, and fields that are let go."""

from __future__ import annotations

from agent.offline.form import BESIDE, Edit
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import COUNTING
from agent.offline.language.mentions import SERVING, Value
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.things import NUMBER_OF, free_names, number_names, of_a_number
from planner.partial import get
from planner.requests import ALL_PATHS, LATENCY_LIMITS

# What 'without' makes of a field that a number says.
_NONE = {"zero_stage": 0, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": 1, "lora_dropout": 0.0, "prefix_hit": 0.0}

_STATISTIC, _OTHER_TAILS = "slo_statistic", ("90", "95")
_LIMITED = (*LATENCY_LIMITS, "e2e_limit_s", "user_rate")
_LENGTHS = ("input_len", "output_len", "length")
# What every node has, whatever else it lacks.
_PLAIN_NETWORK = "ethernet"


def of_versions(page: Page) -> list[tuple[int, list[Edit]]]:
    """Versions that stand right behind an engine: 'vllm 0.8.5'."""
    edits: list[tuple[int, list[Edit]]] = []
    for one in page.kept:
        end = one.end
        while end < len(page.read.tokens) and (
            page.read.tokens[end].kind == "number"
            or (page.read.tokens[end].text == "." and not page.read.tokens[end].space)
        ):
            end += 1
        said = page.read.said(one.end, end) if end > one.end else ""
        if one.field == "engine" and "." in said.strip("."):
            page.filled = [each for each in page.filled if not one.end <= each.row.start < end]
            page.left = [row for row in page.left if not one.end <= row.start < end]
            version = said.strip(".")
            edits.append((one.end, [Edit("software_version", "set", version, page.read.span(one.end, end))]))
    return edits


def of_values(page: Page) -> list[tuple[int, list[Edit]]]:
    edits: list[tuple[int, list[Edit]]] = []
    taken = {at for number in page.filled for amount in number.row.amounts for at in range(amount.start, amount.end)}
    numbered = number_names(page.filled)
    counted = {number.field for number in page.filled}
    # Of two values that the same words may say the more particular one is meant: 'q8' is the file's format.
    for one in {(value.start, value.field): value for value in page.read.values}.values():
        known = one.field in ALL_PATHS or one.field in BESIDE
        inside = one.field not in COUNTING and taken.intersection(range(one.start, one.end))
        if not (known and page.fits(one)) or inside:
            continue
        if one.field in counted and isinstance(one.value, int | float) and not isinstance(one.value, bool):
            # 'With MTP, 2 draft tokens': the number goes before what the word alone would say.
            continue
        if of_a_number(one, numbered) or (one.field == _STATISTIC and not _holds_a_limit(page, one)):
            continue
        span = page.read.span(one.start, one.end)
        if one.start in page.refused.things:
            edits.append((one.start, [without_it(page, one)]))
        else:
            other = one.field == _STATISTIC and any(tail in page.read.said(one.start, one.end) for tail in _OTHER_TAILS)
            note = f"{page.read.said(one.start, one.end)!r} taken as p99, the tail that is modelled" if other else None
            edits.append((one.start, [Edit(one.field, "set", one.value, span, note)]))
    return [*edits, *_of_one_home(page)]


def _holds_a_limit(page: Page, statistic: Value) -> bool:
    """Whether a limit of latency stands that a statistic is of: 'p99 TTFT under 2 s', not 'p50 prompt 1,800 tokens'."""
    limited = any(map(page.values, _LIMITED)) or any(get(page.plan, ALL_PATHS[name]) for name in LATENCY_LIMITS)
    of_lengths = (name for name in page.read.found.fields if name.field in _LENGTHS)
    return limited and all(name.start != statistic.end for name in of_lengths)


def without_it(page: Page, value: Value) -> Edit:
    """What a refused value leaves in its place, or that it is not to be."""
    return _other_network(page, value) or _refused(value, page.read.span(value.start, value.end))


def _other_network(page: Page, network: Value) -> Edit | None:
    """What joins nodes without the network that is refused, where no other is named: 'and without InfiniBand?'"""
    if network.field != "interconnect" or network.value == _PLAIN_NETWORK:
        return None
    if any(other.start not in (network.start, *page.refused.things) for other in page.read.networks):
        return None
    note = f"without {page.read.said(network.start, network.end)}: {_PLAIN_NETWORK} taken"
    return Edit("interconnect", "set", _PLAIN_NETWORK, page.read.span(network.start, network.end), note)


def _of_one_home(page: Page) -> list[tuple[int, list[Edit]]]:
    """One user at a time of what is served at home, where no load is said."""
    told = any(page.values(name) for name in ("concurrency", "request_rate", "requests", "token_rate", "total_tokens"))
    homes = [(at, end) for at, end, name in page.read.asked_at("whose") if name == "home"]
    if page.mode != SERVING or page.plan or told or not homes:
        return []
    at, end = homes[0]
    note = f"{page.read.said(at, end)!r}: one user at a time taken"
    return [(at, [Edit("concurrency", "set", 1, page.read.span(at, end), note)])]


def _refused(one: Value, span: tuple[int, int]) -> Edit:
    if one.field in NUMBER_OF:
        return Edit(NUMBER_OF[one.field], "set", _NONE[NUMBER_OF[one.field]], span)
    if isinstance(one.value, bool):
        return Edit(one.field, "set", not one.value, span)
    refused, others = lexicon().refused, {*lexicon().values.get(one.field, ())} - {one.value}
    if refused.get(one.field) == one.value and len(others) == 1:
        # 'The vision encoder is not frozen'
        return Edit(one.field, "set", others.pop(), span)
    if refused.get(one.field) is not None:
        return Edit(one.field, "set", refused[one.field], span)
    return Edit(one.field, "refuse", one.value, span)


def of_fields(page: Page) -> list[tuple[int, list[Edit]]]:
    """Fields that are let go: 'drop the tp', 'no deadline'."""
    edits: list[tuple[int, list[Edit]]] = []
    for one in free_names(page.read, page.filled):
        word, span = page.refused.things.get(one.start), page.read.span(one.start, one.end)
        if word in lexicon().letting_go and one.field in page.known:
            edits.append((one.start, [Edit(one.field, "drop", None, span)]))
        elif word and one.field in _NONE:
            edits.append((one.start, [Edit(one.field, "set", _NONE[one.field], span)]))
        elif word and one.field in page.known:
            edits.append((one.start, [Edit(one.field, "drop", None, span)]))
    return edits
