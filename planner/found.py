"""What a search found, as changes to the plan that it was asked about."""

from __future__ import annotations

from typing import Any

from planner.partial import get, is_serving
from planner.results import BestParallelism
from planner.serving.results import BestServing, SizedServing

# The rest of a layout follows from the devices.
_TRAINING = (
    "workload.framework", "workload.micro_batch",
    *(f"layout.{name}" for name in ("tp", "sequence_parallel", "pp", "vpp", "schedule", "cp", "ep", "etp",
                                    "zero_stage", "shard_group", "recompute", "recompute_modules", "offload")),
)  # fmt: skip
_SERVING = (
    "cluster.accelerator", "cluster.count", "cluster.per_node",
    *(f"workload.{name}" for name in ("engine", "weight_dtype", "kv_dtype", "concurrency")),
    *(f"layout.{name}" for name in ("tp", "pp", "ep", "dp")),
)  # fmt: skip


def chosen(search: BestParallelism | BestServing | SizedServing) -> dict[str, Any]:
    """{path: value} of the best that was found; nothing where it does not fit."""
    match search:
        case BestServing():
            fits = search.best.fits
        case SizedServing():
            fits = search.best is not None
        case _:
            fits = search.feasible > 0
    paths = (_SERVING if is_serving(search.plan) else _TRAINING) if fits else ()
    return {path: value for path in paths if (value := get(search.plan, path)) is not None}
