"""Results that stand in files of their own: trainer_state.json, metrics as JSONL or CSV, TPrimat's JSON."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own.files import open_regular
from knowledge.own.mappings import csv_records, json_value
from measure.history.run import MeasuredRun
from measure.logs import sampled
from measure.logs.assembling import assembled
from measure.logs.facts import HeaderFacts, accelerator, model
from measure.logs.lines import Row, of_mapping

_FIELD = "path"
_MOST_BYTES = 256 * 2**20
_NAMES = ("trainer_state.json", "trainer_log.jsonl", "metrics.csv")
_ENDS = (".json", ".jsonl", ".csv")
_TPRIMAT = {"performance_metrics", "training_config"}
_MOST_ROWS = 200_000
_LARGEST_GB = 1e6
# What LlamaFactory's callback writes of every logged step.
_LLAMAFACTORY = {"current_steps", "total_steps", "elapsed_time"}


def is_named_so(path: Path) -> bool:
    """Whether a file of a folder has the name of one of these."""
    return path.name in _NAMES or (path.suffix == ".json" and path.name.startswith(("train_", "benchmark_")))


def is_document(path: Path) -> bool:
    return path.suffix in _ENDS


def read(path: Path) -> MeasuredRun | None:
    """The run of a file; None where it holds none. Raises PlanError."""
    with open_regular(path, _FIELD) as stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise PlanError(_FIELD, f"{path} is larger than {_MOST_BYTES // 2**20} MiB")
    text = content.decode("utf-8-sig", errors="replace")
    if path.suffix == ".csv":
        return sampled.run_in(text, path.name) if sampled.is_sampled(text) else _of_rows(_csv(text), path.name)
    data = _json(text)
    if isinstance(data, dict) and data.keys() >= _TPRIMAT:
        return tprimat(data, path.name)
    if isinstance(data, dict) and isinstance(data.get("log_history"), list):
        return _trainer_state(data, path.name)
    if isinstance(data, list):
        return _of_rows((row for row in data if isinstance(row, dict)), path.name)
    rows = list(_lines(text))
    facts = HeaderFacts()
    if rows and rows[0].keys() >= _LLAMAFACTORY:
        facts.frameworks.add("hf-trainer")
        facts.note("steps", str(rows[0]["total_steps"]))
    return _of_rows(rows, path.name, facts)


def _json(text: str) -> Any:
    try:
        return json_value(text)
    except ValueError:
        return None


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("{") and isinstance(data := _json(line), dict):
            yield data


def _csv(text: str) -> Iterator[dict[str, Any]]:
    try:
        for row in csv_records(io.StringIO(text.replace("\0", ""))):
            yield {name: cell for name, cell in row.items() if name and isinstance(cell, str) and cell}
    except ValueError:
        return


def _of_rows(data: Iterable[Mapping[str, Any]], name: str, facts: HeaderFacts | None = None) -> MeasuredRun | None:
    rows: list[tuple[int, Row]] = []
    for place, record in enumerate(data):
        row = of_mapping(record)
        if row.keys() - {"step", "epoch"}:
            rows.append((place, row))
        if place > _MOST_ROWS:
            break
    return assembled(facts or HeaderFacts(), rows, f"metrics {name}") if rows else None


def _trainer_state(data: Mapping[str, Any], name: str) -> MeasuredRun | None:
    facts = HeaderFacts(frameworks={"hf-trainer"})
    for ours, theirs in (("steps", "max_steps"), ("workload.micro_batch", "train_batch_size")):
        value = data.get(theirs)
        if isinstance(value, int) and value > 0:
            (facts.count if "." in ours else facts.note)(ours, str(value))
    history = [row for row in data["log_history"] if isinstance(row, dict)]
    return _of_rows((row for row in history if "eval_loss" not in row), name, facts)


def tprimat(data: Mapping[str, Any], name: str) -> MeasuredRun | None:
    """A result of TPrimat. Its batch and length are those of a command line that the program may not have heeded, so
    that the tokens per second, which a program printed or which follow from them, are held against the steps."""
    facts = HeaderFacts()
    training, parallel, gpu, measured, memory = (
        _part(data, key)
        for key in ("training_config", "parallelism_config", "gpu_info", "performance_metrics", "memory_metrics")
    )
    for path, value in (
        ("workload.global_batch", training.get("global_batch_size")),
        ("workload.micro_batch", training.get("micro_batch_size")),
        ("workload.seq_len", training.get("sequence_length")),
        ("cluster.count", training.get("num_gpus") or gpu.get("device_count")),
        ("layout.tp", parallel.get("tensor_model_parallel_size")),
        ("layout.pp", parallel.get("pipeline_model_parallel_size")),
        ("layout.dp", parallel.get("data_parallel_size")),
    ):
        if isinstance(value, int) and not isinstance(value, bool):
            facts.count(path, str(value))
    accelerator(facts, str(gpu.get("device_name", "")))
    if isinstance(torch := gpu.get("pytorch_version"), str) and torch:
        facts.software["torch"] = torch[:60]
    day = str(data.get("timestamp", ""))[:10]
    facts.date = day if len(day) == 10 and day[4] == day[7] == "-" and day.replace("-", "").isdigit() else None
    stem = name.removesuffix(".json").split("_")
    for word in stem:
        if word not in ("train", "benchmark", "amd", "nvd", "cuda", "rocm") and "model" not in facts.plan:
            model(facts, word)
    facts.software.pop("model-said", None)
    rows = _tprimat_rows(data)
    if measured.get("tokens_per_second_per_gpu"):
        rate = measured["tokens_per_second_per_gpu"]
        rows = [(at, {**row, **of_mapping({"tokens_per_second_per_gpu": rate})}) for at, row in rows]
    run = assembled(facts, rows, f"TPrimat {name}") if rows else None
    peak = memory.get("peak_memory_allocated_gb")
    if run is None or not isinstance(peak, (int, float)) or not 0 < peak < _LARGEST_GB:
        return run
    # Decimal GB, and of whatever the platform's own counter shows.
    return run.model_copy(update={"figures": run.figures | {"peak_bytes": float(peak) * 1e9}})


def _part(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _tprimat_rows(data: Mapping[str, Any]) -> list[tuple[int, Row]]:
    times = data.get("step_times") or data.get("raw_step_times")
    columns = {"step_s": times, "loss": data.get("loss_values"), "learning_rate": data.get("learning_rates")}
    lists = {name: values for name, values in columns.items() if isinstance(values, list)}
    length = max(map(len, lists.values()), default=0)
    rows: list[tuple[int, Row]] = []
    for place in range(min(length, _MOST_ROWS)):
        row: Row = {"step": float(place + 1)}
        for name, values in lists.items():
            value = values[place] if place < len(values) else None
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                row[name] = float(value)
        rows.append((place, row))
    return rows
