"""What all Kubernetes targets share: a manifest that brings the files of the set along, and the pods that start them.

The files lie in a ConfigMap beside the job, which every pod mounts and copies into a folder that it can write. The
program is started by a script of that ConfigMap and not by the pod's own command, in which Kubernetes would expand
$(NAME). Pods share a claimed volume, where checkpoints and caches outlive them.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from estimator.errors import PlanError
from launchers.devices import accelerator_of, word_of
from launchers.launch.duration import stored_bytes
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.launch.serving import replica_load
from launchers.pieces import File, Piece, Start
from launchers.schedulers.kubernetes.network import network_resources
from launchers.schedulers.node import (
    by_name,
    container_image,
    host_cores,
    host_gib,
    plain_name,
    programs,
    script,
)
from launchers.shell.quoting import AS_WRITTEN
from launchers.tables import table
from launchers.yaml_text import TextBlock, Tree, YamlNote, tree

SCRIPT = "start-node.sh"
KEEP_S = 7 * 24 * 3600
"""How long a finished job stays, for its logs."""
_FILES, WORK = "/launch", "/work"
# How long weights may take to come and to load.
LOADING_S = 3600


@dataclass(frozen=True)
class Manifest:
    """One file of a target on its way: `path`, the job's name, what the user is asked for so far, and whether its pods
    are placed together or not at all."""

    path: str
    target: str
    launch: Launch
    start: Start
    name: str
    needs: list[str]
    is_gang: bool


def begin(launch: Launch, start: Start, path: str, target: str, is_gang: bool = False) -> Manifest:
    """Raises PlanError where Kubernetes has no resource of the plan's devices."""
    word_of(launch, "kubernetes")
    return Manifest(path, target, launch, start, plain_name(launch), [], is_gang)


def finish(
    manifest: Manifest,
    files: Sequence[File],
    variables: Mapping[str, str],
    documents: Sequence[Tree],
    forget: Sequence[str] = (),
) -> Piece:
    """The manifest: the ConfigMap with the set's `files` and the script, then the `documents`.

    `variables` give NODE_RANK, MASTER_ADDR and MASTER_PORT from what the kind sets in its pods; what it sets besides
    and would mislead programs is in `forget`.
    """
    launch, start = manifest.launch, manifest.start
    names = by_name(files)
    copies = [f"mkdir -p {WORK} && cd {WORK}"]
    for name, file in names.items():
        folder = file.path.rpartition("/")[0]
        if folder:
            copies.append(f"mkdir -p {shlex.quote(folder)}")
        place = shlex.quote(file.path)
        copies.append(f'cp {_FILES}/{name} {place}."$(uname -n)"')
        if file.executable:
            copies.append(f'chmod +x {place}."$(uname -n)"')
        # In one step: other pods have the same folder.
        copies.append(f'mv {place}."$(uname -n)" {place}')
    if forget:
        copies.append(f"unset {' '.join(forget)}")
    body = ["#!/bin/sh", "# Run in every pod.", AS_WRITTEN, *script(launch, start, variables, copies)]
    data: dict[str, Tree] = {}
    if names:
        data[YamlNote("Copies of the files beside this one: what you change there, change here too.")] = ""
        manifest.needs.append(f"{manifest.path}: it runs its own copies of {', '.join(names)}; fill those in")
    data |= {SCRIPT: TextBlock("\n".join(body) + "\n")} | {name: TextBlock(file.text) for name, file in names.items()}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(manifest, "-files"), "data": data}
    text = [f"# {line}" for line in scheduler_heading(launch, f"kubectl apply -f {manifest.path}")]
    for document in (config, claim(manifest), *documents):
        assert isinstance(document, Mapping)
        text += ["---", *tree(document)]
    needs = manifest.needs
    if launch.site.namespace is None:
        needs.append(f"{manifest.path}: metadata.namespace, if not the one that kubectl is set to")
    needs.append(
        f"{manifest.path}: the claim {manifest.name}-work, a storage class that many nodes write to at once (shared by "
        "the pods, for checkpoints and caches), and its size"
    )
    if launch.nodes > 1 and launch.site.queue is None and not manifest.is_gang:
        needs.append(
            f"{manifest.path}: a queue of Kueue (or kubernetes-volcano), so that pods start together or not at all"
        )
    return Piece((File(manifest.path, manifest.target, "\n".join(text) + "\n"),), tuple(needs))


def claim(manifest: Manifest) -> dict[str, Tree]:
    """The claim of the folder that the pods share."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": claim_size(manifest.launch)}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(manifest, "-work"),
        "spec": spec,
    }


def claim_size(launch: Launch) -> str:
    """What is stored of a run or a model, in steps of 50 GiB."""
    return f"{50 * math.ceil(stored_bytes(launch) / 2**30 / 50)}Gi"


def metadata(manifest: Manifest, suffix: str = "", queued: bool = False) -> dict[str, Tree]:
    """Name, namespace and labels; `queued` for the object that Kueue admits."""
    site = manifest.launch.site
    fields: dict[str, Tree] = {"name": manifest.name + suffix}
    if site.namespace is not None:
        fields["namespace"] = site.namespace
    labels: dict[str, Tree] = {"app.kubernetes.io/name": manifest.name, "app.kubernetes.io/created-by": "shardwise"}
    if queued and site.queue is not None:
        labels["kueue.x-k8s.io/queue-name"] = site.queue
    elif queued:
        labels[YamlNote("kueue.x-k8s.io/queue-name: SET_ME  # where Kueue admits jobs")] = ""
    return fields | {"labels": labels}


def resources(manifest: Manifest) -> dict[str, Tree]:
    """The devices of one node, its part of the network, cores and memory of the host, as limits and the same requests:
    devices have to be equal, and pods whose requests are their limits have whole cores and are the last to be put out
    (Kubernetes documentation, Pod Quality of Service Classes; CPU Manager, static policy)."""
    launch = manifest.launch
    word = word_of(launch, "kubernetes")
    if not word:
        # The host's processors are the plan's devices.
        held = {"cpu": host_cores(launch), "memory": _planned_memory(launch) or "SET_ME"}
        return {"limits": held, "requests": held}
    extended: dict[str, Tree] = {word: launch.node_devices}
    extended |= network_resources(launch, manifest.path, manifest.needs)
    held = extended | _host(launch)
    return {"limits": held, "requests": held}


def _planned_memory(launch: Launch) -> str:
    """What a processor's part is predicted to hold and a quarter more; '' where it is not known."""
    if launch.prediction is None:
        return ""
    return f"{math.ceil(1.25 * launch.node_devices * launch.prediction.memory_bytes / 2**30)}Gi"


def quoted_resources(launch: Launch) -> dict[str, Tree]:
    """The same for a resource of somebody else's, all as strings: a replica of one node."""
    device: dict[str, Tree] = {str(word_of(launch, "kubernetes")): str(launch.node_devices)}
    held = device | {name: str(value) for name, value in _host(launch).items()}
    return {"limits": held, "requests": held}


def host_memory(launch: Launch) -> str:
    """node.host_gib as a quantity."""
    return f"{host_gib(launch)}Gi"


def _host(launch: Launch) -> dict[str, Tree]:
    return {"cpu": host_cores(launch), "memory": host_memory(launch)}


def container(manifest: Manifest, name: str) -> dict[str, Tree]:
    """The container that runs the script on the devices of one node."""
    fields: dict[str, Tree] = {
        "name": name,
        "image": image(manifest),
        "command": command(),
        "env": environment(manifest),
    }
    fields["resources"] = resources(manifest)
    if not word_of(manifest.launch, "kubernetes"):
        manifest.needs.append(f"{manifest.path}: resources, which assume a node of the plan's processors alone")
    return fields | mounts(manifest)


def image(manifest: Manifest) -> str:
    return container_image(manifest.launch, manifest.start, manifest.path, manifest.needs)


def command() -> list[str]:
    return ["sh", f"{_FILES}/{SCRIPT}"]


def environment(manifest: Manifest) -> list[Tree]:
    """The token for gated models and data, from a secret that need not be there; the key of a server, from one that has
    to; and caches that outlive the pods."""
    rows: list[Tree] = [_secret("HF_TOKEN", "hf-token", "token"), {"name": "HF_HOME", "value": f"{WORK}/cache"}]
    if manifest.start.port is not None:
        rows.append({"name": "HOST", "value": "0.0.0.0"})
        need = f"{programs(manifest.start)} takes requests without a key: let only what may ask reach its port"
        if manifest.start.key_variable is not None:
            need = "the secret api-key (key key), which requests bring, and without which its pods do not start"
            rows.append(_secret(manifest.start.key_variable, "api-key", "key", optional=False))
        manifest.needs.append(f"{manifest.path}: {need}")
    return rows


def _secret(variable: str, name: str, key: str, optional: bool = True) -> Tree:
    absent = {"optional": True} if optional else {}
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key, **absent}}}


def mounts(manifest: Manifest) -> dict[str, Tree]:
    """Where a container finds the files, can write, and has shared memory; and may pin memory for RDMA."""
    container: dict[str, Tree] = {
        "volumeMounts": [
            {"name": "files", "mountPath": _FILES, "readOnly": True},
            {"name": "work", "mountPath": WORK},
            {"name": "shm", "mountPath": "/dev/shm"},
        ]
    }
    if manifest.launch.nodes > 1 and accelerator_of(manifest.launch).vendor != "Google":
        container[YamlNote("RDMA pins memory")] = ""
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    return container


def placement(manifest: Manifest) -> dict[str, Tree]:
    """Volumes, and which nodes a pod may run on."""
    fields: dict[str, Tree] = {
        "volumes": [
            {"name": "files", "configMap": {"name": manifest.name + "-files"}},
            {"name": "work", "persistentVolumeClaim": {"claimName": manifest.name + "-work"}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ]
    }
    if word := word_of(manifest.launch, "kubernetes"):
        fields["tolerations"] = tolerations(word)
    accelerator = accelerator_of(manifest.launch)
    if accelerator.vendor == "Google":
        kinds = table("data/devices")["tpus"]
        if accelerator.id not in kinds:
            raise PlanError("cluster.accelerator", f"GKE has no node pools of {accelerator.id}", list(kinds))
        chips = manifest.launch.devices // manifest.launch.replicas
        fields["nodeSelector"] = {
            "cloud.google.com/gke-tpu-accelerator": kinds[accelerator.id],
            YamlNote(f"a slice of {chips} chips, in the shape that GKE gives it unless told"): "",
            "cloud.google.com/gke-tpu-topology": topology(chips, table("data/devices")["axes"][accelerator.id]),
        }
        manifest.needs.append(f"{manifest.path}: gke-tpu-topology, if your slice of {chips} chips has another shape")
    elif accelerator.vendor == "NVIDIA" and accelerator.family != "CPU":
        fields[YamlNote(f"nodeSelector: {{nvidia.com/gpu.product: SET_ME}}  # {accelerator.id}, if nodes differ")] = ""
    return fields


def tolerations(word: str) -> list[Tree]:
    """Nodes with devices are kept for pods that ask for these: by a taint of the resource's name (GKE, AKS and
    Kubernetes' ExtendedResourceToleration, which not all clusters have on)."""
    return [{"key": word, "operator": "Exists", "effect": "NoSchedule"}]


def topology(chips: int, axes: int) -> str:
    """A slice's shape, as near to a square or a cube as it goes, the longest side last, and 2x2x1 and its like (GKE
    documentation, Plan TPUs); one to set where the chips are no power of two."""
    power = chips.bit_length() - 1
    if chips != 1 << power:
        return "SET_ME"
    sides = [1 << (power + place) // axes for place in range(axes)]
    return "x".join(map(str, sides if sides[0] > 1 or axes == 2 else sides[::-1]))


def pod(manifest: Manifest, name: str, restart: str, extra: Mapping[str, Tree] | None = None) -> dict[str, Tree]:
    """A pod template with the one container `name`; `extra` is added to the container."""
    labels = {"app.kubernetes.io/name": manifest.name}
    spec: dict[str, Tree] = {"restartPolicy": restart}
    if extra and "lifecycle" in extra:
        spec["terminationGracePeriodSeconds"] = _leaving_s(manifest.launch) + _ENDING_S
    spec |= {"containers": [container(manifest, name) | dict(extra or {})], **placement(manifest)}
    return {"metadata": {"labels": labels}, "spec": spec}


def serving_port(manifest: Manifest) -> int:
    """Where the engine listens. Raises PlanError for programs that end by themselves."""
    if manifest.start.port is None:
        problem = f"{manifest.target} keeps servers running, and {programs(manifest.start)} runs once and ends"
        raise PlanError("targets", problem, ["kubernetes-jobset", "slurm"])
    return manifest.start.port


def scaling(manifest: Manifest) -> dict[str, Tree]:
    """A comment on what an autoscaler would go by, where the load of a replica is known."""
    launch = manifest.launch
    if launch.kind != "inference" or (load := replica_load(launch)) is None:
        return {}
    metrics = table(f"engines/{launch.serving.engine}/fields").get("load_metrics")
    by = f" (KEDA: {' + '.join(metrics)})" if metrics else ""
    return {YamlNote(f"an autoscaler's target: {load:.3g} requests at once a replica, as planned{by}"): ""}


def service(manifest: Manifest, port: int, selector: Mapping[str, str]) -> dict[str, Tree]:
    """A Service in front of the pods that listen."""
    ports = [{"name": "http", "port": port, "targetPort": "http"}]
    spec = {"selector": dict(selector), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(manifest), "spec": spec}


# Until a Service sends to a pod that goes no more, which is told of it beside the pod (Kubernetes documentation, Pod
# Lifecycle, Termination of Pods), and what a program may take to end by itself, Kubernetes' own.
_SENT_S, _ENDING_S = 15, 30


def _leaving_s(launch: Launch) -> int:
    """How long a pod that goes is still let answer: engines end what runs when they are told to end."""
    if launch.kind != "inference" or launch.prediction is None:
        return 2 * _SENT_S
    predicted = launch.prediction
    answer = (predicted.ttft_high_s or 0.0) + predicted.tpot_high_s * launch.serving.output_len
    return _SENT_S + math.ceil(answer)


def listening(manifest: Manifest, port: int) -> dict[str, Tree]:
    """What a container that serves adds: its port, when it is started (loading takes long), ready and alive, and time
    to answer what it was sent before it ends."""
    leaving = ["sleep", str(_leaving_s(manifest.launch))]
    health: dict[str, Tree] = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 10}
    return {
        "ports": [{"name": "http", "containerPort": port}],
        "startupProbe": health | {"failureThreshold": LOADING_S // 10},
        "readinessProbe": health | {"failureThreshold": 3},
        "livenessProbe": health | {"periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 5},
        YamlNote("requests that run are answered before it ends"): "",
        "lifecycle": {"preStop": {"exec": {"command": leaving}}},
    }
