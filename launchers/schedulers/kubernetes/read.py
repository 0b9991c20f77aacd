"""Kubernetes objects, read into devices, commands and files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from launchers.reading.devices import accelerator
from launchers.reading.documents import Item, nested_documents
from launchers.reading.findings import Findings, as_number
from launchers.schedulers import ray_serve
from launchers.schedulers.containers import Data, Jobs, command_line, list_at, mapping_at, number_at, variables_of
from launchers.tables import table

_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-accelerator",
           "accelerator", "gpu.nvidia.com/class", "amd.com/gpu.product-name")  # fmt: skip


def read(name: str, objects: list[dict[str, Any]], findings: Findings) -> Jobs:
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
            label_value = mapping_at(pod, "nodeSelector").get(label)
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
    for part in objects:
        jobs.scripts += _on_ray(name, part, known, findings)
    for pod, _ in pods:
        for container in list_at(pod, "containers"):
            if isinstance(container, Mapping):
                variables = known | variables_of(container.get("env"))
                if script := command_line(container, variables):
                    jobs.scripts.append((script, variables))
    return jobs


def _on_ray(
    name: str, part: Data, known: Mapping[str, str], findings: Findings
) -> Iterator[tuple[str, dict[str, str]]]:
    """What a RayJob starts on its cluster, and a RayService serves on it."""
    entry, served = (mapping_at(part, "spec").get(key) for key in ("entrypoint", "serveConfigV2"))
    if part["kind"] == "RayJob" and isinstance(entry, str):
        yield entry, dict(known)
    if part["kind"] == "RayService" and isinstance(served, str):
        for config in nested_documents(name, served):
            yield from ray_serve.read(name, config, findings, counted=bool(known)).scripts


def _pods(part: Data) -> Iterator[tuple[Data, int]]:
    """Pod specs of an object, each with how many pods are made of it."""
    kind, spec = part.get("kind"), mapping_at(part, "spec")
    if kind in ("TrainingRuntime", "ClusterTrainingRuntime"):
        return  # what jobs are made by, and none itself
    if kind == "TrainJob":
        trainer = mapping_at(spec, "trainer")
        container = {**trainer, "resources": trainer.get("resourcesPerNode", {})}
        yield {"containers": [container]}, number_at(trainer, "numNodes", 1)
    elif kind == "JobSet":
        for row in list_at(spec, "replicatedJobs"):
            job = mapping_at(row, "template", "spec")
            yield mapping_at(job, "template", "spec"), number_at(row, "replicas", 1) * number_at(job, "parallelism", 1)
    elif serves := _SERVING.get(str(kind)):
        yield from serves(spec)
    elif kind == "LeaderWorkerSet":
        copies, template = number_at(spec, "replicas", 1), mapping_at(spec, "leaderWorkerTemplate")
        size = number_at(template, "size", 1)
        leader = mapping_at(template, "leaderTemplate", "spec")
        worker = mapping_at(template, "workerTemplate", "spec")
        if leader:
            yield leader, copies
        if size > 1 or not leader:
            yield worker, copies * (size - 1 if leader else size)
    elif groups := _groups(spec):
        for row in groups:
            yield mapping_at(row, "template", "spec"), number_at(row, "replicas", 1)
    elif kind in ("RayCluster", "RayJob", "RayService"):
        cluster = next((mapping_at(spec, key) for key in ("rayClusterSpec", "rayClusterConfig") if key in spec), spec)
        yield mapping_at(cluster, "headGroupSpec", "template", "spec"), 1
        for row in list_at(cluster, "workerGroupSpecs"):
            yield mapping_at(row, "template", "spec"), number_at(row, "replicas", 1)
    elif "containers" in spec:
        yield spec, 1
    else:
        yield from _pods_below(spec, number_at(spec, "parallelism", 1))


def _pods_below(part: Data, copies: int) -> Iterator[tuple[Data, int]]:
    """Pods of any kind's templates, wherever these stand, each as often as the groups around it."""
    copies *= number_at(part, "replicas", 1)
    pod = mapping_at(part, "template", "spec")
    if "containers" in pod:
        yield pod, copies
        return
    for value in part.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Mapping):
                yield from _pods_below(inner, copies)


def _groups(spec: Data) -> list[Any]:
    """Pods of several kinds: PyTorchJob, MPIJob and their like, and Volcano's jobs."""
    replicas = next((value for key, value in spec.items() if key.endswith("ReplicaSpecs")), None)
    return list(replicas.values()) if isinstance(replicas, Mapping) else list_at(spec, "tasks")


# What KServe gives vLLM of `spec.parallelism`.
_PARALLEL = {"tensor": "--tensor-parallel-size", "pipeline": "--pipeline-parallel-size", "data": "--data-parallel-size"}


def _predictors(spec: Data) -> Iterator[tuple[Data, int]]:
    """The pods of an InferenceService."""
    predictor = mapping_at(spec, "predictor")
    served = mapping_at(predictor, "model")
    pod = {**predictor, "containers": [_served(served)]} if served else predictor
    yield pod, number_at(predictor, "minReplicas", 1)


def _scheduled(spec: Data) -> Iterator[tuple[Data, int]]:
    """The pods of an LLMInferenceService, with the command that KServe makes of it."""
    model, template = mapping_at(spec, "model"), mapping_at(spec, "template")
    main = next((part for part in list_at(template, "containers") if isinstance(part, Mapping)), {})
    name = model.get("name") or str(model.get("uri", "")).removeprefix("hf://")
    words = ["vllm", "serve", str(name)]
    for key, option in _PARALLEL.items():
        if size := number_at(mapping_at(spec, "parallelism"), key, 0):
            words += [option, str(size)]
    if mapping_at(spec, "parallelism").get("expert") is True:
        words.append("--enable-expert-parallel")
    with suppress(ValueError):
        words += shlex.split(variables_of(main.get("env")).get("VLLM_ADDITIONAL_ARGS", ""))
    words += ["--disaggregation-mode", "decode"] if spec.get("prefill") else []
    yield {**template, "containers": [{**main, "command": words, "args": []}]}, number_at(spec, "replicas", 1)


def _workers(spec: Data) -> Iterator[tuple[Data, int]]:
    """The pods of a Dynamo graph, of v1beta1 and of v1alpha1, whose services have a container and counts of their
    own."""
    for component in list_at(spec, "components"):
        yield mapping_at(component, "podTemplate", "spec"), number_at(component, "replicas", 1)
    for service in mapping_at(spec, "services").values():
        if not isinstance(service, Mapping):
            continue
        devices = number_at(mapping_at(service, "resources", "limits"), "gpu", 0)
        main = dict(mapping_at(service, "extraPodSpec", "mainContainer"))
        limits = {"nvidia.com/gpu": devices} if devices else {}
        yield {"containers": [main | {"resources": {"limits": limits}}]}, number_at(service, "replicas", 1)


_SERVING: dict[str, Callable[[Data], Iterator[tuple[Data, int]]]] = {
    "InferenceService": _predictors,
    "LLMInferenceService": _scheduled,
    "DynamoGraphDeployment": _workers,
}


def _served(model: Data) -> Data:
    """A model for KServe's Hugging Face runtime as the command of vLLM, which it starts with the same options
    (huggingfaceserver/__main__.py); another runtime's is its own."""
    if mapping_at(model, "modelFormat").get("name") != "huggingface":
        return model
    words = [part for word in list_at(model, "args") for part in str(word).split("=", 1)]
    kept: list[str] = []
    name = str(model.get("storageUri", "")).removeprefix("hf://")
    at = 0
    while at < len(words):
        key, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        if key in ("--model_id", "--model-id"):
            name = value
        if key.replace("-", "_") in ("__model_id", "__model_name", "__model_dir", "__backend"):
            at += 2
            continue
        kept.append("--max-model-len" if key == "--max_length" else key)
        at += 1
    return {**model, "command": ["vllm", "serve", name, *kept], "args": []}


def _devices(pod: Data) -> tuple[int, str]:
    """Accelerators of a pod, and the resource that counts them."""
    known = [row["kubernetes"] for row in table("data/devices")["makers"].values() if row["kubernetes"]]
    total, name = 0, ""
    for container in list_at(pod, "containers"):
        limits = mapping_at(container, "resources", "limits") or mapping_at(container, "resources", "requests")
        for key, value in limits.items():
            if key in known and (number := as_number(value)):
                total, name = total + int(number), key
    return total, name
