"""list_runs: the history, each run beside what is estimated of it now, and how estimates drift with software."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from measure.history.run import MeasuredRun
from measure.history.store import find, history_file, model_of, runs
from planner.asked.runs import HistoryRequest
from planner.history.board import board
from planner.history.results import Drift, HistoryRow, RunHistory
from planner.serving import planned as serving
from planner.training.planned import plan_training, throughput_of

_DAY = re.compile(r"\d{4}(-[01]\d(-[0-3]\d)?)?")


def list_runs(request: HistoryRequest) -> RunHistory:
    """List one's own runs. Raises PlanError."""
    if request.since is not None and not _DAY.fullmatch(request.since):
        raise PlanError("since", f"{request.since[:40]!r} is no day", ["2026-01-31", "2026-01"])
    named = {find(name).id for name in request.runs}
    every = runs(request.model, request.accelerator, request.software, request.tag, request.since)
    every = [run for run in every if run.id in named or not named]
    rows = [row_of(run, request.estimates) for run in every]
    return RunHistory(
        runs=rows,
        drift=drift(rows),
        plots=board(every, rows),
        file=str(history_file()),
        warnings=_none_as_asked(every),
    )


def _none_as_asked(listed: Sequence[MeasuredRun]) -> list[str]:
    """That there are runs, where none is listed."""
    kept = 0 if listed else len(runs())
    return [f"no run of the {kept:,} in the history is as asked"] if kept else []


def row_of(run: MeasuredRun, estimates: bool) -> HistoryRow:
    """A run in a list, with what is estimated of it where that is asked for."""
    rate = run.rate_per_device
    expected, mfu = _expected(run) if estimates and rate else (None, None)
    return HistoryRow(
        id=run.id,
        date=run.date,
        name=run.name,
        model=model_of(run),
        platform=" x ".join(str(part) for part in (run.devices, run.planned("cluster.accelerator")) if part),
        software=run.version,
        outcome=run.outcome,
        tokens_per_s_per_device=rate,
        step_s=run.figure("step_s"),
        peak_bytes=run.figure("peak_bytes"),
        mfu=mfu * rate / expected if mfu and expected and rate else run.figure("mfu"),
        expected_tokens_per_s_per_device=expected,
        error=expected / rate - 1.0 if expected and rate else None,
        tags=run.tags,
    )


def _expected(run: MeasuredRun) -> tuple[float | None, float | None]:
    """(Tokens per second and device, MFU) as estimated of a run now; None where its plan leaves too much open."""
    if any(run.planned(path) is None for path in ("model", "cluster.accelerator", "cluster.count")):
        return None, None
    try:
        plan = Plan.parse(run.plan)
        if run.kind == "serving":
            served = serving.plan_serving(plan)
            return serving.throughput_of(served).output_tokens_per_s / served.job.machine.count, None
        expected = throughput_of(plan_training(plan, offload=False))
        return expected.tokens_per_s_per_device, expected.mfu
    except PlanError:
        return None, None


def drift(rows: Sequence[HistoryRow]) -> list[Drift]:
    """By version of software, how far estimates are off; the earliest first."""
    groups: dict[str, list[HistoryRow]] = defaultdict(list)
    for row in rows:
        if row.error is not None:
            groups[row.software or "unknown"].append(row)
    drifts = []
    for software, members in groups.items():
        errors = [row.error for row in members if row.error is not None]
        days = sorted(row.date for row in members if row.date)
        drifts.append(
            Drift(
                software=software,
                runs=len(errors),
                bias=fmean(errors),
                mape=fmean(map(abs, errors)),
                first_day=days[0] if days else None,
                last_day=days[-1] if days else None,
            )
        )
    return sorted(drifts, key=lambda row: (row.first_day or "", row.software))
