"""Ways to spread a model that are said by their names alone, over the devices that are counted: 'tensor or pipeline
parallel on 2 nodes of 8 H100', '3 GPUs for tensor parallel'."""

from __future__ import annotations

from collections.abc import Sequence

from agent.offline.form import Edit
from agent.offline.language.assign import Named, single
from agent.offline.language.mentions import SERVING
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.things import free_names
from planner.partial import get

_WAYS = ("tp", "pp", "dp")
# Tokens between a number of devices and the way that they are for: 'for', 'across all'.
_BESIDE = 2
# Numbers of devices, and names of ways, that are looked at.
_MOST = 8


def ways(page: Page) -> list[Named]:
    """The ways to spread a deployment that are set against one another, each once."""
    if page.mode != SERVING or not page.read.does("or", "versus", "compare", "contrast"):
        return []
    named = {way.field: way for way in _free(page) if way.start not in page.refused.things}
    return list(named.values()) if len(named) > 1 else []


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
    return [
        [Edit(name, "set", size, page.read.span(way.start, way.end)) for name, size in sizes[way.field].items()]
        for way in ways(page)
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
