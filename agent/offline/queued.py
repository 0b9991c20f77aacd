"""Several runs in one turn, on one cluster: 'fine-tune A on 1B tokens, then B on 2B on 16 H100', and what is said of
such a queue afterwards: 'swap the order', 'B is urgent', 'side by side, 8 cards each'."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from agent.models import Turn
from agent.offline.catalogue import Catalogue
from agent.offline.form import Edit, Reading
from agent.offline.language.calendar import moment
from agent.offline.language.mentions import Mentions, mentions
from agent.offline.language.rows import Row
from agent.offline.patching import Before, patched
from planner.asked.portfolio import PortfolioRequest, PortfolioRun
from planner.partial import get

_TOOL = "schedule_runs"
_OF_DEVICES = ("accelerator", "count", "nodes", "per_node", "interconnect")
# Limits of the whole turn, not of a run in it.
_OF_ALL = ("deadline_h", "budget_usd", "budget_device_hours", "provider")
_LENGTHS = ("dataset_tokens", "dataset_samples", "steps")
_LONGEST_NAME = 70
# From this share on the words are surely about a queue.
_SURE = 0.5
_FEWEST_TOKENS = 1e6
_SHORTEST_FAMILY = 4
_SIGNS = (",", ";", "\n", ".", "、", "，", "。", "；")

Read = Callable[[str], Reading]


def in_a_row(reading: Reading, read: Read, turn: Turn, catalogue: Catalogue) -> Reading:
    """The turn as a question for when each of its runs is done, where at least two have a model and a length of their
    own and the cluster is known, or where the queue before is told otherwise; else as it is, of one run. `read` reads a
    part by itself."""
    if "runs" in reading.own:
        return reading
    heard = mentions(reading.text, catalogue)
    match turn.topic:
        case {"last": [before, {"runs": [_, *_]} as kept]} if before == _TOOL:
            queue = _with_terms(PortfolioRequest.model_validate(kept), reading, heard, turn.now)
            changed = _changed(reading, heard, queue)
            if changed or reading.tool == _TOOL or queue != PortfolioRequest.model_validate(kept):
                return _asked(reading, changed or queue)
    if reading.serving:
        return reading
    asked = reading.tool == _TOOL and reading.shares.get(_TOOL, 0) >= _SURE
    if not (asked or (heard.does("run_after") and heard.does("run_when"))):
        return reading
    device, count, bounds = _cluster(reading, heard, turn.plan, catalogue)
    runs = _runs(reading.text, heard, read, count, bounds, catalogue) if device else []
    if len(runs) < 2 or device is None or count is None:
        return replace(reading, tool="estimate_training") if reading.tool == _TOOL else reading
    most = max([count, *(run.devices or 0 for run in runs)])
    queue = PortfolioRequest.model_validate({"accelerator": device, "count": most, "runs": runs})
    return _asked(reading, _with_terms(queue, reading, heard, turn.now))


def _asked(reading: Reading, queue: PortfolioRequest) -> Reading:
    """The turn as a question for a queue."""
    edits = [edit for edit in reading.edits if edit.field in _OF_DEVICES and edit.field != "count"]
    edits.append(Edit("count", "set", queue.count))
    own = queue.model_dump(mode="json", exclude_defaults=True)
    return replace(reading, tool=_TOOL, act="ask", own=own, edits=edits, options=[], needs=[], focus=[], lost=[])


def _cluster(
    reading: Reading, heard: Mentions, plan: Mapping[str, Any], catalogue: Catalogue
) -> tuple[str | None, int | None, tuple[int, int]]:
    """(Device of the cluster, how many, where its words stand): its number is the one that counts its name."""
    device = next((edit for edit in reading.edits if edit.field == "accelerator" and edit.op == "set"), None)
    counted = ((row, row.amounts[-1], name) for name in heard.of("accelerator") for row in heard.rows)
    for row, amount, name in counted:
        if device and amount.end == name.start and amount.names and amount.value == int(amount.value):
            # 'Four jobs wait for our 16 A100: a LoRA on 4 gpus, …'
            return str(device.value), int(amount.value), heard.span(row.start, name.end)
    sizes = [edit for edit in reading.edits if edit.field in ("count", "nodes", "per_node") and edit.op == "set"]
    named = [edit for edit in reading.edits if edit.field in _OF_DEVICES]
    here = patched({"cluster": dict(plan.get("cluster") or {})}, named, reading.text, catalogue, Before()).plan
    spans = [edit.span for edit in (device, *sizes[:1]) if edit and edit.span != (0, 0)]
    bounds = (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, 0)
    return get(here, "cluster.accelerator"), get(here, "cluster.count"), bounds


def _runs(
    text: str, heard: Mentions, read: Read, count: int | None, bounds: tuple[int, int], catalogue: Catalogue
) -> list[PortfolioRun]:
    """A run of each part that says how long one is, of the model before it where it names none; nothing where a part
    is a run and does not say so. One begins when the one before is done, unless it runs beside it."""
    alone = text[: bounds[0]] + " " * (bounds[1] - bounds[0]) + text[bounds[1] :]
    row = "run_beside" in _ways(heard) and "run_after" not in _ways(heard)
    runs: list[PortfolioRun] = []
    model: Any = None
    for start, end in _parts(heard):
        part = alone[start:end]
        reading = read(part)
        if runs and not _length(reading):
            reading = read(_with_tokens(part, catalogue))
        named = reading.values("model")
        if not _length(reading):
            if named and named[-1] != model:
                return []
            continue
        model = named[-1] if named else model
        if model is None:
            return []
        beside = row or any(start <= heard.tokens[at].start < end for at in heard.does("run_beside"))
        # A list of jobs with devices of their own says no order.
        placed = reading.values("count") or any(run.devices for run in runs)
        beside |= bool(placed) and not _ways(heard)
        after = [run.name for run in runs[-1:]] if not beside else runs[-1].after if runs else []
        stages = [str(stage).upper() for stage in reading.values("stage")]
        run = _run(_name(str(model), stages[-1:], runs), model, after, reading, catalogue)
        rest = any(start <= heard.tokens[at].start < end for at in heard.does("run_rest"))
        if rest and count and runs and runs[-1].devices:
            run = run.model_copy(update={"devices": count - runs[-1].devices, "after": runs[-1].after})
        runs.append(run)
    return runs


def _ways(heard: Mentions) -> set[str]:
    return {name for name in ("run_after", "run_beside") if heard.does(name)}


def _length(reading: Reading) -> bool:
    return any(reading.values(name) for name in _LENGTHS)


def _with_tokens(part: str, catalogue: Catalogue) -> str:
    """A part whose last large number has no unit, as one of tokens, as those before it: 'then B on 500M'."""
    heard = mentions(part, catalogue)
    large = [row for row in heard.rows if row.bare and _is_of_data(row)]
    if not large:
        return part
    end = heard.tokens[large[-1].end - 1].end
    return f"{part[:end]} tokens{part[end:]}"


def _parts(heard: Mentions) -> Iterator[tuple[int, int]]:
    """(Character, character behind) of the part of each run: they are cut where one follows another, else between two
    models where a sign or 'and' stands."""
    cuts = {heard.tokens[at].start for at in heard.does("run_after", "run_beside")}
    for first, second in pairwise(heard.of("model")):
        between = range(first.end, second.start)
        if any(heard.tokens[at].start in cuts for at in between):
            continue
        joints = [at for at in between if _joins(heard, at)]
        cuts |= {heard.tokens[at].start for at in joints[-1:]}
    cuts |= {cut for part in pairwise(_bounds(heard, cuts)) for cut in _between_lengths(heard, *part)}
    yield from pairwise(_bounds(heard, cuts))


def _bounds(heard: Mentions, cuts: Set[int]) -> list[int]:
    return [0, *sorted(cuts - {0}), len(heard.text)]


def _between_lengths(heard: Mentions, start: int, end: int) -> list[int]:
    """Where a part that says how long two runs are is cut: 'DPO with 60M tokens, and separately a LoRA of B on
    200M'."""
    rows = [row for row in heard.rows if start <= heard.tokens[row.start].start < end and _is_of_data(row)]
    firsts = (
        next((at for at in range(first.end, second.start) if _joins(heard, at)), None)
        for first, second in pairwise(rows)
    )
    return [heard.tokens[at].start for at in firsts if at is not None]


def _joins(heard: Mentions, at: int) -> bool:
    return heard.tokens[at].text in _SIGNS or heard.found.does(at, "and") is not None


def _is_of_data(row: Row) -> bool:
    """Whether a number may be one of tokens or samples to train on."""
    last = row.amounts[-1]
    if last.unit("samples") and not last.per:
        return True
    return (row.bare or last.unit("tokens") is not None) and bool(last.scale) and last.value >= _FEWEST_TOKENS


def _run(name: str, model: Any, after: list[str], reading: Reading, catalogue: Catalogue) -> PortfolioRun:
    edits = [edit for edit in reading.edits if edit.field not in (*_OF_DEVICES, *_OF_ALL, "model")]
    counts, deadlines = reading.values("count"), reading.values("deadline_h")
    return PortfolioRun(
        name=name,
        plan=patched({"model": model}, edits, reading.text, catalogue, Before()).plan,
        devices=counts[-1] if counts else None,
        priority=0.0,
        after=after,
        ready_h=0.0,
        deadline_h=deadlines[-1] if deadlines else None,
    )


def _name(model: str, stage: Sequence[str], runs: Sequence[PortfolioRun]) -> str:
    """The model's, with the stage behind it where another run is called so."""
    name = model.rpartition("/")[2][:_LONGEST_NAME]
    name = " ".join([name, *stage]) if any(run.name == name for run in runs) else name
    again = sum(run.name == name or run.name.startswith(f"{name} (") for run in runs)
    return f"{name} ({again + 1})" if again else name


def _changed(reading: Reading, heard: Mentions, queue: PortfolioRequest) -> PortfolioRequest | None:
    """The queue with another order, other devices, or another cluster; None where the turn says nothing of these."""
    runs, meant = queue.runs, _meant(heard, queue.runs)
    due = reading.values("deadline_h")
    counts = [edit.value for edit in reading.edits if edit.field == "count"]
    counts += [edit.value for option in reading.options for edit in option if edit.field == "count"]
    if not counts:
        # 'DPO only needs 8'
        counts = [int(row.amounts[-1].value) for row in heard.rows if row.bare and row.amounts[-1].value <= queue.count]
    if heard.does("round") or (heard.does("swap") and not reading.edits):
        runs = _in_order(list(reversed(runs)))
    elif meant and (due or heard.does("run_first")):
        first = meant.model_copy(update={"deadline_h": due[-1]}) if due else meant
        runs = [first if run is meant else run for run in runs]
        if heard.does("run_first"):
            runs = _in_order([first, *(run for run in runs if run is not first)])
    elif heard.does("run_beside"):
        runs = _side_by_side(runs, meant, counts[-1] if counts else None, queue.count)
    elif meant and counts:
        runs = [run.model_copy(update={"devices": counts[-1]}) if run is meant else run for run in runs]
    elif counts:
        return queue.model_copy(update={"count": counts[-1]})
    else:
        return None
    return queue.model_copy(update={"runs": runs})


def _with_terms(queue: PortfolioRequest, reading: Reading, heard: Mentions, now: datetime) -> PortfolioRequest:
    """The queue with when its first run may begin, and the person's own price, where the turn says them."""
    start = None if reading.values("deadline_h") else moment(heard, now)
    terms: dict[str, Any] = {"start": start.replace(tzinfo=None)} if start else {}
    if price := reading.pricing.get("usd_per_device_hour"):
        terms["usd_per_device_hour"] = price
    return queue.model_copy(update=terms)


def _side_by_side(
    runs: Sequence[PortfolioRun], meant: PortfolioRun | None, devices: int | None, count: int
) -> list[PortfolioRun]:
    """Runs at the same time, each on `devices` (or those of the one that is meant), else on what is left, in equal
    parts."""
    told = {run.name: devices for run in runs if devices and (meant is None or run is meant)}
    others = [run for run in runs if run.name not in told]
    left = max((count - sum(told.values())) // max(len(others), 1), 1)
    return [run.model_copy(update={"after": [], "devices": told.get(run.name, left)}) for run in runs]


def _in_order(runs: Sequence[PortfolioRun]) -> list[PortfolioRun]:
    """Runs one after the other, in this order."""
    chained = any(run.after for run in runs)
    names = [None, *(run.name for run in runs)]
    return [
        run.model_copy(update={"after": [before] if before and chained else [], "priority": float(-place)})
        for place, (before, run) in enumerate(zip(names, runs, strict=False))
    ]


def _meant(heard: Mentions, runs: Sequence[PortfolioRun]) -> PortfolioRun | None:
    """The one run that words name by its model, stage or method, or by its place."""
    text = "".join(token.text.lower() if not token.space else f" {token.text.lower()}" for token in heard.tokens)
    words = {word for part in text.split() for word in (part, part.strip(".,;:!?'\""))}

    families = {word for word in words if word.isalpha() and len(word) >= _SHORTEST_FAMILY}

    def common(run: PortfolioRun) -> int:
        kind = (get(run.plan, "workload.stage"), get(run.plan, "workload.method"))
        own = {*run.name.lower().replace("-", " ").split(), run.name.lower(), *(str(each) for each in kind if each)}
        return sum(part in words or any(part.startswith(word) for word in families) for part in own)

    best = max(runs, key=common, default=None)
    if best is None or not common(best) or sum(common(run) == common(best) for run in runs) > 1:
        return None
    return best
