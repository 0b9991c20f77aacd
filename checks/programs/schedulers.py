"""Answers about scheduler files, from the real programs: Kubernetes' schemas and published models, Docker Compose,
ShellCheck, TorchX. A question is {"check": kind, "text": the file, …}; an answer {"error": null or why not, …}."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(sys.executable).parent
RELEASE = "1.34"


# Kinds that no registry has a model of: only their pods are looked at.
WITHOUT_A_MODEL = (("ray.io/v1", "RayJob"), ("batch.volcano.sh/v1alpha1", "Job"))


def kubernetes(question):
    """Each document against its schema or model, and the pod templates in it as pods."""
    import kubernetes_validate
    import yaml

    kinds = []
    for document in yaml.safe_load_all(question["text"]):
        kind = document["kind"]
        kinds.append(kind)
        if kind in MODELS:
            read_back(kind, document)
        elif kind == "LeaderWorkerSet":
            leader_worker_set(document)
        elif (document["apiVersion"], kind) not in WITHOUT_A_MODEL:
            kubernetes_validate.validate(document, RELEASE, strict=True)
        for spec in pod_specs(document):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
            kubernetes_validate.validate(pod, RELEASE, strict=True)
    return {"kinds": kinds}


def read_back(kind, document):
    """The kind's published model takes the document, and loses nothing of it (it leaves out what it does not know)."""
    found = MODELS[kind](document)
    lost = differences(document, found)
    if lost:
        raise ValueError(f"{kind}: {lost[0]}")


def trainer_model(name):
    def convert(document):
        from kubeflow_trainer_api import models

        return getattr(models, name).from_dict(document).to_dict()

    return convert


def pytorchjob(document):
    from kubeflow.training import models as kubeflow
    from kubernetes import client

    for name in dir(kubeflow):
        if name.startswith("KubeflowOrg"):
            setattr(client.models, name, getattr(kubeflow, name))

    class Response:
        data = json.dumps(document)

    api = client.ApiClient()
    return api.sanitize_for_serialization(api.deserialize(Response, "KubeflowOrgV1PyTorchJob"))


def inference_service(document):
    """Through KServe's published models, without the server that its package starts on import."""
    import importlib.util
    import types

    from kubernetes import client

    if "kserve" not in sys.modules:
        place = importlib.util.find_spec("kserve").submodule_search_locations
        sys.modules["kserve"] = types.ModuleType("kserve")
        sys.modules["kserve"].__path__ = list(place)
    from kserve import models

    for name in dir(models):
        if name.startswith("V") and not hasattr(client.models, name):
            setattr(client.models, name, getattr(models, name))
    # KServe's generator has a name of its own for it.
    client.models.K8sIoApiAppsV1DeploymentStrategy = client.models.V1DeploymentStrategy

    class Response:
        data = json.dumps(document)

    api = client.ApiClient()
    return api.sanitize_for_serialization(api.deserialize(Response, "V1beta1InferenceService"))


MODELS = {
    "InferenceService": inference_service,
    "TrainJob": trainer_model("TrainerV1alpha1TrainJob"),
    "TrainingRuntime": trainer_model("TrainerV1alpha1TrainingRuntime"),
    "JobSet": trainer_model("JobsetV1alpha2JobSet"),
    "PyTorchJob": pytorchjob,
}


def differences(said, found, where=""):
    """What of `said` is not in `found`, as paths."""
    if isinstance(said, dict) and isinstance(found, dict):
        return [
            line
            for key, value in said.items()
            for line in (
                differences(value, found[key], f"{where}.{key}") if key in found else [f"{where}.{key} is unknown"]
            )
        ]
    if isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        return [line for a, b in zip(said, found, strict=True) for line in differences(a, b, f"{where}[]")]
    return [] if said == found or str(said) == str(found) else [f"{where}: {said!r} is read as {found!r}"]


# Fields of LeaderWorkerSet that our files use and what they hold (api/leaderworkerset/v1 of LWS v0.10.0): no model of
# it is on PyPI.
LWS = {
    "replicas": int,
    "startupPolicy": {"LeaderCreated", "LeaderReady"},
    "leaderWorkerTemplate": {
        "size": int,
        "restartPolicy": {"Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"},
        "leaderTemplate": dict,
        "workerTemplate": dict,
    },
}


def leader_worker_set(document):
    if document["apiVersion"] != "leaderworkerset.x-k8s.io/v1":
        raise ValueError(f"LeaderWorkerSet of {document['apiVersion']}")
    follow(LWS, document["spec"], "spec")


def follow(known, said, where):
    if isinstance(known, dict):
        if set(said) != set(known):
            raise ValueError(f"{where}: {sorted(set(said) ^ set(known))}")
        for key, value in said.items():
            follow(known[key], value, f"{where}.{key}")
    elif isinstance(known, set):
        if said not in known:
            raise ValueError(f"{where}: {said!r}")
    elif not isinstance(said, known) or isinstance(said, bool):
        raise ValueError(f"{where}: {said!r}")


def pod_specs(value):
    """The pod templates of a document; a TrainJob's are patches of pods and no whole ones."""
    if isinstance(value, dict):
        if value.get("kind") == "TrainJob":
            return
        if value.get("kind") == "InferenceService":
            own = ("minReplicas", "maxReplicas", "deploymentStrategy")
            yield {key: part for key, part in value["spec"]["predictor"].items() if key not in own}
            return
        if isinstance(value.get("containers"), list):
            yield value
        for inner in value.values():
            yield from pod_specs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pod_specs(inner)


def compose(question):
    """What Compose makes of the file."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "compose.yaml").write_text(question["text"])
        command = [HERE.parent / "lib" / f"python3.{sys.version_info[1]}" / "site-packages/compose/docker-compose"]
        done = subprocess.run(
            [*command, "config", "--format", "json"], cwd=folder, capture_output=True, text=True, check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": folder},
        )  # fmt: skip
    if done.returncode:
        raise ValueError(done.stderr)
    return {"services": json.loads(done.stdout)["services"]}


def shellcheck(question):
    """Every finding of ShellCheck, style included."""
    command = [HERE / "shellcheck", "--severity=style", "--format=gcc", "-"]
    done = subprocess.run(command, input=question["text"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stdout or done.stderr)
    return {}


def torchx(question):
    """What `torchx run --dryrun` says of the file's line."""
    words = shlex.split(question["text"].replace("\\\n", " "), comments=True)
    if words[:2] != ["torchx", "run"]:
        raise ValueError(f"not a line of torchx run: {words[:2]}")
    command = [HERE / "torchx", "run", "--dryrun", "--workspace=", *words[2:]]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        raise ValueError((done.stdout + done.stderr)[-2000:])
    return {"request": done.stdout}


CHECKS = {"kubernetes": kubernetes, "compose": compose, "shellcheck": shellcheck, "torchx": torchx}


def answer(question):
    return CHECKS[question["check"]](question)
