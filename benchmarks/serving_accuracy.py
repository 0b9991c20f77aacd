"""The serving part of benchmarks/accuracy.py: throughput, time per token, time to the first one against measured runs.

Every figure is estimated with factors that were fitted without it (a tenth of the configurations at a time) or without
its whole source; `none` takes the factors as calibrated. Runs that ran out of memory are seen where they are estimated
not to fit.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median, quantiles

import knowledge
from estimator.plan.schema import Plan
from estimator.serving.estimates import estimate
from estimator.serving.space import deployments
from knowledge.jobs.serving import serving_job
from measure.fit.serving import held_out as serving_held_out
from measure.fit.serving.factors import everything, figures
from measure.history.scores import (
    POOLED,
    SMALLEST_SOURCE,
    CasePrediction,
    Score,
    Summary,
    by_group,
    over_sources,
    worst,
)
from measure.history.serving import METRICS, OUT_OF_MEMORY, Metric, ServingCase, case_job, serving_cases

TITLES: dict[Metric, str] = {
    "throughput": "output tokens/s",
    "tpot": "time per output token",
    "ttft": "time to first token",
}
_MEASURED = Path(knowledge.__file__).parent / "measurements"
_RIVAL, _LOGS = _MEASURED / "aiconfigurator.csv", _MEASURED / "kv_capacity.csv"
# Fields of a plan by the columns of logs that name settings; an empty one is the engine's default.
_SETTINGS = {
    "engine": "engine", "version": "software_version", "weight_dtype": "weight_dtype", "kv_dtype": "kv_dtype",
    "memory_share": "memory_share", "max_model_len": "max_context", "max_num_batched_tokens": "max_batched_tokens",
    "max_num_seqs": "max_batch",
}  # fmt: skip
_RIVAL_COLUMNS: dict[Metric, tuple[str, float]] = {
    "throughput": ("output_tokens_per_s", 1.0),
    "tpot": ("tpot_ms", 1e-3),
    "ttft": ("ttft_ms", 1e-3),
}
ServingScore = Score[ServingCase]


@dataclass(frozen=True)
class CacheMemory:
    """Runs that ran out of memory, those of them estimated not to fit, runs that ran, and those estimated not to."""

    ran_out: int
    ran_out_seen: int
    ran: int
    ran_refused: int


@dataclass(frozen=True)
class CacheRoom:
    """How many logs of engines that start, and how far off the room for their cache is: in the middle, at nine in ten
    and at most."""

    logs: int
    median: float
    ninth: float
    most: float


@cache
def scores(hold_out: str) -> dict[Metric, list[ServingScore]]:
    """Every figure that counts beside what is said of it."""
    _, seen, _ = everything()
    if hold_out == "none":
        found = applied_as_calibrated()
    else:
        found = serving_held_out.predictions("source" if hold_out == "source" else "rows")
    result: dict[Metric, list[ServingScore]] = {metric: [] for metric in METRICS}
    for one in seen:
        result[one.metric].append(Score(one.case, one.value, found[one.case.id, one.metric]))
    return result


def applied_as_calibrated() -> dict[tuple[str, Metric], CasePrediction]:
    """What is said of every figure with the factors as they are in the file, by case id and metric."""
    runs, seen, _ = everything()
    estimates = [figures(estimate(run.job, run.these)) for run in runs]
    predictions: dict[tuple[str, Metric], CasePrediction] = {}
    for observation in seen:
        value = float(estimates[observation.group][observation.metric][observation.entry])
        spread = 1.0 + getattr(runs[observation.group].job.factors, f"{observation.metric}_spread")
        predictions[observation.case.id, observation.metric] = CasePrediction(
            value, value / spread, value * spread, fits=True
        )
    return predictions


def memory_verdicts() -> CacheMemory:
    """Of the runs of sources that tell which ones ran out of memory."""
    telling = {case.source for case in serving_cases() if case.reason_unscored == OUT_OF_MEMORY}
    verdicts = Counter(
        (case.ran, _fits(case))
        for case in serving_cases()
        if case.source in telling and case.plan is not None and case.reason_unscored in (None, OUT_OF_MEMORY)
    )
    out, ran = (verdicts[did, True] + verdicts[did, False] for did in (False, True))
    return CacheMemory(out, verdicts[False, False], ran, verdicts[True, False])


def cache_logs() -> list[dict[str, str]]:
    """The logs of engines that start with nothing in doubt, as they are."""
    with _LOGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [row for row in rows if not row["doubt"]]


def cache_error(row: dict[str, str]) -> float:
    """Room for the cache as estimated over as printed, less 1: tokens, or bytes of a device where those are printed
    alone or a window bounds what a request holds."""
    workload = {"kind": "inference", "concurrency": 1, "input_len": 128, "output_len": 16}
    workload |= {field: row[column] for column, field in _SETTINGS.items() if row[column]}
    cluster = {"accelerator": row["accelerator"], "count": int(row["devices"])}
    plan = {"model": row["model"], "workload": workload, "cluster": cluster, "layout": {"tp": int(row["tp"])}}
    job = serving_job(Plan.parse(plan))
    memory = estimate(job, deployments(job)).memory
    tokens = float(memory.room_tokens[0])
    if row["tokens"] and tokens < float("inf"):
        return tokens / float(row["tokens"]) - 1.0
    return float(memory.room[0]) / 2.0**30 / float(row["kv_gib"]) - 1.0


def cache_room() -> CacheRoom:
    """Of all logs with nothing in doubt."""
    errors = sorted(abs(cache_error(row)) for row in cache_logs())
    return CacheRoom(len(errors), median(errors), quantiles(errors, n=10, method="inclusive")[-1], errors[-1])


def _fits(case: ServingCase) -> bool:
    job = case_job(case)
    return bool(estimate(job, deployments(job)).memory.fits.any())


@cache
def rival() -> dict[tuple[str, Metric], float]:
    """What aiconfigurator 0.12.0 predicts, by case id and metric, in SI units."""
    with _RIVAL.open(encoding="utf-8", newline="") as file:
        return {
            (row["id"], metric): float(row[column]) * unit
            for row in csv.DictReader(file)
            for metric, (column, unit) in _RIVAL_COLUMNS.items()
            if row[column]
        }


@dataclass(frozen=True)
class SideBySide:
    """Absolute errors on the same rows, ours with the row left out of the fit."""

    metric: Metric
    rows: int
    ours_mean: float
    ours_median: float
    rival_mean: float
    rival_median: float


def side_by_side() -> list[SideBySide]:
    """Our errors and aiconfigurator's where it has a prediction."""
    found = []
    for metric, part in scores("rows").items():
        both = [(score, rival()[score.case.id, metric]) for score in part if (score.case.id, metric) in rival()]
        if both:
            ours = [abs(score.error) for score, _ in both]
            theirs = [abs(value / score.observed - 1.0) for score, value in both]
            found.append(SideBySide(metric, len(both), fmean(ours), median(ours), fmean(theirs), median(theirs)))
    return found


def table() -> str:
    """The tables of docs/accuracy.md: by source with rows left out and the source left out, and side by side."""
    lines = ["| figure | figures | mean error | median | bias | covered | mean, source unseen | covered |"]
    lines.append("| --- |" + " ---: |" * 7)
    for metric in METRICS:
        rows, apart = scores("rows")[metric], scores("source")[metric]
        sources, mean = over_sources(rows)
        _, mean_apart = over_sources(apart)
        counts = Counter(score.case.source for score in rows)

        def group(case: ServingCase, counts: Counter[str] = counts) -> str:
            return case.source if counts[case.source] >= SMALLEST_SOURCE else POOLED

        unseen = by_group(apart, group)
        parts = [(f"**{TITLES[metric]}, mean of {sources} sources**", mean, mean_apart)]
        parts += [(name, part, unseen[name]) for name, part in by_group(rows, group).items()]
        lines += [_line(name, part, other) for name, part, other in parts]
    memory = memory_verdicts()
    lines += [
        "",
        f"Of {memory.ran_out} runs of llama.cpp that ran out of memory, {memory.ran_out_seen} are estimated not",
    ]
    lines[-1] += f" to fit; of {memory.ran} that ran, {memory.ran_refused}."
    lines += ["", _cache_words()]
    lines += [
        "",
        "| same rows, mean / median error | rows | Shardwise | aiconfigurator 0.12.0 |",
        "| --- | ---: | ---: | ---: |",
    ]
    for one in side_by_side():
        ours, theirs = (
            f"{_percent(mean)} / {_percent(middle)}"
            for mean, middle in ((one.ours_mean, one.ours_median), (one.rival_mean, one.rival_median))
        )
        lines.append(f"| {TITLES[one.metric]} | {one.rows} | {ours} | {theirs} |")
    return "\n".join(lines)


def _cache_words() -> str:
    room = cache_room()
    middle, ninth, most = (_percent(part) for part in (room.median, room.ninth, room.most))
    off = f"{middle} off in the median, {ninth} at nine in ten, {most} at most"
    return f"Room for the cache in {room.logs} start-up logs: {off}."


def _percent(share: float, digits: int = 1) -> str:
    return f"{share:.{digits}%}".replace("%", " %")


def _line(name: str, rows: Summary, apart: Summary) -> str:
    bias = f"{rows.bias:+.1%}".replace("%", " %")
    cells = [str(rows.runs), _percent(rows.mape), _percent(rows.median_error), bias, _percent(rows.coverage, 0)]
    cells += [_percent(apart.mape), _percent(apart.coverage, 0)]
    return " | ".join([f"| {name}", *cells]) + " |"


def as_json(hold_out: str) -> str:
    """One JSON object with what `as_text` prints."""
    result: dict[str, object] = {"benchmark": "inference", "hold_out": hold_out, "memory": asdict(memory_verdicts())}
    result["cache_room"] = asdict(cache_room())
    for metric, part in scores(hold_out).items():
        sources, mean = over_sources(part)
        result[metric] = {
            "mean_over_sources": asdict(mean) | {"sources": sources},
            "by_source": {name: asdict(one) for name, one in by_group(part, lambda case: case.source).items()},
            "worst": [{"id": s.case.id, "observed": s.observed, "predicted": s.prediction.value} for s in worst(part)],
        }
    if hold_out == "rows":
        result["side_by_side"] = [asdict(one) for one in side_by_side()]
    return json.dumps(result, indent=1)


def as_text(hold_out: str, basis: str) -> str:
    """Tables by figure and source, the figures furthest off, and what is not scored."""
    lines = [f"Accuracy of serving estimates, {basis}"]
    for metric, part in scores(hold_out).items():
        sources, mean = over_sources(part)
        lines += ["", f"{TITLES[metric]} ({len(part)} figures): mean error, median, bias, covered"]
        named = {f"mean of {sources} sources": mean} | by_group(part, lambda case: case.source)
        width = max(map(len, named))
        lines += [
            f"  {name:{width}} {one.runs:5} {one.mape:7.1%} {one.median_error:7.1%} {one.bias:+7.1%}"
            f" {one.coverage:5.0%}"
            for name, one in named.items()
        ]
        lines += [f"  furthest off: {_worst_words(worst(part, 5))}"]
    memory = memory_verdicts()
    lines += ["", f"Ran out of memory: {memory.ran_out}, of which {memory.ran_out_seen} are estimated not to fit."]
    lines += [f"Ran: {memory.ran}, of which {memory.ran_refused} are estimated not to fit.", _cache_words()]
    if hold_out == "rows":
        for one in side_by_side():
            lines.append(
                f"{TITLES[one.metric]} on {one.rows} rows that aiconfigurator 0.12.0 has a prediction for: "
                f"{one.ours_mean:.1%} / {one.ours_median:.1%}, "
                f"aiconfigurator {one.rival_mean:.1%} / {one.rival_median:.1%}"
            )
    skipped = Counter(
        (case.source, (case.reason_unscored or "").partition(":")[0])
        for case in serving_cases()
        if case.reason_unscored not in (None, OUT_OF_MEMORY)
    )
    lines += ["", f"Not scored: {sum(skipped.values())}"]
    lines += [f"  {count} of {source}: {reason}" for (source, reason), count in skipped.most_common()]
    return "\n".join(lines)


def _worst_words(part: Sequence[ServingScore]) -> str:
    return "; ".join(f"{s.case.id} {s.observed:.4g} -> {s.prediction.value:.4g}" for s in part)
