"""Limits, sweeps and scaling: what is asked the most of, and over which values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agent.offline.form import Need, Reading
from agent.offline.language.asking import asks_which, clauses
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING, TRAINING, mode_of_field
from agent.offline.language.reading.alone import field_in
from planner.partial import DATA_SIZES, get
from planner.requests import ALL_PATHS

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_MONEY_ALONE = (
    "money alone holds no model, and which answers best is not estimated here. On which accelerators is it to run, and "
    "on how many? Or name a model, and I work out what the budget buys"
)
_MOST_SIZES = 24
_USERS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
# Sizes of which each is twice the one before.
_DOUBLINGS = 6
_ENDING = ("deadline_h", "budget_usd", "credits_usd", "budget_device_hours")
# Of these 'what' asks how much there may be; of models and devices, which.
_SIZES = ("seq_len", "context", "micro_batch", "concurrency", "input_len")
_LOADS = ("concurrency", "request_rate", "requests", "token_rate")
# What people call a field of a deployment by.
_OF_SERVING = {"precision": "weight_dtype", "framework": "engine"}
# Tokens between a word that asks and what it asks for.
_NEAR = 3
_LIMITING = ("most", "least", "size", "fit", "best")


def limit_of(page: Page, reading: Reading) -> dict[str, Any]:
    goal = _goal_before(page) or ("tokens" if asks_for_data(page) else limit_goal(page))
    goal = goal or any_goal(page) or goal_of_the_last(page) or ("model" if not has_model(page) else None)
    goal = "accelerator" if goal in ("devices", None) and asks_for_a_card(page) else goal
    own: dict[str, Any] = {"goal": goal} if goal else {}
    if goal == "model" and page.values("budget_usd") and not page.read.of("accelerator"):
        page.needs.append(Need("cluster.accelerator", _MONEY_ALONE))
    if goal == "model":
        family = next((name for name in page.read.of("model") if not name.sized), None)
        own |= {"family": family.text} if family else {}
    return own


def asks_for_a_card(page: Page) -> bool:
    """Whether the smallest card is asked for, where none is named: 'what is the smallest GPU that does?'"""
    heard = page.read.found
    least = [end for _, end, name in page.read.asked_at("focus") if name == "least"]
    cards = any(heard.sense(at, "card") for end in least for at in range(end - 1, min(end + 2, len(heard.text))))
    counted = "size" in page.read.asked("focus") or any(map(page.values, ("count", "nodes", *_LOADS)))
    return cards and not (counted or page.devices) and has_model(page)


def _goal_before(page: Page) -> str | None:
    """The goal of the limit that a turn goes on with."""
    match page.topic if page.again else None:
        case {"limit": {"goal": str(goal)}}:
            return goal
    return None


def goal_of_the_last(page: Page) -> str | None:
    """The goal that is what was changed last: 'micro-batch 4', 'what's the max then?'"""
    name = field_in(page.topic, "recent") if page.plan else None
    return name if name in (*_SIZES, "model") else None


def has_model(page: Page) -> bool:
    """Whether it is known which model a turn is about."""
    return bool(get(page.plan, "model") or page.read.of("model", "path") or page.values("model_size"))


def limit_goal(page: Page) -> str | None:
    """What is asked the most or the least of: the thing that 'longest', 'fewest' or 'how many' stands before."""
    asks = [(start, end) for start, end, name in page.read.asked_at("focus") if name in ("most", "least", "size")]
    found: list[tuple[int, int, str]] = []
    for start, end, name in _goals(page):
        gaps = [start - after for at, after in asks if -1 <= start - after <= 4 or at <= start < after or end == at]
        found += [(max(min(gaps), 0), start - end, name)] if gaps else []
        found += [(0, start - end, name)] if _is_all_that_is_asked(page, start, end) else []
    whole = [name for name in page.read.of("model") if not name.sized]
    most = [end for _, end, name in page.read.asked_at("focus") if name == "most"]
    # 'Max context for DeepSeek R1' asks for no model.
    if whole and not asks_most(page) and any(0 <= whole[0].start - end <= 2 for end in most):
        found.append((0, -9, "model"))
    if direct := asked_outright(page):
        found.append((0, -9, direct))
    if asks_what_fits(page):
        found.append((0, -9, "model"))
    if _how_many(page) or asks_how_many_of_them(page):
        found.append((0, -9, "devices"))
    return min(found)[2] if found else None


def asked_outright(page: Page) -> str | None:
    """The limit that the word of a question stands right before: 'what context can I get?', '多少并发'."""
    found = page.read.found
    for start, _, name in _goals(page):
        which = (found.sense(at, "which") for at in range(max(start - 3, 0), start) if name in _SIZES)
        if any(sense and sense[1] == start for sense in which):
            return name
    return None


def asks_most(page: Page) -> bool:
    """Whether the most of a thing without a number is asked for outright: 'max context for R1 on 8 H200'."""
    most = {end for _, end, name in page.read.asked_at("focus") if name == "most"}
    return any(start in most for start, _, _ in _goals(page))


def asks_how_many_of_them(page: Page) -> bool:
    """Whether it is asked how many of the devices that there are it takes: 'so how many of those would it take?'."""
    sizes = {end for _, end, name in page.read.asked_at("focus") if name in ("size", "least")}
    pointed = any(page.read.found.sense(at, "them") for at in sizes)
    return pointed and get(page.plan, "cluster.accelerator") is not None and not (page.filled or page.devices)


def asks_what_fits(page: Page) -> bool:
    """Whether a model is what is asked for: 'what fits on a 24 GB card?', 'which of the Qwens fit?'."""
    named = has_model(page) or page.topic.get("spoken", {}).get("model")
    named = named and not _asks_which_of_a_family(page)
    cards = any(row.amounts[-1].unit("bytes") for row in page.read.rows)
    devices = page.devices or page.plan.get("cluster") or cards
    return bool(devices and not named and "fit" in page.read.asked("focus") and asks_which(page.read.found))


def _asks_which_of_a_family(page: Page) -> bool:
    """Whether 'which' stands right before a family of models: 'which of the Qwens', 'which Gemma'."""
    heard = page.read.found
    families = {name.start for name in page.read.of("model") if not name.sized}
    for at in range(len(heard.text)):
        if sense := heard.sense(at, "which"):
            end = sense[1]
            while end not in families and end < len(heard.text) and heard.sense(end, "stop"):
                end += 1
            if end in families:
                return True
    return False


def _is_all_that_is_asked(page: Page, start: int, end: int) -> bool:
    """Whether words stand alone before a question mark: '…, seq 8192: batch size?'."""
    text = page.read.tokens
    return 0 < start < end < len(text) and text[start - 1].kind == "sign" and text[end].text in "?？"


def _goals(page: Page) -> list[tuple[int, int, str]]:
    """What a limit may be asked of, where it is named without a number of its own."""
    serving = {"concurrency", "context", "input_len", "devices", "model"}
    open_ = serving if page.mode == SERVING else {"seq_len", "micro_batch", "model", "devices"}
    open_ = open_ | {"tokens"} if page.mode != SERVING and _is_ended(page) else open_
    said = [(number.row.start, number.row.end) for number in page.filled] + [
        number.name for number in page.filled if number.name
    ]
    # 'How many requests per second' asks for a figure.
    said += [(start, end) for start, end, name in page.read.asked_at("focus") if name not in _LIMITING]
    # 'How many parallel agents': people, of whom no number is told.
    heard = page.read.found
    people = [(at, at + 1, "concurrency") for at in range(len(page.read.tokens)) if heard.has_unit(at, "users")]
    return [
        one
        for one in [*page.read.asked_at("goal"), *people]
        if one[2] in open_ and not any(start <= one[0] < end for start, end in said)
    ]


def _is_ended(page: Page) -> bool:
    """Whether time or money ends a run before its data do: those of the plan are asked about anew where a limit is told
    now, or the most is asked for."""
    counted = {at for _, end, name in page.read.asked_at("focus") if name == "size" for at in (end, end + 1)}
    named = any(at in counted for at, _, name in page.read.asked_at("goal") if name == "tokens")
    anew = named or any(map(page.values, _ENDING)) or bool(page.until) or "most" in page.read.asked("focus")
    of_data = any(page.values(name) or (not anew and get(page.plan, ALL_PATHS[name])) for name in DATA_SIZES)
    told = any(page.values(name) or get(page.plan, ALL_PATHS[name]) for name in _ENDING)
    return not of_data and bool(told or page.until)


def asks_for_data(page: Page) -> bool:
    """Whether it is asked how much data a run gets through before its time or money ends."""
    return _is_ended(page) and ("data" in page.read.asked("wish") or limit_goal(page) == "tokens")


def any_goal(page: Page) -> str | None:
    """The goal where no word says that the most of it is asked for."""
    goals = _goals(page)
    least = {"least", "size"} & set(page.read.asked("focus"))
    return goals[0][2] if goals else "devices" if least else None


def _how_many(page: Page) -> bool:
    """Whether 'how many' stands right before a device, and not before its hours."""
    counted = [name for name in page.read.of("accelerator", "instance") if not _has_hours(page, name.end)]
    asks = [(at, end) for at, end, name in page.read.asked_at("focus") if name in ("size", "least")]
    others = [at for at, _, name in _goals(page) if name != "devices"]
    return any(
        at <= name.start <= end + 3 and not any(at <= other < name.start for other in others)
        for name in counted
        for at, end in asks
    )


def _has_hours(page: Page, at: int) -> bool:
    """Whether the token behind a device, or behind a hyphen there, is a time: 'how many H100 hours'."""
    hyphen = at < len(page.read.tokens) and page.read.tokens[at].text == "-"
    return page.read.found.has_unit(at + hyphen, "time")


def field_asked(page: Page) -> str | None:
    """The field whose values are all asked about: 'which framework is fastest?', 'compare the engines', 'try every
    optimizer'. Not one of which a value is named beside it."""
    heard, serves = page.read.found, page.mode == SERVING
    named = page.read.asked_at("word_field")
    named = [*named, *((name.start, name.end, name.field) for name in heard.fields if name.field == "zero_stage")]
    if not named or not (page.plan or has_model(page)):
        return None
    best = [value for value in page.kept if value.field == "objective"]
    starts = {part.start for part in clauses(heard)}
    # What serves best is looked for among all deployments.
    ranked = best or {"least", *(() if serves else ("best",))} & {*page.read.asked("focus")}
    for at, end, word in named:
        name = _OF_SERVING.get(word, word) if serves else word
        of_the_other = mode_of_field(name) not in (None, page.mode or TRAINING)
        # The full recompute of 'recompute mode' is none that is named.
        if of_the_other or any(value.field == name and not at <= value.start < end for value in page.kept):
            continue
        before = range(max(at - _NEAR, 0), at)
        asks = ranked and any(heard.sense(step, "which") for step in before)
        # 'Fastest framework?', but not 'use the fastest framework'.
        alone = any(value.end == at and value.start in starts for value in best)
        if asks or alone or any(heard.does(step, "compare", "tries") for step in before):
            return name
    return None


def sweep_of(page: Page, reading: Reading) -> dict[str, Any]:
    if field := field_asked(page):
        objectives = [str(edit.value) for edit in reading.edits if edit.field == "objective"]
        return {"field": field, "values": "all"} | ({"objective": objectives[-1]} if objectives else {})
    found: list[tuple[str, list[Any]]] = []
    if reading.options and len({edit.field for option in reading.options for edit in option}) == 1:
        found.append((reading.options[0][0].field, [option[0].value for option in reading.options]))
    for one in page.filled:
        if (
            len(one.values) > 1
            and not one.ranged
            and one.field in (*ALL_PATHS, "nodes", "batch")
            and one.field not in dict(found)
        ):
            found.append((one.field, [*map(_plain, one.values)]))
    found += [one for one in (*_ranges(page), *several_values(page), *_rows_named(page)) if one[0] not in dict(found)]
    named = {"batch": "global_batch", "length": "input_len", "nodes": "count"}
    own: dict[str, Any] = {}
    if (not found or found[0][0] in ("count", "nodes")) and not any(
        len(number.values) > 1 and not number.ranged for number in page.filled
    ):
        return _scaled(page)
    for (name, values), (field, of) in zip(
        found[:2], (("field", "values"), ("second_field", "second_values")), strict=False
    ):
        own |= {field: named.get(name, name), of: values}
        if name == "nodes" and field == "field":
            own["nodes"] = True
    if not own:
        names = [sense.name for sense in page.read.senses() if sense.kind == "field" and sense.name in ALL_PATHS]
        own = {"field": names[0] if names else "count", "scales": not names or names[0] == "count"}
    if page.read.asked("scaling") == ["weak"]:
        own["scale_batch"] = True
    return own


def _rows_named(page: Page) -> Iterator[tuple[str, list[Any]]]:
    """Rows of numbers that nothing was made of, right behind the name of a field: 'the same for ranks 8, 16, 64'."""
    names = {name.end: name.field for name in page.read.found.fields}
    for row in [row for row in page.left if len(row.amounts) > 1]:
        if (field := names.get(row.start)) in ALL_PATHS:
            page.left = [other for other in page.left if other is not row]
            yield str(field), [_plain(amount.value) for amount in row.amounts]


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def several_values(page: Page) -> Iterator[tuple[str, list[Any]]]:
    """Fields of words that several values are named of: 'bf16 and fp8'."""
    values: dict[str, list[Any]] = {}
    for one in page.kept:
        if one.field in ALL_PATHS:
            values.setdefault(one.field, []).append(one.value)
    yield from ((name, list(dict.fromkeys(said))) for name, said in values.items() if len(set(map(str, said))) > 1)


def _scaled(page: Page) -> dict[str, Any]:
    """'How does it scale to 64 nodes?': the sizes that are named, from and to."""
    sizes = [number for number in page.filled if number.field in ("count", "nodes")]
    if not sizes and "scaling" in page.read.asked("wish"):
        # 'How does this scale up to 4096?' is asked of devices, whatever else that may be.
        sizes = [number for number in page.filled if number.row.bare and number.name is None][:1]
        page.taken |= {page.read.tokens[number.row.start].start for number in sizes}
    ends = [int(value) for one in sizes for value in one.values][:2]
    names = [sense.name for sense in page.read.senses() if sense.kind == "field" and sense.name in ALL_PATHS]
    before = page.topic.get("sweep") or {}
    if before and not (sizes or names or "scaling" in page.read.asked("wish") or page.read.asked("scaling")):
        # 'Plot the throughput'
        return dict(before)
    of_a_run = not any(one.field == "nodes" or len(one.values) > 1 for one in sizes)
    if of_a_run and names and names[0] not in ("count", "nodes") and "scaling" not in page.read.asked("wish"):
        return {"field": names[0], "values": _USERS if names[0] == "concurrency" else _around(page, names[0])}
    own: dict[str, Any] = {
        "field": "count",
        "scales": True,
        "values": ends if len(ends) == 2 else [None, *ends] if ends else [None, None],
    }
    own |= {"nodes": True} if any(one.field == "nodes" for one in sizes) else {}
    return own | ({"scale_batch": True} if "weak" in page.read.asked("scaling") else {})


def _around(page: Page, name: str) -> list[int]:
    """Sizes of a field from a quarter of what it is, or of the least that is usual, to eight times that, doubled."""
    quantity = lexicon().quantities.get(name)
    least, most = quantity.usual if quantity else (1.0, float(_USERS[-1]))
    held = get(page.plan, ALL_PATHS[name])
    first = max(held / 4 if isinstance(held, int | float) else least, 1.0)
    sizes = (int(first) * 2**step for step in range(_DOUBLINGS))
    return [size for size in sizes if size <= most]


def _ranges(page: Page) -> Iterator[tuple[str, list[Any]]]:
    """'From 2k to 32k' as sizes doubled from the first to the last."""
    for one in page.filled:
        if not one.ranged:
            continue
        values, size, stop = [], one.values[0], one.values[1]
        while 0 < size < stop and len(values) < _MOST_SIZES:
            values.append(int(size) if size == int(size) else size)
            size *= 2
        yield one.field, [*values, int(stop) if stop == int(stop) else stop]


def scaling_of(page: Page, reading: Reading) -> dict[str, Any]:
    nodes = [int(value) for number in page.filled if number.field in ("nodes",) for value in number.values]
    # '16 nodes of 8 H200'
    nodes += [device.nodes for device in page.devices if device.nodes]
    own: dict[str, Any] = {}
    if len(nodes) == 1:
        own["nodes"] = nodes[0]
    elif nodes:
        own["nodes"] = nodes[-1] if nodes[0] == 1 else f"{nodes[0]}..{nodes[-1]}"
    if values := page.values("efficiency_threshold"):
        own["efficiency_threshold"] = values[-1]
    if "weak" in page.read.asked("scaling"):
        own["scaling"] = "weak"
    return own
