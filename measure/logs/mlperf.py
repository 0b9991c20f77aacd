"""MLPerf's training logs: events, of which some say the plan and some how long blocks of steps took.

Keys are those of mlcommons/logging mlperf_logging/mllog/constants.py, benchmarks those of mlcommons/training_policies
training_rules.adoc. A block's own mean of step times is read only where nothing else is: it is taken while the host has
queued steps, and then is too short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from measure.history.run import quartiles
from measure.logs.facts import HeaderFacts, accelerator, model, whole
from measure.logs.lines import Row

_COUNTS = {
    "global_batch_size": "workload.global_batch",
    "max_sequence_length": "workload.seq_len",
    "micro_batch_size": "workload.micro_batch",
    "tensor_parallelism": "layout.tp",
    "pipeline_parallelism": "layout.pp",
    "context_parallelism": "layout.cp",
    "expert_parallelism": "layout.ep",
    "lora_rank": "workload.lora.rank",
}
# What the rules lay down of a benchmark and its name does not say: the length of packed samples, and its method.
_LENGTHS = {"llama2_70b_lora": 8192, "llama31_8b": 8192, "llama31_405b": 8192, "gpt3": 2048}
_METHODS = {"llama2_70b_lora": "lora"}
_RATES = ("train_step_time", "throughput", "train_loss", "loss", "lr", "reduced_train_loss")
_NAMES = {"train_step_time": "step_s", "throughput": "samples_per_s", "lr": "learning_rate"}
# llama31_8b is Llama 3.1 8B: a version has its digits side by side.
_VERSION = re.compile(r"(?<=[a-z])(\d)(\d)_")
# A platform is named by nodes, case and device in any way: 1xMI325X, 1xXE9680x8H200-SXM-141GB.
_DEVICE = re.compile(r"(?<![A-Z])(?:MI|[A-Z]{1,2})\d{3}[A-Z]?(?![0-9])")
_SOON_MS = 5000.0
# Clocks that were set: the benchmark is of 2018.
_FIRST_MS = datetime(2018, 1, 1, tzinfo=UTC).timestamp() * 1000.0


def plan_of(facts: HeaderFacts, events: Sequence[Mapping[str, Any]]) -> None:
    for event in events:
        key, value = event["key"], event.get("value")
        time = event.get("time_ms")
        if facts.date is None and isinstance(time, (int, float)) and _FIRST_MS <= time < 2 * _FIRST_MS:
            facts.date = datetime.fromtimestamp(time / 1000.0, UTC).date().isoformat()
        if key in _COUNTS and isinstance(value, (int, float)) and whole(str(value)) is not None:
            facts.count(_COUNTS[key], str(value))
        elif key == "gradient_accumulation_steps":
            facts.note("accumulation", str(value))
        elif key == "submission_benchmark" and isinstance(value, str):
            _benchmark(facts, value)
        elif key == "submission_platform" and isinstance(value, str):
            facts.software.setdefault("mlperf-platform", value[:80])
            for name in _DEVICE.findall(value):
                accelerator(facts, name)


def _benchmark(facts: HeaderFacts, name: str) -> None:
    facts.software.setdefault("mlperf-benchmark", name[:80])
    if name in _LENGTHS:
        facts.put("workload.seq_len", _LENGTHS[name])
        facts.put("workload.method", _METHODS.get(name, "full"))
    if "model" not in facts.plan:
        facts.software.pop("model-said", None)
        model(facts, _VERSION.sub(r"\1.\2_", name.removesuffix("_lora")))


def rows_of(events: Sequence[Mapping[str, Any]], batch: int | None) -> list[tuple[int, Row]]:
    """A row for each event that tracks steps, and for each block between two of its marks, in the log's order."""
    tracked, blocks = list(_tracked(events, batch)), list(_blocks(events, batch))
    block_s = quartiles([row["step_s"] for _, row in blocks])[1] if blocks else 0.0
    means = [row["step_s"] for _, row in tracked if "step_s" in row]
    if blocks and (not means or quartiles(means)[1] < 0.97 * block_s):
        # Blocks stand where the two agree in nothing: their clock is that of the machine.
        for _, row in tracked:
            row.pop("step_s", None)
        tracked = sorted([*tracked, *blocks], key=lambda each: each[0])
    return tracked


def _tracked(events: Sequence[Mapping[str, Any]], batch: int | None) -> Iterator[tuple[int, Row]]:
    stops = dict(_stops(events))
    for place, event in enumerate(events):
        value, metadata = event.get("value"), event.get("metadata")
        step = _step(event, metadata, batch, stops) if isinstance(metadata, dict) else None
        if event["key"] not in ("tracked_stats", "train_loss", "loss") or step is None:
            continue
        stats = value if isinstance(value, dict) else {event["key"]: value}
        row: Row = {"step": step}
        for name in _RATES:
            number = stats.get(name, metadata.get(name) if isinstance(metadata, dict) and name == "lr" else None)
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                row[_NAMES.get(name, "loss")] = float(number)
        if len(row) > 1:
            if isinstance(time := event.get("time_ms"), (int, float)) and "loss" in row:
                row["clock_s"] = time / 1000.0
            yield place, row


def _stops(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, float]]:
    """(Samples, time) at the end of each block."""
    for event in events:
        metadata, time = event.get("metadata"), event.get("time_ms")
        samples = metadata.get("samples_count") if isinstance(metadata, dict) else None
        if event["key"] == "block_stop" and isinstance(samples, (int, float)) and isinstance(time, (int, float)):
            yield float(samples), float(time)


def _step(
    event: Mapping[str, Any], metadata: Mapping[str, Any], batch: int | None, stops: Mapping[float, float]
) -> float | None:
    """The step of an event. Some count samples, by the name of steps too: a block ends then with as many."""
    for name in ("step", "step_num", "samples_count", "first_step_num"):
        value = metadata.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            time = event.get("time_ms")
            ended = stops.get(float(value))
            ends = ended is not None and isinstance(time, (int, float)) and abs(time - ended) <= _SOON_MS
            samples = name == "samples_count" or (ends and "samples_count" not in metadata)
            return value / batch if samples and batch else float(value)
    return None


def _blocks(events: Sequence[Mapping[str, Any]], batch: int | None) -> Iterator[tuple[int, Row]]:
    """From `block_start` to `block_stop`: a number of samples, evaluation not in it."""
    start: tuple[float, float] | None = None
    for place, event in enumerate(events):
        time, metadata = event.get("time_ms"), event.get("metadata")
        samples = metadata.get("samples_count") if isinstance(metadata, dict) else None
        if not isinstance(time, (int, float)) or not isinstance(samples, (int, float)):
            continue
        if event["key"] == "block_start":
            start = float(time), float(samples)
        elif event["key"] == "block_stop" and start is not None and batch:
            count, seconds = (samples - start[1]) / batch, (time - start[0]) / 1000.0
            if count >= 1 and seconds > 0:
                yield place, {"step": float(samples) / batch, "step_s": seconds / count}
            start = None
