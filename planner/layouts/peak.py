"""peak_throughput: what models reach at best on each accelerator, beside what measured runs reach there."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any, get_args

from pydantic import Field

from estimator.errors import PlanError, nearest
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan, Precision
from knowledge.figures import gib
from measure.history.reached import main_accelerators, reached_mfu
from planner.compare.rows import TrainingFigures, training_figures
from planner.estimates import common_assumptions
from planner.evidence import union_evidence
from planner.layouts.strategies import model_name
from planner.named import counted, device_named
from planner.plots import Plot, grouped
from planner.requests import PlanRequest
from planner.result import Assumption, Evidence, Result
from planner.training.planned import Planned, plan_training, throughput_of, time_of, warnings_of

_MOST_ROWS = 120
# Nodes up to which a cluster is doubled until the model fits, where the plan names no number of devices.
_MOST_NODES = 128
_WIDE, _NARROW = ("bf16", "fp16", "fp32"), ("fp8",)
_DAY_S = 86_400.0


class PeakRequest(PlanRequest):
    models: list[str] | None = Field(None, description="Models; the plan's model unless given.")
    accelerators: list[str] | None = Field(
        None, description="Accelerators; the plan's, else of each vendor those with the most measured runs."
    )
    precisions: list[Precision] | None = Field(
        None, description="Precisions; the plan's, else bf16, and fp8 where a device has it."
    )
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")

    def _data(self) -> dict[str, Any]:
        """The plan's data; where models are named it needs none of its own."""
        data = super()._data()
        return data if data.get("model") is not None or not self.models else data | {"model": self.models[0]}


class PeakRow(Result):
    """A model on an accelerator in one precision; figures are null where it cannot run, and `error` says why."""

    model: str
    accelerator: str
    vendor: str
    precision: str
    devices: int | None = None
    framework: str | None = None
    layout: dict[str, Any] | None = None
    summary: str | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    fits: bool = False
    step_s: float | None = None
    tokens_per_s_per_device: float | None = None
    low_tokens_per_s_per_device: float | None = None
    high_tokens_per_s_per_device: float | None = None
    tokens_per_s: float | None = Field(default=None, description="Of all devices.")
    tokens_per_day: float | None = Field(default=None, description="Of all devices.")
    model_tflops_per_device: float | None = None
    peak_tflops_per_device: float | None = Field(default=None, description="Dense, of this precision.")
    mfu: float | None = Field(default=None, description="Utilisation: model TFLOPS over the peak.")
    usd_per_million_tokens: float | None = None
    bottleneck: str | None = None
    rating: str | None = Field(
        default=None,
        description="good, average or poor: the estimated MFU in the upper quarter, the middle or the lower quarter of "
        "what measured runs reach. Null for adapters, whose MFU does not compare.",
    )
    rated_against: str | None = Field(default=None, description="Devices of the measured runs, and their number.")
    measured_mfu_lower: float | None = Field(default=None, description="Lower quartile of the best run of each setup.")
    measured_mfu_median: float | None = None
    measured_mfu_upper: float | None = None
    measured_mfu_most: float | None = None
    error: str | None = None


class PeakThroughput(Result):
    plan: dict[str, Any] = Field(description="The plan as given; a row's fields complete it.")
    rows: list[PeakRow] = Field(
        description="By model, then tokens/s per device, the most first; announced devices, then errors last."
    )
    assumptions: list[Assumption]
    plots: list[Plot]
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


def peak_throughput(request: PeakRequest) -> PeakThroughput:
    """Peak training throughput."""
    started = time.perf_counter()
    plan, stage = _base(request)
    models: list[Any] = list(dict.fromkeys(request.models)) if request.models else [plan.model]
    devices, named = _devices(request, plan)
    kinds = [(device, precision) for device in devices for precision in _precisions(request, plan, device)]
    number = len(models) * len(kinds)
    if number > _MOST_ROWS:
        problem = f"{len(models)} models x {len(kinds)} accelerators and precisions are {number} rows"
        raise PlanError("models", problem, [f"up to {_MOST_ROWS} rows"])
    announced = {device.id for device in devices if device.announced}
    rows: list[PeakRow] = []
    shown: list[Planned] = []
    refusals: list[PlanError] = []
    for model in models:
        added: list[PeakRow] = []
        for device, precision in kinds:
            row = PeakRow(model=model_name(model), accelerator=device.id, vendor=device.vendor, precision=precision)
            try:
                planned = _best(plan, model, device, precision)
                added.append(_filled(row, planned, request.usd_per_device_hour))
            except PlanError as error:
                refusals.append(error)
                added.append(row.model_copy(update={"error": " ".join(str(error).split())}))
                continue
            shown.append(planned)
        rows += sorted(added, key=lambda row: _place(row, announced))
    if not shown:
        raise refusals[0]
    return PeakThroughput(
        plan=plan.given(),
        rows=rows,
        assumptions=[*stage, *named, *common_assumptions(shown)],
        plots=_plots(rows),
        seconds=time.perf_counter() - started,
        warnings=_warnings(shown, rows),
        evidence=union_evidence(planned.job for planned in shown),
    )


def _place(row: PeakRow, announced: Collection[str]) -> tuple[bool, bool, float]:
    """By which rows of a model are put in order: what nobody has yet comes behind what is sold."""
    return not row.fits, row.accelerator in announced, -(row.tokens_per_s_per_device or 0.0)


def _base(request: PeakRequest) -> tuple[Plan, list[Assumption]]:
    """The plan, as pretraining where it leaves the stage open: a large batch is where devices reach most."""
    plan, read = counted(request.to_plan())
    if "stage" in plan.training.model_fields_set:
        return plan, read
    why = "throughput is at its peak with the large batches of pretraining"
    stage = Assumption(field="workload.stage", value="pretrain", why=why)
    return plan.patch({"workload.stage": "pretrain"}), [*read, stage]


def _devices(request: PeakRequest, plan: Plan) -> tuple[list[Accelerator], list[Assumption]]:
    """Those to compare, and how their names were read."""
    if request.accelerators is not None:
        try:
            pairs = [device_named(name) for name in request.accelerators]
        except PlanError as error:
            raise PlanError("accelerators", error.problem, error.valid) from None
        if not pairs:
            raise PlanError("accelerators", "has no accelerators", ["h100-sxm", "mi300x"])
        devices = {device.id: device for device, _ in pairs}
        return list(devices.values()), [item for _, read in pairs for item in read]
    if plan.cluster.accelerator is not None:
        device, read = device_named(plan.cluster.accelerator, "cluster.accelerator")
        return [device], read
    return main_accelerators(), []


def _precisions(request: PeakRequest, plan: Plan, device: Accelerator) -> list[str]:
    """Those asked for; else the device's usual 16 bits (32 where it has nothing else), and fp8 where it has that."""
    if request.precisions is not None:
        if not request.precisions:
            raise PlanError("precisions", "has no precisions", nearest("bf16", get_args(Precision), 7))
        return list(dict.fromkeys(request.precisions))
    if "precision" in plan.training.model_fields_set:
        return [plan.training.precision]
    usual = next((kind for kind in _WIDE if kind in device.peak_flops), _WIDE[0])
    return [usual, *(kind for kind in _NARROW if kind in device.peak_flops)]


def _best(plan: Plan, model: Any, device: Accelerator, precision: str) -> Planned:
    """The best on as many devices as the plan says, or on the fewest nodes on which it fits."""
    kinds = device.peak_flops
    if precision not in kinds and not (precision == "fp16" and "bf16" in kinds):
        raise PlanError("precisions", f"{device.name} has no {precision} matmuls", sorted(kinds))
    changes: dict[str, Any] = {"model": model, "workload.precision": precision, "cluster.accelerator": device.id}
    asked = plan.patch(changes)
    if plan.cluster.count is not None:
        return plan_training(asked, offload=False)
    per_node = plan.cluster.per_node or device.per_node
    nodes, planned = 1, plan_training(asked.patch({"cluster.count": per_node}), offload=False)
    while not planned.fits and nodes < _MOST_NODES:
        nodes = min(_MOST_NODES, nodes * _growth(planned))
        planned = plan_training(asked.patch({"cluster.count": nodes * per_node}), offload=False)
    return planned


def _growth(planned: Planned) -> int:
    """Times the nodes that may fit: doubling, or more where memory falls far short, as it shrinks no faster."""
    short = float(planned.estimates.high_bytes[planned.index]) / max(planned.job.usable_bytes, 1.0)
    times = 2
    while times * 2 <= short:
        times *= 2
    return times


def _filled(row: PeakRow, planned: Planned, own_usd: float | None) -> PeakRow:
    """The row with the figures of its estimate."""
    job, figures = planned.job, training_figures(planned, own_usd)
    time_s, speed = time_of(planned), throughput_of(planned)
    step_s, per_device = time_s.step_s, speed.tokens_per_s_per_device
    shared = TrainingFigures.model_fields.keys() & PeakRow.model_fields
    row = row.model_copy(update={name: getattr(figures, name) for name in shared})
    row.low_tokens_per_s_per_device = per_device * step_s / time_s.high_s
    row.high_tokens_per_s_per_device = per_device * step_s / time_s.low_s
    row.tokens_per_day = speed.tokens_per_s * _DAY_S
    row.peak_tflops_per_device = job.peak_flops / 1e12
    if not planned.fits:
        need, have = gib(float(planned.estimates.high_bytes[planned.index])), gib(job.usable_bytes)
        row.error = f"does not fit on {figures.devices} devices: up to {need} per device of {have} usable"
        return row
    reached = reached_mfu(job.machine.accelerator.family, job.training.precision)
    if reached is None or job.training.method != "full":
        return row
    row.rating = reached.rating(speed.mfu)
    row.rated_against = f"{reached.family}, {reached.bits} bits: {reached.setups} setups of {reached.runs} runs"
    row.measured_mfu_lower, row.measured_mfu_median = reached.lower, reached.median
    row.measured_mfu_upper, row.measured_mfu_most = reached.upper, reached.most
    return row


def _plots(rows: Sequence[PeakRow]) -> list[Plot]:
    """For each model tokens/s per device and MFU by accelerator, precisions side by side."""
    plots: list[Plot] = []
    for model in dict.fromkeys(row.model for row in rows):
        of_model = [row for row in rows if row.model == model and row.fits]
        names = list(dict.fromkeys(row.accelerator for row in of_model))
        at = {(row.accelerator, row.precision): row for row in of_model}
        kinds = list(dict.fromkeys(row.precision for row in of_model))

        def column(
            field: str, kind: str, unit: float = 1.0, at: Any = at, names: Sequence[str] = names
        ) -> list[float | None]:
            cells = [at.get((name, kind)) for name in names]
            return [None if row is None else getattr(row, field) * unit for row in cells]

        ends = ("low_tokens_per_s_per_device", "high_tokens_per_s_per_device")
        speeds = {kind: column("tokens_per_s_per_device", kind) for kind in kinds}
        intervals = {kind: (column(ends[0], kind), column(ends[1], kind)) for kind in kinds}
        label = "tokens/s per device"
        plots += grouped(f"Peak throughput of {model}", "accelerator", label, names, speeds, intervals)
        mfu = {kind: column("mfu", kind, 100.0) for kind in kinds}
        plots += grouped(f"MFU of {model}", "accelerator", "MFU, %", names, mfu)
    return plots


def _warnings(shown: Sequence[Planned], rows: Sequence[PeakRow]) -> list[str]:
    """Those of what fits, each once with the accelerators that it is of."""
    names: dict[str, list[str]] = {}
    for planned in shown:
        for text in warnings_of(planned) if planned.fits else ():
            names.setdefault(text, []).append(planned.job.machine.accelerator.id)
    texts = [f"{', '.join(dict.fromkeys(of))}: {text}" for text, of in names.items()]
    beyond = [row for row in rows if row.mfu and row.measured_mfu_most and row.mfu > row.measured_mfu_most]
    if beyond:
        of = ", ".join(f"{row.model} on {row.accelerator}" for row in beyond)
        texts.append(f"no measured run reaches the MFU estimated for {of}: take it as an upper bound")
    sizes = {row.devices for row in rows if row.fits}
    if len(sizes) > 1:
        texts.append("clusters differ in size: each is the fewest nodes, by doubling, on which the model fits")
    return texts
