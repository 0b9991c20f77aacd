"""Loads what was fitted to measured serving runs; read once, on first use."""

from __future__ import annotations

from functools import cache
from typing import Any

from estimator.plan.serving.factors import ServingFactors
from knowledge.data_files import document
from knowledge.engines import kernels_of
from knowledge.fitted.training import device_lineage

SHARED = ("decode", "prefill", "experts", "collective")
"""Factors that are products of an engine's and an accelerator family's."""
ENGINE = ("launch", "layer_s", "host", "step_s", "request", "clumped")
"""Factors of an engine alone."""
SPREADS = ("tpot_spread", "ttft_spread", "throughput_spread")


@cache
def _fitted() -> dict[str, Any]:
    return document("../serving_factors.yaml")


@cache
def serving_factors(engine: str, family: str) -> ServingFactors:
    """The factors of an engine on an accelerator family; those of all stand in for what was never measured."""
    fitted = _fitted()
    engine_factors = fitted["engines"].get(engine, fitted["engines"]["default"])
    own = kernels_of(family)
    line = [name for name in device_lineage(own) if name in fitted["devices"]]
    device = fitted["devices"][line[0] if line else "default"]
    engine_measured, device_measured = (
        engine_factors["runs"] > 0,
        bool(line) and line[0] == own and device["runs"] > 0,
    )
    widest = fitted["unmeasured"] if not (engine_measured and device_measured) else {}
    return ServingFactors(
        engine=engine,
        **{name: engine_factors[name] * device[name] for name in SHARED},
        **{name: engine_factors[name] for name in ENGINE},
        **{name: max(engine_factors[name], widest.get(name, 0.0)) for name in SPREADS},
        engine_measured=engine_measured,
        device_measured=device_measured,
        runs=engine_factors["runs"],
        source=engine_factors["source"],
    )
