"""The edits of the devices that a turn names, of their racks and of their memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from agent.offline.form import Edit, Need
from agent.offline.language.assign import Filled, is_beside_devices
from agent.offline.language.devices import Devices, of_machines
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING
from agent.offline.language.names import Name
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.things import places_said
from agent.offline.usual import card_of
from estimator.errors import PlanError
from knowledge.machines.catalogue import USABLE_SHARE_APPLE, find_accelerator
from planner.partial import get
from planner.requests import FLAT_NAMES

# How far behind a device those of another place may be counted.
_NEAR = 4
# From so much memory on a card stands in a machine of several.
_OF_NODES_GB = 40


def of_devices(page: Page) -> list[tuple[int, list[Edit]]]:
    pieces: list[tuple[int, list[Edit]]] = []
    unlike = together(page)
    for one in page.devices:
        if unlike and one in unlike:
            joined = _side_by_side if _holds_layers(page, unlike) else _as_the_least
            pieces += [joined(page, unlike)] if one is unlike[0] else []
            continue
        name, span = one.name, page.read.span(one.name.start, one.name.end)
        id, note = _with_memory(page, one) or (name.id, name.note)
        if id is None and name.options and not name.problem:
            id = _usual_device(name.options)
            others = ", ".join(other for other in name.options if other != id)
            note = f"{name.text!r} taken as {id} (it may also be {others})"
        if id is None:
            nearest = f"; the nearest: {', '.join(name.options[:3])}" if name.options else ""
            page.needs.append(Need("cluster.accelerator", f"{name.problem}{nearest}. Which is it?"))
            continue
        edits = [Edit("accelerator", "set", id, span, note)]
        if more := _more_of_it(page, one, id):
            edits.append(more)
        else:
            edits += [*_numbers_of(page, one, id, span), *_less_memory(page, name, id)]
        pieces.append((name.start, edits))
    if not (page.devices or page.read.of("accelerator") or get(page.plan, "cluster.accelerator")):
        pieces += of_memory(page)
        if not pieces and "mine" in page.read.asked("whose"):
            page.needs.append(Need("cluster.accelerator", "which accelerator is it, and how many?"))
    for name in page.read.of("accelerator"):
        if name.start in page.refused.things:
            span = page.read.span(name.start, name.end)
            pieces.append((name.start, [Edit("accelerator", "refuse", name.id or name.text, span)]))
    return [*pieces, *_of_refused_makers(page), *_of_refused_places(page)]


def _numbers_of(page: Page, device: Devices, id: str, span: tuple[int, int]) -> list[Edit]:
    """How many of a device there are, in which machines, and of whom."""
    if device.count == 1 and _is_beside_another(page, device, id) and not _is_counted(page, device):
        # 'For an H100 that is slow', of the 16 that were counted.
        device = replace(device, count=None)
    if _is_one_node(page, device, id):
        device = replace(device, nodes=1)
    edits = _counted(page, _as_many(page, device), id, span)
    if device.name.instance:
        edits.append(Edit("provider", "set", device.name.instance.provider, span))
    racks = next((other for other in page.filled if other.field == "racks"), None)
    each = page.catalogue.per_rack(id)
    if racks and each and not device.count:
        said = page.read.span(racks.row.start, racks.row.end)
        edits.append(Edit("count", "set", int(racks.values[0]) * each, said))
    if device.nodes and not device.count:
        edits.append(Edit("nodes", "set", device.nodes, span))
    if device.per_node:
        edits.append(Edit("per_node", "set", device.per_node, span))
    return edits


def _of_refused_places(page: Page) -> Iterator[tuple[int, list[Edit]]]:
    """What only the one of several that is refused by its place would bring: 'drop the second'."""
    for place, thing in places_said(page.read) if len(page.offers) > 1 else ():
        if thing.start in page.refused.things and place < len(page.offers):
            others = [offer for index, offer in enumerate(page.offers) if index != place]
            span, brought = page.read.span(thing.start, thing.end), page.offers[place].items()
            own = [(path, value) for path, value in brought if all(offer.get(path) != value for offer in others)]
            yield (
                thing.start,
                [Edit(FLAT_NAMES[path], "refuse", value, span) for path, value in own if path in FLAT_NAMES],
            )


def _of_refused_makers(page: Page) -> Iterator[tuple[int, list[Edit]]]:
    """What was offered of a maker that is refused: 'drop the AMD one'."""
    offered = dict.fromkeys(str(offer.get("cluster.accelerator") or "") for offer in page.offers)
    for value in page.read.values:
        if value.field == "vendors" and value.start in page.refused.things:
            span, maker = page.read.span(value.start, value.end), str(value.value).lower()
            theirs = [id for id in offered if id and find_accelerator(id).value.vendor.lower() == maker]
            yield value.start, [Edit("accelerator", "refuse", id, span) for id in theirs]


def _is_beside_another(page: Page, device: Devices, id: str) -> bool:
    return any(other.count and other.name.id == id for other in page.devices if other is not device)


def _is_counted(page: Page, device: Devices) -> bool:
    """Whether 'one' is a number of devices beside another one: '1 H100', 'one H100 or two'."""
    before = page.read.tokens[max(device.name.start - 3, 0) : device.name.start]
    return any(token.kind == "number" for token in before) or bool(page.read.does("or", "versus", "compare"))


def _as_many(page: Page, device: Devices) -> Devices:
    """A rentable machine that is named without a number as as many as the plan has machines: 'p4de then'."""
    count, each = get(page.plan, "cluster.count"), get(page.plan, "cluster.per_node")
    counted = device.nodes != 1 or page.values("nodes") or page.values("count")
    if not device.name.instance or counted or not (count and each) or count <= each or count % each:
        return device
    alone = page.read.tokens[device.name.start - 1].norm if device.name.start else ""
    if alone in page.read.found.lexicon.articles or alone in ("one", "single"):
        return device
    return replace(device, count=count // each * device.name.instance.count, nodes=count // each)


def _is_one_node(page: Page, device: Devices, id: str) -> bool:
    """Whether a machine of a device is meant that stands in machines of several: 'our H100 node'."""
    counted = device.count or device.nodes or any(page.values(name) for name in ("count", "nodes", "per_node"))
    if page.plan or counted or not of_machines(page.read, device.name):
        return False
    at = device.name.start - 1
    pointed = at >= 0 and page.read.tokens[at].norm in lexicon().articles | lexicon().pointing
    single = pointed and not page.read.tokens[device.name.end].norm.endswith("s")
    return single and (page.catalogue.memory_gb(id) or 0.0) >= _OF_NODES_GB


def together(page: Page) -> list[Devices]:
    """Unlike devices that somebody has in one machine: 'I have a 4090 and a 3090', '2x 3090 + 1x 4090'."""
    words, text = page.read.found, page.read.tokens
    have = [device for device in page.devices if device.name.id and device.count and not device.nodes]
    apart = page.read.does("or", "versus", "compare") or page.read.says("which")
    if len(have) != len(page.devices) or len({device.name.id for device in have}) < 2 or apart:
        return []
    owned = any(words.sense(at, "asserts") for at in range(have[0].name.start)) or _holds_layers(page, have)
    for first, second in pairwise(have):
        between = range(first.name.end, second.name.start)
        joined = [at for at in between if words.does(at, "and", "plus") or text[at].text in ("+", "&")]
        sure = owned or any(text[at].text in ("+", "&") for at in joined)
        if not (joined and sure and len(between) <= _NEAR):
            return []
    return have


def _as_the_least(page: Page, devices: Sequence[Devices]) -> tuple[int, list[Edit]]:
    """Devices that work together wait for the least of them: the plan has as many of that one."""
    rows = [find_accelerator(str(device.name.id)).value for device in devices]
    least = min(rows, key=lambda row: (row.memory_bytes, row.memory_bandwidth))
    count = sum(device.count or 1 for device in devices)
    start, end = devices[0].name.start, devices[-1].name.end
    words, span = page.read.said(start, end), page.read.span(start, end)
    why = "unlike devices in one run are not modelled, so all count as the least"
    note = f"{words!r} planned as {count} x {least.id}: {why}"
    return start, [Edit("accelerator", "set", least.id, span, note), Edit("count", "set", count, span)]


def _holds_layers(page: Page, devices: Sequence[Devices]) -> bool:
    """Whether unlike devices are one person's cards that serve: llama.cpp deals the layers over them."""
    return page.mode == SERVING and all(find_accelerator(str(device.name.id)).value.personal for device in devices)


def _side_by_side(page: Page, devices: Sequence[Devices]) -> tuple[int, list[Edit]]:
    """Cards that hold layers one after the other: those of the first kind, and the others beside them."""
    first, *others = devices
    beside = [str(device.name.id) for device in others for _ in range(device.count or 1)]
    span = page.read.span(first.name.start, first.name.end)
    edits = [Edit("accelerator", "set", str(first.name.id), span), Edit("count", "set", first.count or 1, span)]
    return first.name.start, [
        *edits, Edit("beside", "set", beside, page.read.span(others[0].name.start, others[-1].name.end)),
    ]  # fmt: skip


def of_hosts(page: Page) -> list[tuple[int, list[Edit]]]:
    """The processor beside a card of a deployment: it holds what cards have no room for."""
    hosts = [name for name in page.read.of("host") if name.id]
    cards = [device for device in page.devices if device.name.id]
    if len(hosts) != 1 or len(cards) != 1 or not _holds_layers(page, cards):
        return []
    (host,) = hosts
    return [(host.start, [Edit("beside", "set", [host.id], page.read.span(host.start, host.end), host.note)])]


def _counted(page: Page, device: Devices, id: str, span: tuple[int, int]) -> list[Edit]:
    """How many devices there are, where they are counted or stand in a machine that is named."""
    name = device.name
    if device.count:
        of_racks = _counts_racks(page, name) and page.catalogue.per_rack(id)
        if name.text.lower() in lexicon().machines:
            of_racks = page.catalogue.per_machine(name.text)
        here = device.count * (of_racks or 1)
        if there := _elsewhere(page, name):
            note = f"{here} and {there} are planned as {here + there}, in machines of one size"
            return [Edit("count", "set", here + there, span, note)]
        return [Edit("count", "set", here, span)]
    if devices := _of_machine(page, name, id):
        return [Edit("count", "set", devices, span, f"{name.text} taken as {devices} devices")]
    return []


def _more_of_it(page: Page, device: Devices, id: str) -> Edit | None:
    """What is added to the plan's own devices, or taken from them: 'add another 3090', '2 more H100 nodes'."""
    if page.added or id != get(page.plan, "cluster.accelerator") or not get(page.plan, "cluster.count"):
        return None
    name = device.name
    limits = {at for start, end, _ in page.read.limits for at in range(start, end)}
    near = set(range(max(name.start - _NEAR, 0), name.start)) - limits
    signs = [sign for sign in ("plus", "minus") if near & {*page.read.does(sign)}]
    if len(signs) != 1 or page.read.does("or"):
        return None
    machines = device.nodes or any(page.read.found.has_unit(at, "nodes") for at in {*near, name.end})
    field = "nodes" if machines and not device.count else "count"
    many = (device.nodes if field == "nodes" else device.count) or 1
    return Edit(field, "plus", many if signs == ["plus"] else -many, page.read.span(name.start, name.end))


def _elsewhere(page: Page, name: Name) -> int | None:
    """How many more of a device stand in another place: '12 H100 here and 4 there'."""
    words = page.read.found
    if not any(words.does(at - 1, "and", "plus") for at in range(name.end, name.end + _NEAR + 1)):
        return None
    for row in page.left:
        joined = name.end <= row.start <= name.end + _NEAR and words.does(row.start - 1, "and", "plus") == row.start
        number = row.amounts[0].value
        if joined and words.does(row.end, "it") and number == int(number) > 0:
            page.left = [other for other in page.left if other is not row]
            return int(number)
    return None


def of_memory(page: Page) -> list[tuple[int, list[Edit]]]:
    """A card by its memory alone, as the usual one of that size: 'on a 24 GB card', '8x48GB'."""
    rows = [*page.left, *(number.row for number in page.filled if number.field == "vram")]
    apple = "apple" in page.read.asked("maker")
    # '41 GiB of activations' is no card's.
    parts = {at for at, _, name in page.read.asked_at("figure") if name.startswith("memory.components")}
    rows = [row for row in rows if parts.isdisjoint(range(row.end, row.end + 2))]
    for row in sorted((row for row in rows if not is_beside_devices(page.read.found, row)), key=lambda row: row.start):
        unit = row.amounts[-1].unit("bytes")
        device = card_of(row.amounts[-1].value * unit.size / 1e9, apple) if unit else None
        if device is None:
            continue
        span, said = page.read.span(row.start, row.end), page.read.said(row.start, row.end)
        edits = [
            Edit("accelerator", "set", device, span, f"{'a Mac' if apple else 'a card'} of {said} taken as {device}")
        ]
        numbers = [*page.left, *(value.row for value in page.filled)] if row.amounts[0].before == "x" else []
        times = [other for other in numbers if other.end in (row.start, row.start - 1) and len(other.amounts) == 1]
        if times:
            edits.append(Edit("count", "set", int(times[0].amounts[0].value), page.read.span(times[0].start, row.end)))
        page.left = [other for other in page.left if other is not row and other not in times]
        page.filled = [value for value in page.filled if value.row not in times]
        return [(row.start, edits)]
    return []


def _of_machine(page: Page, name: Name, id: str) -> int | None:
    """Devices of what is named, where that is a machine or a rack, or a part of one: 'a DGX H100', 'half an NVL72'."""
    inside = page.read.tokens[name.start : name.end]
    rack = any(token.norm == "nvl" and index + 1 < len(inside) for index, token in enumerate(inside))
    if (
        not (rack or name.box)
        or page.plan
        or any(page.values(each) for each in ("nodes", "racks", "count", "per_node"))
    ):
        return None
    whole = page.catalogue.per_node(id) if name.box else page.catalogue.per_machine(name.text)
    at = name.start - 1
    at -= at >= 0 and page.read.tokens[at].norm in lexicon().articles
    parts = [word.get("fraction") for word in page.read.found.words.get(at, ()) if word.get("fraction")]
    part = parts[0].value if parts and parts[0] else 1.0
    return int(whole * part) if whole and whole * part == int(whole * part) else None


def _counts_racks(page: Page, name: Name) -> bool:
    """Whether racks are counted: '2 GB200 NVL72 racks'."""
    return page.read.found.has_unit(name.end, "racks")


def _with_memory(page: Page, device: Devices) -> tuple[str, str | None] | None:
    """(Id, note) of a device whose memory is said apart: 'A100 mit 40 GB', '(8x40GB)'."""
    name = device.name
    if name.instance or name.problem or not page.sized:
        return None
    for one in [*page.filled, *page.left]:
        row = one.row if isinstance(one, Filled) else one
        unit = row.amounts[-1].unit("bytes")
        if unit is None or unit.size < 5e8 or abs(row.start - name.end) > 12:
            continue
        size = f"{row.amounts[-1].value * unit.size / 1e9:.0f}gb"
        near = page.read.tokens[name.end : row.end + 3]
        form = next((token.norm for token in near if token.norm in ("pcie", "sxm", "nvl")), "")
        try:
            id, note = page.catalogue.find_accelerator(f"{name.text.rstrip('s')} {form} {size}")
        except PlanError as error:
            if "ambiguous" not in error.problem or not error.valid:
                continue
            id, note = _usual_device([str(one) for one in error.valid]), None
        if size in id:
            page.filled = [other for other in page.filled if other is not one]
            page.left = [other for other in page.left if other is not one]
            return id, note
    return None


def _less_memory(page: Page, name: Name, id: str) -> list[Edit]:
    """What can be used of an Apple machine with less memory than the catalogue's: 'macbook m4 pro 24gb'."""
    most = page.catalogue.memory_gb(id) or 0.0
    for each in [*page.filled, *page.left] if id.startswith("apple") else []:
        row = each.row if isinstance(each, Filled) else each
        unit = row.amounts[-1].unit("bytes")
        size = unit and row.amounts[-1].value * unit.size / 1e9
        if not size or not 8 <= size < most or min(abs(row.start - name.end), abs(name.start - row.end)) > _NEAR:
            continue
        page.filled = [other for other in page.filled if other is not each]
        page.left = [other for other in page.left if other is not each]
        usable = USABLE_SHARE_APPLE * size
        note = f"of {page.read.said(row.start, row.end)} {usable:g} GiB can be used for a model"
        return [Edit("usable_gib", "set", usable, page.read.span(row.start, row.end), note)]
    return []


def _usual_device(options: Sequence[str]) -> str:
    """Of cards that share a name the one that is rented most: SXM before PCIe, the larger memory first."""

    def rank(id: str) -> tuple[bool, int]:
        sizes = (part.removesuffix("gb") for part in id.split("-") if part.endswith("gb"))
        return "sxm" in id, max((int(size) for size in sizes if size.isdigit()), default=0)

    return max(options, key=rank)


def side_by_side(page: Page) -> list[Filled]:
    """Two numbers of devices that a run without a plan is asked about: 'from 2 to 4 nodes', '16 H100 or 8'."""
    corrected = page.read.does("correct", "contrast", "back", "refuse_right", "refuse_left")
    for name in ("count", "nodes") if not (page.plan or corrected) else ():
        apart = page.read.data | page.read.past
        numbers = [number for number in page.filled if number.field == name and number.row.start not in apart]
        values = {value for number in numbers for value in number.values}
        if len(values) == 2:
            return numbers
    return []
