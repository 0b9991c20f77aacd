"""Changes that are said relatively: half, twice, 20 % more, two more, one less, 6 of the 8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent.offline.beside import MEANT
from agent.offline.form import BESIDE, Edit
from agent.offline.language.asking import asks_which, is_asked, sentences
from agent.offline.language.assign import value_of
from agent.offline.language.lexicon import lexicon
from agent.offline.language.machines_changed import ORDINALS, another
from agent.offline.language.measures import TIMES, Amount, Unit
from agent.offline.language.mentions import SERVING
from agent.offline.language.rows import Row, counts_copies
from agent.offline.language.scope import FACTORS
from agent.offline.language.stepped import is_refused, part_of, steps
from knowledge import figures
from planner.partial import get
from planner.requests import ALL_PATHS, ONLY_SERVING, ONLY_TRAINING

if TYPE_CHECKING:
    from agent.offline.language.assign import Filled
    from agent.offline.language.mentions import Mentions
    from agent.offline.language.reading.page import Page

_REACH = 7
_NEAR = 3
_ALREADY = 12
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
_ADDING = (("raise", "plus"), ("lower", "minus"))
# What is counted one by one.
_COUNTED = ("devices", "nodes", "steps", "epochs", "users")


@dataclass(frozen=True)
class Mark:
    """A factor, or an amount more or less, in tokens [start, end)."""

    start: int
    end: int
    factor: float
    amount: Amount | None = None
    """What is added `factor` times."""
    field: str | None = None
    """The field, where the amount's unit says it."""
    fields: tuple[str, ...] = ()
    """The fields that it may be of, where they stand right beside it."""


def marks(read: Mentions, numbers: Sequence[Row]) -> tuple[list[Mark], list[Row]]:
    """(Every change of a text in its order, the numbers that are none)."""
    # The 'twee' of 'twee keer zoveel' is no number of its own.
    words = list(_worded(read))
    numbers = [row for row in numbers if not any(one.start <= row.start and row.end < one.end for one in words)]
    # '3 times in a day', '2x tp4'
    loose = [row for row in numbers if not (row.amounts[-1].unit("times") and row.amounts[-1].per)]
    loose = [row for row in loose if not counts_copies(read.found, row.amounts[-1].number)]
    changes = [mark for row in loose if (mark := _multiple(read, row) or _share(read, row) or _more(read, row))]
    # 'Half a trillion' is a number, 'v-half' a schedule.
    taken = {at for mark in changes for at in range(mark.start, mark.end)} | read.found.inside
    taken |= {at for row in numbers for at in range(row.start, row.end)}
    changes += [mark for mark in _worded(read) if taken.isdisjoint(range(mark.start, mark.end))]
    # The 'more' of 'a quarter more tp' is a part of that, the 'reduce' of 'double the batch and reduce tp' is not.
    joints = [at for mark in changes for at in read.does("and") if at in part_of(read, mark.start)]
    taken |= {
        at
        for mark in changes
        for at in part_of(read, mark.start)
        if not any(min(at, mark.start) < joint < max(at, mark.start) for joint in joints)
    }
    changes += [Mark(at, end, factor, fields=fields) for at, end, factor, fields in steps(read) if at not in taken]
    taken = {at for mark in changes for at in range(mark.start, mark.end)}
    # 'Don't double the batch', 'don't lower the rank'
    changes = [mark for mark in changes if mark.amount or not is_refused(read, mark.start)]
    return sorted(changes, key=lambda mark: mark.start), [row for row in numbers if row.start not in taken]


def parts(read: Mentions, numbers: Sequence[Row], plan: Mapping[str, Any]) -> list[Row]:
    """The numbers with 'six of the eight cards' as six cards; of eight that the plan has, 'six of the eight', too."""
    rows: list[Row] = []
    devices = get(plan, "cluster.count")
    for row in numbers:
        part = rows[-1] if rows else None
        if part and _is_part(read, part, row):
            first, whole = part.amounts[-1], row.amounts[0]
            lost = not plan and _added(read, Row((*part.amounts, *row.amounts))) == "minus"
            if lost or any(read.found.does(at, "all_but") == part.start for at in range(part.start)):
                # 'We lost 2 of the 10 nodes', 'all but 2 of our 16 cards'
                first = replace(first, value=whole.value - first.value)
            units = whole.units
            each = get(plan, "cluster.per_node")
            counted = ({devices / each: "nodes"} if devices and each else {}) | {devices: "devices"}
            if not (whole.names or units) and whole.value in counted:
                units = (Unit(counted[whole.value], 1.0, whole.start, whole.end),)
            same = replace(first, units=units, names=whole.names, end=whole.end)
            rows[-1] = Row((*part.amounts[:-1], same))
        elif (whole := row.amounts[0]).value > 1 and (start := _one_of_the(read, row.start)) is not None:
            rows.append(Row((replace(whole, value=1.0, digits=1.0, start=start),)))
        else:
            rows.append(row)
    return rows


def _one_of_the(read: Mentions, whole: int) -> int | None:
    """Where 'one' stands of the number at a token: 'only one of the two nodes'."""
    for at in range(max(whole - _REACH, 0), whole - 1):
        single = read.found.sense(at, "number")
        if single is None or single[0].value != 1 or single[1] >= whole:
            continue
        # 'Un seul des deux'
        of = single[1] + (read.tokens[single[1]].norm in read.found.lexicon.articles)
        behind = read.found.does(of, "of_the") or whole + 1
        if behind <= whole and all(
            read.tokens[step].norm in read.found.lexicon.pointing for step in range(behind, whole)
        ):
            return at
    return None


def _is_part(read: Mentions, part: Row, whole: Row) -> bool:
    """Whether 'of the' is all that stands between two numbers, of which the second is the larger."""
    last, first = part.amounts[-1], whole.amounts[0]
    between = range(last.number, whole.start)
    words = {step for at in between for step in range(at, read.found.does(at, "of_the") or at)}
    if not (last.units or last.names) and len(between) == 1 and read.found.sense(between.start, "part"):
        words.update(between)
    pointing = (read.tokens[at].norm in read.found.lexicon.pointing or at in words for at in between)
    return bool(words) and all(pointing) and not last.per and 0 < last.value <= first.value


def _worded(read: Mentions) -> Iterator[Mark]:
    """'Double', 'half', 'a third more', 'four times less'."""
    behind = 0
    for at in read.does(*FACTORS):
        end, factor = max((read.found.does(at, name) or 0, value) for name, value in FACTORS.items())
        counted = at + 1 < len(read.tokens) and read.tokens[at].kind == "number" and not _is_factor(read, at + 1)
        counted |= counts_copies(read.found, at + 1)
        # 'And a third card?', 'a third 3090'
        machine = read.found.has_unit(end, "devices", "nodes") or end in read.found.counted
        counted |= machine and read.tokens[end - 1].norm in ORDINALS
        longest = read.found.words[at][0]
        if at < behind or counted or (longest.end > end and longest.get("stop")):
            # 'Double check that'
            continue
        behind = end
        by = _way(read, at) if at and read.found.sense(at - 1, "by_amount") and factor != 0.5 else None
        yield _directed(read, at, end, factor, by)


def _multiple(read: Mentions, row: Row) -> Mark | None:
    """'3x the users', 'ten times as many', 'by a factor of 2'; not '4x H100'."""
    amount = row.amounts[0]
    if len(row.amounts) > 1 or amount.value <= 0:
        return None
    if _stands_by(read, row.start) and _way(read, row.start, "divide"):
        # 'Divise la longueur par deux'
        return Mark(row.start, amount.number, 1 / amount.value)
    for start in range(max(row.start - 4, 0), row.start):
        if (factor := read.found.sense(start, "factor")) and factor[1] == row.start:
            return _directed(read, start, amount.number, amount.value, _way(read, start))
    behind = amount.number
    if behind < len(read.tokens) and _is_factor(read, behind):
        return _directed(read, row.start, behind + 1, amount.value, _way(read, row.start))
    return None


def _is_factor(read: Mentions, at: int) -> bool:
    """Whether a sign behind a number makes it a factor, not a number of what follows."""
    sign = read.tokens[at].norm in TIMES or read.found.has_unit(at, "times")
    after = at + 1
    if not sign or after in read.found.names:
        return False
    if read.tokens[at].kind == "single":
        # 2倍
        return True
    if after >= len(read.tokens) or read.tokens[after].ends_clause:
        return True
    token = read.tokens[after]
    if token.norm in read.found.lexicon.pointing:
        return True
    sized = read.found.sense(after, "larger") or read.found.sense(after, "smaller")
    return bool(sized or read.found.sense(after, "field")) and not read.found.has_unit(after, "devices", "nodes")


def _share(read: Mentions, row: Row) -> Mark | None:
    """'20 % more GPUs', 'increase the batch by 50 %'."""
    amount = row.amounts[0]
    if len(row.amounts) > 1 or not (unit := amount.unit("percent")) or amount.value <= 0:
        return None
    part = amount.value * unit.size
    larger, smaller = (read.found.sense(amount.end, kind) for kind in ("larger", "smaller"))
    by = _way(read, row.start) if row.start and read.found.sense(row.start - 1, "by_amount") else None
    if not (larger or smaller or by):
        return None
    up = by == "raise" or (by is None and larger)
    return Mark(row.start, amount.end, 1 + part if up else 1 - part)


def _more(read: Mentions, row: Row) -> Mark | None:
    """'Raise the rank by 8', 'add 16 to the batch': of what is named there, whatever else such a number may be."""
    amount = row.amounts[0]
    if len(row.amounts) > 1 or amount.value <= 0 or amount.names:
        return None
    way = next((way for way in ("later", "sooner") if read.found.sense(amount.end, way)), None)
    if way and amount.unit("time") and not amount.per:
        return Mark(row.start, amount.end, 1 if way == "later" else -1, amount, "deadline_h")
    counted = next((_OF_UNIT[unit.name] for unit in amount.units if unit.name in _COUNTED), None)
    if counted and not (amount.per or read.found.sense(amount.number, "onto")) and (sign := _added(read, row)):
        return Mark(row.start, row.end, 1 if sign == "plus" else -1, amount, counted)
    by = _way(read, row.start) if _stands_by(read, row.start) else None
    if by is None and (read.found.sense(amount.number, "onto") or read.found.sense(amount.end, "onto")):
        if read.found.sense(amount.number, "onto"):
            # 'Add 4 to the request rate': no unit of what stands behind is the number's.
            amount = replace(amount, units=(), end=amount.number)
        by = next((way for way, name in _ADDING if row.start and read.found.does(row.start - 1, name)), None)
    return Mark(row.start, amount.end, 1 if by == "raise" else -1, amount) if by else None


def _directed(read: Mentions, start: int, end: int, factor: float, by: str | None) -> Mark:
    """A factor with its direction: 'a third more', 'reduced by a quarter', 'four times fewer'."""
    larger, smaller = (read.found.sense(end, kind) for kind in ("larger", "smaller"))
    if smaller or by == "lower":
        factor = 1 / factor if factor > 1 else 1 - factor
    elif factor < 1 and (larger or by == "raise"):
        factor = 1 + factor
    return Mark(start, end, factor)


def _way(read: Mentions, at: int, *ways: str) -> str | None:
    """Which of some verbs stands before, in the same clause; else whether one says up or down."""
    for before in range(at - 1, max(at - _ALREADY, -1), -1):
        if read.tokens[before].ends_clause:
            return None
        for kind in ways or ("raise", "lower"):
            if read.found.sense(before, kind):
                return kind
    return None


def factors(page: Page) -> list[Edit]:
    """'Double the batch', 'half as many GPUs', 'twice that', 'another box'."""
    edits: list[Edit] = []
    guessed: str | None = None
    for mark in page.marks:
        wanted = _figure_wanted(page, mark)
        if not (wanted and asks_which(page.read.found)) and not mark.fields and _of_a_figure(page, mark):
            continue
        if wanted:
            edits += _goal(page, mark, *wanted)
            continue
        others = [other for other in page.marks if other is not mark]
        # 'By a third... no, by half'
        corrected = bool(edits) and any(
            edits[-1].span[1] <= page.read.tokens[at].start < page.read.tokens[mark.start].start
            for at in page.read.does("correct")
        )
        meant = mark.field or next((name for name in mark.fields if _of_kind(page, name)), None)
        target = meant or (edits[-1].field if corrected else _target(page, mark, others))
        if target is None and edits and guessed:
            # 'A longer context, say four times that'
            target, corrected = guessed, True
        span = page.read.span(mark.start, mark.end)
        if (share := _share_of(page, mark)) and share != target:
            edits.append(Edit(share, "set", mark.factor, span))
        elif target is None or (target == "deadline_h" and mark.amount and target not in page.known):
            page.lost.append((mark.start, mark.end))
        elif mark.factor < 1 and mark.amount is None and target not in page.known and _is_a_share(page, target):
            # 'Half of it hits the prefix cache'
            edits.append(Edit(target, "set", mark.factor, span))
        elif corrected or not any(edit.field == target for edit in edits):
            edits = [edit for edit in edits if not (corrected and edit.field == target)]
            edits.append(Edit(target, *_operation(target, mark), span, _guessed(page, mark)))
            guessed = target if mark.fields else None
    return edits or another(page)


# Limits by the figures of the last answer that they bound.
_BOUNDS = {"usd": "budget_usd", "hours": "deadline_h"}
# What is more where there are fewer hours.
_SPEEDS = (("judged", "speed"), ("focus", "faster"), ("figure", "throughput.tokens_per_s"))


def _figure_wanted(page: Page, mark: Mark) -> tuple[str, float] | None:
    """(The figure of an answer, how many times it) that a change is of: 'halve the cost', 'twice as fast'. A field of
    the same name that the plan has is changed itself, unless it is a limit."""
    if mark.amount or mark.field or mark.fields:
        return None
    named = {
        at: ((name, 1) if name in _BOUNDS else ("hours", -1), end)
        for kind in ("figure", "judged", "focus")
        for at, end, name in page.read.asked_at(kind)
        if (kind == "figure" and name in _BOUNDS) or (kind, name) in _SPEEDS
    }
    fields = {at: names for at, names in _named(page) if any(_is_known(page, name) for name in names)}
    for way in (range(mark.end, mark.end + _NEAR), range(mark.start - 1, mark.start - 1 - _NEAR, -1)):
        for at in way:
            # 'The cost limit' is a field of the plan, 'the cost' what it comes to.
            limits = set(_BOUNDS.values()).intersection(fields.get(at, ()))
            field = at in fields and (not limits or (at in named and named[at][1] in fields))
            if field or not 0 <= at < len(page.read.tokens) or page.read.tokens[at].ends_clause:
                break
            if at in named:
                (figure, power), _ = named[at]
                return figure, mark.factor**power
    return None


def _goal(page: Page, mark: Mark, figure: str, factor: float) -> list[Edit]:
    """The limit that makes a figure so many times what was told; nothing where none was told."""
    told = (page.topic.get("told") or {}).get(figure)
    if told is None and _BOUNDS[figure] in page.known:
        return [Edit(_BOUNDS[figure], "times", factor, page.read.span(mark.start, mark.end))]
    if told is None or factor >= 1:
        page.lost.append((mark.start, mark.end))
        return []
    bound = float(f"{told * factor:.6g}")
    most = figures.usd(bound) if figure == "usd" else figures.hours(bound)
    note = f"{page.read.said(mark.start, mark.end)!r} taken as at most {most}"
    return [Edit(_BOUNDS[figure], "set", bound, page.read.span(mark.start, mark.end), note)]


def _guessed(page: Page, mark: Mark) -> str | None:
    """What is said of a change whose size nobody said."""
    size = "twice" if mark.factor > 1 else "half"
    return f"{page.read.said(mark.start, mark.end)!r} taken as {size} as much" if mark.fields else None


def _is_a_share(page: Page, name: str) -> bool:
    quantity = page.read.found.lexicon.quantities.get(name)
    return quantity is not None and "percent" in quantity.of


# What is asked for, not set: 'does that halve the time?'
_FIGURES = ("time", "run", "cost", "memory", "throughput", "latency", "faster", "need")


def _of_a_figure(page: Page, mark: Mark) -> bool:
    """Whether a question asks for a factor between figures."""
    if mark.field or not is_asked(page.read.found, mark.start):
        return False
    figures = {at for at, _, name in page.read.asked_at("focus") if name in _FIGURES}
    return any(at in figures for at in range(mark.end, mark.end + _NEAR))


def _share_of(page: Page, mark: Mark) -> str | None:
    """The field of a share that a part is said to be of something: 'half of each prompt is cached'."""
    found, quantities = page.read.found, page.read.found.lexicon.quantities
    of = found.sense(mark.end, "part") or found.sense(mark.end - 1, "part")
    if mark.amount or mark.factor >= 1 or not of:
        return None
    used = {at for number in page.filled if number.name for at in range(*number.name)}
    sentence = next(part for part in sentences(page.read.tokens) if mark.start in part)
    # 'Half of the prompts' is of them, whatever else 'of the prompts' may name.
    named = [one for one in found.fields if mark.end + 1 < one.start < sentence.stop and one.start not in used]
    meant = [name for one in named for name in MEANT.get(one.field, (one.field,)) if name in ALL_PATHS]
    shares = [name for name in meant if name in quantities and "percent" in quantities[name].of]
    return next((name for name in shares if _of_kind(page, name)), None)


def _operation(target: str, mark: Mark) -> tuple[str, float]:
    if mark.amount is None:
        return "times", mark.factor
    return "plus", mark.factor * value_of(lexicon().quantities[target], mark.amount, mark.amount)


def exchanged(page: Page) -> list[Edit]:
    """'Swap tp and pp', 'tp the other way round with pp': two numbers of the plan that take each other's place."""
    if not page.read.does("swap", "round") or page.filled:
        return []
    named = dict.fromkeys(name for _, names in _named(page) for name in names[:1] if name in page.known)
    if len(named) != 2:
        return []
    first, second = named
    span = page.read.span(0, len(page.read.tokens))
    held = {name: get(page.topic.get("supposed") or page.plan, ALL_PATHS[name]) for name in named}
    return [Edit(first, "set", held[second], span), Edit(second, "set", held[first], span)]


def _target(page: Page, mark: Mark, others: Sequence[Mark]) -> str | None:
    """The field that a change is of: what is named behind it, then before it, then what was changed last."""
    taken = {at for mark in others for at in range(mark.start, mark.end)}
    named = dict(_named(page))
    ahead = range(mark.end, min(mark.end + _REACH, len(page.read.tokens)))
    back = range(mark.start - 1, max(mark.start - _REACH, -1), -1)
    for way in (back, ahead) if _stands_by(page.read, mark.start) else (ahead, back):
        for at in way:
            if at in taken or (page.read.tokens[at].ends_clause and at not in page.read.named_tokens):
                break
            if target := next((name for name in named.get(at, ()) if _takes(name, mark.amount)), None):
                return target
    recent = page.topic.get("recent") if page.topic.get("followed", True) else None
    if str(recent).startswith("cluster.") and mark.amount is None:
        # 'Use B200 instead', 'half as many'
        return "count"
    changed = next((name for name, path in ALL_PATHS.items() if path == recent and _takes(name, mark.amount)), None)
    return changed or (_load_meant(page) if mark.amount is None else None)


def _load_meant(page: Page) -> str | None:
    """The load of a deployment of which nothing was changed yet: 'double that for the sale'."""
    loads = ("request_rate", "concurrency") if page.mode == SERVING else ()
    return next((name for name in loads if get(page.plan, ALL_PATHS[name])), None)


def _takes(name: str, amount: Amount | None) -> bool:
    """Whether an amount may be one of a field: its unit is one that the field is counted in."""
    quantity = lexicon().quantities.get(name)
    if quantity is None:
        return amount is None and name in BESIDE
    if amount is None:
        return True
    return not amount.units or any(unit.name in quantity.of for unit in amount.units)


def _named(page: Page) -> Iterator[tuple[int, list[str]]]:
    """(Token, the fields that a name there may mean, those that the plan holds first); of names inside longer ones
    only the longer, at each of its tokens."""
    behind = 0
    for at in range(len(page.read.tokens)):
        if at in page.read.found.counted:
            yield at, ["count"]
        elif at >= behind and at not in page.read.named_tokens and (names := _fields_at(page, at)):
            behind = names[0]
            yield from ((step, names[1]) for step in range(at, behind))


def _fields_at(page: Page, at: int) -> tuple[int, list[str]] | None:
    """(The token behind the longest name at a token, the fields that it may mean)."""
    for word in page.read.found.words.get(at, ()):
        names = [_OF_UNIT[sense.name] for sense in word.all("unit") if sense.name in _OF_UNIT]
        names += [sense.name for sense in word.all("field")]
        names += [sense.name for sense in word.all("asked") if sense.value == "goal"]
        names += ["request_rate"] if "requests" in names else []
        own = [name for name in dict.fromkeys(names) if name in (*ALL_PATHS, *BESIDE) and _of_kind(page, name)]
        known = [name for name in own if _is_known(page, name)]
        # 'On' and 'each' alone name nothing that is half.
        small = word.end == at + 1 and page.read.tokens[at].norm in lexicon().placing | lexicon().apiece
        stop = page.read.found.sense(at, "stop")
        if own and not small and (known or not (stop or own[0] in _LIMITS)):
            return word.end, [*known, *own]
    return None


# Limits are named by words that mean other things, too: only where there is one.
_LIMITS = ("deadline_h", "budget_usd", "reserve_gib", "usable_gib", "input_len", "prompt_len")


def _is_known(page: Page, name: str) -> bool:
    return any(each in page.known for each in MEANT.get(name, (name,)))


def _of_kind(page: Page, name: str) -> bool:
    """Whether the plan is of the kind of work that has the field."""
    serving = (page.plan.get("workload") or {}).get("kind") == "inference"
    other = ONLY_TRAINING if serving else ONLY_SERVING
    return any(each not in other for each in MEANT.get(name, (name,)))


def differences(page: Page, filled: Sequence[Filled]) -> dict[int, str]:
    """{Token of a number: plus or minus} of numbers that are added or taken away: '2 more nodes', 'lose one of
    them'."""
    signs: dict[int, str] = {}
    for number in filled:
        if len(number.values) != 1 or number.field not in (*ALL_PATHS, *BESIDE) or not page.plan:
            continue
        # 'Why is ZeRO-1 missing?': what has its name before it is not counted.
        counted = number.name is None or number.name[1] > number.row.start or number.field in _MACHINES
        if sign := _added(page.read, number.row, counted):
            signs[number.row.start] = sign
    return signs


# What stands between a word that takes something away and where that is.
_WHERE = ("at", "@")
# What a run is on.
_MACHINES = ("count", "nodes", "per_node", "racks")


def _stands_by(read: Mentions, at: int) -> bool:
    """Whether 'by' stands right before a number."""
    before = (read.found.sense(start, "by_amount") for start in range(max(at - 3, 0), at))
    return any(by is not None and by[1] == at for by in before)


def _added(read: Mentions, row: Row, behind_it: bool = True) -> str | None:
    """Whether words beside a number add it or take it away, not lead to it: 'drop to 4', 'more like 60 %'."""
    sign = None
    behind = read.found.sense(row.end, "onto") and read.tokens[row.end].kind == "single"
    if behind or any(
        (onto := read.found.sense(at, "onto")) and onto[1] == row.start
        for at in range(max(row.start - 2, 0), row.start)
    ):
        return None
    counted = row.amounts[-1].units or row.amounts[-1].names
    limits = {at for start, end, _ in read.limits for at in range(start, end)}
    last = min(row.end + 4, len(read.tokens)) if behind_it else row.end
    for at in range(max(row.start - 2, 0), last):
        behind = at >= row.end
        if at < row.start - 1 and read.tokens[row.start - 1].norm in _WHERE:
            # 'Why is ZeRO-1 missing at 16k?'
            continue
        if behind and any(read.tokens[step].ends_clause for step in range(row.end, at + 1)):
            break
        # 'Un nodo más de 4' is no 'more than 4'.
        words = read.found.words.get(at, ()) if at not in limits or (at == row.end and counted) else ()
        does = {sense.name for word in words for sense in word.all("does")}
        if "contrast" in does and at > 0 and read.tokens[at - 1].ends_clause:
            # French 'la H200, mais deux seulement'; Portuguese 'mais dois nós' adds two.
            continue
        if "plus" in does and not (behind and at > row.end + 1):
            sign = "plus" if counted or "and" not in does else sign
        elif "minus" in does:
            sign = "minus"
    return sign


def known_fields(plan: Mapping[str, Any]) -> frozenset[str]:
    """Flat names of the numbers that a partial plan holds."""
    values = {name: get(plan, path) for name, path in ALL_PATHS.items()}
    return frozenset(
        name for name, value in values.items() if isinstance(value, int | float) and not isinstance(value, bool)
    )
