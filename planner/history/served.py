"""How good a measured speed of a deployment is: against its estimate and runs like it; what would explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.engines import engine, engines_known, kernels_for
from knowledge.jobs.unlike import usual_processor
from measure.history.nearest import nearest_runs
from planner.evidence import evidence_of
from planner.fit.serving import FEWEST_BITS, fit_of
from planner.history.alike import ALIKE, MOST_GAINS, likeliest, percentile_of
from planner.history.results import LikelyCause, RunRating
from planner.serving.planned import Served, latency_of, plan_serving, throughput_of
from planner.serving.warnings import reads, warnings_of

FIGURES = ("tokens_per_s", "tokens_per_s_per_device", "tpot_s")
# Parts of its layers on the card where the others are in the host's memory.
_ON_CARD = (0.9, 0.75, 0.5)


def served_rating(plan: Plan, figures: Mapping[str, float], findings: Sequence[str]) -> RunRating:
    """How good a measured speed of a serving plan is; its tokens are those of answers. Raises PlanError for a figure
    that no deployment has, and where the plan has no room."""
    ((name, value),) = figures.items()
    if name not in FIGURES:
        raise PlanError(name, "is a figure of training", list(FIGURES))
    served = plan_serving(plan)
    if not served.fits:
        raise PlanError("model", "does not fit on these devices, so no speed is expected", ["more devices"])
    count, expected = served.job.machine.count, _expected(served, name)
    worth = {"tokens_per_s": value, "tokens_per_s_per_device": value * count}
    measured = worth.get(name) or expected.usual * latency_of(served).tpot_s / value
    low, high = expected.low, expected.high
    verdict = "good" if measured > high else "low" if measured < low else "as expected"
    ratio = measured / expected.usual
    percentile, alike = _percentile(plan, served, ratio)
    return RunRating(
        plan=served.complete_plan,
        verdict=verdict,
        tokens_per_s=measured,
        tokens_per_s_per_device=measured / count,
        expected_tokens_per_s=expected.usual,
        tokens_low_per_s=low,
        tokens_high_per_s=high,
        ratio=ratio,
        percentile=percentile,
        alike=alike,
        reached_by="",
        causes=_causes(plan, served, name, ratio) if verdict == "low" else [],
        gains=_gains(plan, measured),
        findings=list(findings),
        warnings=warnings_of(served),
        assumptions=served.assumptions,
        evidence=evidence_of(served.job),
    )


class _Speed(NamedTuple):
    """Tokens of answers a second, with the 80 % interval."""

    usual: float
    low: float
    high: float


def _expected(served: Served, figure: str) -> _Speed:
    """What is expected of the figure: of a time per token, and of one client, whose programs tell how fast they write,
    the speed of generation; else of all that a deployment writes, while it reads prompts too."""
    rate, latency, clients = throughput_of(served), latency_of(served), served.job.inference.concurrency
    if figure != "tpot_s" and clients != 1:
        return _Speed(rate.output_tokens_per_s, rate.output_tokens_low_per_s, rate.output_tokens_high_per_s)
    usual = 1.0 / latency.tpot_s if clients == 1 else rate.output_tokens_per_s
    return _Speed(usual, usual * latency.tpot_s / latency.tpot_high_s, usual * latency.tpot_s / latency.tpot_low_s)


def _percentile(plan: Plan, served: Served, ratio: float) -> tuple[float | None, int]:
    """(The share of measured runs like it that reach less of their estimates, how many those are)."""
    rows = [figure for run in nearest_runs(plan, served.plan, "serving", ALIKE) for figure in run.figures]
    # A time per token that is longer than estimated is a speed that is less.
    ratios = [row.measured / row.estimated for row in rows if row.unit != "s"]
    ratios += [row.estimated / row.measured for row in rows if row.name == "time per output token"]
    return percentile_of(ratio, ratios)


def _causes(plan: Plan, served: Served, figure: str, ratio: float) -> list[LikelyCause]:
    """Settings that nobody named and whose estimate of that figure is near to what was measured, the nearest first."""
    causes: list[LikelyCause] = []
    usual = _expected(served, figure).usual
    for what, patch in _suspects(plan, served):
        try:
            other = plan_serving(served.plan.patch(patch))
        except PlanError:
            continue
        explained = _expected(other, figure).usual
        if other.fits and reads(other.job) and explained < usual:
            gain = usual / explained - 1.0
            causes.append(LikelyCause(what=what, patch=patch, explained_tokens_per_s=explained, gain=gain))
    return likeliest(causes, ratio * usual)


def _suspects(plan: Plan, served: Served) -> Iterator[tuple[str, dict[str, Any]]]:
    """Settings that cost speed where they are not as the estimate takes them, of those that the plan leaves open."""
    stated, job = plan.inference.model_fields_set, served.job
    open_layout = {f"layout.{name}": None for name in ("tp", "pp", "ep", "dp")}
    device, count = job.machine.accelerator, job.machine.count
    if count > 1 and not plan.layout.model_fields_set:
        yield "one device works, the others do nothing", {"cluster.count": 1, "cluster.per_node": None, **open_layout}
        yield "devices hold layers one after the other (PP)", {**open_layout, "layout.pp": count, "layout.tp": 1}
    if "engine" not in stated:
        able = [name for name in engines_known() if kernels_for(engine(name, None, device), job.architecture)]
        for name in able:
            if name != job.engine.name:
                yield f"it runs on {name}", {"workload.engine": name, "workload.software_version": None, **open_layout}
    if "weight_dtype" not in stated:
        for dtype in ("bf16", "q8_0", "fp8"):
            if dtype != job.inference.weight_dtype:
                yield f"weights are in {dtype}", {"workload.weight_dtype": dtype, "workload.weight_bits": None}
    if job.engine.lends_from and device.form_factor != "SoC" and not plan.cluster.beside:
        for part in _ON_CARD:
            layers = round(part * job.architecture.layers)
            patch = {"cluster.beside": [usual_processor(device)], "workload.device_layers": layers}
            yield f"only {layers} of {job.architecture.layers} layers are on the card", patch
    clients = job.inference.concurrency or 0
    for fewer in (clients // 2, clients // 4, 1):
        if fewer and fewer < clients:
            yield f"only {fewer} of the requests are under way at once", {"workload.concurrency": fewer}


def _gains(plan: Plan, measured: float) -> list[LikelyCause]:
    """What would make it faster, from the speed that it has: the changes of check_fit."""
    fit = fit_of(plan)
    # The machine is there: only what is set may change.
    ways = [way for way in (*fit.relaxations, *fit.remedies) if way.fits and "cluster.count" not in way.patch]
    free = [way for way in ways if way.patch.get("workload.weight_dtype") not in FEWEST_BITS]
    faster = sorted((way for way in free if way.slowdown < 1.0), key=lambda way: way.slowdown)
    return [
        LikelyCause(what=way.what, patch=way.patch, explained_tokens_per_s=measured / way.slowdown,
                    gain=1.0 / way.slowdown - 1.0)
        for way in faster[:MOST_GAINS]
    ]  # fmt: skip
