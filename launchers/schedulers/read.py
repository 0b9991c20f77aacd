"""Files that start containers: Kubernetes objects, SkyPilot tasks, Docker Compose. Read into devices, commands, files.

Nothing of what they start is run; the commands are read as those of a script.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from launchers.reading.devices import accelerator
from launchers.reading.documents import Item, nested_documents
from launchers.reading.findings import Findings, as_number
from launchers.shell.images import image_starts
from launchers.shell.scripts import UNKNOWN
from launchers.tables import table

Data = Mapping[str, Any]
_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-accelerator",
           "accelerator", "gpu.nvidia.com/class", "amd.com/gpu.product-name")  # fmt: skip


@dataclass
class Jobs:
    """What a file starts: `kind` for the reader, `scripts` (text, variables), and `files` that it brings along."""

    kind: str
    scripts: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def read_jobs(name: str, text: str, findings: Findings) -> Jobs | None:
    """What the file starts, its counts put into the findings; None for what is none of these files."""
    if not re.search(r"^(apiVersion|resources|services|run|kind)\s*:", text, re.MULTILINE):
        return None
    documents = nested_documents(name, text)
    objects = [part for part in documents if "apiVersion" in part and "kind" in part]
    if objects:
        return _kubernetes(name, objects, findings)
    for part in documents:
        if isinstance(part.get("services"), Mapping):
            return _compose(name, part["services"], findings)
        if isinstance(part.get("run"), str) and any(key in part for key in ("resources", "num_nodes", "setup")):
            return _skypilot(name, part, findings)
    return None


# ------------------------------------------------------------------------------------------------------ Kubernetes


def _kubernetes(name: str, objects: list[dict[str, Any]], findings: Findings) -> Jobs:
    jobs = Jobs("Kubernetes " + " and ".join(dict.fromkeys(str(part["kind"]) for part in objects)))
    for part in objects:
        data = part.get("data")
        if part["kind"] == "ConfigMap" and isinstance(data, Mapping):
            jobs.files |= {str(key): value for key, value in data.items() if isinstance(value, str)}
    pods = [(pod, copies) for part in objects for pod, copies in _pods(part)]
    per_pod: dict[int, int] = {}
    item = Item(name, "resources", None)
    for pod, copies in pods:
        devices, key = _devices(pod)
        if devices:
            per_pod[devices] = per_pod.get(devices, 0) + copies
            item = Item(name, f"{key} x {copies} pods", devices)
        for label in _LABELS:
            label_value = _mapping(pod, "nodeSelector").get(label)
            if isinstance(label_value, str):
                accelerator(findings, Item(name, label, label_value), label_value)
    count = sum(devices * copies for devices, copies in per_pod.items())
    if count:
        findings.put("devices", count, item)
        if len(per_pod) == 1:
            findings.put("nodes", sum(per_pod.values()), item)
            findings.put("per_node", next(iter(per_pod)), item)
    nodes = sum(per_pod.values())
    known = {"PET_NNODES": str(nodes), "PET_NPROC_PER_NODE": str(count // nodes if nodes else 0)} if nodes else {}
    for pod, _ in pods:
        for container in _list(pod, "containers"):
            if isinstance(container, Mapping):
                variables = known | _environment(container.get("env"))
                if script := _command(container, variables):
                    jobs.scripts.append((script, variables))
    return jobs


def _pods(part: Data) -> Iterator[tuple[Data, int]]:
    """Pod specs of an object, each with how many pods are made of it."""
    kind, spec = part.get("kind"), _mapping(part, "spec")
    if kind == "TrainJob":
        trainer = _mapping(spec, "trainer")
        container = {**trainer, "resources": trainer.get("resourcesPerNode", {})}
        yield {"containers": [container]}, _number(trainer, "numNodes", 1)
    elif kind == "JobSet":
        for row in _list(spec, "replicatedJobs"):
            job = _mapping(row, "template", "spec")
            yield _mapping(job, "template", "spec"), _number(row, "replicas", 1) * _number(job, "parallelism", 1)
    elif kind == "LeaderWorkerSet":
        groups, template = _number(spec, "replicas", 1), _mapping(spec, "leaderWorkerTemplate")
        size = _number(template, "size", 1)
        leader = _mapping(template, "leaderTemplate", "spec")
        worker = _mapping(template, "workerTemplate", "spec")
        if leader:
            yield leader, groups
        if size > 1 or not leader:
            yield worker, groups * (size - 1 if leader else size)
    elif replicas := next((value for key, value in spec.items() if key.endswith("ReplicaSpecs")), None):
        # PyTorchJob, MPIJob and their like.
        for row in replicas.values() if isinstance(replicas, Mapping) else ():
            yield _mapping(row, "template", "spec"), _number(row, "replicas", 1)
    elif kind in ("RayCluster", "RayJob", "RayService"):
        cluster = next((_mapping(spec, key) for key in ("rayClusterSpec", "rayClusterConfig") if key in spec), spec)
        yield _mapping(cluster, "headGroupSpec", "template", "spec"), 1
        for row in _list(cluster, "workerGroupSpecs"):
            yield _mapping(row, "template", "spec"), _number(row, "replicas", 1)
    elif "template" in spec:
        yield _mapping(spec, "template", "spec"), _number(spec, "replicas", _number(spec, "parallelism", 1))
    elif "containers" in spec:
        yield spec, 1


def _devices(pod: Data) -> tuple[int, str]:
    """Accelerators of a pod, and the resource that counts them."""
    known = [row["kubernetes"] for row in table("data/devices")["makers"].values() if row["kubernetes"]]
    total, name = 0, ""
    for container in _list(pod, "containers"):
        limits = _mapping(container, "resources", "limits") or _mapping(container, "resources", "requests")
        for key, value in limits.items():
            if key in known and (number := as_number(value)):
                total, name = total + int(number), key
    return total, name


def _environment(rows: Any) -> dict[str, str]:
    """Variables of a container; what comes from secrets and fields is not known."""
    if isinstance(rows, Mapping):
        return {str(key): UNKNOWN if value is None else str(value) for key, value in rows.items()}
    variables: dict[str, str] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and "name" in row:
            variables[str(row["name"])] = str(row["value"]) if row.get("value") is not None else UNKNOWN
        elif isinstance(row, str):
            key, _, value = row.partition("=")
            variables[key] = value or UNKNOWN
    return variables


def _command(container: Data, variables: Mapping[str, str]) -> str:
    """Command and arguments of a container as a line of a script."""
    words: list[str] = []
    for key in ("command", "args"):
        value = container.get(key)
        # A string is split as a shell would.
        words += [str(part) for part in value] if isinstance(value, list) else _split(value)
    words = [re.sub(r"\$\(([A-Za-z_]\w*)\)", lambda name: variables.get(name[1], UNKNOWN), word) for word in words]
    image = str(container.get("image", ""))
    if "command" not in container and words:
        words = [*image_starts(image), *words]
    return shlex.join(words)


def _split(value: Any) -> list[str]:
    if not isinstance(value, str):
        return []
    try:
        return shlex.split(value)
    except ValueError:
        return [UNKNOWN]


# ------------------------------------------------------------------------------------------------ SkyPilot, Compose


def _skypilot(name: str, task: Data, findings: Findings) -> Jobs:
    nodes = _number(task, "num_nodes", 1)
    resources = _mapping(task, "resources")
    wanted, item = resources.get("accelerators"), Item(name, "accelerators", resources.get("accelerators"))
    if isinstance(wanted, str):
        label, _, number = wanted.partition(":")
        wanted = {label: number or 1}
    each: int | None = None
    if isinstance(wanted, Mapping) and len(wanted) == 1:
        label, number = next(iter(wanted.items()))
        each = int(as_number(number) or 1)
        accelerator(findings, item, str(label), "skypilot")
        findings.put("per_node", each, item)
    elif wanted:
        findings.block("cluster.accelerator", item, "lists several, of which the cheapest is taken when it starts")
    replicas = _number(_mapping(task, "service"), "replicas", 1)
    findings.put("nodes", nodes * replicas, Item(name, "num_nodes", nodes))
    known = {"SKYPILOT_NUM_NODES": str(nodes)} | ({"SKYPILOT_NUM_GPUS_PER_NODE": str(each)} if each else {})
    known |= _environment(task.get("envs"))
    return Jobs("SkyPilot task", [(str(task["run"]), known)])


def _compose(name: str, services: Data, findings: Findings) -> Jobs:
    jobs, total, unsure = Jobs("Compose file"), 0, False
    item = Item(name, "devices", None)
    for label, service in services.items():
        if not isinstance(service, Mapping):
            continue
        visible: set[str] = set()
        environment = _environment(service.get("environment"))
        for row in _list(_mapping(service, "deploy", "resources", "reservations"), "devices"):
            row = row if isinstance(row, Mapping) else {}
            ids, count = row.get("device_ids"), row.get("count", "all")
            item = Item(name, f"{label} devices", ids or count)
            if isinstance(ids, list):
                visible |= set(map(str, ids))
            elif as_number(count):
                total += int(as_number(count) or 0)
            else:
                unsure = True
        for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
            numbers = environment.get(variable, "")
            if not visible and not total and re.fullmatch(r"[0-9]+(,[0-9]+)*", numbers):
                visible, item = set(numbers.split(",")), Item(name, f"{label} {variable}", numbers)
        total += len(visible)
        own = {key: _single(value) for key, value in service.items()}
        # The command of a service is what its image's entry point is given.
        own = {"image": own.get("image", ""), "args": own.get("command")} | (
            {"command": own["entrypoint"]} if own.get("entrypoint") else {}
        )
        if script := _command(own, environment):
            jobs.scripts.append((script, environment))
    if total and not unsure:
        findings.put("devices", total, Item(name, "devices", total) if len(services) > 1 else item)
    elif unsure:
        findings.leave(item, "as many as the machine has")
    return jobs


def _single(value: Any) -> Any:
    """Words as Compose leaves them: a dollar sign is doubled, and variables of the environment have defaults."""
    if isinstance(value, list):
        return [_single(part) for part in value]
    if not isinstance(value, str):
        return value
    text = re.sub(r"(?<!\$)\$\{\w+:?-([^}]*)\}", r"\1", value)
    text = re.sub(r"(?<!\$)\$(\{\w+[^}]*\}|\w+)", UNKNOWN, text)
    return text.replace("$$", "$")


# ------------------------------------------------------------------------------------------------------- plain data


def _mapping(part: Any, *path: str) -> Mapping[str, Any]:
    for name in path:
        part = part.get(name) if isinstance(part, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _list(part: Any, name: str) -> list[Any]:
    value = part.get(name) if isinstance(part, Mapping) else None
    return value if isinstance(value, list) else []


def _number(part: Any, name: str, usual: int) -> int:
    number = as_number(part.get(name)) if isinstance(part, Mapping) else None
    return int(number) if number is not None and number >= 1 else usual
