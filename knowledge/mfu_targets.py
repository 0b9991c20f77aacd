"""What MFU measured runs reached, by size of the model and kind of device: quartiles of knowledge/measurements."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from estimator.errors import PlanError
from estimator.kernels.model_flop import model_flop_per_token
from estimator.plan.training.job import precision_peak
from knowledge.data_files import rows
from knowledge.machines.catalogue import accelerators
from knowledge.models.catalogue import architecture
from knowledge.models.known import models

# Upper bounds of the classes of size, parameters that one token uses.
_SIZES = ((4e9, "up to 4B"), (15e9, "4B to 15B"), (40e9, "15B to 40B"), (float("inf"), "above 40B"))
_LOW = ("fp8", "mxfp8", "mxfp4", "nvfp4")
# Fewer runs than these say nothing about the next.
_LEAST_RUNS = 5


@dataclass(frozen=True)
class MfuTarget:
    """Quartiles of the MFU (a fraction, PaLM's convention) of `runs` measured pretraining runs; `of` says of which."""

    low: float
    median: float
    high: float
    runs: int
    of: str


class _Group(NamedTuple):
    family: str
    precision: str
    moe: bool
    size: str


def mfu_target(family: str, precision: str, active_parameters: float, moe: bool) -> MfuTarget | None:
    """Of runs on the family's devices in the precision's width, dense or MoE, of models of about the size; of all sizes
    where too few runs are of that one. None where no five runs are known."""
    width, size = _width(precision), _size(active_parameters)
    kind = "MoE" if moe else "dense"
    words = f"{family}, {precision if width == precision else width}, {kind} models"
    near = _measured().get(_Group(family, width, moe, size), ())
    if len(near) >= _LEAST_RUNS:
        return _quartiles(near, f"{words} {size}")
    every = [mfu for group, values in _measured().items() if group[:3] == (family, width, moe) for mfu in values]
    return _quartiles(every, f"{words} of any size") if len(every) >= _LEAST_RUNS else None


def _quartiles(values: list[float] | tuple[float, ...], of: str) -> MfuTarget:
    import numpy as np

    low, median, high = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    return MfuTarget(low, median, high, len(values), of)


def _width(precision: str) -> str:
    return "fp8 and below" if precision in _LOW else "bf16" if precision in ("bf16", "fp16") else precision


def _size(active_parameters: float) -> str:
    return next(name for bound, name in _SIZES if active_parameters <= bound)


@cache
def _measured() -> dict[_Group, tuple[float, ...]]:
    """MFU of full-weight pretraining runs of catalogue models on known devices, each (model, layout, batch) a run.

    Runs that a source says are not to be counted, that name no precision or length, or whose MFU is not below one (the
    source counted otherwise) are left out.
    """
    devices = {device.id: device for device in accelerators()}
    known = {row.id for row in models()}
    by_group: dict[_Group, list[float]] = defaultdict(list)
    flop: dict[tuple[str, int], float] = {}
    for row in rows("../measurements/training.csv"):
        device, model = devices.get(row["accelerator"]), row["model"]
        rate = _tokens_per_s(row)
        usable = row["stage"] == "pretrain" and row["method"] in ("full", "") and row["precision"] and not row["doubt"]
        if not usable or device is None or model not in known or rate is None:
            continue
        seq_len = int(float(row["seq_len"]))
        try:
            architecture_of_run = architecture(model)
        except PlanError:
            continue
        if (model, seq_len) not in flop:
            flop[model, seq_len] = model_flop_per_token(architecture_of_run, seq_len)
        peak = precision_peak(device.peak_flops, row["precision"])
        mfu = rate * flop[model, seq_len] / peak if peak else 1.0
        if mfu < 1.0:
            group = _Group(
                device.family,
                _width(row["precision"]),
                architecture_of_run.is_moe,
                _size(architecture_of_run.active_parameters),
            )
            by_group[group].append(mfu)
    return {group: tuple(values) for group, values in by_group.items()}


def _tokens_per_s(row: dict[str, str]) -> float | None:
    """Tokens per second and device as the row says them, or from its step; None where it says too little."""
    if not row["seq_len"]:
        return None
    if row["tokens_per_s_per_device"]:
        return float(row["tokens_per_s_per_device"])
    if row["step_s"] and row["global_batch"] and row["devices"]:
        return float(row["global_batch"]) * float(row["seq_len"]) / float(row["step_s"]) / float(row["devices"])
    return None
