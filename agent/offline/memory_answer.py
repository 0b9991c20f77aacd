"""The part of an answer about memory: of the device by component and stage, of the host, and what the user set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages import figures

Result = Mapping[str, Any]
_COMPONENTS = {"optimizer": "optimizer states", "extra_models": "models beside the trained one"}
_MOMENTS = {
    "loss": "while the loss is made",
    "backward_start": "as the backward pass begins",
    "backward_end": "as the backward pass ends",
    "optimizer_step": "in the optimizer step",
    "generation": "while samples are generated",
}
_PHASES = {"loading": "while the weights are loaded", "steady": "in training", "saving": "while a checkpoint is saved"}
_SMALLEST_SHOWN_BYTES = 0.005 * figures.GIB
# A component counts as absent at the peak below this part of its own most, and is told from this part of the total on.
_ABSENT, _TOLD = 0.1, 0.02
_MOST_STAGES = 8


def describe(found: Result) -> list[str]:
    """The blocks about a tool's memory result."""
    blocks = [table(found), " ".join([_peak(found), *_absent(found)])]
    return [*blocks, *_stages(found), *_overridden(found), _host(found)]


def beside(found: Result) -> str | None:
    """For a run that fits its devices: what else it fails for, as a sentence; None where nothing is known to."""
    fails = []
    if found["host"]["fits"] is False:
        fails.append(f"the host memory of a usual node runs out {_PHASES[found['host']['phase']]}")
    if not found["save"]["fits"]:
        fails.append("saving a checkpoint may run out of device memory")
    return f"**But** {' and '.join(fails)}." if fails else None


def component(name: str) -> str:
    return _COMPONENTS.get(name, name.replace("_", " "))


def table(found: Result) -> str:
    """The fullest device by component, largest first."""
    shown = [(name, size) for name, size in found["components"].items() if size >= _SMALLEST_SHOWN_BYTES]
    rows = ["| Memory per device | |", "| --- | ---: |"]
    rows += [f"| {component(name)} | {figures.gib(size)} |" for name, size in sorted(shown, key=lambda item: -item[1])]
    return "\n".join([*rows, f"| **total** | **{figures.gib(found['per_device_bytes'])}** |"])


def _peak(found: Result) -> str:
    span = figures.gib_range(found["low_bytes"], found["high_bytes"])
    stages = f" of pipeline stage {found['fullest_stage']}" if len(found["stages"]) > 1 else ""
    return (
        f"The peak{stages} comes {_MOMENTS[found['peak']]}; the interval is {span}, and the largest part is "
        f"{component(found['decided_by'])}."
    )


def _absent(found: Result) -> list[str]:
    """What takes memory at another moment of the step only, and is not in the table for that."""
    now = found["components"]
    absent = [
        f"{component(name)} ({figures.gib(most)})"
        for name, most in found["own_peaks"].items()
        if now[name] < _ABSENT * most and most >= _TOLD * found["per_device_bytes"]
    ]
    return [f"Not there at that moment: {_listed(absent)}."] if absent else []


def _stages(found: Result) -> list[str]:
    stages = found["stages"]
    if len(stages) < 2:
        return []
    sizes = [stage["per_device_bytes"] for stage in stages]
    fullest = f"Stage {found['fullest_stage']} decides."
    if len(stages) > _MOST_STAGES:
        least = min(range(len(sizes)), key=lambda index: sizes[index])
        return [f"By pipeline stage: {figures.gib(min(sizes))} (stage {least}) to {figures.gib(max(sizes))}. {fullest}"]
    each = _listed([f"{figures.gib(size)} (stage {stage['stage']})" for size, stage in zip(sizes, stages, strict=True)])
    return [f"By pipeline stage: {each}. {fullest}"]


def _overridden(found: Result) -> list[str]:
    lines = []
    for row in found["overridden"]:
        name = row["field"].rpartition(".")[2].removesuffix("_gib")
        value, otherwise = figures.gib(row["value_bytes"]), figures.gib(row["estimated_bytes"])
        match name:
            case "usable":
                lines.append(f"- a device can allocate {value} ({otherwise} otherwise)")
            case "reserve":
                lines.append(f"- {value} of it stay free")
            case _:
                lines.append(f"- {component(name)} take {value} ({otherwise} by estimate)")
    return ["\n".join(["As you set it:", *lines])] if lines else []


def _host(found: Result) -> str:
    """Host memory of a node, and the size of a checkpoint. What does not fit stands among the warnings."""
    host, save = found["host"], found["save"]
    text = f"**Host memory**: about {figures.gib(host['per_node_bytes'])} per node {_PHASES[host['phase']]}"
    if host["capacity_bytes"] is not None:
        text += f", of {figures.gib(host['capacity_bytes'])} that such a node usually has"
    weights, resumable = figures.gib(save["checkpoint_bytes"]), figures.gib(save["resumable_bytes"])
    return f"{text}. A checkpoint takes {weights} on disk, {resumable} with all that it needs to resume."


def _listed(parts: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
