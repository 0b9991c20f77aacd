"""Ways to spread a model that are said by their names alone, over the devices that are counted: 'tensor or pipeline
parallel on 2 nodes of 8 H100', '3 GPUs for tensor parallel'."""

from __future__ import annotations

from collections.abc import Sequence

from agent.offline.form import Edit
from agent.offline.language.assign import Named, single
from agent.offline.language.mentions import SERVING, Value
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.things import free_names
from planner.partial import get

_WAYS = ("tp", "pp", "dp")
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
    """What each way takes all devices for: tensor parallel over all of them, pipeline parallel from node to node (or
    from device to device of one), replicas of one device."""
    counted = {edit.field: edit.value for edit in edits if edit.op == "set" and isinstance(edit.value, int)}
    names = ("count", "nodes", "per_node")
    count, nodes, each = (counted.get(name) or get(page.plan, f"cluster.{name}") for name in names)
    nodes = nodes or 1
    devices = count or nodes * (each or 0)
    if devices < 2 or devices % nodes:
        return []
    stages = nodes if nodes > 1 else devices
    sizes = {"tp": {"tp": devices, "pp": 1}, "pp": {"tp": devices // stages, "pp": stages}, "dp": {"dp": devices}}
    if page.mode != SERVING:
        # How the rest is spread is the search's.
        sizes = {"tp": {"tp": devices // nodes}, "pp": {"pp": stages}, "dp": {"dp": devices}}
    told = [(way.start, way.end, sizes[way.field]) for way in ways(page)]
    if told and page.mode != SERVING:
        told += [(value.start, value.end, {value.field: value.value}) for value in sharded(page)]
    return [
        [Edit(name, "set", size, page.read.span(start, end)) for name, size in each.items()]
        for start, end, each in sorted(told, key=lambda one: one[0])
    ]


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
