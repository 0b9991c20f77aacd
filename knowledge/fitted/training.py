"""Loads the framework profiles, the optimizers and the fitted factors; read once, on first use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.machine.hardware import Accelerator
from estimator.machine.matmul import Kind, MatmulSurface
from estimator.plan.calibration import (
    FEWEST_WITNESSES,
    AttentionKernel,
    Calibration,
    DeviceFactors,
    FrameworkFactors,
    ScanKernel,
)
from estimator.plan.training.framework import (
    Activations,
    Adapters,
    Framework,
    Gathering,
    Gradients,
    Limits,
    Loss,
    OperatorStyle,
    OptimizerFacts,
    OptimizerStep,
    Overlap,
    Recipe,
    Recompute,
    Weights,
)  # fmt: skip
from knowledge.data_files import document, lineage
from knowledge.machines.networks import network_factors
from knowledge.own.calibration import own_factors


@cache
def _profiles() -> dict[str, Any]:
    return document("frameworks.yaml")


@cache
def _fitted() -> dict[str, Any]:
    return document("../calibration.yaml")


@cache
def framework(
    name: str, version: str | None = None, rack: bool = False, low_precision: bool = False, sharded: bool = False
) -> Framework:
    """The profile of a framework, with what it does not say taken from its fallback family.

    `version` is the framework's own; without one, or with one that is no number, it is the newest. `rack` is true for
    devices whose fast domain is more than a node, `low_precision` for 8 bits: recipes set some options only there.
    `sharded` is true where ZeRO-2 or 3 is asked for: Megatron-core has an implementation of its own for them.
    """
    rows = _profiles()["frameworks"]
    if name not in rows:
        raise PlanError("workload.framework", f"there is no profile of {name!r}", nearest(name, rows))
    values = _merged([_profiles()["usual"], *(rows[each] for each in reversed(framework_lineage(name)))])
    versions = _versions(version or "", rows[name].get("commits", {}))
    for change in rows[name].get("before", ()):
        library = next(key for key in _DATED if key in change)
        if library in versions and versions[library] < _numbers(change[library]):
            values = _merged([values, change])
    if rack:
        values = _merged([values, values.get("on_rack_8bit" if low_precision else "on_rack", {})])
    if sharded:
        values = _merged([values, values.get("sharded", {})])
    return Framework(
        name=name,
        fallback_family=rows[name].get("fallback_family", name),
        context_bytes=values["context_bytes"],
        allocator=values["allocator"],
        source=values["source"],
        **{section: part(**values[section]) for section, part in _PARTS.items()},
    )


_PARTS: dict[str, type] = {
    "weights": Weights,
    "gradients": Gradients,
    "optimizer": OptimizerStep,
    "gathering": Gathering,
    "activations": Activations,
    "recompute": Recompute,
    "loss": Loss,
    "adapters": Adapters,
    "operators": OperatorStyle,
    "recipe": Recipe,
    "overlap": Overlap,
    "limits": Limits,
}


def _merged(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the entries say, later ones over earlier ones, section by section; lists as tuples."""
    merged: dict[str, Any] = {}
    for entry in entries:
        for key, value in entry.items():
            if key in _PARTS:
                fields = {name: tuple(each) if isinstance(each, list) else each for name, each in value.items()}
                value = merged.get(key, {}) | fields
            merged[key] = value
    return merged


# What a change of `before` can be dated by: the framework itself, or a library that it runs on.
_DATED = ("version", "bitsandbytes", "cuda", "transformers")


def _versions(text: str, commits: Mapping[str, str]) -> dict[str, list[int]]:
    """Versions in a text such as '0.1.2' or 'torch 2.1, CUDA 11.8, bitsandbytes 0.41': of the framework ('version': a
    leading number, or the release of a commit), and of the libraries named."""
    versions = {name.lower(): _numbers(number) for name, number in re.findall(r"([A-Za-z_]+) v?([0-9][0-9.]*)", text)}
    if leading := re.match(r"v?([0-9][0-9.]*)(?![0-9a-z])", text.strip()):
        versions["version"] = _numbers(leading[1])
    elif release := next((number for commit, number in commits.items() if commit in text), None):
        versions["version"] = _numbers(release)
    return versions


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", version)]


def framework_tables() -> Mapping[str, Any]:
    """What frameworks.yaml says beside the profiles: `makers`, `precisions` and `searched`."""
    return _profiles()


def sharded_by(name: str) -> str | None:
    """The framework that shards weights and splits sequences for one that does neither itself."""
    return _profiles()["frameworks"].get(name, {}).get("sharded_by")


def usual_rollout(name: str) -> str | None:
    """Where a framework generates samples; None where it does not say."""
    return _profiles()["frameworks"].get(name, {}).get("rollout")


def usual_optimizer(name: str) -> str | None:
    """What updates weights in a framework that has a default of its own."""
    return _profiles()["frameworks"].get(name, {}).get("optimizer_kind")


def frameworks_known() -> tuple[str, ...]:
    """Every framework that has a profile."""
    return tuple(_profiles()["frameworks"])


def framework_lineage(name: str) -> list[str]:
    """The framework, its fallback family, that of that, and so on."""
    return lineage(_profiles()["frameworks"], name)


def device_lineage(family: str) -> list[str]:
    """The accelerator family, the family that is built like it, and so on."""
    families = _fitted()["fallback_family"]
    line = [family]
    while line[-1] in families:
        line.append(families[line[-1]])
    return line


_ON_THE_BOARD = ("GDDR", "LPDDR")


def factors_node(accelerator: Accelerator) -> str:
    """What a device's fitted factors are told by: its family, the part of it with memory on the board ("Ampere GDDR" of
    an RTX 3090, which has other kernels, links and clocks than an A100), or its own id where that is built unlike its
    family."""
    board = accelerator.memory_type.startswith(_ON_THE_BOARD)
    nodes = (accelerator.id, f"{accelerator.family} GDDR" if board else accelerator.family)
    return next((node for node in nodes if node in _fitted()["fallback_family"]), accelerator.family)


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
    "newton_schulz_steps": 0,
    "square_bytes": 0.0,
    "casts": False,
    "keeps_gradients": True,
    "paged": False,
    "one_block": False,
}


@cache
def optimizer(name: str) -> OptimizerFacts:
    row = _profiles()["optimizers"][name]
    return OptimizerFacts(**(_BLANK | row | {"name": name}))


def timed_framework(name: str) -> tuple[str, int]:
    """(The framework whose measured runs are behind a framework's times, how many): itself, its nearest kin with any,
    or 'default' and 0."""
    return _nearest_timed("frameworks", framework_lineage(name))


def timed_family(family: str) -> tuple[str, int]:
    """As `timed_framework`, for an accelerator family."""
    return _nearest_timed("devices", device_lineage(family))


def _nearest_timed(section: str, line: list[str]) -> tuple[str, int]:
    fitted = _fitted()[section]
    return next(
        ((name, fitted[name]["runs"]) for name in line if name in fitted and fitted[name]["runs"]), ("default", 0)
    )


def weighed_as(framework_name: str) -> str:
    """The framework whose spread of memory stands for a framework's: its own, its nearest kin's, or 'default'."""
    fitted = _fitted()["frameworks"]
    line = framework_lineage(framework_name) if framework_name else []
    return next((name for name in line if name in fitted and _knows_memory(fitted[name])), "default")


def driven_as(family: str) -> str:
    """The accelerator family whose fitted factors stand for a family's: its own, those of its nearest kin, or
    'default'."""
    return next((name for name in device_lineage(family) if name in _fitted()["devices"]), "default")


def calibration(
    family: str,
    framework_name: str,
    accelerator: Accelerator | None = None,
    attention: str = "flash",
    eight_bits: bool = False,
    split: str = "",
    model: str = "",
) -> Calibration:
    """The factors for an accelerator and a framework; the nearest measured kin or defaults stand in, and say so.

    A blank name gives the defaults. `attention` is the plan's setting, with `eight_bits` for its operands,
    and `split` another one where sequences are split. `model` is the architecture's id, of which own runs may be.
    """
    fitted = _fitted()
    devices, frameworks, memory = fitted["devices"], fitted["frameworks"], fitted["memory"]
    own = own_factors(family)
    node = factors_node(accelerator) if accelerator else family
    device = devices[driven_as(node)]
    # A framework without runs has a row too: what the fit makes of its kin.
    line = framework_lineage(framework_name) if framework_name else []
    fitted_factors = frameworks[next((name for name in line if name in frameworks), "default")]
    factors, weighed = dict(fitted_factors), frameworks[weighed_as(framework_name)]
    for key in ("memory_below", "memory_above", "memory_runs", "witnesses"):
        factors[key] = weighed[key]
    of_own = own.frameworks.get(framework_name, {}) if own else {}
    if own:
        device = device | {name: value for name, value in own.device.items() if name in device}
        device |= {"step": own.device.get("step", 1.0) * own.models.get(model, 1.0)}
        factors |= {name: value for name, value in of_own.items() if name in factors}
    timed_as, trains = accelerator.timed_as if accelerator else "", bool(framework_name)
    _, matmuls = surface_rows(timed_as)
    return Calibration(
        device=DeviceFactors(
            family=family,
            surfaces=surfaces(timed_as, trains=trains),
            attention_kernel=attention_kernel(family, framework_name, attention, eight_bits),
            scans=scan_kernels(),
            network=network_factors(accelerator),
            surface=matmuls["bf16"]["points"] > 0,
            split_kernel=attention_kernel(family, framework_name, split) if split else None,
            **device,
        ),
        framework=FrameworkFactors(framework=framework_name, **factors),
        context_bytes=_profiles()["contexts"].get(family, _profiles()["contexts"]["other"]),
        collective_bytes=memory["collective_bytes"],
        slack=memory["slack"],
        loss_slack=memory["loss_slack"],
        node=node,
        device_measured=bool(of_own) or (driven_as(node) == node and device["runs"] > 0),
        time_measured=bool(of_own) or fitted_factors["runs"] > 0,
        memory_measured=_knows_memory(fitted_factors),
        unmeasured_spread=_unmeasured_spread(node),
        measured_kinds={name: tuple(values) for name, values in memory["measured"].items()},
    )


def _unmeasured_spread(family: str) -> float:
    """The spread of a time where the framework or the family was never run: wider where no kin of the family was."""
    fitted = _fitted()
    spread = fitted["frameworks"]["default"]["time_spread"]
    return spread if timed_family(family)[1] else max(spread, fitted["strange_device_spread"])


@cache
def surfaces(
    accelerator: str, kin: str = "", trains: bool = False, cores: int | None = None
) -> dict[Kind, MatmulSurface]:
    """The matmul surfaces of an accelerator by kind of operand; those of all devices where it has none of its own,
    those of the family `kin` where that is named, and of the library that training calls where it `trains`. Outputs
    that keep `cores` busy are as many for each as on the devices that were timed."""
    name, rows = surface_rows(accelerator, kin, trains)
    names = [field.name for field in fields(MatmulSurface)]
    timed: dict[Kind, MatmulSurface] = {
        kind: MatmulSurface(**{name: row[name] for name in names}) for kind, row in rows.items()
    }
    behind = _timed_matmuls()["cores"].get(name)
    share = cores / behind if cores and behind else 1.0
    return {kind: replace(surface, wave_outputs=surface.wave_outputs * share) for kind, surface in timed.items()}


def surface_rows(accelerator: str, kin: str = "", trains: bool = False) -> tuple[str, dict[Kind, dict[str, Any]]]:
    """(The surfaces' name, by kind of operand their numbers and what these were fitted on or borrowed from).

    Units for 4 bits that nothing was timed on reach the same part of their peak as those for 8 bits.
    """
    fitted = _timed_matmuls()
    name = kin or fitted["accelerators"].get(accelerator, "default")
    kinds = fitted["surfaces"][name]
    if "fp8" in kinds and "nvfp4" not in kinds:
        kinds = kinds | {"nvfp4": kinds["fp8"] | {"points": 0, "shapes": 0, "borrowed": f"fp8 of {name}"}}
    return name, kinds | (fitted["library"].get(accelerator, {}) if trains else {})


@cache
def _timed_matmuls() -> dict[str, Any]:
    return document("../matmul_surfaces.yaml")


@cache
def _cores() -> dict[str, Any]:
    return document("../attention_factors.yaml")


@cache
def attention_kernel(family: str, framework_name: str, setting: str, eight_bits: bool = False) -> AttentionKernel:
    """The kernel that a plan's attention setting means for a framework on a family, in 8 bits where it has one."""
    fitted = _cores()
    wanted = fitted["choice"]
    by_family = wanted.get(setting, {}).get(family)
    if setting in ("flash1", "flash2"):
        name = setting
    else:
        by_framework = by_family or wanted["flash"].get(family, wanted["flash"]["any"])
        line = (*framework_lineage(framework_name), "any") if framework_name else ("any",)
        name = next(by_framework[member] for member in line if member in by_framework)
    kernels = fitted["kernels"].get(family, {})
    if eight_bits and f"{name}_fp8" in kernels:
        name = f"{name}_fp8"
    row = kernels.get(name) or next(iter(kernels.values()), None) or fitted["kernels"]["default"]["flash2"]
    return AttentionKernel(name=name, family=family, **row)


@cache
def scan_kernels() -> dict[str, ScanKernel]:
    """The kernels of state-space and linear-attention mixers."""
    return {name: ScanKernel(name=name, **row) for name, row in _cores()["scans"].items()}


def _knows_memory(row: Mapping[str, Any]) -> bool:
    """Whether peaks were read, or enough runs ran to say how high peaks can be."""
    return row["memory_runs"] > 0 or row["witnesses"] >= FEWEST_WITNESSES
