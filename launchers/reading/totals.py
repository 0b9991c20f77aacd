"""Numbers of a Plan that follow from several others: devices, data-parallel groups, the batch of a step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.reading.findings import Findings, Read

_BATCH = ("workload.global_batch", "workload.micro_batch", "accumulation")
_SIZES = ("layout.tp", "layout.pp", "layout.cp")
_SERVER = ("layout.tp", "layout.pp", "layout.dp")
_LOADS = frozenset({"workload.concurrency", "workload.requests", "workload.request_rate"})


@dataclass(frozen=True)
class _Numbers:
    """What the files say, what wins over them, and what follows."""

    findings: Findings
    arguments: Mapping[str, Any]
    result: dict[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        findings = self.findings
        for values in (self.arguments, self.result, findings.values):
            if name in values:
                return values[name]
        return None if name in findings.blocked or name not in findings.defaults else findings.defaults[name].value

    def derive(self, name: str, number: Any, why: str) -> None:
        findings = self.findings
        if name in self.arguments:
            return
        if name in findings.values:
            if findings.values[name] != number:
                findings.warn(f"{name}: {_origins(findings, name)} says {findings.values[name]}, but {why} is {number}")
        elif name not in findings.blocked:
            self.put(name, number, why)

    def put(self, name: str, number: Any, why: str) -> None:
        self.result[name] = number
        self.findings.read.append(Read(name, number, why))


def total(findings: Findings, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that follow, with rows for each in `findings.read`; `arguments` (dotted Plan fields) win.

    Warns where the numbers of the files cannot hold together.
    """
    numbers = _Numbers(findings, arguments)
    _devices(numbers)
    if serves(findings):
        _servers(numbers)
        return numbers.result
    dp = _data_parallel(numbers)
    _groups(numbers, dp)
    _pipeline(numbers)
    _most_rows(numbers, dp)
    _rows_of_all(numbers, dp)
    _global_batch(numbers, dp)
    return numbers.result


def _servers(numbers: _Numbers) -> None:
    """The devices of servers, and the stages of one that splits its layers over them."""
    findings, count = numbers.findings, numbers.value("cluster.count")
    if numbers.value("workload.engine") == "llamacpp" and count and "layout.pp" not in findings.blocked:
        # The layers of a server are split over the devices that it sees.
        stages = min(count, findings.values.get("per_node") or count)
        numbers.derive("layout.pp", stages, "layers over all devices of a server")
    copies = findings.values.get("copies", 1)
    if copies > 1 and count is not None and "cluster.count" not in numbers.arguments:
        numbers.put("cluster.count", count * copies, f"{_origins(findings, 'copies')}: {copies} jobs")
    if findings.comment is not None:
        _load_of_all(numbers, *findings.comment[1:])
    if count is None and not any(name in findings.blocked for name in _SERVER):
        each = math.prod(numbers.value(name) or 1 for name in _SERVER)
        servers = f"{copies} of tp x pp x dp devices" if copies > 1 else "one server of tp x pp x dp devices"
        numbers.derive("cluster.count", each * copies, servers)


def _load_of_all(numbers: _Numbers, replicas: int, together: int | None) -> None:
    """The load of all replicas, `together` at once; our own benchmarks send one its part, in whole requests."""
    findings = numbers.findings
    for name in _LOADS.intersection(findings.values) - numbers.arguments.keys():
        each = findings.values[name]
        whole = together if together and name == "workload.concurrency" else each * replicas
        if whole != each:
            numbers.put(name, whole, f"{_origins(findings, name)}: of each of {replicas} replicas")


def _data_parallel(numbers: _Numbers) -> int | None:
    """Replicas: what the devices leave beside tp x pp x cp; None where that is not known."""
    findings, count = numbers.findings, numbers.value("cluster.count")
    sizes = [numbers.value(name) for name in _SIZES]
    dp: int | None = None
    # A size of 0 is the plan's to refuse.
    if count is not None and all(sizes):
        group = sizes[0] * sizes[1] * sizes[2]
        if count % group:
            findings.warn(f"cluster.count: {count} devices are not a multiple of tp x pp x cp = {group}")
        else:
            dp = count // group
            stated, asked = findings.values.get("dp"), "cluster.count" in numbers.arguments
            if stated is not None and stated != dp and not asked:
                origin = _origins(findings, "dp")
                findings.warn(f"layout.dp: {origin} says {stated}, but {count} devices / {group} is {dp}")
            elif not asked or group > 1:
                numbers.derive("layout.dp", dp, f"{count} devices / (tp x pp x cp = {group})")
    batch, micro_batch, rounds = (findings.values.get(name, 0) for name in _BATCH)
    if count is None and batch and micro_batch and rounds and batch % (micro_batch * rounds) == 0:
        ranks, why = batch // (micro_batch * rounds), "global batch / (micro_batch x accumulation)"
        numbers.derive("layout.dp", ranks, why)
        if None not in sizes:
            numbers.derive("cluster.count", ranks * math.prod(sizes), f"{why} x tp x pp x cp")
    return dp


def _most_rows(numbers: _Numbers, dp: int | None) -> None:
    """Rows of a micro-step where a file says the most that they are: a device's own, where those are fewer."""
    most, batch = numbers.findings.values.get("most_rows"), numbers.value("workload.global_batch")
    if most is not None:
        rows = min(most, max(1, batch // dp)) if batch and dp else most
        numbers.derive("workload.micro_batch", rows, f"the rows of a device, {most} at the most")


def _rows_of_all(numbers: _Numbers, dp: int | None) -> None:
    """Rows of a micro-step where a file counts those of all devices."""
    rows, findings = numbers.findings.values.get("rows_of_all"), numbers.findings
    if rows is not None and dp is not None:
        origin = _origins(findings, "rows_of_all")
        numbers.derive("workload.micro_batch", max(1, rows // dp), f"{origin}: {rows} rows of all / dp {dp}")
    elif rows is not None and "workload.micro_batch" not in numbers.arguments:
        why = f"{_origins(findings, 'rows_of_all')}: is of all devices together; give the rows of one, or the devices"
        findings.blocked.setdefault("workload.micro_batch", why)


def _global_batch(numbers: _Numbers, dp: int | None) -> None:
    findings, value = numbers.findings, numbers.value
    micro, accumulation = value("workload.micro_batch"), value("accumulation")
    stated = "workload.global_batch" in findings.values and "accumulation" not in findings.values
    if dp is None or micro is None:
        return
    if accumulation is not None and not stated:
        why = f"micro_batch {micro} x accumulation {accumulation} x dp {dp}"
        numbers.derive("workload.global_batch", micro * accumulation * dp, why)
    elif (batch := value("workload.global_batch")) and batch % (micro * dp):
        findings.warn(f"workload.global_batch: {batch} is not a multiple of micro_batch x dp = {micro} x {dp}")


def serves(findings: Findings) -> bool:
    return findings.values.get("workload.kind") == "inference"


def _devices(numbers: _Numbers) -> None:
    """cluster.count and per_node from whichever of devices, nodes and devices per node are known."""
    findings, arguments = numbers.findings, numbers.arguments
    devices, nodes, per_node = (findings.values.get(name) for name in ("devices", "nodes", "per_node"))
    if devices is None:
        nodes, per_node = (
            findings.defaults[name].value
            if count is None and name in findings.defaults and name not in findings.blocked
            else count
            for name, count in (("nodes", nodes), ("per_node", per_node))
        )
    if devices is None and "devices" not in findings.blocked and nodes is not None and per_node is not None:
        devices, why = nodes * per_node, f"{_origins(findings, 'nodes', 'per_node')}: {nodes} x {per_node}"
    else:
        why = _origins(findings, "devices")
        if devices is not None and nodes is not None and per_node is not None and devices != nodes * per_node:
            origins = _origins(findings, "nodes", "per_node")
            findings.warn(f"cluster.count: {why} says {devices} devices, but {origins} say {nodes} x {per_node}")
            findings.blocked.setdefault("cluster.count", f"{devices} or {nodes * per_node} devices")
            devices = None
    if per_node is None and devices is not None and nodes is not None and devices % nodes == 0:
        per_node = devices // nodes
    # A part of one node is no node of its own size.
    if per_node is not None and (nodes or 1) > 1 and "cluster.per_node" not in arguments:
        numbers.put("cluster.per_node", per_node, _origins(findings, "per_node", "devices", "nodes"))
    if devices is not None and "cluster.count" not in arguments and "cluster.count" not in findings.blocked:
        numbers.put("cluster.count", devices, why)


def _groups(numbers: _Numbers, dp: int | None) -> None:
    """The shard group of HSDP: dp_shard of the replicas, or what is left of dp beside them."""
    findings, derive = numbers.findings, numbers.derive
    replicate, shard = findings.values.get("dp_replicate"), findings.values.get("dp_shard")
    if replicate is None or replicate == 1:
        return
    if shard is None or shard < 0:
        if dp is None or dp % replicate:
            return
        shard = dp // replicate
    elif dp is not None and replicate * shard != dp:
        findings.warn(f"layout.shard_group: dp_replicate x dp_shard is {replicate} x {shard}, but dp is {dp}")
        return
    if shard == 1:
        derive("layout.zero_stage", 0, f"{_origins(findings, 'dp_replicate')}: whole replicas")
    else:
        derive("layout.shard_group", shard, _origins(findings, "dp_shard", "dp_replicate"))


def _pipeline(numbers: _Numbers) -> None:
    """Virtual stages where a file says how many layers each has, and a device's recomputed layers where it says how
    many of each virtual stage."""
    _virtual_stages(numbers)
    recomputed, stages = numbers.findings.values.get("recomputed_layers"), numbers.value("layout.vpp") or 1
    if recomputed is not None:
        why = f"{_origins(numbers.findings, 'recomputed_layers')}: {recomputed} layers x {stages} virtual stages"
        numbers.derive("layout.recompute", f"block:{recomputed * stages}", why)


def _virtual_stages(numbers: _Numbers) -> None:
    findings, value = numbers.findings, numbers.value
    per_stage, pp = findings.values.get("vpp_layers"), value("layout.pp")
    layers = findings.values.get("layers") or layers_of(value("model"))
    if per_stage is None or pp is None or layers is None:
        return
    stages = -(-layers // per_stage)
    if stages % pp:
        findings.warn(f"layout.vpp: {layers} layers are not whole virtual stages of {per_stage} in {pp} stages")
        return
    numbers.derive(
        "layout.vpp", stages // pp, f"{_origins(findings, 'vpp_layers')}: {layers} layers / {per_stage} / pp {pp}"
    )


def layers_of(model: Any) -> int | None:
    try:
        return architecture(model).layers if model is not None else None
    except PlanError:
        return None


def _origins(findings: Findings, *names: str) -> str:
    rows = {row.origin: None for name in names for row in findings.read if row.field == name}
    return " and ".join(rows) or "the files"
