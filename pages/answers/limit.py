"""The most that fits, what stops it there, and the plan at that value: find_limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estimator.plan.schema import Inference, Training
from estimator.units import GIB
from knowledge import figures
from knowledge.machines.catalogue import find_accelerator
from pages.answers import memory, steps
from pages.answers.change import ShortAnswer, settings_of
from pages.answers.lead import verdict
from pages.answers.plan import complete, hardware_words, kind_words, layout_words, length_words, run_words
from pages.blocks import Aside, Block, Folded, Prose, capitalised
from pages.results.columns import Column, table
from pages.results.estimate import component, memory_words
from pages.results.needs import hosted_words, switched_on
from planner.results import LayoutChoice, Limit, MemoryEstimate, TrainingEstimate
from planner.serving.results import ServingChoice, ServingMemoryEstimate

# What stops it that is no part of memory.
_OTHERS = {"catalogue": "the catalogue", "deadline": "the deadline", "budget": "the budget",
           "device_hours": "the device-hours"}  # fmt: skip
_OF_SERVING = {"kv_cache": "KV cache", "ttft_slo_ms": "time to first token",
               "tpot_slo_ms": "time per output token", "latency": "the latency limits"}  # fmt: skip


# What each goal solves for is no setting.
_SOLVED = {"seq_len": "sequences", "model": "model", "devices": "hardware", "accelerator": "hardware",
           "context": "context", "concurrency": "load", "input_len": "load"}  # fmt: skip
_UNITS = {"micro_batch": " sequences", "model": "", "devices": " devices", "concurrency": " users", "accelerator": ""}
# So many other cards of the same memory are named.
_NAMED = 3


def summary(limit: Limit) -> ShortAnswer:
    """The limit in short, for what is asked next."""
    settings = settings_of(complete(limit.plan)) | {f"limit of {limit.goal}": limit.goal}
    settings.pop(_SOLVED.get(limit.goal, ""), None)
    if limit.goal == "devices":
        settings["device"] = str(complete(limit.plan).cluster.accelerator)
    value = "none" if limit.value is None else figures.plain(limit.value)
    value = figures.shown("tokens", limit.value) if limit.goal == "tokens" and limit.value else value
    return ShortAnswer({"limit": f"{value}{_UNITS.get(limit.goal, ' tokens')}"}, settings)


def answer(limit: Limit) -> list[Block]:
    return serving(limit) if isinstance(complete(limit.plan).workload, Inference) else training(limit)


def training(limit: Limit) -> list[Block]:
    """The limit in a sentence, why it is there, and the layout and memory at it."""
    by = _OTHERS.get(limit.limited_by, component(limit.limited_by))
    head = verdict(_verdict(limit), limit.value is not None, limit.warnings, _room(limit))
    if limit.tight:
        head = replace(head, beware=True)
    blocks: list[Block] = [head, _bound(limit, by), Aside(_takes(limit))]
    if limit.value is None:
        return blocks
    if not isinstance(chosen := limit.chosen, ServingChoice):
        there = (
            f"**Layout** there, {chosen.framework}: {layout_words(complete(limit.plan))}. A step takes about "
            f"{figures.seconds(chosen.step_s)}, {figures.rate(chosen.tokens_per_s)} tokens/s at "
            f"{figures.percent(chosen.mfu)} MFU."
        )
        blocks.append(Prose(there))
    if limit.goal == "tokens" or not isinstance(limit.memory, MemoryEstimate):
        return blocks
    return [*blocks, *memory.training(limit.memory), *steps.limit(limit)]


def _bound(limit: Limit, by: str) -> Prose:
    """What stops it; at the end of what is tried nothing does, a limit of latency says itself what it is of, and below
    one device there is nothing."""
    if limit.goal == "devices" and limit.value == 1:
        return Prose("")
    if limit.limited_by == "range" or limit.limited_by.endswith("_slo_ms"):
        return Prose(f"{capitalised(limit.why)}.")
    return Prose(_with_host(limit) or f"Bottleneck: **{by}**; {limit.why}.")


def _with_host(limit: Limit) -> str:
    """Of a value that takes host memory: which of the two is fuller there. What the devices alone would need for more
    says nothing of it."""
    need = limit.memory
    if not (_hosted(limit) and isinstance(need, MemoryEstimate)):
        return ""
    # With each how full it is.
    parts = [(need.high_bytes, need.capacity_bytes, "device memory", "device")]
    if need.host.capacity_bytes:
        parts.append((need.host.per_node_bytes, need.host.capacity_bytes, "host memory", "node"))
    fullest, *others = sorted(parts, key=lambda part: -part[0] / part[1])
    first, *rest = (f"{figures.gib(taken)} of {figures.gib(has)} per {of}" for taken, has, _, of in (fullest, *others))
    beside = "".join(f"; {name} {told}" for (_, _, name, _), told in zip(others, rest, strict=True))
    largest = max(need.components, key=need.components.__getitem__)
    most = f"The most of a device goes to {component(largest)}: {figures.gib(need.components[largest])}."
    return f"Bottleneck: **{fullest[2]}**, {first}{beside}. {most}"


def _verdict(limit: Limit) -> str:
    plan = complete(limit.plan)
    run, hardware = run_words(plan), hardware_words(plan)
    kind = kind_words(plan.workload) if isinstance(plan.workload, Training) else run
    if limit.value is None:
        nothing = {
            "seq_len": f"{run} on {hardware} does not fit even with the shortest sequences",
            "micro_batch": f"{run} on {hardware} does not fit even with one sequence at a time",
            "model": f"not even the smallest model considered fits for {kind} on {hardware}",
            "devices": f"{run} does not fit on any number of these devices tried",
            "accelerator": f"{run} does not fit on any card",
            "tokens": f"{run} on {hardware} does not fit",
        }[limit.goal]
        return f"**None**: {nothing}."
    value = figures.plain(limit.value)
    match limit.goal:
        case "seq_len":
            return f"**{value} tokens** is the longest context that fits{_in_host(limit)}: {run} on {hardware}."
        case "micro_batch":
            return f"**{value} sequences** is the largest micro-batch that fits{_in_host(limit)}: {run} on {hardware}."
        case "model":
            return f"{_largest(limit)}: {kind} on {hardware}."
        case "accelerator":
            return f"{_card(limit)}{'; it is tight' * limit.tight}."
        case "tokens":
            span = f" ({figures.between('tokens', limit.low_value or 0, limit.high_value or 0)})"
            most = f"**{figures.shown('tokens', limit.value)} tokens**{span} is the most data"
            return f"{most} within {_OTHERS.get(limit.limited_by, 'the limits')}: {run} on {hardware}."
        case _ if limit.value == 1:
            return f"**{hardware}** is enough: {run} fits on a single device{_tightly(limit)}{_in_host(limit)}."
    return f"At least **{hardware}**{_tightly(limit)}{_in_host(limit)}: {run} does not fit on fewer."


def _card(limit: Limit) -> str:
    """The memory first, which decides; then who has it."""
    plan = complete(limit.plan)
    size_gb = find_accelerator(str(plan.cluster.accelerator)).value.memory_bytes / GIB
    named, many = ", ".join(limit.alike[:_NAMED]), len(limit.alike)
    also = f"; so does it on {named if many <= _NAMED else f'{many} others, such as {named}'}" if many else ""
    fits = f"{run_words(plan)} fits on {hardware_words(plan)}{also}"
    return f"**{size_gb:.0f} GB** is the smallest card that holds it: {fits}"


def _tightly(limit: Limit) -> str:
    return ", but tightly" * limit.tight


def _room(limit: Limit) -> str:
    return f"It takes {memory_words(limit.memory)}." if limit.tight else ""


def _in_host(limit: Limit) -> str:
    """', with activations in host memory (8,192 without)': what the value takes of host memory."""
    alone, hosted = limit.on_devices, _hosted(limit)
    without = f" ({figures.plain(alone)} without)" if alone not in (None, limit.value) else ""
    return f", with {hosted}{without}" if hosted else ""


def _hosted(limit: Limit) -> str:
    """'activations in host memory'."""
    offload = complete(limit.plan).layout.offload
    if limit.value is None or offload in (None, "none") or isinstance(limit.chosen, ServingChoice):
        return ""
    return hosted_words(offload)


def _takes(limit: Limit) -> str:
    """The framework whose host memory that is, and what was switched on for it."""
    chosen = limit.chosen
    if not _in_host(limit) or isinstance(chosen, ServingChoice):
        return ""
    switched = switched_on(limit.assumptions)
    return f"It needs {' with '.join(filter(None, (chosen.framework, ' and '.join(switched))))}."


def _largest(limit: Limit) -> str:
    """The one that the devices hold first: with parts of it in host memory few run one."""
    does = "trains in time" if limit.limited_by == "deadline" else "fits"
    value, hosted = f"**{limit.value}** ({figures.count(limit.parameters)} parameters)", _hosted(limit)
    if hosted and limit.on_devices not in (None, limit.value):
        return (
            f"**{limit.on_devices}** is the largest model that {does} on the devices alone; {value} does with {hosted}"
        )
    return f"{value} is the largest model that {does}{_tightly(limit)}{_in_host(limit)}"


def more_devices(runs: Sequence[tuple[str, TrainingEstimate, float | None]]) -> list[Block]:
    """The same run on several numbers of devices, each with its name and cost in USD."""
    own = {id(estimate): (name, figures.shown("usd", usd)) for name, estimate, usd in runs}
    columns: list[Column] = [
        ("", lambda row: own[id(row)][0]), "memory.fits", "memory.per_device_bytes", "time.step_s",
        "throughput.tokens_per_s", "throughput.mfu", "run.hours", (figures.label("usd"), lambda row: own[id(row)][1]),
    ]  # fmt: skip
    return table([estimate for _, estimate, _ in runs], columns, "With more devices")


def serving(limit: Limit) -> list[Block]:
    """The most that a deployment takes, what stops it there, and its speed and memory."""
    plan, chosen, workload = complete(limit.plan), limit.chosen, complete(limit.plan).workload
    run, hardware = run_words(plan), hardware_words(plan)
    lengths = length_words(workload) if isinstance(workload, Inference) else ""
    by = (_OTHERS | _OF_SERVING).get(limit.limited_by, figures.label(limit.limited_by))
    goal = "context" if limit.goal == "seq_len" else limit.goal
    if limit.value is None:
        nothing = {
            "context": "no request, however short, fits",
            "input_len": "no prompt, however short, fits",
            "concurrency": "not even one user can be served",
            "model": "not even the smallest model considered fits",
            "devices": "no number of these devices tried is enough",
            "accelerator": "no card is large enough",
        }[goal]
        more = f"Bottleneck: {by}; {limit.why}."
        return [verdict(f"None: {nothing} ({run} on {hardware}).", False, more=more)]
    value = figures.plain(limit.value)
    heads = {
        "context": f"**{value} tokens** is the longest request, prompt and answer, that fits",
        "input_len": f"**{value} tokens** is the longest prompt that fits",
        "concurrency": f"At most **{value} users** at once with {lengths}",
        "model": _largest(limit),
        "devices": f"**{hardware}** is enough" if limit.value == 1 else f"At least **{hardware}** to serve it",
    }
    where = {"model": hardware, "devices": run}.get(goal, f"{run} on {hardware}")
    told = _card(limit) if goal == "accelerator" else f"{heads[goal]}: {where}"
    head = verdict(f"{told}.", True, limit.warnings)
    there = [_bound(limit, by), *_at_that_point(chosen)]
    late = limit.limited_by.endswith("_slo_ms")
    # What latency stops is told with how fast it is there, and memory says nothing of it.
    blocks: list[Block] = [head, *([Prose(" ".join(block.markdown for block in there))] if late else there)]
    if isinstance(limit.memory, ServingMemoryEstimate) and isinstance(workload, Inference):
        parts = memory.serving(limit.memory, workload.engine)
        blocks += [Folded(parts)] if late else parts
    return [*blocks, *steps.limit(limit)]


def _at_that_point(chosen: LayoutChoice | ServingChoice) -> list[Prose]:
    if not isinstance(chosen, ServingChoice):
        return []
    ttft = figures.known(chosen.ttft_s, figures.seconds, "grows without bound")
    return [
        Prose(
            f"**At that point**: {chosen.summary}; TTFT {ttft}, TPOT {figures.seconds(chosen.tpot_s)}, "
            f"{figures.rate(chosen.output_tokens_per_s)} output tokens/s."
        )
    ]
