"""A number or a word alone as another value of what was changed last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.offline.form import Edit
from agent.offline.language.asking import asks, clauses, sentences
from agent.offline.language.assign import Filled, single, strange, value_of
from agent.offline.language.devices import of_an_article
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import Found
from agent.offline.language.mentions import SERVING, TRAINING, Mentions, mode_of_field
from agent.offline.language.reading.observed import is_observed
from agent.offline.language.relative import known_fields
from agent.offline.language.rows import Row
from agent.offline.language.scope import excess_behind
from planner.partial import DATA_SIZES, get, is_serving
from planner.requests import ALL_PATHS, LATENCY_LIMITS

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page


# In so few words a number alone stands for something; in the fewest for devices.
_FEW_WORDS = 8
_FEWEST_WORDS = 3
# What the answer before offered, in a conversation's topic.
OFFERS = "offers"
_PEOPLE, _DEVICES = "concurrency", "count"
# From this cost on a number is hardly of the field that it fills.
_UNSURE = 2.0
# Doublings from which on a number is hardly another value of one, and what lengths in tokens are multiples of.
_FAR, _LENGTHS = 5, 1024
# What ends a run, and what its devices stand behind.
_ENDS, _RUNS_ON = ("deadline_h", "budget_usd"), ("with", "on", "mit", "auf", "con", "en", "avec", "sur", "com", "em")
_LENGTHS_OF = ("seq_len", "max_context", "input_len")
_FEWEST_TOKENS = 1e8
# From here on a value is unusual for a field.
_UNUSUAL = 0.4


def of_the_last(
    read: Mentions, filled: list[Filled], left: list[Row], plan: Mapping[str, Any], topic: Mapping[str, Any]
) -> tuple[list[Filled], list[Row]]:
    """A number alone as another value of what was changed last ('hm, 4?'), or as what it is brought back to."""
    if plan and not read.names:
        # '15B' where it was asked how many tokens
        sizes = [size for size in filled if size.field == "model_size" and _is_of_data(plan, topic, size.row)]
        filled = [replace(size, field="dataset_tokens") if size in sizes else size for size in filled]
    filled, left = _instead_of_what_is(read, filled, left, plan, topic)
    unsure = [number.row for number in filled if number.cost >= _UNSURE]
    for row in [*left, *unsure] if plan else ():
        last = row.amounts[-1]
        name = _brought_back(read, row, plan, topic) if row.bare else _latency_meant(row, plan, topic)
        if name:
            filled = [number for number in filled if number.row is not row]
            # What was so before is sure, as a number right beside its field's name is.
            cost, where = (0.1, _where(row)) if row.bare else (1.0, None)
            filled.append(Filled(name, (value_of(lexicon().quantities[name], last, last),), row, cost, where))
            left = [one for one in left if one is not row]
    for sentence in clauses(read.found) if plan else ():
        if any(read.found.sense(at, "hearsay") for at in sentence):
            # 'They quote 1.3M'
            continue
        unsure = [number for number in filled if number.row.start in sentence and number.name != _where(number.row)]
        loose = [*(row for row in left if row.start in sentence), *(one.row for one in unsure)]
        bare = [row for row in loose if row.bare]
        bare = [
            row
            for row in bare
            if not (_stands_beside(read, row, loose, sentence) or _is_of_other_work(read, row, plan))
        ]
        # 'I only get 38, is that low?' tells a speed.
        judged = [row for row in bare if read.asked("judged") and is_observed(read, row)]
        if len(bare) != 1 or judged:
            continue
        row = bare[0]
        name = _brought_back(read, row, plan, topic)
        part = _thought(read, row, sentence)
        beside = [number for number in unsure if number.row.start in part]
        if name is None and not any((one.cost < _UNSURE or one.name) and one.field != "seen" for one in beside):
            name = _stands_for(read, plan, topic, row, sentence)
        if name is None:
            continue
        quantity = lexicon().quantities[name]
        values = tuple(value_of(quantity, amount, row.amounts[-1]) for amount in row.amounts)
        filled = [*(number for number in filled if number.row is not row), Filled(name, values, row, 1.0)]
        left = [one for one in left if one is not row]
    return filled, left


def _instead_of_what_is(
    read: Mentions, filled: list[Filled], left: list[Row], plan: Mapping[str, Any], topic: Mapping[str, Any]
) -> tuple[list[Filled], list[Row]]:
    """Of two numbers alone the one that is not refused, where the plan has the other: 'sorry, 20k not 200k', '32k is
    too long, make it 8k'."""
    bare = [row for row in [*left, *(number.row for number in filled if not number.name)] if row.bare]
    refused = [
        row
        for row in bare
        if any(_leads(read.found, at, row.start) for at in range(row.start)) or excess_behind(read.found, row.end)
    ]
    if len(bare) != 2 or len(refused) != 1:
        return filled, left
    right = next(row for row in bare if row is not refused[0])
    wrong, amount = refused[0].amounts[-1], right.amounts[-1]
    fields = [field_in(topic, "recent"), *sorted(known_fields(plan))]
    held = (name for name in fields if name and get(plan, ALL_PATHS[name]) in (wrong.value, wrong.length))
    name = next((name for name in held if name in lexicon().quantities), None)
    if name is None:
        return filled, left
    quantity = lexicon().quantities[name]
    no, instead = (
        Filled(name, (value_of(quantity, each, each),), row, 1.0)
        for each, row in ((wrong, refused[0]), (amount, right))
    )
    filled = [*(number for number in filled if number.row not in bare), replace(no, refused=True), instead]
    return filled, [row for row in left if row not in bare]


def _where(row: Row) -> tuple[int, int]:
    """Where the name of a field would stand that a number has beside it."""
    return row.start, row.start


def _latency_meant(row: Row, plan: Mapping[str, Any], topic: Mapping[str, Any]) -> str | None:
    """The limit that a time alone is another value of: the only one of a deployment, or what was changed last."""
    last = row.amounts[-1]
    if len(row.amounts) > 1 or last.per or not last.unit("time"):
        return None
    limits = [name for name in LATENCY_LIMITS if get(plan, ALL_PATHS[name])]
    recent = field_in(topic, "recent")
    meant = recent if recent in limits else limits[0] if len(limits) == 1 else None
    return meant if meant and strange(lexicon().quantities[meant], row) <= _UNUSUAL else None


def _leads(heard: Found, at: int, start: int) -> bool:
    """Whether words at a token refuse what begins at another: 'instead of', 'not'."""
    return heard.does(at, "refuse_right") == start


def put_instead(read: Mentions, filled: list[Filled], left: list[Row]) -> tuple[list[Filled], list[Row]]:
    """A number alone behind one that is refused as what its field is instead: 'micro batch not 1 but 8', 'tp not 4,
    2'."""
    heard, turns = read.found, lexicon().turns
    for row in left:
        # 'tp 2 instead of 1'
        before = next((at for at in range(max(row.start - 3, 0), row.start) if _leads(heard, at, row.start)), None)
        other = next((number for number in filled if number.row.end == before and number.name), None)
        if other and row.bare and len(row.amounts) == 1:
            left = [each for each in left if each is not row]
            value = value_of(lexicon().quantities[other.field], row.amounts[-1], row.amounts[-1])
            filled = [*filled, replace(other, values=(value,), row=row, name=None)]
    for index, number in enumerate(filled):
        start = number.row.start
        if not any(_leads(heard, at, start) for at in range(max(start - 3, 0), start)):
            continue
        filled[index] = number = replace(number, refused=True)
        between = number.row.end
        while between < len(read.tokens) and (read.tokens[between].text == "," or read.tokens[between].norm in turns):
            between += 1
        unsure = [other.row for other in filled if other.row.bare and not other.name]
        row = next((row for row in [*left, *unsure] if row.start == between > number.row.end and row.bare), None)
        if row is not None and len(row.amounts) == 1:
            left = [other for other in left if other is not row]
            value = value_of(lexicon().quantities[number.field], row.amounts[-1], row.amounts[-1])
            instead = Filled(number.field, (value,), row, number.cost)
            return [*(other for other in filled if other.row is not row), instead], left
    return filled, left


def corrected(read: Mentions, filled: list[Filled], left: list[Row]) -> tuple[list[Filled], list[Row]]:
    """A number alone behind a correction as what the number before it fills: 'gbs 512, make that 256', 'no, 256'."""
    unsure = [number.row for number in filled if number.cost >= _UNSURE and not number.name]
    ends = {read.found.does(at, "correct") for at in read.does("correct")}
    for row in [*left, *unsure]:
        last = row.amounts[-1]
        bare = len(row.amounts) == 1 and not (last.units or last.names or last.per)
        if not (bare and ends & {row.start, row.start - 1}):
            continue
        before = [number for number in filled if number.row.end <= row.start - 1 and number.row not in unsure]
        if not before:
            continue
        wrong = max(before, key=lambda number: number.row.start)
        quantity = lexicon().quantities[wrong.field]
        if strange(quantity, row) > _UNUSUAL:
            continue
        right = Filled(wrong.field, (value_of(quantity, last, last),), row, 1.0)
        filled = [*(number for number in filled if number is not wrong and number.row is not row), right]
        left = [other for other in left if other is not row]
    return filled, left


def echoed(read: Mentions, filled: Sequence[Filled], left: Sequence[Row]) -> tuple[list[Filled], list[Row]]:
    """A number alone as another number of what was counted before it, where one is set beside the other: '16 H100
    instead of 8', 'it takes 3 days on 8 GPUs, what would happen at 16?'."""
    counted = single(filled, "count", "nodes")
    beside = read.does("versus", "suppose", "compare", "swap") or "better" in read.asked("wish")
    if len(counted) != 1 or not beside:
        return list(filled), list(left)
    first, quantity = counted[0], lexicon().quantities[counted[0].field]
    unsure = [number.row for number in filled if number.cost >= _UNSURE and not number.name]
    more: list[Filled] = []
    for row in [*left, *unsure]:
        last, before = row.amounts[-1], read.tokens[row.start - 1].norm if row.start else ""
        plain = len(row.amounts) == 1 and not (last.units or last.names or last.per) and first.row.end <= row.start
        onto = read.found.sense(row.start - 1, "onto") or read.found.does(row.start - 1, "versus", "or")
        if plain and (before in read.found.lexicon.placing | {"than"} or onto):
            more += [Filled(first.field, (last.value,), row, 1.0)] if strange(quantity, row) <= _UNUSUAL else []
    taken = {one.row.start for one in more}
    kept = [number for number in filled if number.row.start not in taken]
    return [*kept, *more], [row for row in left if row.start not in taken]


def counting(read: Mentions, filled: Sequence[Filled], left: Sequence[Row]) -> tuple[list[Filled], list[Row]]:
    """A number in a part of its own as how many there are of the only device, which none counts: 'on h100, 4 or 8'."""
    named = read.of("accelerator", "instance")
    counted = any(number.field in ("count", "nodes", "seen") for number in filled)
    counted = counted or any(name.instance or name.count or of_an_article(read, name) for name in named)
    if len({name.id for name in named}) != 1 or len(left) != 1 or counted:
        return list(filled), list(left)
    (row,) = left
    sentence = next((part for part in sentences(read.tokens) if row.start in part), range(0))
    beside = [at for at in _thought(read, row, sentence) if at not in range(row.start, row.end)]
    alone = all(read.tokens[at].kind == "sign" or read.found.sense(at, "stop") for at in beside)
    follows = any(name.end == row.start - 1 and read.tokens[name.end].kind == "sign" for name in named)
    if not row.bare or not (alone or follows) or strange(lexicon().quantities[_DEVICES], row) > _UNUSUAL:
        return list(filled), list(left)
    return [*filled, Filled(_DEVICES, tuple(amount.value for amount in row.amounts), row, 1.0)], []


def field_in(topic: Mapping[str, Any], key: str) -> str | None:
    """The field whose path a conversation remembers: what was changed ('recent') or found ('solved') last."""
    return next((name for name, path in ALL_PATHS.items() if path == topic.get(key)), None)


def _stands_for(
    read: Mentions, plan: Mapping[str, Any], topic: Mapping[str, Any], row: Row, sentence: range
) -> str | None:
    """The field that a number alone is another value of, in a sentence of a few words."""
    quantities = lexicon().quantities

    def named(key: str) -> str | None:
        name = field_in(topic, key)
        return name if name and name in quantities and not _is_far(plan, name, row) else None

    if _is_of_data(plan, topic, row):
        return "dataset_tokens"
    if read.found.sense(row.end, "of_them") and strange(quantities[_DEVICES], row) <= _UNUSUAL:
        return "count"
    recent, solved = named("recent"), named("solved")
    if offered := _offered(topic, row):
        return offered
    if solved and strange(quantities[solved], row) <= _UNUSUAL and not ("?" in read.text or asks(read.found, [])):
        # 'Then set it to 2', but not 'and with 4?', which asks it again
        return solved
    if is_serving(plan) and read.found.sense(row.end, "act") and strange(quantities[_PEOPLE], row) <= _UNUSUAL:
        # 'When 40 are talking at it'
        return _PEOPLE
    corrects = any(read.found.does(at, "refuse_right", "correct") for at in sentence)
    few = len(sentence) <= _FEWEST_WORDS
    sentence = _thought(read, row, sentence)
    if any(read.found.sense(at, "owns") for at in sentence) and strange(quantities[_DEVICES], row) <= _UNUSUAL:
        return "count"
    recent = recent if topic.get("followed", True) or corrects else None
    if recent in _ENDS and get(plan, "cluster.count") and row.start and read.tokens[row.start - 1].norm in _RUNS_ON:
        # 'With 16', after a deadline
        return _DEVICES
    if recent is None and _is_of_a_load(read, plan, row):
        return _PEOPLE
    if len(sentence) > _FEW_WORDS or any(read.found.sense(at, "excess") for at in sentence):
        return None
    if recent and strange(quantities[recent], row) <= _UNUSUAL:
        return recent
    if recent and not (few and get(plan, "cluster.count")):
        return None
    name = (None if recent else _nearest(plan, row)) or "count"
    if name == "count" and row.amounts[-1].scale:
        # 'The Spark then, at 8k'
        name = _length(plan)
    return name if strange(quantities[name], row) <= _UNUSUAL else None


def _is_of_a_load(read: Mentions, plan: Mapping[str, Any], row: Row) -> bool:
    """Whether a number is one of clients of a deployment that has some: 'and at 32?', but not 'on 32?'"""
    loaded = is_serving(plan) and get(plan, ALL_PATHS[_PEOPLE]) and not row.amounts[-1].scale
    return bool(loaded) and read.tokens[row.start - 1].norm == "at" and row.start > 0


def _is_far(plan: Mapping[str, Any], name: str, row: Row) -> bool:
    """Whether a number in thousands is of another size than what a field holds, or than any but a length: 16k of one
    device, or beside a prompt of 32k."""
    value, held = row.amounts[-1].value, get(plan, ALL_PATHS[name])
    if not row.amounts[-1].scale or name in _LENGTHS_OF:
        return False
    return abs(math.log2(value / held)) > _FAR if held else _nearest(plan, row) in _LENGTHS_OF


def _is_of_data(plan: Mapping[str, Any], topic: Mapping[str, Any], row: Row) -> bool:
    """Whether a number is as large as data in tokens, which were asked for: of a run without any its cost was asked."""
    told = is_serving(plan) or any(get(plan, ALL_PATHS[name]) for name in DATA_SIZES)
    asked = set(topic.get("intents") or ()) & {"cost", "run"}
    return not told and bool(asked) and row.amounts[-1].value >= _FEWEST_TOKENS


def _offered(topic: Mapping[str, Any], row: Row) -> str | None:
    """The field of which a number was set beside others in the answer before ('32 then'), or in which alone these
    differed: 'and 24?'"""
    offers, value = topic.get(OFFERS) or (), row.amounts[-1].value
    values: dict[str, set[Any]] = {}
    for path, held in (pair for offer in offers for pair in offer.items()):
        values.setdefault(path, set()).add(held)
    differ = [path for path, held in values.items() if len(held) == len(offers) > 1]
    names = [name for name, path in ALL_PATHS.items() if path in values and name in lexicon().quantities]
    shown = next((name for name in names if value in values[ALL_PATHS[name]]), None)
    another = [
        name for name in names if differ == [ALL_PATHS[name]] and strange(lexicon().quantities[name], row) <= _UNUSUAL
    ]
    return shown or next(iter(another), None)


def _stands_beside(read: Mentions, row: Row, others: Sequence[Row], sentence: range) -> bool:
    """Whether another number stands in the same part of a sentence."""
    part = _thought(read, row, sentence)
    return any(other is not row and other.start in part for other in others)


def _is_of_other_work(read: Mentions, row: Row, plan: Mapping[str, Any]) -> bool:
    """Whether right beside a number a field is named that only the other kind of work has: 'epochs 3' of serving."""
    beside = [name.field for name in read.found.fields if row.start == name.end or row.end == name.start]
    modes = {mode_of_field(name) for name in beside}
    return bool(modes) and modes == {TRAINING if is_serving(plan) else SERVING}


def _thought(read: Mentions, row: Row, sentence: range) -> range:
    """The part of a sentence between commas that holds a number."""
    commas = [at for at in sentence if read.tokens[at].text in (",", "，", "、")]
    first = max((at + 1 for at in commas if at < row.start), default=sentence.start)
    return range(first, min((at for at in commas if at >= row.end), default=sentence.stop))


def _brought_back(read: Mentions, row: Row, plan: Mapping[str, Any], topic: Mapping[str, Any]) -> str | None:
    """The field that had a number in an earlier plan, or in the one beside which another is supposed, and has another
    now: 'back to 4'."""
    plans, supposed = map(topic.get, ("plans", "supposed"))
    plans, plan = ([*(plans or ()), plan], supposed) if supposed else (plans or (), plan)
    if not _is_of_before(read, row):
        return None
    value, recent = row.amounts[-1].value, field_in(topic, "recent")
    for name in dict.fromkeys((recent, *sorted(known_fields(plan)))) if _stays(read, row) else ():
        if name and get(plan, ALL_PATHS[name]) in (value, row.amounts[-1].length) and name in lexicon().quantities:
            return name
    for earlier in reversed(plans):
        for name in known_fields(earlier):
            before = get(earlier, ALL_PATHS[name])
            if before in (value, row.amounts[-1].length) and get(plan, ALL_PATHS[name]) != before:
                return name
        each = get(earlier, "cluster.per_node")
        if each and value * each == get(earlier, "cluster.count") != get(plan, "cluster.count"):
            return "nodes"
    return None


def counted_before(page: Page, edits: Sequence[Edit]) -> list[Edit]:
    """As many of a device that is gone back to as there were: 'back to the 4090s then'."""
    device = next((edit for edit in edits if edit.field == "accelerator" and edit.op == "set"), None)
    if device is None or not page.read.does("back") or any(edit.field in ("count", "nodes") for edit in edits):
        return []
    match page.topic:
        case {"plans": [*plans]}:
            counts = [get(plan, "cluster.count") for plan in plans if get(plan, "cluster.accelerator") == device.value]
            return [Edit("count", "set", counts[-1], device.span)] if counts and counts[-1] else []
    return []


def _stays(read: Mentions, row: Row) -> bool:
    """Whether words before a number say that something stays: 'leave it at 4'."""
    before = (read.found.sense(at, "stays") for at in range(max(row.start - 3, 0), row.start))
    return any(stays is not None and stays[1] == row.start for stays in before)


def _is_of_before(read: Mentions, row: Row) -> bool:
    """Whether words beside a number say that it was so before: 'back to 4', 'leave it at 4', 'the 8 I first had'."""
    near = range(max(row.start - 3, 0), row.start)
    if _stays(read, row) or any(read.found.sense(at, "had") for at in range(row.end, row.end + 2)):
        return True
    # 'Back to 4', 'back to the full 512'
    onto = [at for at in near if row.start - (read.found.sense(at, "onto") or (0, 0))[1] in (0, 1)]
    return bool(onto) and any(read.found.does(at, "back") for at in range(max(onto[0] - 3, 0), onto[0]))


def _nearest(plan: Mapping[str, Any], row: Row) -> str | None:
    """Of the numbers that a plan holds the one that another is the likeliest to stand for: devices first."""
    value = row.amounts[-1].value
    near: list[tuple[float, str]] = []
    for name in known_fields(plan):
        held, quantity = get(plan, ALL_PATHS[name]), lexicon().quantities.get(name)
        if quantity and value > 0 and held > 0 and held != value and strange(quantity, row) <= _UNUSUAL:
            near.append((abs(math.log2(value / held)) - (name == "count"), name))
    best = min(near, default=(math.inf, ""))
    if best[0] > _FAR and value >= _LENGTHS and value % _LENGTHS == 0:
        # 'Does that change the picture at 8192?'
        return _length(plan)
    # A prompt that came of a context changes with it.
    return "length" if best[1] == "input_len" and get(plan, ALL_PATHS["max_context"]) else best[1] or None


def _length(plan: Mapping[str, Any]) -> str:
    return "max_context" if is_serving(plan) else "seq_len"


def value_alone(page: Page) -> list[Edit]:
    """A value alone as another one of what was changed last: 'none then', 'turn it off'."""
    recent = field_in(page.topic, "recent")
    if not page.plan or recent is None or len(page.read.tokens) > _FEW_WORDS:
        return []
    if switched := _switched(page, recent):
        return [switched]
    meant = {*lexicon().values.get(recent, ()), lexicon().refused.get(recent)}
    for at, token in enumerate(page.read.tokens):
        if token.norm in meant:
            return [Edit(recent, "set", token.norm, page.read.span(at, at + 1))]
    return []


def _switched(page: Page, recent: str) -> Edit | None:
    """'Turn it off' and 'turn it on' of a setting that was changed last."""
    off, on = page.read.does("turn_off"), page.read.does("turn_on")
    if not (off or on) or recent not in lexicon().values:
        return None
    span = page.read.span(*((off or on)[0] + step for step in (0, 1)))
    if off:
        value = lexicon().refused.get(recent)
        return Edit(recent, "drop" if value is None else "set", value, span)
    return Edit(recent, "set", True, span) if get(page.plan, ALL_PATHS[recent]) is False else None
