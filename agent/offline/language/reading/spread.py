"""Ways to spread a model that are said by their names alone, over the devices that are counted: 'tensor or pipeline
parallel on 2 nodes of 8 H100', '3 GPUs for tensor parallel'."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agent.offline.form import Edit
from agent.offline.language.asking import is_asked
from agent.offline.language.assign import single
from agent.offline.language.measures import Named
from agent.offline.language.mentions import SERVING, Value
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.things import free_names
from agent.offline.language.scope import supposes
from knowledge.machines.catalogue import find_accelerator
from planner.partial import get

_WAYS = ("tp", "pp", "cp", "dp")
_SHARDED = {
    ("framework", "fsdp1"),
    ("framework", "fsdp2"),
    ("framework", "deepspeed"),
    ("zero_stage", 3),
    ("zero_stage", 2),
}
# Tokens between a number of devices and the way that they are for: 'for', 'across all'.
_BESIDE = 2
# Numbers of devices, and names of ways, that are looked at.
_MOST = 8


def ways(page: Page) -> list[Named]:
    """The ways to spread a model that are set against one another, each once; of training beside weights that are
    sharded."""
    if not page.read.does("or", "versus", "compare", "contrast"):
        return []
    named = {way.field: way for way in _free(page) if way.start not in page.refused.things}
    least = 0 if page.mode != SERVING and sharded(page) else 1
    return list(named.values()) if len(named) > least and (page.mode == SERVING or least == 0) else []


def sharded(page: Page) -> list[Value]:
    """What shards weights over all devices, where it is named in a text about training."""
    return [
        value for value in page.kept
        if (value.field, value.value) in _SHARDED and value.start not in page.refused.things
    ][:1]  # fmt: skip


def _free(page: Page) -> list[Named]:
    """The ways that are named and no number was said of."""
    return [way for way in free_names(page.read, page.filled) if way.field in _WAYS]


def spread(page: Page, edits: Sequence[Edit]) -> list[list[Edit]]:
    """What each way takes all devices for."""
    sizes = _sizes(page, edits)
    choices = [(way.start, way.end, sizes[way.field]) for way in ways(page) if way.field in sizes]
    if choices and page.mode != SERVING:
        choices += [(value.start, value.end, {value.field: value.value}) for value in sharded(page)]
    return [
        [Edit(name, "set", size, page.read.span(start, end)) for name, size in each.items()]
        for start, end, each in sorted(choices, key=lambda one: one[0])
    ]


def _sizes(page: Page, edits: Sequence[Edit], together: bool = False) -> dict[str, dict[str, int]]:
    """{Way: the layout that it is taken as}: tensor parallel over the devices of a machine, pipeline parallel from
    machine to machine (or from device to device of one), replicas of one device; empty where nothing is to be spread
    over. Each way alone takes all devices of a deployment, unless they are taken `together`."""
    counted = {edit.field: edit.value for edit in edits if edit.op == "set" and isinstance(edit.value, int)}
    count, nodes, each = (
        counted.get(name) or get(page.plan, f"cluster.{name}") for name in ("count", "nodes", "per_node")
    )
    device = next((edit.value for edit in edits if edit.field == "accelerator"), get(page.plan, "cluster.accelerator"))
    if count and not (nodes or each) and isinstance(device, str):
        each = min(count, find_accelerator(device).value.per_node)
    nodes = nodes or (count // each if count and each and not count % each else 1)
    devices = count or nodes * (each or 0)
    if devices < 2 or devices % nodes:
        return {}
    stages = nodes if nodes > 1 else devices
    if page.mode == SERVING and not together:
        return {"tp": {"tp": devices, "pp": 1}, "pp": {"tp": devices // stages, "pp": stages}, "dp": {"dp": devices}}
    # How the rest is spread is the search's.
    return {"tp": {"tp": devices // nodes}, "pp": {"pp": stages}, "cp": {"cp": devices // nodes}, "dp": {"dp": devices}}


# Of a size nobody says how large it is to be.
_SIZES = ("size", "sizes", "degree", "degrees", "ranks", "split")
# What stands between ways that are listed.
_LISTING = ("/", ",", "and", "&", "+", "、", "(", "und", "y", "et", "e", "和")


def asks_sizes(page: Page) -> bool:
    """Whether the sizes of a layout are asked for by their names: 'tp/pp/ep split', 'which tensor parallel degree',
    'what tp and pp should I use'. 'With tp and pp' tells them."""
    free = [way for way in free_names(page.read, page.filled) if way.field in (*_WAYS, "ep")]
    if not free or page.read.does("or", "versus", "compare", "contrast"):
        return False
    tokens = page.read.tokens
    behind = {tokens[at].norm for way in free for at in range(way.end - 1, min(way.end + 1, len(tokens)))}
    if behind & {*_SIZES} or "layout" in page.read.asked("focus"):
        return True
    listed = any(
        first.end <= second.start and all(token.norm in _LISTING for token in tokens[first.end : second.start])
        for first, second in pairwise(free)
    )
    told = free[0].start > 0 and tokens[free[0].start - 1].norm in page.read.found.lexicon.apiece
    return listed and not told


def _is_part_of(name: Named, longer: Named) -> bool:
    inside = longer.start <= name.start and name.end <= longer.end
    return inside and (longer.start, longer.end) != (name.start, name.end)


def named_alone(page: Page, edits: Sequence[Edit]) -> list[Edit]:
    """The ways that are named without a number, and without others to choose from: 'with pipeline parallelism', 'tp
    within the node, pp across nodes', 'would tensor parallel help?'. What they cannot be taken as is left unread."""
    fields = {edit.field for edit in edits}
    free = [way for way in _free(page) if way.field not in fields and way.start not in page.refused.things]
    # The pipeline of 'virtual pipeline stages' is none.
    whole = [name for name in page.read.found.fields if name.field not in _WAYS] if free else []
    free = [way for way in free if not any(_is_part_of(way, name) for name in whole)]
    chosen = page.read.does("or", "versus", "compare", "contrast") or "best" in page.read.asked("focus")
    if chosen or not free or asks_sizes(page):
        return []
    supposed = supposes(page.read.found) is not None
    named = {way.field: way for way in free if not is_asked(page.read.found, way.start) or supposed}
    sizes = _sizes(page, edits, together=len(named) > 1) if named else {}
    edits_made: list[Edit] = []
    for way in named.values():
        span, words = page.read.span(way.start, way.end), page.read.said(way.start, way.end)
        size = {} if page.mode == SERVING and way.field == "dp" else sizes.get(way.field, {})
        if not size:
            page.lost.append((way.start, way.end))
        note = f"{words!r} taken as {', '.join(f'{name} {value}' for name, value in size.items())}"
        edits_made += [Edit(name, "set", value, span, note) for name, value in size.items() if name not in fields]
    return edits_made


def over_all(page: Page) -> list[tuple[int, list[Edit]]]:
    """Tensor or pipeline parallelism right beside the devices that it is for."""
    counts = single(page.filled, "count")[:_MOST]
    free = [] if not counts or page.read.does("or", "versus", "compare") else _free(page)
    if len({way.field for way in free}) != 1:
        return []
    for number in counts:
        for way in free[:_MOST]:
            first, second = sorted([(way.start, way.end), (number.row.start, number.row.end)])
            between = page.read.tokens[first[1] : second[0]]
            joined = 0 < len(between) <= _BESIDE and not any(token.ends_clause for token in between)
            size, span = number.values[-1], page.read.span(way.start, way.end)
            if joined and way.start not in page.refused.things and size == int(size):
                return [(way.start, [Edit(way.field, "set", int(size), span)])]
    return []
