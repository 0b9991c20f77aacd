"""Serving engines: how each schedules and what memory it keeps, by version and by the accelerator it runs on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.machine.hardware import Accelerator
from estimator.model.architecture import Architecture
from estimator.plan.serving.engine import Engine, Reserve
from estimator.units import GIB
from knowledge.data_files import document, inherited, lineage

PLACE = "workload.engine"
SERVERS = ("vllm", "sglang", "trtllm")
"""Engines that answer many users; others answer one, or a few, and no one chooses them for many."""
OF_ONE = ("llamacpp", "mlx")
"""Those that people run on a machine of their own; Ollama runs the first one's kernels."""
_WIDE = frozenset({"bf16", "fp16", "fp32"})
_LIMITS = ("direct_limits", "one_shot_limits", "switch_limits", "share_steps")
_CHOICES = ("from_gib", "by_family", "by_link")


def engines_known() -> tuple[str, ...]:
    """Every engine that has an entry."""
    return tuple(_entries()["engines"])


def engine(name: str, version: str | None = None, accelerator: Accelerator | None = None) -> Engine:
    """An engine as it runs by default on `accelerator` (None: an H100's size and links).

    Without a version, or with one that is no number, it is the newest. Raises PlanError for an unknown engine.
    """
    rows = _entries()["engines"]
    if name not in rows:
        raise PlanError(PLACE, f"there is no serving engine {name!r}", nearest(name, rows))
    device = _H100 if accelerator is None else _described(accelerator)
    return _made(name, version or "", device)


def is_gguf(weight_dtype: str) -> bool:
    """Whether a format of a Plan is a kind of GGUF, which `gguf` stands for among those that an engine reads."""
    return weight_dtype.startswith(("q", "iq")) or weight_dtype == "gguf"


def reads_format(engine: Engine, weight_dtype: str) -> bool:
    """Whether an engine reads weights in a format of a Plan."""
    known = engine.weight_formats
    return weight_dtype in known or (is_gguf(weight_dtype) and "gguf" in known)


def runs_on(engine: Engine, accelerator: Accelerator) -> bool:
    """Whether the engine, in its version, has kernels for the accelerator."""
    return bool(_made(engine.name, engine.version, _described(accelerator)).weight_formats)


@lru_cache(maxsize=256)
def _made(name: str, version: str, device: tuple[str, str, float, str]) -> Engine:
    """The Engine of one entry, version and device."""
    rows = _entries()["engines"]
    # Versions are an engine's own.
    values = inherited(_entries(), "usual") | inherited(rows, name, own=("before",))
    asked = version_numbers(version)
    for change in rows[name].get("before", ()):
        if asked and asked < version_numbers(change["version"]):
            values |= {key: value for key, value in change.items() if key != "version"}
    chosen: dict[str, Any] = {key: _chosen(value, device) for key, value in values.items()}
    for key in _LIMITS:
        chosen[key] = tuple(sorted((int(devices), float(limit)) for devices, limit in chosen[key].items()))
    chosen |= _kernels(name, asked, device)
    chosen["speculative"] = tuple(chosen["speculative"])
    if chosen["reserve"] is not None:
        chosen["reserve"] = Reserve(**{key: _chosen(value, device) for key, value in chosen["reserve"].items()})
    chosen.setdefault("wide_graph_batch", chosen["graph_batch"])
    chosen.update(name=name, version=version)
    return Engine(**chosen)


def _kernels(name: str, asked: tuple[int, ...], device: tuple[str, str, float, str]) -> dict[str, tuple[str, ...]]:
    """Formats that an engine has kernels for on a device, and kinds of attention that it lacks."""
    id, family, _, _ = device
    rows = _devices().get(name, ())
    row = next((row for row in rows if any(family == named or id.startswith(named) for named in row["devices"])), {})
    without = {kind for kind, version in row.get("ended", {}).items() if not asked or asked >= version_numbers(version)}
    without |= {kind for kind, version in row.get("since", {}).items() if asked and asked < version_numbers(version)}
    return {
        "weight_formats": tuple(kind for kind in row.get("weights", ()) if kind not in without),
        "cache_formats": tuple(kind for kind in row.get("caches", ()) if kind not in without),
        "lacks": tuple(row.get("lacks", ())),
    }


def _chosen(value: Any, device: tuple[str, str, float, str]) -> Any:
    """What a value that depends on the device is there; other values as they are."""
    if not isinstance(value, Mapping) or not any(key in value for key in _CHOICES):
        return value
    id, family, gib, link = device
    families = value.get("by_family", {})
    if family in families:
        return families[family]
    if "by_link" in value:
        return value["by_link"][link]
    if "from_gib" not in value:
        return families["other"]
    apart = next((setting for start, setting in value.get("but", {}).items() if id.startswith(start)), None)
    sizes = value["from_gib"]
    return sizes[max(size for size in sizes if size <= gib)] if apart is None else apart


def _described(accelerator: Accelerator) -> tuple[str, str, float, str]:
    """(id, family, memory in GiB as the driver shows it, kind of link: bridges join pairs, so groups use PCIe).

    A device of the user's own that is like no other is of the family `any` and its vendor.
    """
    paired = "bridge" in accelerator.scaleup_link.lower()
    link = "pcie" if paired or accelerator.topology in ("pcie", "none") else "fast"
    family = f"any {accelerator.vendor}" if accelerator.family == accelerator.id else accelerator.family
    return accelerator.timed_as, family, accelerator.usable_bytes / GIB, link


def kernels_for(engine: Engine, architecture: Architecture) -> bool:
    """Whether the engine runs on its device, and has kernels for every kind of attention of the model there."""
    return bool(engine.weight_formats) and not any(block.mixer in engine.lacks for block in architecture.blocks)


def usual_engine(architecture: Architecture, accelerator: Accelerator, published: str = "") -> str | None:
    """The engine that is taken where none is named: a server that reads the format that is asked for or that the
    model's own checkpoint has (of a Plan, '' for 16 bits), else any server, else llama.cpp, as on processors; None
    where nothing runs."""
    there = [engine(name, None, accelerator) for name in (*SERVERS, "llamacpp")]
    able = [runs for runs in there if kernels_for(runs, architecture)]
    reading = [runs for runs in able if not published or reads_format(runs, published)] or able
    if accelerator.family == "CPU" or is_gguf(published):
        reading = reading[::-1]
    if accelerator.personal:
        # A card of one's own has little memory: what holds weights in 16 bits alone is not what people run there.
        reading.sort(key=lambda runs: _WIDE.issuperset(runs.weight_formats))
    return reading[0].name if reading else None


_H100 = ("h100-sxm", "Hopper", 79.65, "fast")


def version_numbers(version: str) -> tuple[int, ...]:
    """0.8.5.post1 -> (0, 8, 5); builds of llama.cpp: b6900 -> (6900,); what has no number at its start -> ()."""
    match = re.match(r"[vb]?(\d+(?:\.\d+)*)", version.strip())
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


@cache
def _entries() -> dict[str, Any]:
    return document("engines.yaml")


def kernels_of(family: str) -> str:
    """The accelerator family whose kernels a family runs: its own, unless code for another is what runs there."""
    return _entries()["kernels_of"].get(family, family)


@cache
def _devices() -> dict[str, Any]:
    return document("engine_devices.yaml")


def engine_lineage(name: str) -> list[str]:
    """The engine, and those whose measured runs stand in for it."""
    return lineage(_entries()["engines"], name)
