"""Loads the framework profiles, the optimizers and the fitted factors; read once, on first use."""

from __future__ import annotations

from functools import cache
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.profile import Calibration, DeviceFactors, Framework, FrameworkFactors, OptimizerFacts
from knowledge.data_files import document

@cache
def _profiles() -> dict[str, Any]:
    return document("frameworks.yaml")


@cache
def _fitted() -> dict[str, Any]:
    return document("../calibration.yaml")


@cache
def framework(name: str) -> Framework:
    """The profile of a framework, with what it does not say taken from its kin."""
    rows = _profiles()["frameworks"]
    if name not in rows:
        raise PlanError("workload.framework", f"there is no profile of {name!r}", nearest(name, rows))
    merged: dict[str, Any] = {}
    kin = name
    lineage = []
    while kin:
        lineage.append(kin)
        kin = rows[kin].get("kin")
    for ancestor in reversed(lineage):
        merged |= rows[ancestor]
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in merged.items()}
    return Framework(**(values | {"name": name, "kin": lineage[-1]}))


@cache
def optimizer(name: str) -> OptimizerFacts:
    row = _profiles()["optimizers"][name]
    blank = {"state_elements": 0.0, "state_bytes": 0.0, "step_elements": 0.0, "keeps_gradients": True}
    return OptimizerFacts(**(blank | row | {"name": name}))


@cache
def calibration(family: str, framework_name: str) -> Calibration:
    """The factors for an accelerator family and a framework; defaults stand in where there are none, and say so."""
    fitted = _fitted()
    devices, frameworks, memory = fitted["devices"], fitted["frameworks"], fitted["memory"]
    device = devices.get(family, devices["default"])
    factors = frameworks.get(framework_name, frameworks["default"])
    return Calibration(
        device=DeviceFactors(family=family, **device),
        framework=FrameworkFactors(framework=framework_name, **factors),
        context_bytes=memory["context_bytes"],
        collective_bytes=memory["collective_bytes"],
        slack=memory["slack"],
        device_measured=device["runs"] > 0,
        framework_measured=factors["runs"] > 0,
        unmeasured_spread=fitted["unmeasured_spread"],
    )
