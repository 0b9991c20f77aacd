"""What kind of turn it is: whether it only supposes, what it goes back to, what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.offline.form import Edit, Reference, set_apart
from agent.offline.language.asking import clauses, is_question, supposing
from agent.offline.language.labelled import called
from agent.offline.language.lexicon import lexicon
from agent.offline.language.own.tool import FREE
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.things import PLACES, places_said
from agent.offline.language.scope import supposes
from knowledge.machines.catalogue import find_accelerator
from planner.partial import DATA_SIZES, is_serving, knows_length
from planner.requests import ALL_PATHS

# What a run is of: a question that brings it first says it.
_NEW = (*DATA_SIZES, "sample_tokens", "epochs")


def scope_of(page: Page, edits: Sequence[Edit]) -> tuple[str, list[Edit]]:
    """(Whether the turn only supposes what it says, since it asks about a plan that there is; its edits, with those
    settled that are said for good beside that)."""
    said = list(edits)
    if not page.plan.get("model") or not edits:
        return "assert", said
    at = {token.start: index for index, token in enumerate(page.read.tokens)}
    if any(edit.span == (0, 0) for edit in edits):
        # What was concluded from the whole is supposed where any of it is.
        whole = bool(supposing(page.read.found, list(at.values())))
        return ("hypothetical" if whole else "assert"), said
    starts = {edit.span[0]: at[edit.span[0]] for edit in edits}
    supposed = supposing(page.read.found, list(starts.values()))
    compares = supposes(page.read.found) is not None or page.read.does("compare", "versus", "or", "why")
    if not (compares or knows_length(page.plan)):
        # 'How long for 60k samples?' says how many there are, where nobody had said it.
        supposed -= {starts[edit.span[0]] for edit in edits if edit.field in _NEW}
    if not supposed:
        return "assert", said
    return "hypothetical", [replace(edit, settled=starts[edit.span[0]] not in supposed) for edit in said]


def references_of(page: Page, edits: Sequence[Edit]) -> list[Reference]:
    found: list[Reference] = []
    said = {edit.span[0] for edit in edits}
    # '2000 tokens in, 400 back' is what comes back.
    counted = {at for number in page.filled if number.name for at in range(*number.name)}
    for at in [at for at in page.read.does("back") if at not in counted][:1]:
        end = page.read.found.does(at, "back") or at + 1
        onto = page.read.found.sense(end, "onto")
        brought = onto and onto[1] < len(page.read.tokens) and page.read.tokens[onto[1]].start
        fields = {edit.field for edit in edits if edit.span[0] == brought}
        if fields - ({"stage"} if is_serving(page.plan) else set()):
            # 'Back to 8k' brings one thing back, not all, but 'back to the finetune' from a deployment does.
            continue
        if any(page.read.found.sense(step, "hands") for step in range(max(at - 3, 0), at)):
            # 'Give me that back as a yaml'
            continue
        first = page.read.does("first")
        found.append(Reference("first" if first else "before", page.read.span(at, at + 1)))
    for at in page.read.does("other")[:1]:
        found.append(Reference("other", page.read.span(at, at + 1)))
    if len(said) == 1 and page.read.does("also", "plus"):
        found.append(Reference("also"))
    offers, place = bool(page.offers), _picked(page)
    if ranked := ranked_one(page):
        place = ranked[0]
        page.taken |= {page.read.tokens[at].start for at in range(*ranked[1:])}
    if place is None and not page.read.names:
        place = _of_a_vendor(page)
        place = _by_a_word(page) if place is None else place
    if page.read.does("turn_on", "turn_off"):
        place = _switched(page, bool(page.read.does("turn_on")))
    takes = page.read.does("take", "turn_on")
    named = _of_what_is_named(page, edits, bool(takes)) if place is None else None
    if page.refused.unread and not (takes or page.read.does("turn_off")):
        # 'Skip the last one' takes none, whatever it refuses.
        place = named = None
    which = place if named is None else named
    for at in takes[:1]:
        found.append(Reference("offer" if offers else "supposed", page.read.span(at, at + 1), which))
    brought = {edit.field for edit in edits if edit.op == "set"} & {"model", *_OF_DEVICES}
    if offers and not takes and (named is not None or (place is not None and not brought)):
        found.append(Reference("offer", place=which))
    return found


_TELLING = ("accelerator", "method", "engine", "framework")


def _of_what_is_named(page: Page, edits: Sequence[Edit], takes: bool) -> int | None:
    """Which of those that were offered has the device or the model that is named, of options that were compared also
    the method or the program, of what is taken anything that is said, and no other has it: 'the A100 one looks sane,
    does it still work at 16k?', 'take the v6e', 'go with fsdp2'."""
    sets = set_apart(edits)
    compared = page.last[0] == "compare" and not page.read.does("versus", "compare", "also")
    counted = any(edit.field in ("count", "nodes", "model") for edit in edits)
    telling = {edit.field for edit in sets} if takes else {"model", "accelerator"}
    telling |= {*_TELLING} if compared and not counted else set()
    told = {ALL_PATHS.get(edit.field, edit.field): edit.value for edit in sets if edit.field in telling}
    told = {path: value for path, value in told.items() if any(path in offer for offer in page.offers)}
    places = [place for place, offer in enumerate(page.offers) if told.items() <= offer.items()]
    return places[0] if told and len(places) == 1 < len(page.offers) else None


_OF_DEVICES = ("accelerator", "count", "nodes", "per_node")
# What the best of a comparison is called, and its figure.
_BEST_BY = {"faster": "time", "cheaper": "cost", "leaner": "memory"}
_OFF = (None, False, 0, "none")


def ranked_one(page: Page) -> tuple[int, int, int] | None:
    """(Which of what was compared is called by what it is better at, token, token behind): 'take the faster one'."""
    best, tokens = page.topic.get("best_by") or {}, page.read.tokens
    if not page.offers:
        return None
    for at in range(1, len(tokens)):
        led = tokens[at - 1].norm in page.read.found.lexicon.pointing
        if led and tokens[at].norm in page.read.found.lexicon.winners:
            return _best(page), at, at + 1
    called = [*page.read.said_at("focus"), *_objectives(page), *_sized(page)]
    for at, end, name in called if best else ():
        leads = at > 0 and (tokens[at - 1].norm in page.read.found.lexicon.pointing or _is_of_one(page, at))
        ends = end == len(tokens) or tokens[end].kind == "sign" or page.read.found.sense(end, "number")
        ends = ends or page.read.found.does(end, "and", "and_then") or _is_what_differs(page, end)
        # 'Not the cheapest, the second'
        refused = at > 1 and page.read.found.does(at - 2, "refuse_right") is not None
        if leads and ends and not refused and (figure := _BEST_BY.get(name, name)) in best:
            return best[figure], at, end
    return None


def _best(page: Page) -> int:
    match page.topic:
        case {"best": int(place)}:
            return place
    return 0


def _is_what_differs(page: Page, at: int) -> bool:
    """Whether a token names what was offered differs in: 'use the fastest framework', 'the smaller card'."""
    named = [name for kind in ("word_field", "goal") for start, _, name in page.read.asked_at(kind) if start == at]
    named += ["accelerator"] if page.read.found.has_unit(at, "devices", "nodes") else []
    return any(ALL_PATHS.get(name) in offer for name in named for offer in page.offers[:1])


def _is_of_one(page: Page, at: int) -> bool:
    """Whether 'the one that' or 'the one with the' stands before a token."""
    near = [token.norm for token in page.read.tokens[max(at - 4, 0) : at]]
    return "one" in near and bool({"that", "which", "with"} & {*near})


def _sized(page: Page) -> list[tuple[int, int, str]]:
    """'The smaller one', 'the bigger model': of two, the one that is so."""
    heard = page.read.found
    sizes = ((at, heard.sense(at, name), name) for at in range(len(heard.text)) for name in ("smaller", "larger"))
    told = [(at, sense[1], name) for at, sense, name in sizes if sense]
    return [size for size in told if heard.sense(size[1], "number") or _is_what_differs(page, size[1])]


def _objectives(page: Page) -> list[tuple[int, int, str]]:
    """'The fastest' and 'the cheapest' as what they are better at."""
    names = {"throughput": "faster", "time": "faster", "cost": "cheaper", "memory": "leaner"}
    values = [value for value in page.read.values if value.field == "objective" and str(value.value) in names]
    # 'Which is the cheapest?' asks for another order.
    asked = [part for part in clauses(page.read.found) if is_question(page.read.found, part)]
    told = [value for value in values if not any(value.start in part for part in asked)]
    return [(value.start, value.end, names[str(value.value)]) for value in told]


def _switched(page: Page, on: bool) -> int | None:
    """Which of two that were set side by side, with and without something, has it: 'turn it on'."""
    off = {ALL_PATHS[name]: value for name, value in lexicon().refused.items() if name in ALL_PATHS}
    without = [all(value in (off.get(path), *_OFF) for path, value in offer.items()) for offer in page.offers]
    return without.index(not on) if sorted(without) == [False, True] else None


def _picked(page: Page) -> int | None:
    """Which of several is meant: 'the second', 'take the 3rd', 'what does the second one cost?'; of 'first', which
    goes before much else, only where nothing else is said, or it is of what was offered."""
    heard, read = page.read.found, page.read
    if any(thing.start in page.refused.things for _, thing in places_said(read)):
        # 'Drop the second' takes none.
        return None
    for place in called(read.tokens).values():
        if place < len(page.offers):
            return place
    # 'A third more'
    marked = {at for mark in page.marks for at in range(mark.start, mark.end)}
    for place, name in enumerate(PLACES):
        for at in sorted({*read.does(name)} - marked):
            end = heard.does(at, name) or at + 1
            others = [index for index in range(len(read.tokens)) if not at <= index < end]
            alone = all(_is_aside(page, index) for index in others)
            opens = at == 0 or heard.sense(at - 1, "stop") or heard.does(at - 1, "and", "and_then")
            behind = bool(opens) and read.tokens[at - 1].norm != "per"
            closes = bool(opens) and end < len(read.tokens) and heard.does(end, "and", "and_then")
            named = end - at > 1 or alone or closes or bool(read.does("take"))
            if (alone or (behind and page.offers and _is_one(page, at, end))) if place == 0 else behind and named:
                return place
    offers = page.offers
    return _lettered(page, len(offers)) if offers else None


def _is_one(page: Page, at: int, end: int) -> bool:
    """Whether a place is of what was offered: 'the first one, rank 256', 'the first option', 'the first, rank 8'."""
    tokens, words = page.read.tokens, page.read.found.lexicon
    told = at > 0 and tokens[at - 1].norm in words.articles | words.pointing and tokens[end : end + 1]
    return bool(told) and (tokens[end].kind == "sign" or tokens[end].norm == "one" or tokens[end].norm in words.labels)


def _lettered(page: Page, offers: int) -> int | None:
    """The option that is called by its letter, or by where it stands: 'la A entonces', 'B it is', 'the middle one'."""
    tokens = page.read.tokens
    if page.read.does("middle") and offers == len(PLACES) - 1:
        return 1
    if page.read.does("latter"):
        return offers - 1
    for at, token in enumerate(tokens):
        place = "ABCDE".find(token.text.upper()) if len(token.text) == 1 else -1
        if not 0 <= place < offers or at in page.read.named_tokens:
            continue
        closes = at + 1 == len(tokens) or tokens[at + 1].kind == "sign"
        if token.text == "a" and not (closes and at and page.read.does("take")):
            # 'Go with a.', not 'a model'
            continue
        leads = at > 0 and (tokens[at - 1].norm in page.read.found.lexicon.articles or _is_aside(page, at - 1))
        ends = at + 1 == len(tokens) or tokens[at + 1].kind == "sign" or _is_aside(page, at + 1)
        if ends and (leads or at == 0 or page.read.found.does(at - 1, "take")):
            return place
    return None


def _of_a_vendor(page: Page) -> int | None:
    """The one of the devices that were compared whose maker is named: 'the AMD one', 'let's stay on nvidia'."""
    vendors = [value for value in page.read.values if value.field == "vendors"]
    named = {str(value.value).lower() for value in vendors if value.start not in page.refused.things}
    devices = [str(offer.get("cluster.accelerator", "")) for offer in page.offers]
    makers = [find_accelerator(device).value.vendor.lower() if device else "" for device in devices]
    places = [place for place, maker in enumerate(makers) if maker in named]
    return places[0] if len(places) == 1 and len(devices) > 1 else None


def _by_a_word(page: Page) -> int | None:
    """The one of what was offered that is called by a part of its name that no other has: 'I'll take the pro'."""
    if len(page.offers) < 2:
        return None
    parts = [_called(offer) for offer in page.offers]
    heard, tokens = page.read.found, page.read.tokens
    leads = heard.lexicon.articles | heard.lexicon.pointing
    for at in range(1, len(tokens)):
        end = at + 1
        closes = end == len(tokens) or tokens[end].kind == "sign" or tokens[end].norm == "one"
        closes = closes or heard.does(end, "and_then") is not None
        makers = {
            sense.name for word in heard.words.get(at, ()) for sense in word.all("asked") if sense.value == "maker"
        }
        places = [place for place, words in enumerate(parts) if {tokens[at].norm, *makers} & words]
        if closes and tokens[at - 1].norm in leads and len(places) == 1:
            return places[0]
    return None


def _called(offer: Mapping[str, Any]) -> set[str]:
    """The words that an option may be called by: parts of what it brings, of its device also the maker's and its
    line."""
    words = {part for value in offer.values() for part in str(value).lower().split("-")}
    match offer:
        case {"cluster.accelerator": str(id)}:
            device = find_accelerator(id).value
            words |= {device.vendor.lower(), *device.name.lower().split()}
    return words


def _is_aside(page: Page, at: int) -> bool:
    """Whether a token adds nothing to what is picked."""
    heard = page.read.found
    aside = heard.sense(at, "stop") or heard.does(at, "take", "and", "and_then")
    # 'Sorry, I meant the first'
    corrects = any(start <= at < (heard.does(start, "correct") or start) for start in page.read.does("correct"))
    return bool(aside) or corrects or page.read.tokens[at].kind == "sign"


def act_of(
    page: Page, tool: str | None, edits: Sequence[Edit], options: Sequence[Any], scoped: str, refs: Sequence[Reference]
) -> str:
    if options or tool in ("compare", "diff_scenarios"):
        return "compare"
    if tool in ("write_configs", "render_configs", "save_scenario", "report", "benchmark_matrix"):
        return "write"
    if page.read.does("why"):
        return "why"
    if scoped == "hypothetical":
        return "what_if"
    if refs:
        return "recall"
    if edits and page.plan and "?" not in page.read.text:
        return "change"
    return "control" if tool is None else "ask"


def is_of_a_kind(page: Page, tool: str | None, edits: Sequence[Sequence[Edit]], refs: Sequence[Reference]) -> bool:
    """Whether a turn is about training or serving at all; one that goes back is about what an earlier plan was."""
    goes_back = any(reference.to in ("before", "first", "other") for reference in refs)
    if goes_back and not page.read.asked("mode"):
        return False
    return tool not in FREE and (any(edits) or tool is not None)
