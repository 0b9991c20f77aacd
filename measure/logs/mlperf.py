"""MLPerf's training logs: events, of which some say the plan and some how long blocks of steps took.

Keys are those of mlcommons/logging mlperf_logging/mllog/constants.py. A block's own mean of step times is read only
where nothing else is: it is taken while the host has queued steps, and then is too short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from measure.history.run import quartiles
from measure.logs.facts import HeaderFacts, whole
from measure.logs.lines import Row

_COUNTS = {
    "global_batch_size": "workload.global_batch",
    "max_sequence_length": "workload.seq_len",
    "micro_batch_size": "workload.micro_batch",
    "tensor_parallelism": "layout.tp",
    "pipeline_parallelism": "layout.pp",
    "context_parallelism": "layout.cp",
    "expert_parallelism": "layout.ep",
}
_RATES = ("train_step_time", "throughput", "train_loss", "loss", "lr", "reduced_train_loss")


def plan_of(facts: HeaderFacts, events: Sequence[Mapping[str, Any]]) -> None:
    for event in events:
        key, value = event["key"], event.get("value")
        if key in _COUNTS and isinstance(value, (int, float)) and whole(str(value)) is not None:
            facts.count(_COUNTS[key], str(value))
        elif key == "gradient_accumulation_steps":
            facts.note("accumulation", str(value))
        elif key == "submission_benchmark" and isinstance(value, str):
            facts.software.setdefault("mlperf-benchmark", value[:80])
        elif key == "submission_platform" and isinstance(value, str):
            facts.software.setdefault("mlperf-platform", value[:80])


def rows_of(events: Sequence[Mapping[str, Any]], batch: int | None) -> list[tuple[int, Row]]:
    """A row for each event that tracks steps, and for each block between two of its marks."""
    rows = list(_tracked(events))
    blocks = list(_blocks(events, batch))
    if blocks and not any("step_s" in row for row in rows):
        rows = blocks
    elif blocks:
        # Blocks stand where the two agree in nothing: their clock is that of the machine.
        block_s = quartiles([row["step_s"] for row in blocks])[1]
        means = [row["step_s"] for row in rows if "step_s" in row]
        if means and quartiles(means)[1] < 0.97 * block_s:
            rows = blocks
    return list(enumerate(rows))


def _tracked(events: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    for event in events:
        value, metadata = event.get("value"), event.get("metadata")
        step = _step(metadata)
        if event["key"] in ("tracked_stats", "train_loss", "loss") and step is not None:
            stats = value if isinstance(value, dict) else {event["key"]: value}
            row: Row = {"step": step}
            names = {"train_step_time": "step_s", "throughput": "samples_per_s", "lr": "learning_rate"}
            for name in _RATES:
                number = stats.get(name)
                if isinstance(number, (int, float)) and not isinstance(number, bool):
                    row[names.get(name, "loss")] = float(number)
            if len(row) > 1:
                yield row


def _step(metadata: Any) -> float | None:
    for name in ("step", "step_num", "samples_count", "first_step_num"):
        value = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None


def _blocks(events: Sequence[Mapping[str, Any]], batch: int | None) -> Iterator[Row]:
    """From `block_start` to `block_stop`: a number of samples, evaluation not in it."""
    start: tuple[float, float] | None = None
    for event in events:
        time, metadata = event.get("time_ms"), event.get("metadata")
        samples = metadata.get("samples_count") if isinstance(metadata, dict) else None
        if not isinstance(time, (int, float)) or not isinstance(samples, (int, float)):
            continue
        if event["key"] == "block_start":
            start = float(time), float(samples)
        elif event["key"] == "block_stop" and start is not None and batch:
            count, seconds = (samples - start[1]) / batch, (time - start[0]) / 1000.0
            if count >= 1 and seconds > 0:
                yield {"step": float(samples) / batch, "step_s": seconds / count}
            start = None
