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
    line = _lineage(name)
    merged: dict[str, Any] = {}
    for ancestor in reversed(line):
        merged |= rows[ancestor]
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in merged.items()}
    values |= {"name": name, "kin": line[1] if len(line) > 1 else name}
    return Framework(**values)


def _lineage(name: str) -> list[str]:
    """The framework, its kin, the kin of that, and so on."""
    rows = _profiles()["frameworks"]
    line = [name]
    while kin := rows[line[-1]].get("kin"):
        line.append(kin)
    return line


@cache
def optimizer(name: str) -> OptimizerFacts:
    row = _profiles()["optimizers"][name]
    blank = {"state_elements": 0.0, "state_bytes": 0.0, "step_elements": 0.0, "keeps_gradients": True}
    return OptimizerFacts(**(blank | row | {"name": name}))


@cache
def calibration(family: str, framework_name: str) -> Calibration:
    """The factors for an accelerator family and a framework; the nearest measured kin or defaults stand in, and say so.

    A blank name gives the defaults.
    """
    fitted = _fitted()
    devices, frameworks, memory = fitted["devices"], fitted["frameworks"], fitted["memory"]
    device = devices.get(family, devices["default"])
    line = _lineage(framework_name) if framework_name else []
    timed = next((frameworks[kin] for kin in line if kin in frameworks and frameworks[kin]["runs"]), None)
    weighed = next((frameworks[kin] for kin in line if kin in frameworks and frameworks[kin]["memory_runs"]), None)
    factors = dict(timed or frameworks["default"])
    for key in ("memory_spread", "memory_runs"):
        factors[key] = (weighed or frameworks["default"])[key]
    own = frameworks.get(framework_name, frameworks["default"])
    return Calibration(
        device=DeviceFactors(family=family, **device),
        framework=FrameworkFactors(framework=framework_name, **factors),
        context_bytes=memory["context_bytes"],
        collective_bytes=memory["collective_bytes"],
        slack=memory["slack"],
        device_measured=device["runs"] > 0,
        time_measured=own["runs"] > 0,
        memory_measured=own["memory_runs"] > 0,
        unmeasured_spread=fitted["unmeasured_spread"],
        pooled_memory_spread=frameworks["default"]["memory_spread"],
    )
