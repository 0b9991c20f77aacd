"""The transcribed serving runs of `knowledge/measurements/serving.csv` as Plans with what was observed."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import knowledge
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from knowledge.jobs.serving import serving_job

_FILE = Path(knowledge.__file__).parent / "measurements" / "serving.csv"
Metric = Literal["throughput", "tpot", "ttft"]
METRICS: tuple[Metric, ...] = ("throughput", "tpot", "ttft")
OUT_OF_MEMORY = "ran out of memory: there is no speed to score, only whether it fits"
# A prompt alone, a generation alone: of how many tokens, where the other part was not timed.
_PROMPT_ONLY, _GENERATION_ONLY = "prefill", "decode"
# Tag of runs without the option that has the lanes of attention read prompts at once.
_UNBALANCED = "prompts not balanced over ranks"


@dataclass(frozen=True)
class ServingCase:
    """One measured serving run. `observed` holds output tokens per second over all devices ('throughput'), mean seconds
    per output token ('tpot') and mean seconds to the first one ('ttft'), as far as they were measured.

    `plan` is None where the run cannot be said as a Plan; `reason_unscored` is None for a run that counts. `ran` is
    false where it ran out of memory. `harness` is how it was loaded: 'prefill' and 'decode' are timed apart.
    """

    id: str
    source: str
    plan: Plan | None
    observed: dict[Metric, float]
    reason_unscored: str | None
    ran: bool
    harness: str
    tags: tuple[str, ...]
    reference: str

    @property
    def balanced(self) -> bool:
        """Whether lanes of attention read their prompts at once, where the engine's recipes have them do so."""
        return _UNBALANCED not in self.tags


@cache
def serving_cases() -> tuple[ServingCase, ...]:
    """All rows in file order."""
    return tuple(_case(row) for row in _read())


@cache
def serving_rows() -> tuple[dict[str, str], ...]:
    """The transcribed rows as they are, empty cells left out."""
    return tuple(_read())


def serving_case(row: Mapping[str, str]) -> ServingCase:
    """One of `serving_rows` as a case."""
    return _case(row)


def _read() -> Iterator[dict[str, str]]:
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {name: cell for name, cell in row.items() if cell}


def _case(row: Mapping[str, str]) -> ServingCase:
    doubt = row.get("doubt", "")
    # A doubt may be about one figure alone.
    alone: Metric | None = next((metric for metric in METRICS if doubt.startswith(f"{metric}:")), None)
    reason = (doubt if alone is None else None) or _inexpressible(row)
    plan = None if _inexpressible(row) else Plan.parse(plan_data(row))
    ran = row.get("fits") != "no"
    observed = _observed(row)
    if alone:
        observed.pop(alone, None)
    if reason is None and not ran:
        reason = OUT_OF_MEMORY
    if reason is None and not observed:
        reason = "nothing that is estimated was measured"
    return ServingCase(
        id=row["id"],
        source=row["source"],
        plan=plan,
        observed=observed,
        reason_unscored=reason,
        ran=ran,
        harness=row.get("scenario", "server"),
        tags=tuple(tag.strip() for tag in row.get("tags", "").split(";")),
        reference=row.get("source_ref", ""),
    )


def case_job(case: ServingCase) -> ServingJob:
    """The job of a run that can be said as a Plan, with the options of its engine that its tags tell."""
    assert case.plan is not None
    job = serving_job(case.plan)
    return job if case.balanced else replace(job, engine=replace(job.engine, balance_steps=0.0))


def _inexpressible(row: Mapping[str, str]) -> str | None:
    if "model" not in row or "accelerator" not in row or "engine" not in row:
        return "model, accelerator or engine are not known"
    if row.get("disaggregated") == "yes":
        return "prompts are read on other devices than generate"
    return None


def plan_data(row: Mapping[str, str]) -> dict[str, Any]:
    """One row (empty cells left out) as the data of a Plan."""
    scenario = row.get("scenario", "server")
    workload: dict[str, Any] = {"kind": "inference", "engine": row["engine"]}
    for name in ("software_version", "weight_dtype", "kv_dtype"):
        if name in row:
            workload[name] = row[name]
    for name in (
        "input_len",
        "output_len",
        "weight_bits",
        "request_rate",
        "prefix_hit",
        "output_spread",
        "ttft_slo_ms",
        "tpot_slo_ms",
    ):
        if name in row:
            workload[name] = float(row[name])
    for name in ("concurrency", "max_batch", "max_batched_tokens", "admission_steps", "requests"):
        if name in row:
            workload[name] = round(float(row[name]))
    if scenario == _PROMPT_ONLY:
        workload |= {"scenario": "single-stream", "output_len": workload.get("output_len", 1.0)}
    elif scenario == _GENERATION_ONLY:
        workload["scenario"] = "static-batch" if workload.get("max_batch", 1) > 1 else "single-stream"
        workload.setdefault("input_len", 1.0)
    else:
        workload["scenario"] = scenario
    drafted = row.get("speculative", "").rpartition(":")[2]
    if drafted.isdigit():
        workload["speculative_tokens"] = int(drafted)
    cluster: dict[str, Any] = {"accelerator": row["accelerator"]}
    if "devices" in row:
        cluster["count"] = int(row["devices"])
    if "per_node" in row:
        cluster["per_node"] = int(row["per_node"])
    layout = {name: int(row[name]) for name in ("tp", "pp", "ep", "dp") if name in row}
    data = {"model": row["model"], "workload": workload, "cluster": cluster, "layout": layout}
    links = {"overrides": {"scaleup_gb_per_s": float(row["scaleup_gb_s"])}} if "scaleup_gb_s" in row else {}
    return data | links


def _observed(row: Mapping[str, str]) -> dict[Metric, float]:
    observed: dict[Metric, float] = {}
    if row.get("scenario") == _GENERATION_ONLY and "output_tokens_per_s" in row:
        observed["tpot"] = float(row.get("max_batch", row.get("concurrency", "1"))) / float(row["output_tokens_per_s"])
        return observed
    # Where requests arrive at a given rate, tokens per second say nothing of the engine.
    if "output_tokens_per_s" in row and row.get("scenario") != _PROMPT_ONLY and "request_rate" not in row:
        observed["throughput"] = float(row["output_tokens_per_s"])
    if "input_tokens_per_s" in row and row.get("scenario") == _PROMPT_ONLY:
        observed["ttft"] = float(row["input_len"]) / float(row["input_tokens_per_s"])
    if row.get("statistic", "mean") != "p99":
        for name in ("tpot", "ttft"):
            if f"{name}_ms" in row:
                observed[name] = float(row[f"{name}_ms"]) / 1e3
    return observed
