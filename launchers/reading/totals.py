"""Numbers of a Plan that follow from several others: devices, data-parallel groups, the batch of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.reading.findings import Findings, Read

_BATCH = ("workload.global_batch", "workload.micro_batch", "accumulation")
_SIZES = ("layout.tp", "layout.pp", "layout.cp")


def total(found: Findings, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that follow, with rows for each in `found.read`; `given` (dotted Plan fields) wins over the files.

    Warns where the numbers of the files cannot hold together.
    """
    result: dict[str, Any] = {}
    _devices(found, given, result)

    def value(name: str) -> Any:
        if name in given:
            return given[name]
        if name in result:
            return result[name]
        if name in found.values:
            return found.values[name]
        return None if name in found.blocked or name not in found.defaults else found.defaults[name].value

    def derive(name: str, number: Any, why: str) -> None:
        if name in given:
            return
        if name in found.values:
            if found.values[name] != number:
                found.warn(f"{name}: {_origins(found, name)} says {found.values[name]}, but {why} is {number}")
            return
        if name not in found.blocked:
            result[name] = number
            found.read.append(Read(name, number, why))

    count = value("cluster.count")
    if serves(found):
        if value("workload.engine") == "llamacpp" and count and "layout.pp" not in found.blocked:
            # The layers of a server are split over the devices that it sees.
            derive(
                "layout.pp", min(count, found.values.get("per_node") or count), "layers over all devices of a server"
            )
        sizes = [value(name) or 1 for name in ("layout.tp", "layout.pp", "layout.dp")]
        copies = found.values.get("copies", 1)
        if copies > 1 and count is not None and "cluster.count" not in given:
            result["cluster.count"] = count * copies
            found.read.append(Read("cluster.count", count * copies, f"{_origins(found, 'copies')}: {copies} jobs"))
        if count is None and {"layout.tp", "layout.pp", "layout.dp"}.isdisjoint(found.blocked):
            each = sizes[0] * sizes[1] * sizes[2]
            derive(
                "cluster.count",
                each * copies,
                f"{copies} of tp x pp x dp devices" if copies > 1 else "one server of tp x pp x dp devices",
            )
        return result
    sizes = [value(name) for name in _SIZES]
    dp: int | None = None
    if count is not None and None not in sizes:
        group = sizes[0] * sizes[1] * sizes[2]
        if count % group:
            found.warn(f"cluster.count: {count} devices are not a multiple of tp x pp x cp = {group}")
        else:
            dp = count // group
            stated = found.values.get("dp")
            if stated is not None and stated != dp and "cluster.count" not in given:
                found.warn(f"layout.dp: {_origins(found, 'dp')} says {stated}, but {count} devices / {group} is {dp}")
            elif "cluster.count" not in given or group > 1:
                derive("layout.dp", dp, f"{count} devices / (tp x pp x cp = {group})")
    batch, one, rounds = (found.values.get(name, 0) for name in _BATCH)
    if count is None and batch and one and rounds and batch % (one * rounds) == 0:
        derive("layout.dp", batch // (one * rounds), "global batch / (micro_batch x accumulation)")
    _groups(found, dp, derive)
    _pipeline(found, value, derive)
    micro, accumulation = value("workload.micro_batch"), value("accumulation")
    stated = "workload.global_batch" in found.values and "accumulation" not in found.values
    if None not in (dp, micro, accumulation) and not stated:
        why = f"micro_batch {micro} x accumulation {accumulation} x dp {dp}"
        derive("workload.global_batch", micro * accumulation * dp, why)
    elif dp is not None and micro is not None and (batch := value("workload.global_batch")) and batch % (micro * dp):
        found.warn(f"workload.global_batch: {batch} is not a multiple of micro_batch x dp = {micro} x {dp}")
    return result


def serves(found: Findings) -> bool:
    return found.values.get("workload.kind") == "inference"


def _devices(found: Findings, given: Mapping[str, Any], result: dict[str, Any]) -> None:
    """cluster.count and per_node from whichever of devices, nodes and devices per node are known."""
    devices, nodes, per_node = (found.values.get(name) for name in ("devices", "nodes", "per_node"))
    if devices is None:
        nodes, per_node = (
            found.defaults[name].value if one is None and name in found.defaults and name not in found.blocked else one
            for name, one in (("nodes", nodes), ("per_node", per_node))
        )
    if devices is None and "devices" not in found.blocked and nodes is not None and per_node is not None:
        devices, why = nodes * per_node, f"{_origins(found, 'nodes', 'per_node')}: {nodes} x {per_node}"
    else:
        why = _origins(found, "devices")
        if devices is not None and nodes is not None and per_node is not None and devices != nodes * per_node:
            said = _origins(found, "nodes", "per_node")
            found.warn(f"cluster.count: {why} says {devices} devices, but {said} say {nodes} x {per_node}")
            found.blocked.setdefault("cluster.count", f"{devices} or {nodes * per_node} devices")
            devices = None
    if per_node is None and devices is not None and nodes is not None and devices % nodes == 0:
        per_node = devices // nodes
    # A part of one node is no node of its own size.
    if per_node is not None and (nodes or 1) > 1 and "cluster.per_node" not in given:
        result["cluster.per_node"] = per_node
        found.read.append(Read("cluster.per_node", per_node, _origins(found, "per_node", "devices", "nodes")))
    if devices is not None and "cluster.count" not in given and "cluster.count" not in found.blocked:
        result["cluster.count"] = devices
        found.read.append(Read("cluster.count", devices, why))


def _groups(found: Findings, dp: int | None, derive: Any) -> None:
    """The shard group of HSDP: dp_shard of the replicas, or what is left of dp beside them."""
    replicate, shard = found.values.get("dp_replicate"), found.values.get("dp_shard")
    if replicate is None or replicate == 1:
        return
    if shard is None or shard < 0:
        if dp is None or dp % replicate:
            return
        shard = dp // replicate
    elif dp is not None and replicate * shard != dp:
        found.warn(f"layout.shard_group: dp_replicate x dp_shard is {replicate} x {shard}, but dp is {dp}")
        return
    if shard == 1:
        derive("layout.zero_stage", 0, f"{_origins(found, 'dp_replicate')}: whole replicas")
    else:
        derive("layout.shard_group", shard, _origins(found, "dp_shard", "dp_replicate"))


def _pipeline(found: Findings, value: Any, derive: Any) -> None:
    """Virtual stages where a file says how many layers each has."""
    per_stage, pp = found.values.get("vpp_layers"), value("layout.pp")
    layers = found.values.get("layers") or layers_of(value("model"))
    if per_stage is None or pp is None or layers is None:
        return
    stages = -(-layers // per_stage)
    if stages % pp:
        found.warn(f"layout.vpp: {layers} layers are not whole virtual stages of {per_stage} in {pp} stages")
        return
    derive("layout.vpp", stages // pp, f"{_origins(found, 'vpp_layers')}: {layers} layers / {per_stage} / pp {pp}")


def layers_of(model: Any) -> int | None:

    try:
        return architecture(model).layers if model is not None else None
    except PlanError:
        return None


def _origins(found: Findings, *names: str) -> str:
    rows = {row.origin: None for name in names for row in found.read if row.field == name}
    return " and ".join(rows) or "the files"
