"""From what a log holds to one run: figures that follow from others are filled in, and contradictions are told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from estimator.units import GIB
from measure.history.run import MeasuredRun, can_be, quartiles
from measure.logs.facts import HeaderFacts
from measure.logs.faults import OutOfMemory
from measure.logs.lines import Row
from measure.logs.megatron import listed_model
from measure.logs.scan import Bar
from measure.logs.steady import SteadySteps, by_step, restarts, steady

# Beyond this two counts of samples contradict each other, and the speed has changed.
_SAMPLES_ALIKE = 0.10
_SHIFT = 0.10
# Beyond this the clocks of lines say otherwise than the steps that they tell.
_CLOCKS_APART = 0.5
_OF_PROMPTS = ("verl", "openrlhf", "nemo-rl", "slime")
# Programs that have whole replicas, or shards of them, and nothing else: a device is a rank of the batch.
_OF_REPLICAS = ("hf-trainer", "unsloth", "axolotl")
_LEAST_HALF = 10
# So many lines of steps may follow what ended a run, of other ranks.
LATE = 2
_LEAST_SPEED = 0.02


def assembled(
    facts: HeaderFacts,
    rows: Sequence[tuple[int, Row]],
    source: str,
    bars: Sequence[tuple[int, Bar]] = (),
    saves: Sequence[int] = (),
    faults: Sequence[OutOfMemory] = (),
) -> MeasuredRun:
    """The run of a log's facts and lines; its findings say what does not belong together."""
    values = facts.values
    per_epoch = values["steps"] / values["epochs"] if values.keys() >= {"steps", "epochs"} else 0.0
    steps = by_step(rows, bars, per_epoch)
    result = steady(steps, saves, bars, rows)
    printed = "tokens_per_s_per_device" in result.figures or "tokens_per_s" in result.facts
    _plan(facts, result)
    findings = _filled(facts, result, steps)
    findings += [*_odd(result, steps), *_again(rows), *map(_fault, faults)]
    findings += _of_clocks(facts, result, counted=any("counted" in row for row in steps))
    if "step_s" not in result.figures and (mean := _of_the_whole(facts, rows)):
        result.figures["step_s"] = mean
        _rates(facts, result)
        findings.append(
            "the step time is the Trainer's train_runtime over all steps: the first and the saving of checkpoints "
            "are in it"
        )
    if not printed:
        _of_consumed(facts, result)
    if "tokens_per_s_per_device" not in result.figures:
        told = [name for name in ("tokens_per_s", "samples_per_s") if name in result.facts]
        result.figures |= {name: result.facts[name] for name in told}
    outcome = "ran" if result.figures or steps else "failed"
    if faults and not _went_on(faults[-1].log_at, rows, bars):
        outcome = "oom"
        _out_of_memory(result, faults[0])
    return _run(
        facts,
        result,
        source=source[:400],
        date=facts.date,
        outcome=outcome,
        peak_kind=result.peak_kind,
        steps=result.steps or None,
        start_s=result.start_s if can_be(result.start_s or 0.0) else None,
        software=facts.software,
        findings=findings,
        series=result.series,
    )


def _went_on(at: int, rows: Sequence[tuple[int, Row]], bars: Sequence[tuple[int, Bar]] = ()) -> bool:
    """Whether steps follow behind a place in a log: more than other ranks print before they end, too."""
    return any(len(lines) > LATE and lines[-1 - LATE][0] > at for lines in (rows, bars))


def _of_clocks(facts: HeaderFacts, result: SteadySteps, *, counted: bool) -> list[str]:
    """The step time by when lines were printed, where nothing else tells it; and what is to be said of it."""
    seconds, told = result.facts.get("clock_step_s"), result.figures.get("step_s")
    if seconds is None or (counted and told):
        return []
    if told:
        apart = abs(math.log(seconds / told)) > math.log1p(_CLOCKS_APART)
        beside = f"its lines lie {seconds:.4g} s a step apart, where it tells {told:.4g} s: "
        why = "waiting, evaluation and checkpoints are beside it" if seconds > told else "they may number passes"
        return [beside + why] if apart else []
    if counted:
        return [f"{seconds:.4g} s lie between its lines; how many steps that is they do not tell"]
    result.figures["step_s"] = seconds
    _rates(facts, result)
    return ["the step time is that between the lines of the log: evaluation and checkpoints may be in it"]


def _again(rows: Sequence[tuple[int, Row]]) -> list[str]:
    """Of a run that went back to a checkpoint, where it went on."""
    numbers = restarts(rows)
    if not numbers:
        return []
    places = ", ".join(f"{number:,.0f}" for number in numbers[:5]) + (", …" if numbers[5:] else "")
    return [f"it was begun again {len(numbers)} time{'s' * (len(numbers) > 1)}, from step {places}"]


def _run(facts: HeaderFacts, result: SteadySteps, **details: Any) -> MeasuredRun:
    """With the figures so far, those that can be."""
    return MeasuredRun(
        plan=facts.plan,
        figures={name: value for name, value in result.figures.items() if can_be(value)},
        spread={name: ends for name, ends in result.spread.items() if all(map(can_be, ends))},
        **details,
    )


def _plan(facts: HeaderFacts, result: SteadySteps) -> None:
    """What the steps say of the plan, and what follows from the numbers of its beginning."""
    values = facts.values
    if framework := facts.framework:
        facts.plan.setdefault("workload", {}).setdefault("framework", framework)
    if "model" not in facts.plan and (listed := listed_model(facts.arguments)):
        facts.put("model", listed)
    if "per_node" in values:
        facts.put("cluster.count", values["per_node"] * values.get("nodes", 1))
        facts.put("cluster.per_node", values["per_node"])
    for name in ("global_batch", "seq_len"):
        value = result.facts.get(name)
        if value is not None and value >= 1 and abs(value - round(value)) < 1e-6 * value:
            facts.put(f"workload.{name}", round(value))
    if facts.framework == "torchtune" and "batch_size" in values:
        facts.put("workload.micro_batch", values["batch_size"])
    _global_batch(facts)
    trainable, parameters = values.get("trainable"), values.get("parameters")
    if trainable and parameters:
        facts.put("workload.method", "lora" if trainable < 0.5 * parameters else "full")
    if facts.plan.get("workload"):
        facts.plan["workload"] = {"kind": "training"} | facts.plan["workload"]


def _global_batch(facts: HeaderFacts) -> None:
    """From the micro-batch, where a log says how often it is accumulated and on how many ranks; or the ranks of it."""
    micro, (batch, _, devices) = facts.plan.get("workload", {}).get("micro_batch"), _known(facts)
    accumulation = facts.values.get("accumulation")
    if not (micro and accumulation):
        return
    if batch and not devices and facts.framework in _OF_REPLICAS and batch % (micro * accumulation) == 0:
        facts.put("cluster.count", batch // (micro * accumulation))
    if batch or not devices:
        return
    layout = facts.plan.get("layout", {})
    ranks = layout.get("dp") or devices / math.prod(layout.get(name, 1) for name in ("tp", "pp", "cp"))
    if ranks == int(ranks):
        facts.put("workload.global_batch", micro * accumulation * int(ranks))


def _known(facts: HeaderFacts) -> tuple[int | None, int | None, int | None]:
    """(Global batch, sequence length, devices)."""
    workload, cluster = facts.plan.get("workload", {}), facts.plan.get("cluster", {})
    return workload.get("global_batch"), workload.get("seq_len"), cluster.get("count")


def _filled(facts: HeaderFacts, result: SteadySteps, steps: Sequence[Row]) -> list[str]:
    """Puts in what follows from other figures; returns what contradicts."""
    figures, findings = result.figures, []
    batch, seq_len, devices = _known(facts)
    samples, tokens = result.facts.get("samples_per_s"), result.facts.get("tokens_per_s")
    if "step_s" not in figures and samples and batch:
        figures["step_s"] = batch / samples
    if "tokens_per_s_per_device" not in figures and tokens and devices:
        figures["tokens_per_s_per_device"] = tokens / devices
    step, rate = figures.get("step_s"), figures.get("tokens_per_s_per_device")
    if devices is None and tokens and rate and (count := _whole(tokens / rate)):
        facts.put("cluster.count", count)
        devices = count
    # Of reinforcement learning a batch is of prompts, each with several answers.
    counts = facts.framework not in _OF_PROMPTS
    per_step = result.facts.get("step_tokens") or (rate * step * devices if rate and step and devices else None)
    if per_step and seq_len is None and batch and counts:
        length = per_step / batch
        if (whole := _length(length)) is not None:
            facts.put("workload.seq_len", whole)
            findings.append(f"the sequence length {whole:,} follows from tokens per step over the batch of {batch:,}")
    elif per_step and batch is None and seq_len and abs(per_step / seq_len - round(per_step / seq_len)) < 0.05:
        facts.put("workload.global_batch", max(1, round(per_step / seq_len)))
    batch = _known(facts)[0]
    findings += [told] if (told := _run(facts, result).contradiction) else []
    if samples and batch and step and abs(math.log(samples * step / batch)) > math.log1p(_SAMPLES_ALIKE):
        findings.append(
            f"{samples:.4g} samples/s and {step:.4g} s a step make a batch of {samples * step:.4g}, not {batch:,}"
        )
    _rates(facts, result)
    return findings


def _of_consumed(facts: HeaderFacts, result: SteadySteps) -> None:
    """The rate of the tokens that were seen, where their count alone is told: batch times length may be padded."""
    step_s, tokens, devices = result.figures.get("step_s"), result.facts.get("consumed_per_step"), _known(facts)[2]
    if not (step_s and tokens):
        return
    result.facts["tokens_per_s"] = tokens / step_s
    if devices:
        result.figures["tokens_per_s_per_device"] = tokens / step_s / devices


def _rates(facts: HeaderFacts, result: SteadySteps) -> None:
    """Step time and rate, each from the other where one is missing."""
    batch, seq_len, devices = _known(facts)
    if not (batch and seq_len and devices):
        return
    figures, tokens = result.figures, batch * seq_len / devices
    if "step_s" in figures and figures["step_s"] > 0:
        figures.setdefault("tokens_per_s_per_device", tokens / figures["step_s"])
    elif figures.get("tokens_per_s_per_device"):
        figures["step_s"] = tokens / figures["tokens_per_s_per_device"]


def _whole(value: float) -> int | None:
    """A whole number that a rounded quotient means."""
    near = round(value) if 0.5 <= value < 1e6 else 0
    return near if near and abs(value - near) <= 0.03 * near and abs(value - near) < 0.3 else None


def _length(value: float) -> int | None:
    """A sequence length that a rounded quotient means: a multiple of 64 within the rounding, else none."""
    if not 1 <= value < 1e8:
        return None
    near = 64 * round(value / 64)
    return near if near and abs(value - near) <= 0.01 * value else None


def _of_the_whole(facts: HeaderFacts, rows: Sequence[tuple[int, Row]]) -> float | None:
    runtime = next((row["runtime_s"] for _, row in reversed(rows) if row.get("runtime_s", 0.0) > 0.0), None)
    steps = facts.values.get("steps") or next(
        (row["step"] for _, row in rows if row.get("runtime_s") == runtime and row.get("step", 0.0) > 0.0), None
    )
    if runtime and steps:
        return runtime / steps
    # Printed with three decimals.
    speed = next((row["mean_steps_per_s"] for _, row in reversed(rows) if row.get("mean_steps_per_s")), 0.0)
    return 1.0 / speed if speed >= _LEAST_SPEED else None


def _odd(result: SteadySteps, steps: Sequence[Row]) -> list[str]:
    """What stands out in the series."""
    findings = []
    if result.slow and result.slow_s > 0.02 * result.figures["step_s"] * result.steps:
        findings.append(
            f"{result.slow} steps took far longer than the others (checkpoints, evaluation or waiting), "
            f"{result.slow_s:,.0f} s in all; they are not in the step time"
        )
    times = [value for value in result.series.column("step_s") if value]
    half = len(times) // 2
    if half >= _LEAST_HALF:
        before, after = quartiles(times[max(1, half // 2) : half])[1], quartiles(times[half:])[1]
        if abs(math.log(after / before)) > math.log1p(_SHIFT):
            findings.append(f"the speed changes on the way: {before:.4g} s a step early, {after:.4g} s later")
    if (mfu := result.figures.get("mfu", 0.0)) > 1.0:
        findings.append(f"an MFU of {mfu:.0%} cannot be: the program counts other operations, or another device's peak")
    if any(math.isnan(row["loss"]) for row in steps if "loss" in row):
        findings.append("the loss is not a number at some steps")
    if (skipped := sum(row.get("skipped", 0.0) or 0.0 for row in steps)) > 0:
        findings.append(f"{skipped:,.0f} iterations were skipped")
    memory = [value for value in result.series.column("memory_bytes") if value]
    if len(memory) >= 4 * _LEAST_HALF and memory[-1] > 1.1 * memory[len(memory) // 4]:
        early, late = memory[len(memory) // 4], memory[-1]
        findings.append(f"memory grows: {early / GIB:.1f} GiB early, {late / GIB:.1f} GiB at the end")
    return findings


def _out_of_memory(result: SteadySteps, fault: OutOfMemory) -> None:
    """The peak that it would have needed at least, where no line says more."""
    if fault.needed_bytes and fault.needed_bytes > result.figures.get("peak_bytes", 0.0):
        result.figures["peak_bytes"], result.peak_kind = fault.needed_bytes, "allocated"


def _fault(fault: OutOfMemory) -> str:
    parts = [f"out of memory{f' during the {fault.place}' if fault.place else ''}"]
    for name, value in _sizes(fault).items():
        if value is not None:
            parts.append(f"{value / GIB:.2f} GiB {name}")
    return ": ".join([parts[0], ", ".join(parts[1:])]) if parts[1:] else parts[0]


def _sizes(fault: OutOfMemory) -> Mapping[str, Any]:
    return {
        "wanted": fault.wanted_bytes,
        "allocated": fault.allocated_bytes,
        "reserved": fault.reserved_bytes,
        "free": fault.free_bytes,
        "in all": fault.capacity_bytes,
    }
