"""What a turn sets, and what it sets side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from agent.offline.beside import MEANT
from agent.offline.form import BESIDE, Edit
from agent.offline.language import scope
from agent.offline.language.asking import clauses
from agent.offline.language.assign import Filled
from agent.offline.language.machines_changed import machines_added
from agent.offline.language.measures import TIMES
from agent.offline.language.names.known import looked_up
from agent.offline.language.own.files import settings
from agent.offline.language.own.tool import FREE
from agent.offline.language.own.weighed import weighed
from agent.offline.language.reading.alone import counted_before
from agent.offline.language.reading.machines import of_devices, of_hosts, of_memory, side_by_side
from agent.offline.language.reading.models import of_models
from agent.offline.language.reading.numbers import as_number, of_numbers
from agent.offline.language.reading.page import Page
from agent.offline.language.reading.pictures import of_pictures
from agent.offline.language.reading.spread import named_alone, over_all, sharded, spread
from agent.offline.language.reading.things import GENERAL, named_span, things_said
from agent.offline.language.reading.values import of_fields, of_values, of_versions, without_it
from agent.offline.language.relative import exchanged, factors
from planner.partial import get
from planner.requests import ALL_PATHS

# Tools that take several of what is named as they are.
NO_OPTIONS = ("apply_strategies", "benchmark_matrix", "peak_throughput", *FREE)
# What is said of earlier runs, or by others, and of this one only where it is said of this one.
_OF_ONE_RUN = ("deadline_h", "budget_usd", "micro_batch", "global_batch", "batch", "accumulation", "group_size",
               "request_rate", "token_rate", "load")  # fmt: skip
# Of which only one is meant: 'full would be nice, but LoRA will do'.
_CHOICES = ("method", "framework", "engine")
_OF_A_RUN = ("estimate_training", "estimate_inference", "check_fit", "estimate_cost", "find_limit", "best_serving",
             "best_parallelism", "recommend_cluster", "size_serving", "advise")  # fmt: skip
_OF_FILES = ("write_configs", "render_configs")
_SCHEDULERS = ("slurm", "kubernetes", "skypilot", "parallelcluster", "dstack", "xpk", "torchx")
_DEVICES = ("accelerator", "count", "nodes", "per_node")
_OF_ADAPTERS = tuple(name for name, path in ALL_PATHS.items() if path.startswith("workload.lora."))
_COPIES = ("number:replicas", "number:dp")
_LAYOUT = tuple(name for name, path in ALL_PATHS.items() if path.startswith("layout."))


def edits_of(page: Page, tool: str | None) -> tuple[list[Edit], list[list[Edit]]]:
    """(What is set, what is set side by side)."""
    if tool in _OF_FILES:
        page.filled = _of_jobs(page)
    said = _present(page, _said(page))
    everything = things = [
        thing for thing in things_said(page.read, page.mode, page.filled) if thing.start not in page.refused.things
    ]
    methods = {at for thing in things if thing.key == "value:method" for at in (thing.start, thing.end)}
    # The rank of 'LoRA r=16 or full' belongs to what stands before it.
    things = [thing for thing in things if not (thing.start in methods and thing.key.partition(":")[2] in _OF_ADAPTERS)]
    page.named = [
        edit for _, each in said for edit in each if edit.field in ("model", "accelerator") and edit.op == "set"
    ]
    groups = _alternatives(page, everything)
    if tool == "compare" and not groups:
        groups = scope.chosen_between(page.read.found, things, page.refused.things)
    options: list[list[Edit]] = []
    together: set[int] = set()
    by_start = dict(reversed(said))
    by_start |= {
        start: by_start[number.row.start]
        for number in page.filled
        if number.row.start in by_start and (start := named_span(number)[0]) not in methods
    }
    if tool not in NO_OPTIONS:
        options, together = _set_against(page, said, groups, everything, by_start, tool)
    if tool == "compare" and not options:
        options, together = _compared(page, said)
    if tool == "compare" and not options:
        options, together = _with_and_without(page, said)
    for number in page.filled:
        if len(number.values) > 1 and not number.ranged and number.field in (*ALL_PATHS, *BESIDE) and not options:
            options = _each_value(page, number)
            together.add(number.row.start)
    beside = {edit.field for option in options for edit in option}
    edits = [edit for start, each in said for edit in each if start not in together or edit.field not in beside]
    if options:
        shared = [edit for edit in options[0][1:] if all(any(_same(edit, one) for one in option) for option in options)]
        edits += shared
        options = [[one for one in option if not any(_same(one, edit) for edit in shared)] for option in options]
    # '8 H100: A) these 8 H100 or B) 16 MI300X'
    options = list({str([(edit.field, edit.op, edit.value) for edit in option]): option for option in options}.values())
    edits, options = ([*edits, *options[0]], []) if len(options) == 1 else (edits, options)
    options, edits = _priced_apart(page, _as_many(page, options), edits)
    edits = _of_memory(page, _of_form(page, [*edits, *counted_before(page, edits)]))
    changes = factors(page) + exchanged(page)
    edits = [_grown(page, edit, changes) for edit in edits]
    if not options and tool not in NO_OPTIONS:
        edits += named_alone(page, [*edits, *changes])
    # 'Twice the speculative tokens': the words of the value name its field.
    changed = {one.field for one in changes}
    worded = {value.field for value in page.kept if changed & {value.field, *MEANT.get(value.field, ())}}
    worded -= {number.field for number in page.filled}
    edits = [edit for edit in edits if edit.field not in worded]
    edits += [edit for edit in changes if not any(one.field == edit.field for one in edits)]
    # What the question itself says goes before what is told beside it.
    told = {page.read.tokens[at].start for at in page.read.telling}
    edits = sorted(edits, key=lambda edit: edit.span[0] in told) if told else edits
    return _settled(page, edits, tool), options


def _of_jobs(page: Page) -> list[Filled]:
    """The numbers with a time beside what a scheduler is told as the limit of its jobs: 'sbatch, 48h walltime'."""
    scheduled = any(name.startswith(_SCHEDULERS) for name in page.read.asked("target")) or settings(page)
    timed = page.values("deadline_h") and not page.until and scheduled
    return [
        replace(number, field="time_limit_h") if timed and number.field == "deadline_h" else number
        for number in page.filled
    ]


def _of_form(page: Page, edits: list[Edit]) -> list[Edit]:
    """The edits with the device, or the plan's, in the form that is said apart from its name."""
    inside, forms = page.read.named_tokens, page.read.found.lexicon.card_forms
    at = next(
        (at for at, token in enumerate(page.read.tokens) if token.norm in forms and at not in inside),
        None,
    )
    named = next((edit for edit in edits if edit.field == "accelerator" and edit.op == "set"), None)
    device = named.value if named else get(page.plan, "cluster.accelerator")
    if at is None or not isinstance(device, str):
        return edits
    chip, form = device.partition("-")[0], page.read.tokens[at].norm
    kin = ["-".join(form if part in forms else part for part in device.split("-")), f"{chip} {form}"]
    facts = (looked_up(page.catalogue, "accelerator", name) for name in kin)
    id = next((id for id, _, _, problem in facts if id and not problem and id.partition("-")[0] == chip), device)
    if id == device:
        return edits
    other = Edit("accelerator", "set", id, page.read.span(at, at + 1))
    return [*(edit for edit in edits if edit is not named), other]


# So few words are about the device alone.
_FEW_WORDS = 7


def _of_memory(page: Page, edits: list[Edit]) -> list[Edit]:
    """The edits with the plan's device in the size that is said alone: 'sorry, the 80GB ones'."""
    device = get(page.plan, "cluster.accelerator")
    if not isinstance(device, str) or any(edit.field == "accelerator" for edit in edits):
        return edits
    for row in [*page.left, *(number.row for number in page.filled if number.field == "vram")]:
        amount = row.amounts[-1]
        if any(end == row.start for _, end, _ in page.read.limits):
            # 'Nothing with less than 48 GB'
            continue
        words = page.read.found.lexicon
        which = row.end < len(page.read.tokens) and page.read.tokens[row.end].norm in words.of_that_size
        alone = which or len(page.read.tokens) <= _FEW_WORDS or page.read.found.has_unit(row.end, "devices")
        if not (alone and amount.unit("bytes") and amount.value == amount.digits == int(amount.digits)):
            continue
        named = device.rpartition("-")[0] if device.endswith("gb") else device
        for kin in (named, device.partition("-")[0]):
            id, _, _, problem = looked_up(page.catalogue, "accelerator", f"{kin} {amount.digits:g}gb")
            if id and not problem and id != device and id.endswith(f"{amount.digits:g}gb"):
                page.left = [each for each in page.left if each is not row]
                page.filled = [number for number in page.filled if number.row is not row]
                return [*edits, Edit("accelerator", "set", id, page.read.span(row.start, row.end))]
        alone = "fit" in page.read.asked("focus") and get(page.plan, "cluster.count") in (None, 1)
        if which or alone or page.read.found.has_unit(row.end, "devices"):
            # 'So a 12 GB card won't do?'
            return [*edits, *(edit for _, more in of_memory(page) for edit in more)]
    return edits


# Numbers of devices, as they are told.
_MANY = {"count": "devices", "nodes": "nodes", "per_node": "devices a node"}
# Characters between a device and the provider that has it: 'on RunPod 4090', '4090 at RunPod'.
_BESIDE = 5


def _as_many(page: Page, options: list[list[Edit]]) -> list[list[Edit]]:
    """The options with as many of each device as of the first, where no other is counted: '4 H100 or H200', but not '4
    H100 or an H200'."""
    counts = [[edit for edit in option if edit.field in _MANY] for option in options]
    of_devices = all(any(edit.field == "accelerator" for edit in option) for option in options)
    if len(options) < 2 or not (of_devices and counts[0]) or any(counts[1:]):
        return options
    many = [replace(edit, span=(0, 0)) for edit in counts[0]]
    words = " and ".join(f"{edit.value:,} {_MANY[edit.field]}" for edit in many)
    page.assumed.append(f"{words} taken of each, as of the first")
    return [options[0], *([*option, *many] for option in options[1:])]


def _priced_apart(page: Page, options: list[list[Edit]], edits: list[Edit]) -> tuple[list[list[Edit]], list[Edit]]:
    """The options and what is left for all of them, with a provider beside the device of a single option as that
    option's alone: 'on one L4 or on a RunPod 4090'."""
    provider = next((edit for edit in edits if edit.field == "provider" and edit.op == "set"), None)
    if provider is None or len(options) < 2:
        return options, edits

    def is_beside(option: Sequence[Edit]) -> bool:
        spans = [edit.span for edit in option if edit.field == "accelerator"]
        first, last = provider.span
        between = (page.read.text[last:start] if start >= last else page.read.text[end:first] for start, end in spans)
        return any(len(gap) <= _BESIDE and not set(gap) & set(":;,") for gap in between)

    beside = [option for option in options if is_beside(option)]
    if len(beside) != 1:
        return options, edits
    options = [[*option, provider] if option is beside[0] else option for option in options]
    return options, [edit for edit in edits if edit is not provider]


def _compared(page: Page, said: Sequence[tuple[int, list[Edit]]]) -> tuple[list[list[Edit]], set[int]]:
    """(What a comparison sets side by side, the tokens of it) where no words join it: things of one kind, two numbers
    of devices, or ways to spread a model."""
    if options := _side_by_side(said):
        chosen = {*map(id, options)}
        return options, {start for start, each in said if id(each) in chosen}
    if numbers := side_by_side(page):
        options = [option for number in numbers for option in _each_value(page, number)]
        return options, {number.row.start for number in numbers}
    return spread(page, [edit for _, each in said for edit in each]), {value.start for value in sharded(page)}


def _with_and_without(page: Page, said: Sequence[tuple[int, list[Edit]]]) -> tuple[list[list[Edit]], set[int]]:
    """(A setting whose effect is asked about, without it and with it; the token of it)."""
    value = weighed(page)
    chosen = next((each for start, each in said if value and start == value.start), [])
    without = without_it(page, value) if value and chosen else None
    if value is None or without is None or without.op != "set":
        return [], set()
    return [[without], chosen], {value.start}


def _each_value(page: Page, number: Filled) -> list[list[Edit]]:
    """Each value of a number as a choice."""
    span = page.read.span(number.row.start, number.row.end)
    return [[Edit(number.field, "set", as_number(number.field, value), span)] for value in number.values]


def _alternatives(page: Page, things: Sequence[scope.Thing]) -> list[list[scope.Thing]]:
    """What words set against each other; sizes of adapters only where nothing else is."""
    groups = scope.alternatives(page.read.found, things, page.refused.things)
    return sorted(groups, key=lambda group: group[0].key.partition(":")[2] in _OF_ADAPTERS)


def _set_against(
    page: Page,
    said: Sequence[tuple[int, list[Edit]]],
    groups: Sequence[Sequence[scope.Thing]],
    things: Sequence[scope.Thing],
    by_start: Mapping[int, list[Edit]],
    tool: str | None,
) -> tuple[list[list[Edit]], set[int]]:
    """(What the first things that words set against each other bring, the tokens of it), each with the sizes of a
    layout beside it."""
    sizes = {thing.start: thing for thing in things if _is_layout(thing) or thing.key in _COPIES}
    for group in groups:
        choices = [by_start.get(thing.start, []) for thing in group]
        priced = group[0].key == "provider" and tool != "compare"
        if priced or group[0].key in ("path", "instance") or len(group) < 2 or not all(choices):
            continue
        beside = [[by_start.get(size.start, []) for size in _beside_it(page, thing, sizes)] for thing in group]
        for choice, parts, more in zip(choices, beside, _of_each(page, group, things), strict=True):
            own = [part for thing in more if (part := _brought_by(thing, said))]
            parts += [part for part in own if part is not choice and not any(part is other for other in parts)]
        options = [[*choice, *chain(*more)] for choice, more in zip(choices, beside, strict=True)]
        if len({str([(edit.field, edit.value) for edit in each]) for each in options}) > 1:
            parts = {id(part) for part in (*choices, *chain(*beside))}
            return options, {start for start, each in said if id(each) in parts}
    return [], set()


def _of_each(page: Page, group: Sequence[scope.Thing], things: Sequence[scope.Thing]) -> list[list[scope.Thing]]:
    """What belongs to each of several things that are set against each other: settings between it and the word that
    does so ('ZeRO-3 with offload vs FSDP'), and what several have of their own ('fp8 with tp 4 vs bf16 with tp 8')."""
    ends = [_end_of_side(page, first, second) for first, second in pairwise(group)]
    last = group[-1].end
    behind = (at for at in range(last, len(page.read.tokens)) if page.read.tokens[at].ends_clause)
    ends.append(next(behind, len(page.read.tokens)))
    keys = {thing.key for thing in group}
    near = [
        [
            thing
            for thing in things
            if first.start <= thing.start < end and first.end < thing.end and thing.key not in keys
        ]
        for first, end in zip(group, ends, strict=True)
    ]
    often = Counter(key for each in near for key in {thing.key for thing in each})
    return [
        [thing for thing in each if often[thing.key] > 1 or (index < len(group) - 1 and _is_setting(thing))]
        for index, each in enumerate(near)
    ]


def _end_of_side(page: Page, first: scope.Thing, second: scope.Thing) -> int:
    """The token that parts a thing from the next one that it is set against: a word of choice, else a comma."""
    between = range(first.end, second.start)
    chosen = (at for at in between if page.read.found.does(at, "or", "versus"))
    commas = (at for at in between if page.read.tokens[at].ends_clause)
    return next(chosen, next(commas, second.start))


def _brought_by(thing: scope.Thing, pieces: Sequence[tuple[int, list[Edit]]]) -> list[Edit] | None:
    """What a thing sets."""
    name = thing.key.rpartition(":")[2]
    inside = (each for start, each in pieces if thing.start <= start < thing.end)
    return next((each for each in inside if any(edit.field == name for edit in each)), None)


def _is_setting(thing: scope.Thing) -> bool:
    """Whether a thing is a setting of a run, and neither its machines nor what it is a run of."""
    kind, _, name = thing.key.partition(":")
    path = ALL_PATHS.get(name, "")
    return path.startswith(("layout.", "workload.lora.")) or (kind == "value" and path.startswith("workload."))


def _beside_it(page: Page, thing: scope.Thing, sizes: Mapping[int, scope.Thing]) -> list[scope.Thing]:
    """Sizes of a layout right behind one that is set against another, and the number of its copies right before it: 'tp
    8, or tp 4 pp 2', '4 x tp2 vs 2 x tp4'."""
    if thing.start not in sizes:
        return []
    before = sizes.get(thing.start - 2)
    signed = before and before.key in _COPIES and page.read.tokens[thing.start - 1].norm in TIMES
    sizes_beside = [before] if before and signed else []
    size = thing
    while size := _size_behind(page, size, sizes):
        sizes_beside.append(size)
    return sizes_beside


def _size_behind(page: Page, size: scope.Thing, sizes: Mapping[int, scope.Thing]) -> scope.Thing | None:
    """The size right behind another, or behind it and 'with'."""
    end = size.end + (size.key in _COPIES)
    joined = end < len(page.read.tokens) and page.read.tokens[end].norm in page.read.found.lexicon.apiece
    return sizes.get(end) or (sizes.get(end + 1) if joined else None)


def _is_layout(thing: scope.Thing) -> bool:
    return ALL_PATHS.get(thing.key.rpartition(":")[2], "").startswith("layout.")


def _first(page: Page, *operators: str) -> int | None:
    """The character where the first of such words stands."""
    return min((page.read.tokens[at].start for at in page.read.does(*operators)), default=None)


def _present(page: Page, said: Sequence[tuple[int, list[Edit]]]) -> list[tuple[int, list[Edit]]]:
    """What is said without what is told of earlier runs, or of others, that this one has otherwise: its devices are
    left out together."""
    old = page.read.past
    now = {edit.field for at, edits in said if at not in old for edit in edits}
    left_out = {edit.field for at, edits in said if at in old for edit in edits} & (now | set(_OF_ONE_RUN))
    left_out |= {*_DEVICES, *_LAYOUT} if now & set(_DEVICES) and left_out & set(_DEVICES) else set()
    kept: list[tuple[int, list[Edit]]] = []
    gone: list[str] = []
    for at, edits in said:
        stays = [edit for edit in edits if at not in old or edit.field not in left_out]
        gone += [page.read.text[slice(*edit.span)] for edit in edits if edit not in stays and edit.op == "set"]
        kept += [(at, stays)] if stays else []
    if gone := list(dict.fromkeys(filter(None, gone))):
        page.assumed.append(f"{', '.join(map(repr, gone))}: of earlier runs or of others, so not of this one")
    return kept


def _same(one: Edit, other: Edit) -> bool:
    return (one.field, one.op, one.value) == (other.field, other.op, other.value)


def _side_by_side(said: Sequence[tuple[int, list[Edit]]]) -> list[list[Edit]]:
    """Where a comparison is asked for: the things of one kind of which several are named."""
    for name in ("accelerator", "model", "method", "framework", "engine", "precision", "weight_dtype", "optimizer"):
        same = [each for _, each in said if each and each[0].field == name and each[0].op == "set"]
        # 'q4' says one thing, however many values its words may have.
        same = [each for place, each in enumerate(same) if not place or each[0].span[0] >= same[place - 1][0].span[1]]
        if len({str([edit.value for edit in each]) for each in same}) > 1:
            return same
    return []


def _said(page: Page) -> list[tuple[int, list[Edit]]]:
    """[(token, edits)] of each thing that was said, in the order of the text."""
    pieces: list[tuple[int, list[Edit]]] = [(0, [edit]) for edit in machines_added(page)]
    pieces += of_models(page)
    pieces += [*of_devices(page), *of_hosts(page)]
    pieces += of_values(page)
    pieces += of_versions(page)
    pieces += of_numbers(page)
    pieces += of_fields(page)
    pieces += of_pictures(page)
    pieces += over_all(page)
    pieces += [
        (name.start, [Edit("provider", "set", name.id, page.read.span(name.start, name.end))])
        for name in page.read.of("provider")
        if name.start not in page.refused.things
    ]
    return sorted(pieces, key=lambda one: one[0])


def _once(edits: Sequence[Edit], corrected: int | None, turned: int | None) -> list[Edit]:
    """Each field set once: the more particular stage, what was said last behind a correction or a swap, which stands at
    a character, or a choice behind 'but', else first."""
    found: list[Edit] = []
    for edit in edits:
        same = next((one for one in found if one.field == edit.field and one.op == edit.op == "set"), None)
        after = turned if edit.field in _CHOICES else corrected
        if same is None:
            found.append(edit)
        elif edit.field in GENERAL:
            found[found.index(same)] = same if edit.value in GENERAL[edit.field] else edit
        elif any(place is not None and place < edit.span[0] for place in (after, corrected)):
            found[found.index(same)] = edit
    return found


def _grown(page: Page, edit: Edit, changes: Sequence[Edit]) -> Edit:
    """What is told to be so today as what becomes of it: 'traffic doubles in December and we do 12 rps today'."""
    grows = next((each for each in changes if each.op == "times" and each.field == edit.field), None)
    if grows is None or edit.op != "set" or not isinstance(edit.value, int | float):
        return edit
    tokens = page.read.tokens
    clause = next((part for part in clauses(page.read.found) if edit.span[0] in {tokens[at].start for at in part}), ())
    if not any(page.read.found.sense(at, "lately") for at in clause):
        return edit
    value = as_number(edit.field, edit.value * float(grows.value))
    return replace(edit, value=value, note=f"{page.read.text[slice(*edit.span)]!r} today taken as {value:g} then")


def _settled(page: Page, edits: Sequence[Edit], tool: str | None) -> list[Edit]:
    """Each field set once; what numbers of a run say otherwise is lost."""
    kept = _once(edits, _first(page, "correct", "swap"), _first(page, "contrast", "tries"))
    page.lost += _contradicted(page, edits, kept) if tool in _OF_A_RUN else []
    return kept


def _contradicted(page: Page, edits: Sequence[Edit], kept: Sequence[Edit]) -> list[tuple[int, int]]:
    """The tokens of numbers that say otherwise what another number says: 'seq 4k, 8 H100, seq 8k'."""
    rows = {page.read.span(number.row.start, number.row.end): number.row for number in page.filled}
    first = {edit.field: edit for edit in kept if edit.op == "set" and edit.span in rows and edit.field != "model"}
    again = [edit for edit in edits if edit.op == "set" and edit.span in rows and edit.field in first]
    left = [edit for edit in again if edit.span > first[edit.field].span and edit.value != first[edit.field].value]
    return [(row.start, row.end) for row in (rows[edit.span] for edit in left)]
