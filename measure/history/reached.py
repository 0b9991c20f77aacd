"""The MFU that measured runs reach, by family of accelerator and width of the matmuls: what a good run is.

Counted as estimates count it: model FLOP in PaLM's convention over the dense peak of the precision. Only runs that
train all weights count, and of the runs of one setup (model, device, number of devices, length, width, source) only the
best, as sweeps hold many layouts that nobody would train with.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job, precision_peak
from estimator.search.space import candidates
from estimator.training.schedule import step_time
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import accelerators, find_accelerator
from measure.history.training import Case, training_cases

ALL = "all measured devices"
# Setups from which on quarters of them say something.
_LEAST_SETUPS = 5
_FEWEST, _OF_A_VENDOR = 2, 6
_WIDTHS = {"fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "mxfp8": 8, "mxfp4": 4, "nvfp4": 4}
# A device on which any model can be looked up: only the model's FLOP are taken from there.
_ANY_DEVICE = "h100-sxm"


@dataclass(frozen=True)
class Reached:
    """Quartiles of the MFU of the best run of each setup, and the most of all, as fractions."""

    family: str
    bits: int
    lower: float
    median: float
    upper: float
    most: float
    setups: int
    runs: int
    sources: tuple[str, ...]

    def rating(self, mfu: float) -> str:
        """good in the upper quarter of what is measured, poor in the lower, average between."""
        return "good" if mfu >= self.upper else "average" if mfu >= self.lower else "poor"


def reached_mfu(family: str, precision: str) -> Reached | None:
    """What runs on devices of a family reach at the width of `precision`; those of all families together (`ALL`) where
    too few of its own were measured, None where that is so of all."""
    bits = _WIDTHS[precision]
    return _reached().get((family, bits)) or _reached().get((ALL, bits))


def main_accelerators() -> list[Accelerator]:
    """Of each vendor the accelerators with the most measured setups, the vendor with the most first."""
    counts = Counter(id for id, _ in {(run.accelerator.id, run.setup) for run in _runs()})
    vendors: dict[str, list[Accelerator]] = defaultdict(list)
    devices = {device.id: device for device in accelerators()}
    for id, setups in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if setups >= _FEWEST and len(vendors[devices[id].vendor]) < _OF_A_VENDOR:
            vendors[devices[id].vendor].append(devices[id])
    return [device for devices_of_vendor in vendors.values() for device in devices_of_vendor]


@dataclass(frozen=True)
class _ReachedRun:
    accelerator: Accelerator
    setup: tuple[Any, ...]
    bits: int
    source: str
    mfu: float


@cache
def _reached() -> dict[tuple[str, int], Reached]:
    groups: dict[tuple[str, int], list[_ReachedRun]] = defaultdict(list)
    for run in _runs():
        groups[run.accelerator.family, run.bits].append(run)
        groups[ALL, run.bits].append(run)
    by_format: dict[tuple[str, int], Reached] = {}
    for (family, bits), runs in groups.items():
        best: dict[tuple[Any, ...], float] = {}
        for run in runs:
            best[run.setup] = max(run.mfu, best.get(run.setup, 0.0))
        if len(best) >= _LEAST_SETUPS:
            lower, median, upper, most = np.quantile(list(best.values()), (0.25, 0.5, 0.75, 1.0)).tolist()
            sources = tuple(name for name, _ in Counter(run.source for run in runs).most_common())
            by_format[family, bits] = Reached(family, bits, lower, median, upper, most, len(best), len(runs), sources)
    return by_format


@cache
def _runs() -> tuple[_ReachedRun, ...]:
    return tuple(run for case in training_cases() if (run := _run(case)))


def _run(case: Case) -> _ReachedRun | None:
    """A run with its MFU; None for one that does not count or whose device or model has no figure for it."""
    plan, rate = case.plan, case.observed["tokens_per_s_per_device"]
    if plan is None or case.reason_unscored or not rate or plan.training.method != "full":
        return None
    if plan.cluster.accelerator is None or plan.training.seq_len is None:
        return None
    try:
        device = find_accelerator(plan.cluster.accelerator).value
        peak = precision_peak(device.peak_flops, plan.training.precision)
        model = plan.model if isinstance(plan.model, str) else json.dumps(plan.model, sort_keys=True)
        flop = _flop_per_token(model, plan.training.seq_len)
    except PlanError:
        return None
    if not peak:
        return None
    bits = _WIDTHS[plan.training.precision]
    setup = (model, device.id, plan.cluster.count, plan.training.seq_len, bits, case.source)
    return _ReachedRun(device, setup, bits, case.source, rate * flop / peak)


@cache
def _flop_per_token(model: str, seq_len: int) -> float:
    """Model FLOP of forward and backward passes per token, as a step of one sequence on one device counts them."""
    job = _job(model)
    job = replace(job, plan=job.plan.patch({"workload.seq_len": seq_len}))
    return float(step_time(job, candidates(job)).model_flop[0]) / job.tokens_per_step


@cache
def _job(model: str) -> Job:
    """One sequence on one device, with nothing recomputed or split."""
    workload = {"stage": "pretrain", "framework": "megatron-lm", "micro_batch": 1, "global_batch": 1}
    layout = dict.fromkeys(("tp", "pp", "cp", "ep", "dp"), 1) | {"zero_stage": 0, "recompute": "none"}
    spec = json.loads(model) if model.startswith("{") else model
    cluster = {"accelerator": _ANY_DEVICE, "count": 1}
    return job_of(Plan.parse({"model": spec, "workload": workload, "cluster": cluster, "layout": layout}))
