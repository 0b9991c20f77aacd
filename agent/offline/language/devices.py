"""Which devices are spoken of, how many, and in how many machines: '4x8 H100', '2 nodes with 4 A100 each', '6 of the
8'."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agent.offline.language.amounts import of_a_field
from agent.offline.language.assign import Filled, single
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import TIMES, Amount, Found, Unit
from agent.offline.language.mentions import Mentions
from agent.offline.language.names import Name
from agent.offline.language.rows import Row

# How far behind a device its number may begin: 'A100 x4'.
_BEHIND = 3
# Between machines and what each of them has.
_HOLDS = ("are", "is", "have", "has", ":", "=", "sind", "haben", "son", "tienen", "sont", "ont", "tem", "sao")
_OF = ("of", "with", "mit", "met", "de", "avec", "con", "com", "(", "（")
# No machine has more: '8 nodes = 64 GCDs' counts all.
_MOST_OF_ONE = 16
# Devices of most machines.
_USUAL = 8


@dataclass(frozen=True)
class Devices:
    """A device that is named with how many of it were said, if any. `nodes` machines of `per_node`."""

    name: Name
    count: int | None = None
    nodes: int | None = None
    per_node: int | None = None


@dataclass(frozen=True)
class Pair:
    """'4x8 H100': machines and devices of each, with the tokens that say so."""

    nodes: Amount
    each: Amount


def pairs(found: Found, rows: Sequence[Row]) -> tuple[list[Pair], list[Row]]:
    """(Machines times devices, the rest of the numbers)."""
    made: list[Pair] = []
    rest: list[Row] = []
    for row in rows:
        amount = row.amounts[0]
        counts = amount.names or amount.unit("devices") is not None
        counted = bool(rest) and _counts_machines(found, rest[-1].amounts[-1])
        beside = counted and amount.before == "," and amount.names and rest[-1].end == row.start
        beside = beside or (counted and amount.names and _are_machines_of(found, rest[-1], row))
        if counted and len(row.amounts) == 1 and (amount.before == "x" or beside) and counts:
            first = rest.pop().amounts[-1]
            if amount.names:
                made.append(Pair(first, amount))
            else:
                # '2 x 4 GPUs': machines of no device that is named here.
                machines = replace(first, units=(Unit("nodes", 1.0, first.start, first.end),))
                rest += [Row((machines,)), row]
        else:
            rest.append(row)
    return made, rest


def _are_machines_of(heard: Found, machines: Row, row: Row) -> bool:
    """Whether machines that are counted hold so many of a device each: '2 nodes of 8 B200'."""
    between = row.start - machines.end
    return bool(machines.amounts[-1].unit("nodes")) and between == 1 and heard.text[row.start - 1].norm in _OF


def _counts_machines(heard: Found, amount: Amount) -> bool:
    """Whether a number may be one of machines: it is no size, counts nothing else ('16 generations'), and is of no
    field that is named before it ('batch size 8 4x4090')."""
    counted = all(unit.name in ("nodes", "devices") for unit in amount.units)
    return counted and not (amount.is_size or amount.scale or of_a_field(heard, amount.start, amount.value))


def of_those(read: Mentions, filled: Sequence[Filled]) -> tuple[list[Filled], int | None]:
    """(The numbers without 'one of them' and '3 of those' where other words count, how many of the rentable machine
    that is named they mean)."""
    counts = [number for number in filled if number.field in ("count", "nodes")]
    those = [one for one in counts if read.found.sense(_unit_start(one), "them")]
    if not those or not read.names or (len(those) == len(counts) and not read.of("instance")):
        return list(filled), None
    first = min(number.row.end for number in counts)
    if len(counts) > len(those) and any(first <= at < those[0].row.start for at in read.does("or", "versus")):
        # 'FP8 on 2 H100 or BF16 on 4 of them'
        return list(filled), None
    machines = _whole(those[0].values[0]) if read.of("instance") else None
    if machines is None and (later := _in_a_later_sentence(read, counts, those)):
        # 'I have 16 H100. Take 8 of them.'
        return [number for number in filled if number not in counts or number in later], None
    return [number for number in filled if number not in those], machines


def _in_a_later_sentence(read: Mentions, counts: Sequence[Filled], those: Sequence[Filled]) -> list[Filled]:
    """Those that are said of again, behind the sentence that counts them."""
    others = [number for number in counts if number not in those]
    ends = [at for at, token in enumerate(read.tokens) if token.ends_sentence]
    return [
        each for each in those[-1:] if all(any(one.row.end <= at < each.row.start for at in ends) for one in others)
    ]


def _unit_start(filled: Filled) -> int:
    units = filled.row.amounts[-1].units
    return units[0].start if units else filled.row.end


def devices(
    read: Mentions, filled: Sequence[Filled], made: Sequence[Pair], refused: frozenset[int], machines: int | None = None
) -> list[Devices]:
    """Every device that is named, in the order of the text, each with its own numbers; `machines` of the one that can
    be rented where no number stands at it."""
    counts = sorted(single(filled, "count"), key=lambda number: number.row.start)
    named = [name for name in read.of("accelerator", "instance") if name.start not in refused]
    found: list[Devices] = []
    starts = [one.row.start for one in counts]
    for index, name in enumerate(named):
        first = named[index - 1].start if index else 0
        near = counts[bisect_left(starts, first) : bisect_left(starts, name.end + _BEHIND)]
        pair = next((one for one in made if _belongs(read, one.each, name, named[max(index - 1, 0) :])), None)
        own = next(
            (one for one in near if _belongs(read, one.row.amounts[-1], name, named[max(index - 1, 0) : index + 2])),
            None,
        )
        count = _whole(own.values[0]) if own else None
        if name.count:
            found.append(Devices(name, name.count * (count or 1)))
        elif count and not pair and name.box and _is_board(read, name, count):
            found.append(Devices(name, count))
        elif count and not pair and (name.box or of_machines(read, name)):
            times = own is not None and not name.box and read.tokens[own.row.end].norm in TIMES
            # 'One 8xH100 box' has eight; 'eight H100 boxes' are eight machines.
            found.append(Devices(name, count, 1, count) if times else Devices(name, None, count))
        elif name.instance:
            number = count or machines or 1
            found.append(Devices(name, number * name.instance.count, number, name.instance.count))
        elif pair:
            nodes, each = _whole(pair.nodes.value) or 1, _whole(pair.each.value) or 1
            found.append(Devices(name, nodes * each, nodes, each))
        else:
            found.append(Devices(name, count or of_an_article(read, name)))
    return found


def machines_of_each(
    read: Mentions, named: Sequence[Devices], filled: Sequence[Filled]
) -> tuple[list[Devices], list[Filled]]:
    """(Each of several devices with the machines of it that are counted right before it, the rest of the numbers): '8
    H100 or 4 nodes of A100'."""
    if len(named) < 2:
        return list(named), list(filled)
    before = {number.row.end: number for number in single(filled, "nodes")}
    used: list[Filled] = []
    for index, each in enumerate(named):
        of = each.name.start - 1
        number = before.get(of) if of > 0 and read.tokens[of].norm in _OF else None
        if number and not (each.count or each.nodes):
            named = [*named[:index], replace(each, nodes=_whole(number.values[0])), *named[index + 1 :]]
            used.append(number)
    return list(named), [number for number in filled if number not in used]


def of_an_article(read: Mentions, name: Name) -> int | None:
    """One, of 'a 4090', 'a used 3090' and 'an L4'."""
    start = next((at for at in range(max(name.start - 2, 0), name.start) if _makes(read, at, name.start)), name.start)
    while start > 1 and (read.tokens[start - 1].norm in lexicon().described or read.tokens[start - 1].text == "-"):
        start -= 1
    before = read.tokens[start - 1].norm if start else ""
    # The S of an L40S is its own.
    plural = name.text[-1:] in "sS" and not (name.id or "").endswith("s")
    machine = is_machine(read, name) or of_machines(read, name)
    return 1 if before in lexicon().articles and not plural and not machine else None


def _makes(read: Mentions, at: int, end: int) -> bool:
    """Whether words of who makes a device lead to its name: the 'Mac Studio' of 'a Mac Studio M3 Ultra'."""
    words = read.found.words.get(at, ())
    return any(word.end == end and any(sense.value == "maker" for sense in word.all("asked")) for word in words)


def _is_rack(read: Mentions, name: Name) -> bool:
    """Whether a device is named as a rack of them: 'GB200 NVL72'."""
    inside = read.tokens[name.start : name.end]
    return any(token.norm == "nvl" and behind.kind == "number" for token, behind in pairwise(inside))


def is_machine(read: Mentions, name: Name) -> bool:
    """Whether a name is one of a machine, or a rack, of several devices."""
    return name.box or _is_rack(read, name)


def _is_board(read: Mentions, name: Name, count: int) -> bool:
    """Whether devices on their board are counted: '8x HGX H100', not '2 HGX H100' or '8 HGX H100 servers'."""
    return "hgx" in name.text.lower() and not count % _USUAL and not of_machines(read, name)


def of_machines(read: Mentions, name: Name) -> bool:
    """Whether what is counted are machines of that device: 'one H100 node', '32 HGX H100 nodes'."""
    return read.found.has_unit(name.end, "nodes")


def _whole(value: float) -> int | None:
    return int(value) if value == int(value) and value >= 1 else None


def _belongs(read: Mentions, amount: Amount, name: Name, named: Sequence[Name]) -> bool:
    """Whether a number counts that device: it stands right before it, or 'x 4' right behind."""
    if not amount.names:
        return False
    following = next((name for name in named if name.start >= amount.start), None)
    sign = amount.start and (
        read.tokens[amount.start - 1].norm in TIMES or read.found.does(amount.start - 1, "times_sign")
    )
    if sign:
        before = [name for name in named if name.end <= amount.start]
        if before and before[-1].end == amount.start - 1:
            return before[-1] is name
    return following is name


def apart(read: Mentions, filled: Sequence[Filled]) -> list[Filled]:
    """The numbers with a count of devices taken as those of one machine, where the words mean that."""
    nodes = [number for number in filled if number.field == "nodes" and (number.ranged or len(number.values) == 1)]
    counts = single(filled, "count")
    if not (nodes or counts):
        # 'A node with 4 of them' is one.
        return [replace(number, field="count") if _of_one_node(read, number) else number for number in filled]
    if not nodes and len(counts) == 1 and _of_unknown_nodes(read, counts[0].row):
        return [replace(number, field="per_node") if number is counts[0] else number for number in filled]
    if not nodes and len(counts) == 2 and _is_of_each_machine(read, *(number.row for number in counts)):
        return [replace(number, field="per_node") if number is counts[1] else number for number in filled]
    if len(nodes) != 1 or len(counts) != 1 or any(number.field == "per_node" for number in filled):
        return list(filled)
    node, count = nodes[0], counts[0]
    each = _is_each(read, node.row, count.row) or count.values[0] < node.values[0]
    taken = Filled("per_node", count.values, count.row, count.cost, count.name)
    return [taken if number is count and each else number for number in filled]


def _is_of_each_machine(read: Mentions, machines: Row, each: Row) -> bool:
    """Whether the second of two numbers is what each machine of the first holds: 'two DGX H100 (8 cards each)'."""
    named = [name for name in read.of("accelerator", "instance") if name.start == machines.end]
    return (
        any(is_machine(read, name) for name in named) and machines.end < each.start and _is_each(read, machines, each)
    )


def _of_a_machine(read: Mentions, count: Row) -> bool:
    """Whether a number says what machines hold that were counted before: 'nodes are 8xH100', 'each node has 8'."""
    verb = count.start - 1
    holds = verb > 0 and read.tokens[verb].norm in _HOLDS and count.amounts[-1].value <= _MOST_OF_ONE
    return holds and read.found.has_unit(verb - 1, "nodes")


def _of_one_node(read: Mentions, number: Filled) -> bool:
    name = number.name if number.field == "per_node" and len(number.values) == 1 else None
    if name is None or name[1] > number.row.start:
        return False
    return any(token.norm in lexicon().articles for token in read.tokens[max(name[0] - 1, 0) : name[0] + 1])


def _of_unknown_nodes(read: Mentions, row: Row) -> bool:
    """Whether a number stands behind machines that were not counted: 'how many nodes of 8 H100', 'a node of 8'."""
    at = row.start - 1
    if at < 1 or read.tokens[at].norm not in _OF:
        return False
    one = at > 1 and read.tokens[at - 2].norm in lexicon().articles
    return read.found.ends_unit(at, "nodes") and not one


def _before_machines(read: Mentions, count: Row) -> bool:
    """Whether machines stand right behind a number of devices, a suffix apart: 'H100 8장짜리 서버'."""
    at = count.end
    while at < min(count.end + 2, len(read.tokens)) and read.tokens[at].kind == "single" and not read.tokens[at].space:
        at += 1
    return read.found.has_unit(count.end, "nodes") or read.found.has_unit(at, "nodes")


def _is_each(read: Mentions, node: Row, count: Row) -> bool:
    if node.end <= count.start:
        span = range(node.end, count.start)
        between = [read.tokens[at].norm for at in span]
        named = any(at in read.found.names for at in span)
        if not between and count.amounts[-1].value <= _USUAL:
            # '两台8卡'
            return True
        if len(between) <= 4 and not named and any(word in read.found.lexicon.apiece for word in between):
            return True
    if _of_a_machine(read, count) or _of_unknown_nodes(read, count) or _before_machines(read, count):
        # 'Nodes of 4 V100, two of them', 'H100 8장 서버 두 대'
        return True
    behind = [read.tokens[at].norm for at in range(count.end, min(count.end + 5, len(read.tokens)))]
    return "each" in behind or ("per" in behind and "node" in behind)
