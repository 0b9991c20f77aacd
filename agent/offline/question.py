"""What a turn asks: what was said now, else what was asked before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.offline.beside import MEANT
from agent.offline.calls.serving import has_load
from agent.offline.calls.training import SOLVED
from agent.offline.calls.wishes import ALONE, SEARCHES_HARDWARE, of_hardware
from agent.offline.catalogue import Catalogue
from agent.offline.form import Reading
from agent.offline.options import NOW, Changed, changed, compared, label
from estimator.plan.schema import merge
from planner.partial import get, is_serving, knows_length
from planner.requests import ALL_PATHS, LATENCY_LIMITS
from tools.registry import Tool

# A field and a value of it, as it is printed.
Pair = tuple[str, str]
# What the tools of a chain are asked for.
_OF_TOOL: Mapping[str, tuple[str, ...]] = {
    "check_fit": ("fit",),
    "best_parallelism": ("layout",),
    "estimate_cost": ("cost",),
    "render_configs": ("render",),
    "write_configs": ("write",),
    "best_serving": ("best",),
    "size_serving": ("size",),
    "project_mlperf": ("mlperf",),
}
# Tools of a chain: they answer a question about one plan.
_CHAIN = (None, "estimate_training", "estimate_inference", "check_fit", "best_parallelism", "estimate_cost",
          "best_serving")  # fmt: skip
_OF_FOCUS = {"memory": "fit", "latency": "time", "throughput": "time", "files": "render"}
_OF_ONE_TURN = ("write", "render", "why")
_CHOSEN = {"engine", "weight_dtype", "accelerator"}
_CHOICES = {"engines": "engine", "weight_dtypes": "weight_dtype", "accelerators": "accelerator"}
# Goals of find_limit by what they are called of the other kind of work.
_GOALS = (
    {"context": "seq_len", "input_len": "seq_len", "concurrency": "micro_batch"},
    {"seq_len": "context", "micro_batch": "concurrency"},
)
_LIMIT_OF = {f"workload.{name}": "micro_batch" for name in ("micro_batch", "global_batch")}
# A matrix is written as it was shown.
_MATRICES = {"benchmark_matrix", "render_matrix"}
# What runs the cells of a matrix, by the target that is named.
_SCHEDULERS = {name: name for name in ("slurm", "ssh", "compose", "skypilot", "kubernetes-trainjob")} | {
    "kubernetes": "kubernetes-trainjob", "docker": "compose"}  # fmt: skip
# Scaling goes on to so many times the plan's devices where no end is said.
_SPAN, _NODE, _MOST_NODES = 16, 8, 64


@dataclass(frozen=True)
class TurnQuestion:
    """`intents` of a chain of calls; or the one call of a `limit`, a `sweep` or a `wish` (tool, own arguments);
    `choices` are the alternatives of a search for a deployment, `solved` is the path that a limit is asked of, or a
    sweep goes over."""

    intents: list[str] = field(default_factory=list)
    limit: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    wish: tuple[str, dict[str, Any]] | None = None
    choices: dict[str, list[Any]] = field(default_factory=dict)
    solved: str | None = None


def asked(
    reading: Reading,
    topic: Mapping[str, Any],
    plan: Mapping[str, Any],
    options: Sequence[Changed],
    catalogue: Catalogue,
    tools: Mapping[str, Tool],
) -> TurnQuestion:
    """The question of this turn about `plan`, which its edits are laid over already."""
    if _takes(reading):
        reading = replace(reading, tool=None)
    serving = is_serving(plan)
    intents = _said(reading)
    limit = _limit(reading, topic, intents, serving)
    solved = SOLVED[limit["goal"]] if limit else None
    if serving and solved == SOLVED["devices"] and has_load(plan):
        # How many serve a load is another question than how many hold the model.
        limit, solved, intents = None, None, ["size", *intents]
    choices = _choices(reading, topic, options, intents) if serving else {}
    wish = _wish(reading, topic, plan, options, intents, limit, bool(choices), tools)
    match wish, {**topic, "now": reading.pricing}:
        case (
            ["recommend_cluster", {**own}],
            {"pricing": {"price": "owned"}} | {"now": {"price": "owned"}},
        ) if "providers" not in own:
            # 'On prem: what should we buy?'
            wish = "recommend_cluster", own | {"providers": ["owned"]}
    if wish:
        return TurnQuestion(["why"] if reading.act == "why" else [], wish=wish)
    sweep = _sweep(reading, topic, intents, plan, catalogue)
    intents = _asked_again(reading, topic, plan, intents, limit, sweep)
    return TurnQuestion(intents, limit, sweep, None, choices, sweep["field"] if sweep else solved)


def _takes(reading: Reading) -> bool:
    """Whether one of those that were offered is taken, which is no search for others: 'take the second'."""
    picked = any(reference.to == "offer" for reference in reading.refs)
    return picked and not reading.options and reading.tool in (*SEARCHES_HARDWARE, "compare", "sweep")


def asks(reading: Reading) -> bool:
    """Whether something is asked; else the last question is asked again."""
    return bool(reading.tool or reading.focus or reading.act == "why")


def limits(reading: Reading) -> set[str]:
    """Plan paths that the turn asks a limit of: a value said of them is no value."""
    if reading.tool != "find_limit":
        # 'And of the Qwens?' names no model to take.
        return {"model"} if reading.tool is None and "family" in reading.own else set()
    goal = str(reading.own.get("goal", ""))
    return {SOLVED[name] for name in (goal, *(names.get(goal, goal) for names in _GOALS)) if name in SOLVED}


def _said(reading: Reading) -> list[str]:
    tool = reading.tool or ""
    if _alone(reading) or tool == "sweep":
        return []
    left_out = {"write_configs": "files", "render_configs": "write"}.get(tool)
    if tool == "estimate_inference" and "throughput" in reading.focus:
        # 'How many tokens per second' asks for no devices.
        left_out = "size"
    focus = [_OF_FOCUS.get(name, name) for name in reading.focus if name != left_out]
    why = ["why"] if reading.act == "why" and not focus else []
    intents = list(dict.fromkeys([*_OF_TOOL.get(tool, ()), *focus, *why]))
    # A limit is what fits.
    return [name for name in intents if not (tool == "find_limit" and name == "fit")]


def _alone(reading: Reading) -> bool:
    """Whether one tool is the whole answer; what would make a run faster is told with how fast it is."""
    return reading.tool in ALONE and not (reading.tool == "advise" and "faster" in reading.focus)


def _limit(reading: Reading, topic: Mapping[str, Any], intents: list[str], serving: bool) -> dict[str, Any] | None:
    """find_limit's own arguments; a follow-up that asks nothing else asks it again."""
    if reading.tool == "find_limit":
        goal = reading.own.get("goal") or _LIMIT_OF.get(str(topic.get("recent")), "seq_len")
        goal = _GOALS[serving].get(goal, goal)
        family = reading.own.get("family")
        return {"goal": goal} | ({"family": family or "any"} if goal == "model" else {})
    before = topic.get("limit")
    # What stops it there is told with the limit.
    if not before or reading.tool or set(intents) - {"why", "faster"} or reading.options:
        return None
    family = {name: value for name, value in reading.own.items() if name == "family"}
    paths = {ALL_PATHS.get(edit.field, edit.field) for edit in reading.edits} - limits(reading)
    return None if SOLVED[before["goal"]] in paths else before | family


def _sweep(
    reading: Reading, topic: Mapping[str, Any], intents: list[str], plan: Mapping[str, Any], catalogue: Catalogue
) -> dict[str, Any] | None:
    """The sweep tool's own arguments; a follow-up that asks nothing else asks it again."""
    before = topic.get("sweep")
    if reading.tool == "sweep":
        own = dict(reading.own)
        name = own.get("field", "count")
        own["field"] = ALL_PATHS.get(name, name)
        if "second_field" in own:
            own["second_field"] = ALL_PATHS.get(own["second_field"], own["second_field"])
        if own.pop("scales", False):
            start, stop = own.get("values") or (None, None)
            again = before and before["field"] == own["field"] and start is None and stop is None
            # "And weak scaling?" is about the sizes that were asked about.
            own["values"] = before["values"] if before and again else _sizes(start, stop, own, plan, catalogue)
        known = ("field", "values", "second_field", "second_values", "scale_batch", "objective")
        return {name: own[name] for name in known if name in own}
    if not before or reading.tool or intents or reading.options or not reading.edits:
        return None
    paths = {ALL_PATHS.get(edit.field, edit.field) for edit in reading.edits}
    return None if before["field"] in paths else dict(before)


def _sizes(
    start: int | None, stop: int | None, own: Mapping[str, Any], plan: Mapping[str, Any], catalogue: Catalogue
) -> list[int]:
    """Doubled from the first size, which is the plan's own or a node where none is said, and the last in any case."""
    device, count = get(plan, "cluster.accelerator"), get(plan, "cluster.count")
    node = int(get(plan, "cluster.per_node") or (catalogue.per_node(str(device)) if device else _NODE))
    unit = node if own.get("nodes") else 1
    end = None if stop is None else stop * unit
    first = count if count and (end is None or count < end) else min(node, end or node)
    size = first if start is None else start * unit
    end = size * _SPAN if end is None else end
    sizes: list[int] = []
    while size < end:
        sizes.append(size)
        size *= 2
    return [*sizes, end]


def _choices(
    reading: Reading, topic: Mapping[str, Any], options: Sequence[Changed], intents: list[str]
) -> dict[str, list[Any]]:
    """Of serving: the alternatives to choose from; a follow-up that asks nothing else asks about them again."""
    searched = {"size", "best"} & set(intents or topic.get("intents", ()))
    named = {field: list(reading.own[name]) for name, field in _CHOICES.items() if name in reading.own}
    over = {name for option in options for name, value in option.items() if value is not None}
    if searched and len(options) > 1 and len(over) == 1 and over <= _CHOSEN:
        (name,) = over
        named[name] = [option[name] for option in options if name in option]
    if named or asks(reading) or reading.options:
        return named if searched else {}
    fields = {edit.field for edit in reading.edits}
    return {name: values for name, values in topic.get("choices", {}).items() if name not in fields}


def _asked_again(
    reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any], intents: list[str], limit: Any, sweep: Any
) -> list[str]:
    """What was asked; in a follow-up that asks nothing, what was asked before, save for writing files again."""
    serving, unplaced = is_serving(plan), get(plan, "cluster.count") is None
    # 'LoRA rank 64 then' behind advice is a run that is changed.
    once = (*_OF_ONE_TURN, "faster") if reading.act == "change" else _OF_ONE_TURN
    before = [name for name in topic.get("intents", []) if name not in once]
    counted = any(edit.field in ("count", "nodes") for edit in reading.edits)
    if reading.tool == "check_fit" and "need" in before and not reading.focus:
        # 'And to fine-tune it?' after what it needs.
        again = before
    elif intents or reading.tool in ("find_limit", "sweep"):
        again = intents
    elif reading.pricing and not (reading.tool or reading.edits or reading.options or limit or sweep):
        # 'On spot?' says of prices alone how they are to be taken: it asks what that costs.
        again = ["cost"]
    elif reading.tool in (None, "estimate_training", "estimate_inference") and (before or limit or sweep):
        again = before
    else:
        again = []
    if not (again or limit or sweep):
        again = ["time"] if serving else ["fit", "time", "cost"] if knows_length(plan) else ["fit", "time"]
    if not serving or limit or sweep:
        return again
    if counted and not intents and "size" in again and has_load(plan):
        # "And on 8?" after "how many?" is about these 8; without a load it is how much these serve, as before.
        return ["time"]
    if unplaced and has_load(plan) and ("cost" in intents or "size" in topic.get("intents", [])):
        # What it costs, or what twice the load does, is asked of the cheapest size that serves it.
        return list(dict.fromkeys(["size", *again]))
    return again


def _wish(
    reading: Reading,
    topic: Mapping[str, Any],
    plan: Mapping[str, Any],
    options: Sequence[Changed],
    intents: list[str],
    limit: Any,
    chosen: bool,
    tools: Mapping[str, Tool],
) -> tuple[str, dict[str, Any]] | None:
    """The tool that is the whole answer, with its own arguments; one of the turn before where nothing else is asked."""
    (before, kept), held = topic.get("wish") or (None, {}), topic.get("refused") or {}
    tool = reading.tool if _alone(reading) else None
    if before in SEARCHES_HARDWARE and reading.tool is None and _devices_alone(options):
        tool = before
    if tool is None and options and not (chosen or reading.tool in ("find_limit", "sweep")):
        tool = "compare"
    if tool is None and _everything(reading, topic):
        tool = "compare"
    if before == "compare" and _of_what_was_compared(reading, kept, plan):
        tool = "compare"
    if before == "compare" and (added := _added(reading, kept)):
        return before, _extended(kept, [added])
    if tool is None and reading.tool in _CHAIN and not before and _wants_hardware(reading, plan, topic, limit):
        tool = "recommend_cluster"
    if limit == {"goal": "devices"} and (searched := _for_devices(plan, options)):
        return searched
    if tool is not None:
        own = _own(tool, reading, plan, options, tools)
        if before == tool == "compare" and options and _joins(options, kept, plan):
            own = _joined(kept, options, [*_refused(reading), *_pairs(held)])
        if tool == "compare" and not {"over", "scenarios"} & set(own):
            own |= _compared_before(topic, plan, reading)
            own = _exchanged(reading, own) or own
            if not {"over", "scenarios"} & set(own):
                return None  # Nothing was named that could be set side by side: the run itself is told.
        if tool in ("report", "render_report", "preview_report") and before == "compare":
            own = {name: kept[name] for name in ("over", "scenarios") if name in kept} | own
        start = {"nodes": _MOST_NODES} if tool == "project_scaling" else {}
        start |= kept if tool == before and tool != "compare" else {}
        last, shown = topic.get("last") or (None, {})
        start |= shown if {last, tool} <= _MATRICES else {}
        if "accelerators" in own:
            # Devices that are named are of whichever vendor.
            start.pop("vendors", None)
        return tool, start | own
    return _again(reading, topic, plan, intents, tools)


def _again(
    reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any], intents: list[str], tools: Mapping[str, Tool]
) -> tuple[str, dict[str, Any]] | None:
    """The tool of the turn before once more, with what is other now."""
    before, kept = topic.get("wish") or (None, {})
    if before == "compare" and (exchanged := _exchanged(reading, kept)):
        return before, exchanged
    # 'And at 256 clients' behind a comparison is asked of all that was compared.
    changes = reading.act in ("change", "recall")
    # 'TTFT under 2 s' names a limit, and asks for no figure.
    limited = any(edit.field in LATENCY_LIMITS for edit in reading.edits)
    focus = {*reading.focus} - ({"latency"} if limited else set())
    compares = before == "compare" and changes and reading.tool in _CHAIN and not focus
    asked = not compares and (reading.tool or intents)
    if before is None or asked or not (reading.edits or reading.pricing or reading.own):
        return None
    if _ends(reading, before, kept) or (topic.get("once") and changes):
        return None
    return before, {**kept, **_own(before, reading, plan, (), tools)}


def _exchanged(reading: Reading, own: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was compared with another in the place of one that is refused: 'glm is out, put qwen3-32b in its place'."""
    over: Mapping[str, list[Any]] = _over(own)
    out = _refused(reading)
    new = [(edit.field, edit.value) for edit in reading.edits if edit.op == "set" and edit.field in over]
    if out and not new:
        return _without_refused(own, out)
    out = [(name, value) for name, value in out if name in over]
    if len(out) != 1 or len(new) != 1 or out[0][0] != new[0][0]:
        return None
    (name, refused), (_, value) = out[0], new[0]
    kept = [other for other in over[name] if refused.lower() not in str(other).lower()]
    return {**own, "over": {**over, name: [*kept, value]}} if len(kept) == len(over[name]) - 1 else None


def _refused(reading: Reading) -> list[Pair]:
    return [(edit.field, str(edit.value)) for edit in reading.edits if edit.op == "refuse"]


def _pairs(values: Mapping[str, Sequence[Any]]) -> Iterator[Pair]:
    return ((name, str(value)) for name, each in values.items() for value in each)


def _without_refused(own: Mapping[str, Any], out: Sequence[Pair]) -> dict[str, Any] | None:
    """What was compared without the values that are refused, or the options that bring them: 'without the q8', as long
    as several are left."""
    over, scenarios = _over(own), _scenarios(own)
    left = {name: [value for value in values if (name, str(value)) not in out] for name, values in over.items()}
    rest = [each for each in scenarios if not any((name, str(value)) in out for name, value in each.items())]
    fewer = len(rest) < len(scenarios) or any(len(left[name]) < len(over[name]) for name in over)
    enough = all(len(values) > 1 for values in left.values()) and (len(rest) > 1 or not scenarios)
    if not (fewer and enough):
        return None
    return {**own} | ({"over": left} if over else {}) | ({"scenarios": rest} if scenarios else {})


def _for_devices(plan: Mapping[str, Any], options: Sequence[Changed]) -> tuple[str, dict[str, Any]] | None:
    """The search that says how many devices a run takes: of those that finish by the deadline, which is another
    question than how many hold the model, or of any, where something is served and none are named."""
    device, serving = get(plan, "cluster.accelerator"), is_serving(plan)
    timed = not serving and get(plan, "goal.deadline_h") and knows_length(plan)
    if timed or (serving and get(plan, "model") and not (device or options)):
        return "recommend_cluster", {"sort": "cost"} | ({"accelerators": [device]} if device else {})
    return None


def _ends(reading: Reading, tool: str, own: Mapping[str, Any]) -> bool:
    """Whether what is said settles what the wish of the turn before left open."""
    if tool in (*SEARCHES_HARDWARE, "compare") and any(reference.to == "offer" for reference in reading.refs):
        # 'Go with the second one', 'take the cheapest and double the nodes'
        return True
    fields = {edit.field for edit in reading.edits}
    swept = _swept(own)
    if fields & swept or (of_hardware(own) and "accelerator" in fields):
        return True
    # "We have two 4090s" is no search any more.
    return tool in SEARCHES_HARDWARE and "accelerator" in fields and bool(fields & {"count", "nodes"})


def _own(
    tool: str, reading: Reading, plan: Mapping[str, Any], options: Sequence[Changed], tools: Mapping[str, Tool]
) -> dict[str, Any]:
    """The tool's own arguments as far as the turn says them."""
    known = tools[tool].request.model_fields if tool in tools else {}
    own = {name: value for name, value in reading.own.items() if name in known and name not in ALL_PATHS}
    own |= {name: reading.own[name] for name in ("name", "provider") if name in reading.own}
    own |= {name: value for name, value in reading.pricing.items() if name in known and name not in ALL_PATHS}
    devices = _named(reading, options, "accelerator")
    models = _named(reading, options, "model")
    several = 1 if tool in ("peak_throughput", "recommend_cluster") else 2
    if "accelerators" in known and len(devices) >= several and devices:
        own.setdefault("accelerators", devices)
    if "providers" in known and (providers := reading.values("provider")):
        own.setdefault("providers", providers)
    if "models" in known and len(models) >= several and models:
        own.setdefault("models", models)
    if tool == "peak_throughput" and (precisions := _named(reading, options, "precision")):
        own.setdefault("precisions", precisions)
    if "scheduler" in known and (named := [name for name in reading.own.get("targets", ()) if name in _SCHEDULERS]):
        own.setdefault("scheduler", _SCHEDULERS[named[0]])
    if options and "over" in known and not {"over", "scenarios"} & set(own):
        own |= compared(plan, options)
    return own


def _named(reading: Reading, options: Sequence[Changed], name: str) -> list[Any]:
    values = [*reading.values(name), *(option.get(name) for option in options)]
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


def _extended(own: Mapping[str, Any], options: Sequence[Changed]) -> dict[str, Any]:
    """What was compared before, with more options: values of the field that differed, or scenarios."""
    if over := _over(own):
        values = {name: [*over[name], *(option[name] for option in options if name in option)] for name in over}
        return {**own, "over": {name: list(dict.fromkeys(each)) for name, each in values.items()}}
    return {**own, "scenarios": [*_scenarios(own), *({"name": label(option), **option} for option in options)]}


def _joined(own: Mapping[str, Any], options: Sequence[Changed], out: Sequence[Pair]) -> dict[str, Any]:
    """What was compared with more options, and without what is refused: 'no AMD then, and a used 3090?'. What is named
    again is refused no more."""
    extended, named = _extended(own, options), {(name, str(value)) for each in options for name, value in each.items()}
    return _without_refused(extended, [pair for pair in out if pair not in named]) or extended


def _joins(options: Sequence[Changed], own: Mapping[str, Any], plan: Mapping[str, Any]) -> bool:
    """Whether an option alone is set beside what was compared: 'GB200?' where the plan has no device of its own."""
    (first, *more), fields = options, set(_over(own))
    return not more and set(first) == fields and all(get(plan, ALL_PATHS[name]) is None for name in fields)


def _over(own: Mapping[str, Any]) -> Mapping[str, list[Any]]:
    """The values of fields that a comparison sets side by side."""
    return own.get("over") or {}


def _scenarios(own: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The options of a comparison that differ in more than one field."""
    return own.get("scenarios") or ()


def _swept(own: Mapping[str, Any]) -> set[str]:
    """The fields that a comparison sets side by side."""
    return set(_over(own)) | {name for scenario in _scenarios(own) for name in scenario}


def _added(reading: Reading, own: Mapping[str, Any]) -> Changed | None:
    """What is set beside what was compared before: 'throw B200 in as well', 'add qlora to the table', 'and 24?'"""
    fields = _swept(own)
    edits = [edit for edit in reading.edits if edit.op == "set" and edit.field in fields]
    also = any(reference.to == "also" for reference in reading.refs)
    also = also or (reading.act != "change" and asks(reading) and _is_another(reading, own))
    also = also and not (reading.options or any(reference.to == "offer" for reference in reading.refs))
    several = len(edits) > 1 and bool(_scenarios(own))
    alone = len(edits) == len(reading.edits) and (len(edits) == 1 or several)
    return {edit.field: edit.value for edit in edits} if also and alone else None


def _is_another(reading: Reading, own: Mapping[str, Any]) -> bool:
    """Whether what is set is a value that one field's comparison lacks."""
    over, told = _over(own), {edit.field: edit.value for edit in reading.edits}
    beside = [{name: each.get(name) for name in told} for each in _scenarios(own)]
    return any(name in over and value not in over[name] for name, value in told.items()) or (
        bool(beside) and told not in beside and set(told) <= _swept(own)
    )


def _devices_alone(options: Sequence[Changed]) -> bool:
    """Whether options are devices without a number: of a search that goes on they restrict it."""
    return bool(options) and all(set(option) <= {"accelerator", "per_node"} for option in options)


def _of_what_was_compared(reading: Reading, own: Mapping[str, Any], plan: Mapping[str, Any]) -> bool:
    """'Which is cheaper?' after a comparison that brought what the plan lacks: it is about all that was compared."""
    fields = _swept(own)
    lacking = any(name in fields and get(plan, ALL_PATHS[name]) is None for name in ("model", "accelerator"))
    taken = any(reference.to == "offer" for reference in reading.refs)
    return reading.tool in _CHAIN and asks(reading) and lacking and not (reading.edits or taken)


def _everything(reading: Reading, topic: Mapping[str, Any]) -> bool:
    """Whether what was said before is to be compared: 'which of the two is faster?'"""
    return reading.compares_what_was and bool(
        topic.get("plans") or topic.get("supposed") or (topic.get("wish") or [None])[0] == "compare"
    )


def _compared_before(topic: Mapping[str, Any], plan: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """What was compared last; else the plan beside what was supposed, or beside the plan before it, each with what is
    set now: 'which of the two is cheaper for 2B tokens?'"""
    tool, own = topic.get("wish") or (None, {})
    if tool == "compare":
        return dict(own)
    fields = [name for edit in reading.edits for name in MEANT.get(edit.field, (edit.field,)) if name in ALL_PATHS]
    told = {ALL_PATHS[name]: value for name in fields if (value := get(plan, ALL_PATHS[name])) is not None}
    if supposed := topic.get("supposed"):
        return {"scenarios": _apart(("now", plan), ("supposed", merge(supposed, told)))}
    match topic:
        case {"plans": [*_, plan_before], "found_before": {**found}}:
            before = merge(merge(plan_before, found), told)
        case {"plans": [*_, plan_before]}:
            before = merge(plan_before, told)
        case _:
            return {}
    return {"scenarios": _apart(("before", before), ("now", merge(plan, found_for(topic))))}


def found_for(topic: Mapping[str, Any]) -> dict[str, Any]:
    """What a search found that the answer before was about, by path; empty where there was none."""
    match topic:
        case {"found": True, "offers": [*offers], "best": int(best)}:
            return dict(offers[best])
    return {}


def _apart(*rows: tuple[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Two plans to be set side by side, named by what is other in them; as they came where that has no words."""
    (_, first), (_, second) = rows
    words = [label(each) for each in (*changed(second, [first]), *changed(first, [second]))]
    names = words if NOW not in words and len(set(words)) == len(rows) else [name for name, _ in rows]
    return [{"name": name, "plan": merge(each, {})} for name, (_, each) in zip(names, rows, strict=True)]


def _wants_hardware(reading: Reading, plan: Mapping[str, Any], topic: Mapping[str, Any], limit: Any) -> bool:
    """Whether money or time is limited and no device was ever named: which to take is the question then."""
    limited = {"budget_usd", "deadline_h"} & {edit.field for edit in reading.edits}
    named = reading.needs or topic.get("offers") or get(plan, "cluster.accelerator") or limit
    limited = limited or "max_usd_per_hour" in reading.pricing
    return bool(limited and plan.get("model") and not named and not is_serving(plan))
