"""rate_run: is a measured speed good? Against its own estimate, measured runs like it, and what would explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan, Training
from measure.history.nearest import nearest_runs
from measure.history.reached import reached_mfu
from measure.history.run import MeasuredRun
from measure.history.store import find
from planner.asked.runs import RateRequest
from planner.evidence import evidence_of
from planner.history.alike import ALIKE, MOST_GAINS, likeliest, percentile_of
from planner.history.results import LikelyCause, RunRating
from planner.history.served import served_rating
from planner.layouts.improvements import improvements
from planner.training.planned import Planned, plan_training, throughput_of, time_of, varied, warnings_of

_FIGURES = ("tokens_per_s", "tokens_per_s_per_device", "step_s", "mfu", "tflops_per_device", "samples_per_s", "tpot_s")
_MEASURED = ("tokens_per_s_per_device", "tokens_per_s", "step_s", "samples_per_s")
_NEEDED = {"model": "model", "accelerator": "cluster.accelerator"}


def rate_run(request: RateRequest) -> RunRating:
    """Rate a measured speed."""
    if request.run is not None:
        run = find(request.run)
        if not speed_of(run):
            raise PlanError("run", f"{request.run} has no speed", ["a run with its step time or tokens per second"])
        plan = RateRequest.model_validate({**request.model_dump(exclude_none=True, exclude={"run", *_FIGURES})})
        return rating_of(_over(run, plan), speed_of(run), run.findings)
    figures = {name: value for name in _FIGURES if (value := getattr(request, name)) is not None}
    if len(figures) != 1:
        problem = "names no measured speed" if not figures else f"names {len(figures)} speeds: one is enough"
        raise PlanError("tokens_per_s", problem, list(_FIGURES))
    return rating_of(request.to_plan(), figures, ())


def _over(run: MeasuredRun, request: RateRequest) -> Plan:
    """The plan of a run with what the request says over it."""
    untold = [name for name, path in _NEEDED.items() if run.planned(path) is None and getattr(request, name) is None]
    if untold and not request.plan:
        problem = f"{run.name or run.id} tells no {' and no '.join(untold)}"
        raise PlanError("run", problem, ["a run whose plan is known, or these beside it: llama-3.1-8b 8xh100"])
    return RateRequest.model_validate({"plan": run.plan, **request.model_dump(exclude_none=True)}).to_plan()


def rating_of(plan: Plan, figures: Mapping[str, float], findings: Sequence[str]) -> RunRating:
    """How good a measured speed of a plan is."""
    if not isinstance(plan.workload, Training):
        return served_rating(plan, figures, findings)
    if "tpot_s" in figures:
        raise PlanError("tpot_s", "is a figure of serving", [name for name in _FIGURES if name != "tpot_s"])
    planned = plan_training(plan, offload=False)
    expected, time = throughput_of(planned), time_of(planned)
    rate = _tokens_per_s(planned, figures)
    ratio = rate / expected.tokens_per_s
    tokens = expected.tokens_per_s * time.step_s
    low, high = tokens / time.high_s, tokens / time.low_s
    mfu = expected.mfu * ratio
    reached = reached_mfu(planned.job.machine.accelerator.family, planned.job.training.precision)
    percentile, alike = _percentile(plan, planned, ratio)
    verdict = "impossible" if mfu >= 1.0 else "good" if rate > high else "low" if rate < low else "as expected"
    is_full = planned.job.training.method == "full"
    return RunRating(
        plan=planned.complete_plan,
        verdict=verdict,
        tokens_per_s=rate,
        tokens_per_s_per_device=rate / planned.job.machine.count,
        step_s=tokens / rate,
        mfu=mfu,
        expected_tokens_per_s=expected.tokens_per_s,
        tokens_low_per_s=low,
        tokens_high_per_s=high,
        ratio=ratio,
        percentile=percentile,
        alike=alike,
        mfu_lower=reached.lower if reached and is_full else None,
        mfu_median=reached.median if reached and is_full else None,
        mfu_upper=reached.upper if reached and is_full else None,
        reached_by=f"{reached.setups} setups on {reached.family} devices" if reached and is_full else "",
        causes=_causes(plan, planned, rate) if verdict in ("low", "impossible") else [],
        gains=_gains(planned, rate, ratio),
        findings=list(findings),
        warnings=[*_doubts(planned, figures, mfu), *warnings_of(planned)],
        assumptions=planned.assumptions,
        evidence=evidence_of(planned.job),
    )


def _tokens_per_s(planned: Planned, figures: Mapping[str, float]) -> float:
    """The measured speed in tokens per second of all devices, whichever figure says it."""
    job, expected = planned.job, throughput_of(planned)
    ((name, value),) = figures.items()
    if name == "step_s":
        return job.tokens_per_step / value
    if name == "mfu" and value > 1.5:
        value /= 100.0
    worth = {
        "tokens_per_s": 1.0,
        "tokens_per_s_per_device": job.machine.count,
        "samples_per_s": job.tokens_per_step / job.global_batch,
        "tflops_per_device": expected.tokens_per_s / expected.model_tflops_per_device,
        "mfu": expected.tokens_per_s / expected.mfu,
    }
    return value * worth[name]


def _percentile(plan: Plan, planned: Planned, ratio: float) -> tuple[float | None, int]:
    """(The share of measured runs like it that reach less of their estimates, how many those are)."""
    neighbours = nearest_runs(plan, planned.plan, "training", ALIKE)
    ratios = [figure.measured / figure.estimated for run in neighbours for figure in run.figures if figure.estimated]
    return percentile_of(ratio, ratios)


def _causes(plan: Plan, planned: Planned, rate: float) -> list[LikelyCause]:
    """Settings that nobody named and whose estimate is near to what was measured, the nearest first."""
    causes: list[LikelyCause] = []
    usual = throughput_of(planned).tokens_per_s
    for what, patch in _suspects(plan, planned):
        other = varied(planned.plan, patch, offload=False)
        if other is None or not other.fits:
            continue
        explained = throughput_of(other).tokens_per_s
        if explained < usual:
            gain = usual / explained - 1.0
            causes.append(LikelyCause(what=what, patch=patch, explained_tokens_per_s=explained, gain=gain))
    return likeliest(causes, rate)


def _suspects(plan: Plan, planned: Planned) -> Iterator[tuple[str, dict[str, Any]]]:
    """Settings that cost speed where they are not as the estimate takes them, of those that the plan leaves open."""
    training, layout, job = plan.training, plan.layout, planned.job
    if layout.recompute is None:
        yield "every layer is recomputed (gradient checkpointing)", {"layout.recompute": "full"}
    if training.attention is None or "attention" not in training.model_fields_set:
        yield "attention is eager, without a fused kernel", {"workload.attention": "eager"}
        yield "eager attention and full recompute", {"workload.attention": "eager", "layout.recompute": "full"}
    if training.framework == "auto" and job.framework.name != "hf-trainer":
        open_layout = {"layout": {}, "workload.micro_batch": None}
        for name in ("hf-trainer", "deepspeed"):
            yield f"it runs on {name}", {"workload.framework": name, **open_layout}
    if layout.zero_stage is None and job.machine.count > 1:
        yield "weights are gathered in every layer (ZeRO-3, FSDP)", {"layout.zero_stage": 3}
    if training.micro_batch is None and planned.plan.training.micro_batch not in (None, 1):
        yield "one sequence at a time on each device", {"workload.micro_batch": 1}
    if "precision" not in training.model_fields_set:
        yield "matmuls are in tf32, not bf16", {"workload.precision": "tf32"}
        yield "matmuls are in fp32, not bf16", {"workload.precision": "fp32"}
    if plan.cluster.interconnect is None and job.machine.nodes > 1:
        for name in ("ethernet-100x1", "ethernet-25x1"):
            yield f"nodes are joined by {name}", {"cluster.interconnect": name}
    if "global_batch" not in training.model_fields_set and job.global_batch > job.machine.count:
        yield "one sequence a device and step", {"workload.global_batch": job.machine.count, "workload.micro_batch": 1}


def _gains(planned: Planned, rate: float, ratio: float) -> list[LikelyCause]:
    """What would make the plan faster, from the speed that it has."""
    return [
        LikelyCause(what=row.what, patch=row.patch, explained_tokens_per_s=row.tokens_per_s * ratio, gain=row.gain)
        for row in improvements(planned)
        if row.kind != "hardware"
    ][:MOST_GAINS]


def _doubts(planned: Planned, figures: Mapping[str, float], mfu: float) -> Iterator[str]:
    count = planned.job.machine.count
    if mfu >= 1.0:
        yield (
            f"that is {mfu:.0%} of what the devices can compute: the number, the model or the number of devices is "
            "another one, or padding counts as tokens"
        )
    elif "tokens_per_s" in figures and count > 1 and mfu * count < 0.75 and mfu < 0.4 / count:
        yield f"if that is per device, it is {mfu * count:.0%} MFU, which would be usual"


def rated(run: MeasuredRun, plan: Plan) -> RunRating | None:
    """The rating of a run whose plan is known; None where it has no speed."""
    figures = speed_of(run)
    if run.kind != "training" or not figures:
        return None
    return rating_of(plan, figures, run.findings)


def speed_of(run: MeasuredRun) -> dict[str, float]:
    """The one figure that a run is rated by: where two contradict each other, tokens are what is compared."""
    if run.kind == "serving":
        return {"tokens_per_s": rate} if (rate := run.figure("output_tokens_per_s")) else {}
    names = [name for name in _MEASURED if name in run.figures]
    return {names[0]: run.figures[names[0]]} if names else {}
