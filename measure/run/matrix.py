"""What was measured of a benchmark matrix: the results beside its cells, against what was predicted, and as rows of
`knowledge/measurements`.

The manifest names for each cell a file with its plan and one where its result is to be put (`CellResult`), both
relative to the manifest's own folder. Where no result was put, what a benchmark of ours left
there is read, else the programs' own logs (`measure.logs.programs`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from knowledge.models.catalogue import find_architecture
from knowledge.models.known import architecture_row, models
from knowledge.own.files import read_text
from knowledge.own.mappings import json_value
from measure.history.scores import CasePrediction, Score, Summary, summarise
from measure.history.training import Kind, columns_of
from measure.logs import benchmark, served
from measure.logs.benchmark import BenchmarkFile, steps_of
from measure.logs.programs import logged

FORMAT = "shardwise-matrix/1"
SOURCE = "own-matrix"
_FIELD = "folder"
_MOST_BYTES = 32 * 2**20
# By how much step time and rate of one result may differ, as one follows from the other.
_ALIKE = 0.02
_MOST_CELLS = 10_000
_SERVED = ("ttft_s", "tpot_s", "output_tokens_per_s")
METRICS = ("step_s", "tokens_per_s_per_device", "peak_bytes", *_SERVED)


class CellResult(BaseModel):
    """What a run of one cell showed; null where it was not measured."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    outcome: Literal["ran", "oom", "failed"] = Field("ran", description="oom: it ran out of device memory.")
    step_s: float | None = Field(None, gt=0, description="Seconds per optimizer step, mean after warm-up.")
    tokens_per_s_per_device: float | None = Field(
        None, gt=0, description="Tokens per second and device; step_s says the same."
    )
    peak_bytes: float | None = Field(None, gt=0, description="Peak memory of the fullest device, in bytes.")
    peak_kind: Literal["allocated", "reserved", "nvidia-smi", "unknown"] = Field(
        "unknown",
        description="Counter of the peak: torch's allocated or reserved; nvidia-smi is all that the device shows.",
    )
    steps: int | None = Field(None, ge=1, description="Optimizer steps that were averaged.")
    ttft_s: float | None = Field(None, gt=0, description="Of serving: mean time to the first token.")
    tpot_s: float | None = Field(None, gt=0, description="Of serving: mean time per token after it.")
    output_tokens_per_s: float | None = Field(None, gt=0, description="Of serving: of the replica under load.")
    date: str | None = Field(None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", description="Day of the run, 2026-01-31.")
    versions: dict[str, str] = Field(
        default_factory=dict, description="Of the framework and its libraries by name, e.g. {torch: 2.9.0}."
    )
    note: str | None = Field(None, max_length=2000, description="What else is to be known of the run.")

    @model_validator(mode="after")
    def _shows_something(self) -> Self:
        if self.outcome == "ran" and not any(getattr(self, name) for name in METRICS):
            raise ValueError(f"a run has at least one of {', '.join(METRICS)}")
        return self


@dataclass(frozen=True)
class Measured:
    """A cell with what was measured of it, and the `file` that says so; `problem` says why its result cannot be used,
    None where it can."""

    id: str
    cell: Mapping[str, Any]
    plan: Plan | None
    result: CellResult | None
    problem: str | None = None
    source: str = SOURCE
    file: str | None = None

    @property
    def command(self) -> str | None:
        """What runs it; None where it is left out."""
        command = self.cell.get("command")
        return command if self.cell.get("runs") is True and isinstance(command, str) else None

    @property
    def left_out(self) -> str:
        """Why it is not run."""
        return str(self.cell.get("skip_reason") or "there is no command")

    @property
    def values(self) -> dict[str, float]:
        """The measured figures by name of METRICS; step time and rate each from the other where one is missing."""
        if self.result is None:
            return {}
        metrics = {name: value for name in METRICS if (value := getattr(self.result, name)) is not None}
        tokens = self.tokens_per_step_and_device
        if tokens and "step_s" in metrics:
            metrics.setdefault("tokens_per_s_per_device", tokens / metrics["step_s"])
        elif tokens and "tokens_per_s_per_device" in metrics:
            metrics["step_s"] = tokens / metrics["tokens_per_s_per_device"]
        return metrics

    @property
    def tokens_per_step_and_device(self) -> float | None:
        if self.plan is None or isinstance(self.plan.workload, Inference):
            return None
        training, devices = self.plan.training, self.plan.cluster.count
        if not training.seq_len or not training.global_batch or not devices:
            return None
        return training.seq_len * training.global_batch / devices

    @property
    def doubt(self) -> str | None:
        """Why the figures should not count: a step time and a rate that do not belong together."""
        tokens, result = self.tokens_per_step_and_device, self.result
        if result is None or not tokens or not result.step_s or not result.tokens_per_s_per_device:
            return None
        ratio = result.tokens_per_s_per_device * result.step_s / tokens
        if abs(ratio - 1.0) <= _ALIKE:
            return None
        return f"step_s and tokens_per_s_per_device differ by a factor of {ratio:.3g} for this plan"

    @property
    def scores(self) -> dict[str, Score[Measured]]:
        """Each measured figure beside what the manifest predicted of it."""
        if self.doubt or self.result is None or self.result.outcome != "ran":
            return {}
        pairs = {name: (value, self._predicted(name)) for name, value in self.values.items()}
        return {
            name: Score(self, value, predicted) for name, (value, predicted) in pairs.items() if predicted is not None
        }

    def predicted(self, name: str) -> float | None:
        """The middle of what the manifest predicted of a figure."""
        prediction = self._predicted(name)
        return prediction and prediction.value

    def _predicted(self, name: str) -> CasePrediction | None:
        """What the manifest says; a peak as the counter of the result would show it."""
        predicted = self.cell.get("predicted")
        if not isinstance(predicted, Mapping):
            return None
        value, low, high = (_number(predicted.get(key)) for key in _keys(name))
        if not value or low is None or high is None:
            return None
        if name == "peak_bytes" and self.result is not None:
            kinds = predicted.get("peak_bytes_by_kind")
            of_kind = _number(kinds.get(self.result.peak_kind)) if isinstance(kinds, Mapping) else None
            factor = (of_kind or value) / value
            value, low, high = value * factor, low * factor, high * factor
        return CasePrediction(value, low, high, self.cell.get("fits") is True)


def read(manifest: Path) -> list[Measured]:
    """The cells of a matrix with their results, in its order. Raises PlanError where `manifest` is not that of one."""
    folder, data = manifest.parent, _json(manifest, manifest.parent)
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(cells, list):
        raise PlanError(_FIELD, f"{manifest.name} there is not that of a benchmark matrix", [FORMAT])
    if len(cells) > _MOST_CELLS or not all(
        isinstance(cell, dict) and isinstance(cell.get("id"), str) for cell in cells
    ):
        raise PlanError(_FIELD, f"{manifest.name} there has cells without an id, or more than {_MOST_CELLS}")
    return [_measured(folder, cell) for cell in cells]


def summaries(cells: Iterable[Measured]) -> dict[str, Summary]:
    """How far predictions are off by figure; a figure that nothing was measured of is left out."""
    scores = [cell.scores for cell in cells]
    by_name = {name: [by_metric[name] for by_metric in scores if name in by_metric] for name in METRICS}
    return {name: summarise(scored) for name, scored in by_name.items() if scored}


def table(cells: Sequence[Measured], kind: Kind, source: str = SOURCE) -> str:
    """The measured cells as CSV with the columns of `knowledge/measurements/<kind>.csv`; '' where there are none."""
    columns = columns_of(kind)
    rows = [row for cell in cells if (row := _row(cell, kind, source))]
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _keys(name: str) -> tuple[str, str, str]:
    """A figure of the manifest and the ends of its interval."""
    unit = next(unit for unit in ("_per_s_per_device", "_per_s", "_bytes", "_s") if name.endswith(unit))
    stem = name.removesuffix(unit)
    return name, f"{stem}_low{unit}", f"{stem}_high{unit}"


def _measured(folder: Path, cell: Mapping[str, Any]) -> Measured:
    try:
        plan = _plan(folder, cell["plan"]) if cell.get("plan") is not None else None
        result, file = (None, None) if cell.get("result") is None else _said(folder, cell["result"], plan)
    except PlanError as error:
        return Measured(cell["id"], cell, None, None, problem=error.problem)
    return Measured(cell["id"], cell, plan, result, file=file)


def _said(folder: Path, name: object, plan: Plan | None) -> tuple[CellResult | None, str | None]:
    """A cell's result and the file that it stands in: the one of its name, or else a log beside it."""
    if (result := _result(folder, name)) is not None:
        return result, str(name)
    place = _inside(folder, name).parent
    if plan and isinstance(plan.workload, Inference):
        return _under_load(folder, place)
    tokens = plan and (plan.training.seq_len or 0) * (plan.training.global_batch or 0)
    if plan and tokens and plan.cluster.count and (timed := benchmark.read_benchmark(place)):
        return cell_result(timed, tokens, plan.cluster.count), str((place / benchmark.MEASURED).relative_to(folder))
    done, document = place / "done", place / "plan.json"
    with suppress(OSError):
        current = done.is_file() and (not document.exists() or done.stat().st_mtime >= document.stat().st_mtime)
        if log := logged(place, current, plan and plan.training.steps):
            return CellResult(**log[0]), str(log[1].relative_to(folder))
    return None, None


def _under_load(folder: Path, place: Path) -> tuple[CellResult | None, str | None]:
    """What a load generator left since the plan is as it is, the last of it."""
    plan, runs = (place / "plan.json").stat().st_mtime_ns, []
    for path in place.iterdir():
        is_log = served.is_named_so(path) or path.name == "run.log"
        if is_log and path.is_file() and path.stat().st_mtime_ns >= plan:
            runs += [(path.stat().st_mtime_ns, path.name, run) for run in served.read(path)]
    if not runs:
        return None, None
    _, name, run = max(runs, key=lambda row: row[:2])
    figures = {metric: run.figures[metric] for metric in _SERVED if run.figures.get(metric)}
    if not figures:
        return None, None
    note = "; ".join(run.findings)[:2000] or None
    result = CellResult(**figures, date=run.date, versions=run.software, note=note)  # pyright: ignore[reportArgumentType]
    return result, str((place / name).relative_to(folder))


def _inside(folder: Path, name: object) -> Path:
    """A file that the manifest names. Raises PlanError where that is outside its folder."""
    if isinstance(name, str):
        with suppress(OSError, ValueError):
            path = folder / name
            if path.resolve().is_relative_to(folder.resolve()) and (path.exists() or path.parent.exists()):
                return path
    raise PlanError(_FIELD, "a file of the cell is outside the matrix")


def _plan(folder: Path, name: object) -> Plan:
    path = _inside(folder, name)
    return Plan.parse(_json(path, folder))


def _result(folder: Path, name: object) -> CellResult | None:
    path = _inside(folder, name)
    if not path.exists():
        return None
    try:
        return CellResult.model_validate(_json(path, folder))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the result"
        raise PlanError(_FIELD, f"{path.relative_to(folder)}: {where}: {first['msg']}") from None


def _json(path: Path, folder: Path) -> Any:
    shown = path.relative_to(folder)
    if not path.exists():
        raise PlanError(_FIELD, f"there is no {shown} in {folder}")
    text = read_text(path, _FIELD, _MOST_BYTES)
    try:
        return json_value(text)
    except ValueError:
        raise PlanError(_FIELD, f"{shown} is not JSON") from None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _row(cell: Measured, kind: Kind, source: str) -> dict[str, str] | None:
    """The cell as a transcribed row; None where nothing that belongs into the file was measured."""
    plan, result = cell.plan, cell.result
    if plan is None or isinstance(plan.workload, Inference) or result is None or result.outcome == "failed":
        return None
    if kind == "training":
        if result.outcome != "ran" or not (result.step_s or result.tokens_per_s_per_device):
            return None
        figures: dict[str, Any] = {"step_s": result.step_s, "tokens_per_s_per_device": result.tokens_per_s_per_device}
    else:
        if result.outcome == "ran" and not result.peak_bytes:
            return None
        figures = {"peak_bytes": result.peak_bytes, "outcome": result.outcome}
        figures["peak_kind"] = result.peak_kind if result.peak_bytes else None
    facts: dict[str, Any] = {
        "id": cell.id.replace("/", "-"),
        "source": source,
        "source_ref": cell.file,
        "date": result.date,
        "software_version": ", ".join(f"{name} {version}" for name, version in result.versions.items()) or None,
        "doubt": cell.doubt or _unsaid(plan),
    }
    return {name: _cell(value) for name, value in (_plan_cells(plan) | facts | figures).items() if value is not None}


def _plan_cells(plan: Plan) -> dict[str, Any]:
    """The columns that a plan fills; `auto` is what a source does not say."""
    training, layout = plan.training, plan.layout
    cells: dict[str, Any] = {name: value for name, value in training if value != "auto"}
    cells |= {name: value for name, value in plan.cluster if value != "auto"}
    cells["devices"] = plan.cluster.count
    cells |= dict(layout)
    for name in ("kind", "lora", "epochs", "steps", "software_version"):
        cells.pop(name, None)
    if training.method in ("lora", "qlora", "dora", "pissa"):
        lora = training.lora
        cells |= {"lora_rank": lora.rank, "lora_targets": lora.targets, "lora_dropout": lora.dropout}
        cells["lora_embeddings"] = lora.train_embeddings
        if training.method == "qlora":
            cells["lora_quantisation"] = lora.quantisation
    cells |= _model(plan)
    if training.micro_batch and training.global_batch and layout.dp:
        cells["grad_accum"] = training.global_batch // (training.micro_batch * layout.dp)
    return cells


def _model(plan: Plan) -> dict[str, str]:
    """The catalogue's name of the model; the plan's own words for one that is not there."""
    try:
        known = architecture_row(find_architecture(plan.model)[0].id)
    except PlanError:
        known = plan.model if isinstance(plan.model, str) else "inline model"
    return {"model" if any(row.id == known for row in models()) else "model_said": known}


def _unsaid(plan: Plan) -> str | None:
    """What the plan says and no column does, so that the row is another run's."""
    if plan.overrides.model_dump(exclude_none=True):
        return "the plan has figures set by hand"
    if plan.training.stage in ("ppo", "grpo"):
        return "how samples were generated has no column"
    return None


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def cell_result(measured: BenchmarkFile, tokens_per_step: float, devices: int) -> CellResult:
    """The same as a matrix's cell has it."""
    steps = steps_of(measured.repeats)
    facts: dict[str, Any] = {"outcome": "failed" if measured.outcome == "ran" and steps is None else measured.outcome}
    if steps is not None:
        facts |= {
            "step_s": steps.seconds,
            "tokens_per_s_per_device": tokens_per_step / devices / steps.seconds,
            "steps": steps.steps,
        }
    if measured.allocated_bytes:
        facts |= {"peak_bytes": measured.allocated_bytes, "peak_kind": "allocated"}
    elif measured.reserved_bytes:
        facts |= {"peak_bytes": measured.reserved_bytes, "peak_kind": "reserved"}
    day = datetime.now(UTC).date().isoformat()
    return CellResult(**facts, date=day, versions=measured.versions, note="synthetic data, by Shardwise's own program")


def result_text(result: CellResult) -> str:
    data: Mapping[str, Any] = result.model_dump(mode="json", exclude_none=True)
    return json.dumps(data, indent=1) + "\n"
