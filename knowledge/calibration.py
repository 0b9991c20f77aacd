"""Loads the framework profiles, the optimizers and the fitted factors; read once, on first use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.profile import Calibration, DeviceFactors, Framework, FrameworkFactors, OptimizerFacts
from knowledge.data_files import document, inherited, lineage


@cache
def _profiles() -> dict[str, Any]:
    return document("frameworks.yaml")


@cache
def _fitted() -> dict[str, Any]:
    return document("../calibration.yaml")


@cache
def framework(name: str, version: str | None = None) -> Framework:
    """The profile of a framework, with what it does not say taken from its kin.

    `version` is the framework's own; without one, or with one that is no number, it is the newest.
    """
    rows = _profiles()["frameworks"]
    if name not in rows:
        raise PlanError("workload.framework", f"there is no profile of {name!r}", nearest(name, rows))
    values = inherited(_profiles(), "usual") | inherited(rows, name, own=("before", "commits"))
    versions = _versions(version or "", rows[name].get("commits", {}))
    for change in rows[name].get("before", ()):
        what = next(key for key in _DATED if key in change)
        if what in versions and versions[what] < _numbers(change[what]):
            values |= {key: value for key, value in change.items() if key != what}
    kin = rows[name].get("kin", name)
    return Framework(**values | {"name": name, "kin": kin})


# What a change of `before` can be dated by: the framework itself, or a library that it runs on.
_DATED = ("version", "bitsandbytes", "cuda", "transformers")


def _versions(said: str, commits: Mapping[str, str]) -> dict[str, list[int]]:
    """Versions in a text such as '0.1.2' or 'torch 2.1, CUDA 11.8, bitsandbytes 0.41': of the framework ('version': a
    leading number, or the release of a commit), and of the libraries named."""
    found = {name.lower(): _numbers(number) for name, number in re.findall(r"([A-Za-z_]+) v?([0-9][0-9.]*)", said)}
    if leading := re.match(r"v?([0-9][0-9.]*)(?![0-9a-z])", said.strip()):
        found["version"] = _numbers(leading[1])
    elif release := next((number for commit, number in commits.items() if commit in said), None):
        found["version"] = _numbers(release)
    return found


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", version)]


def framework_lineage(name: str) -> list[str]:
    """The framework, its kin, the kin of that, and so on."""
    return lineage(_profiles()["frameworks"], name)


_BLANK: dict[str, Any] = {
    "state_elements": 0.0,
    "state_bytes": 0.0,
    "matrix_elements": None,
    "side_bytes": 0.0,
    "rank": 0.0,
    "longer_elements": 0.0,
    "shorter_elements": 0.0,
    "step_elements": 0.0,
    "largest_elements": 0.0,
    "casts": False,
    "keeps_gradients": True,
}


@cache
def optimizer(name: str) -> OptimizerFacts:
    row = _profiles()["optimizers"][name]
    return OptimizerFacts(**(_BLANK | row | {"name": name}))


@cache
def calibration(family: str, framework_name: str) -> Calibration:
    """The factors for an accelerator family and a framework; the nearest measured kin or defaults stand in, and say so.

    A blank name gives the defaults.
    """
    fitted = _fitted()
    devices, frameworks, memory = fitted["devices"], fitted["frameworks"], fitted["memory"]
    device = devices.get(family, devices["default"])
    line = framework_lineage(framework_name) if framework_name else []
    timed = next((frameworks[kin] for kin in line if kin in frameworks and frameworks[kin]["runs"]), None)
    weighed = next((frameworks[kin] for kin in line if kin in frameworks and _knows_memory(frameworks[kin])), None)
    factors = dict(timed or frameworks["default"])
    for key in ("memory_below", "memory_above", "memory_runs", "witnesses"):
        factors[key] = (weighed or frameworks["default"])[key]
    own = frameworks.get(framework_name, frameworks["default"])
    return Calibration(
        device=DeviceFactors(family=family, **device),
        framework=FrameworkFactors(framework=framework_name, **factors),
        context_bytes=memory["context_bytes"],
        collective_bytes=memory["collective_bytes"],
        slack=memory["slack"],
        loss_slack=memory["loss_slack"],
        varying_lengths=memory["varying_lengths"],
        device_measured=device["runs"] > 0,
        time_measured=own["runs"] > 0,
        memory_measured=_knows_memory(own),
        unmeasured_spread=fitted["unmeasured_spread"],
        measured_kinds={name: tuple(values) for name, values in memory["measured"].items()},
    )


def _knows_memory(row: Mapping[str, Any]) -> bool:
    """Whether peaks were read, or enough runs ran to say how high peaks can be."""
    return row["memory_runs"] > 0 or row["memory_above"] < row["memory_below"]
