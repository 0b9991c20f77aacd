"""What every scheduler's files say: the plan's nodes and devices, the set's files, and nothing that names add."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_plans import PREDICTION, complete, devices
from samples import examples
from scheduler_starts import ALONE, CONFIG, ENGINE, SCHEDULERS, TRAINS, WHO, scheduled, serving, text

from estimator.errors import PlanError
from launchers.launch.duration import SIGNAL_S
from launchers.launch.of_plan import launch_of
from launchers.pieces import File, Start
from launchers.reading.sets import read
from launchers.render import render
from launchers.schedulers.node import plain_name
from launchers.shell.quoting import MASTER_ADDR, NODE_RANK
from launchers.site import Site
from launchers.tables import table
from launchers.targets import TARGETS
from launchers.yaml_text import TextBlock, YamlNote, tree

KUBERNETES = [name for name in SCHEDULERS if name.startswith("kubernetes")]
ONE_NODE = ("kubernetes-deployment", "kubernetes-kserve")


def plan_of(target: str, count: int = 8, **changes: Any):
    """A plan of `count` devices for a target: a served replica of them all where it does not train."""
    if target in TRAINS:
        return complete({**devices(count), **changes})
    return serving(count, tp=min(count, 8), pp=max(1, count // 8), **changes)


def start_of(target: str, several: bool = False) -> Start:
    return (WHO if several else ALONE) if target in TRAINS else ENGINE


def documents(target: str, **arguments: Any) -> dict[str, Any]:
    """The documents of a Kubernetes manifest by kind."""
    arguments.setdefault("start", start_of(target, arguments.pop("several", False)))
    arguments.setdefault("plan", plan_of(target))
    return {document["kind"]: document for document in yaml.safe_load_all(text(scheduled(target, **arguments)))}


def pods(document: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """How many pods of which spec (as far as it says one) the object makes."""
    spec = document["spec"]
    match document["kind"]:
        case "TrainJob":
            trainer = spec["trainer"]
            job = spec["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
            pod = job["template"]["spec"]["template"]["spec"]
            patched = {**pod["containers"][0], "resources": trainer["resourcesPerNode"]}
            patched |= {name: trainer[name] for name in ("image", "command", "env")}
            return [(trainer["numNodes"], {**pod, "containers": [patched]})]
        case "PyTorchJob":
            return [(row["replicas"], row["template"]["spec"]) for row in spec["pytorchReplicaSpecs"].values()]
        case "JobSet":
            rows = [(row["replicas"], row["template"]["spec"]) for row in spec["replicatedJobs"]]
            return [(count * row["completions"], row["template"]["spec"]) for count, row in rows]
        case "LeaderWorkerSet":
            group = spec["leaderWorkerTemplate"]
            leaders = (spec["replicas"], group["leaderTemplate"]["spec"])
            return [leaders, (spec["replicas"] * (group["size"] - 1), group["workerTemplate"]["spec"])]
        case "RayJob":
            groups = spec["rayClusterSpec"]["workerGroupSpecs"]
            return [(row["replicas"], row["template"]["spec"]) for row in groups]
        case "Job":
            return [(row["replicas"], row["template"]["spec"]) for row in spec["tasks"]]
        case "Deployment":
            return [(spec["replicas"], spec["template"]["spec"])]
        case "InferenceService":
            return [(spec["predictor"]["maxReplicas"], spec["predictor"])]
    return []


BESIDES = ("ConfigMap", "Service", "PersistentVolumeClaim", "TrainingRuntime")


def job_of(found: dict[str, Any]) -> dict[str, Any]:
    return next(document for kind, document in found.items() if kind not in BESIDES)


@pytest.mark.parametrize("target", KUBERNETES)
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_manifests_ask_for_the_planned_pods_and_devices(target: str, nodes: int):
    if target in ONE_NODE and nodes > 1:
        with pytest.raises(PlanError, match="kubernetes-lws"):
            documents(target, plan=plan_of(target, 8 * nodes))
        return
    found = documents(target, plan=plan_of(target, 8 * nodes), several=nodes > 1)
    made = [row for row in pods(job_of(found)) if row[0]]
    assert sum(count for count, _ in made) == nodes
    for _, pod in made:
        (container,) = pod["containers"]
        asked = container["resources"]
        network = {"rdma/rdma_shared_device_a": 1} if nodes > 1 else {}
        assert asked["limits"] == {"nvidia.com/gpu": 8, **network, "cpu": 48, "memory": "640Gi"}
        assert asked["requests"] == asked["limits"]
        claim = next(volume for volume in pod["volumes"] if volume["name"] == "work")["persistentVolumeClaim"]
        assert claim["claimName"] == found["PersistentVolumeClaim"]["metadata"]["name"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in pod["volumes"]
        assert (container.get("securityContext") is not None) == (nodes > 1)
        files = next(volume for volume in pod["volumes"] if volume["name"] == "files")
        assert files["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]


@pytest.mark.parametrize("target", KUBERNETES)
def test_manifests_bring_the_files_and_run_the_program_on_each_node(target: str, tmp_path: Path):
    several = target not in ONE_NODE
    found = documents(target, plan=plan_of(target, 16 if several else 8), several=several)
    launch, work = tmp_path / "launch", tmp_path / "work"
    launch.mkdir()
    for name, content in found["ConfigMap"]["data"].items():
        assert re.fullmatch(r"[-._a-zA-Z0-9]+", name)
        (launch / name).write_text(content)
    container = pods(job_of(found))[0][1]["containers"][0]
    command = container.get("command") or job_of(found)["spec"]["entrypoint"].split()[-2:]
    assert command == ["sh", "/launch/start-node.sh"]
    script = (launch / "start-node.sh").read_text().replace("/launch", str(launch)).replace("/work", str(work))
    program = tmp_path / "bin" / ("who" if target in TRAINS else "serve")
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "<%s>" "$@"\necho " ${RANK-no rank} $FLAG"\n')
    program.chmod(0o755)
    told = {
        "JOB_COMPLETION_INDEX": "1",
        "VC_TASK_INDEX": "1",
        "HOSTNAME": "x-node-0-1",
        "LWS_WORKER_INDEX": "1",
        "LWS_LEADER_ADDRESS": "lead",
        "FLAG": "",
    }
    if "trainjob" in target:
        told |= {"PET_NODE_RANK": "1", "PET_MASTER_ADDR": "lead", "PET_MASTER_PORT": "29500"}
    if "rayjob" in target:
        told |= {"NODE_RANK": "1", "MASTER_ADDR": "lead", "MASTER_PORT": "29500"}
    if "pytorchjob" in target:
        told |= {"PET_NODE_RANK": "1", "MASTER_ADDR": "lead", "MASTER_PORT": "29500", "RANK": "1", "WORLD_SIZE": "16"}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False,
        env={"PATH": f"{program.parent}:/usr/bin:/bin", **told},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (work / CONFIG.path).read_text() == CONFIG.text
    assert not list(tmp_path.rglob("owned"))
    if target in TRAINS:
        job = "llama-3-1-8b-sft-full"
        own = {"kubernetes-jobset": f"{job}-node-0-0.{job}", "kubernetes-volcano": f"{job}-node-0.{job}"}
        first = own.get(target, "lead")
        assert done.stdout == f"<1><{first}><29500><$(touch owned)><it's $HOME ${{x}} $$> no rank a b$c\n"
    else:
        assert done.stdout == "<--port><8000> no rank \n"


@pytest.mark.parametrize("target", KUBERNETES)
def test_manifests_take_what_the_site_says(target: str):
    plain = documents(target)
    assert all("namespace" not in document["metadata"] for document in plain.values())
    image = "SET_ME_IMAGE" if target in TRAINS else "example/engine:v1"
    assert pods(job_of(plain))[0][1]["containers"][0]["image"] == image
    found = documents(target, namespace="team-a", queue="gpus", image="registry/x:1", time_limit_h=2.5)
    assert {document["metadata"]["namespace"] for document in found.values()} == {"team-a"}
    job = job_of(found)
    # Volcano has queues of its own.
    assert "gpus" in (job["metadata"]["labels"].get("kueue.x-k8s.io/queue-name"), job["spec"].get("queue"))
    assert pods(job)[0][1]["containers"][0]["image"] == "registry/x:1"
    if target in TRAINS:
        assert re.search(r"activeDeadlineSeconds: 9000\b", yaml.safe_dump(job))


@pytest.mark.parametrize(
    ("accelerator", "resource"),
    [
        ("mi300x", "amd.com/gpu"), ("gaudi3", "habana.ai/gaudi"), ("trainium2", "aws.amazon.com/neuron"),
        ("gpu-max-1550", "gpu.intel.com/i915"), ("arc-b580", "gpu.intel.com/xe"), ("tpu-v5e", "google.com/tpu"),
    ],
)  # fmt: skip
def test_devices_have_their_makers_resource(accelerator: str, resource: str):
    found = documents("kubernetes-jobset", plan=complete({"cluster.accelerator": accelerator}))
    pod = pods(found["JobSet"])[0][1]
    limits = pod["containers"][0]["resources"]["limits"]
    assert {name: held for name, held in limits.items() if name not in ("cpu", "memory")} == {resource: 8}
    assert ("nodeSelector" in pod) == accelerator.startswith("tpu")
    assert pod["tolerations"] == [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize("target", ["dynamo", "production-stack", "llm-d"])
def test_deployments_of_engines_tolerate_their_devices_taint(target: str):
    read = text(scheduled(target, serving(2, tp=2)))
    assert "tolerations:\n" in read
    assert "key: nvidia.com/gpu" in read


@pytest.mark.parametrize("network", ["efa-v3", None])
def test_hyperpod_starts_a_job_of_its_network_again(network: str | None):
    plan = complete({**devices(16), "cluster.interconnect": network})
    job = documents("kubernetes-pytorchjob", plan=plan)["PyTorchJob"]
    about, limit = job["metadata"], job["spec"]["runPolicy"]["backoffLimit"]
    assert ("sagemaker.amazonaws.com/enable-job-auto-resume" in about.get("annotations", {})) == (network is not None)
    if network:
        assert about["annotations"]["sagemaker.amazonaws.com/job-max-retry-count"] == str(limit // 2)


@pytest.mark.parametrize(
    ("accelerator", "chips", "shape"),
    [("tpu-v5p", 4, "2x2x1"), ("tpu-v5p", 256, "4x8x8"), ("tpu-v6e", 32, "4x8"), ("tpu-v6e", 24, "SET_ME")],
)
def test_a_slice_has_the_shape_of_its_kind(accelerator: str, chips: int, shape: str):
    cluster = {**devices(chips), "cluster.accelerator": accelerator}
    pod = pods(documents("kubernetes-jobset", plan=complete(cluster))["JobSet"])[0][1]
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == shape
    assert "securityContext" not in pod["containers"][0]


def test_rays_processes_start_in_the_shared_folder():
    """A task of a run saves its checkpoints in the folder that its process started in."""
    cluster = documents("kubernetes-rayjob", plan=complete(devices(16)))["RayJob"]["spec"]["rayClusterSpec"]
    worker = cluster["workerGroupSpecs"][0]["template"]["spec"]
    for pod in (cluster["headGroupSpec"]["template"]["spec"], worker):
        folder = pod["containers"][0]["workingDir"]
        assert folder in [row["mountPath"] for row in pod["containers"][0]["volumeMounts"]]
    assert "tolerations" in worker


def test_devices_without_a_resource_are_refused():
    for target in ("kubernetes-jobset", "compose", "skypilot", "dstack"):
        with pytest.raises(PlanError) as raised:
            scheduled(target, complete({"cluster.accelerator": "apple-m3-max"}))
        assert raised.value.field == "cluster.accelerator"
        assert raised.value.valid
    with pytest.raises(PlanError, match="kubernetes-jobset"):
        scheduled("kubernetes-trainjob", complete({"cluster.accelerator": "tpu-v5p"}))
    on_host = documents(
        "kubernetes-deployment", plan=serving(1, 1, cluster={"accelerator": "cpu-epyc-9654", "count": 1, "per_node": 1})
    )
    assert {*pods(on_host["Deployment"])[0][1]["containers"][0]["resources"]["requests"]} == {"cpu", "memory"}


def test_served_models_are_reached_through_a_service():
    groups = documents("kubernetes-lws", plan=serving(64, tp=8, pp=2))
    spec = groups["LeaderWorkerSet"]["spec"]
    assert (spec["replicas"], spec["leaderWorkerTemplate"]["size"]) == (4, 2)
    leader, worker = (spec["leaderWorkerTemplate"][f"{role}Template"]["spec"] for role in ("leader", "worker"))
    assert leader["containers"][0]["ports"] == [{"name": "http", "containerPort": 8000}]
    assert "readinessProbe" not in worker["containers"][0]
    assert groups["Service"]["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"
    one = documents("kubernetes-deployment", plan=serving(16, tp=2))
    assert one["Deployment"]["spec"]["replicas"] == 8
    labels = one["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert one["Service"]["spec"]["selector"].items() <= labels.items()
    for target in ("kubernetes-lws", *ONE_NODE, "skypilot", "dstack"):
        with pytest.raises(PlanError, match="slurm"):
            scheduled(target, serving(), ALONE)


def test_kserve_keeps_as_many_replicas_as_the_plan_has():
    service = documents("kubernetes-kserve", plan=serving(16, tp=2))["InferenceService"]
    predictor = service["spec"]["predictor"]
    assert (predictor["minReplicas"], predictor["maxReplicas"]) == (8, 8)
    assert predictor["containers"][0]["name"] == "kserve-container"
    assert service["metadata"]["annotations"]["serving.kserve.io/deploymentMode"] == "Standard"


@pytest.mark.parametrize(("count", "nodes", "each"), [(8, 1, 8), (32, 4, 8), (2, 1, 2)])
def test_skypilot_tasks_have_the_planned_nodes(count: int, nodes: int, each: int):
    task = yaml.safe_load(text(scheduled("skypilot", complete(devices(count)), WHO)))
    assert task["num_nodes"] == nodes
    assert task["resources"]["accelerators"] == {"H100": each}
    assert ("SKYPILOT_NODE_RANK" in task["run"]) == (nodes > 1)
    assert task["workdir"] == "."
    assert task["resources"]["job_recovery"]["max_restarts_on_errors"] > 0
    served = yaml.safe_load(text(scheduled("skypilot", serving(16, tp=4), ENGINE)))
    assert "job_recovery" not in served["resources"]
    assert served["service"]["replicas"] == 4
    assert served["resources"]["ports"] == 8000
    assert served["resources"]["image_id"] == "docker:example/engine:v1"


@pytest.mark.parametrize(("count", "nodes", "gpu"), [(8, 1, "H100:8"), (32, 4, "H100:8"), (2, 1, "H100:2")])
def test_dstack_tasks_have_the_planned_nodes(count: int, nodes: int, gpu: str):
    task = yaml.safe_load(text(scheduled("dstack", complete(devices(count)), WHO)))
    assert (task["type"], task["nodes"], task["resources"]["gpu"]) == ("task", nodes, gpu)
    assert ("DSTACK_NODE_RANK" in task["commands"][0]) == (nodes > 1)
    assert "interruption" in task["retry"]["on_events"]
    served = yaml.safe_load(text(scheduled("dstack", serving(16, tp=4), ENGINE)))
    assert (served["type"], served["replicas"], served["port"]) == ("service", 4, 8000)
    assert served["image"] == "example/engine:v1"
    assert "retry" not in served


def test_compose_gives_each_replica_devices_and_a_port_of_its_own():
    services = yaml.safe_load(text(scheduled("compose", serving(8, tp=4), ENGINE)))["services"]
    taken = [row["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] for row in services.values()]
    assert taken == [["0", "1", "2", "3"], ["4", "5", "6", "7"]]
    held = [row["deploy"]["resources"] for row in services.values()]
    assert [row["limits"]["memory"] for row in held] == [row["reservations"]["memory"] for row in held] == ["320g"] * 2
    assert [row["ports"] for row in services.values()] == [["127.0.0.1:8000:8000"], ["127.0.0.1:8001:8000"]]
    assert [row["entrypoint"][-1] for row in services.values()] == ['exec env serve --port "$${PORT:-8000}"'] * 2
    amd = yaml.safe_load(text(scheduled("compose", complete({"cluster.accelerator": "mi300x"}))))["services"]["run"]
    assert amd["devices"] == ["/dev/kfd", "/dev/dri"]
    assert amd["environment"]["HIP_VISIBLE_DEVICES"] == "0,1,2,3,4,5,6,7"


def test_compose_asks_each_engine_whether_it_is_there_at_the_port_that_it_has():
    """llama.cpp's image asks at 8080 by itself, where nothing answers."""
    service = yaml.safe_load(text(scheduled("compose", serving(8, tp=4), ENGINE)))["services"]["replica-0"]
    assert service["healthcheck"]["test"][:2] == ["CMD", "python3"]
    assert f"http://127.0.0.1:{ENGINE.port}/health" in service["healthcheck"]["test"][-1]
    llama = replace(ENGINE, programs=("llama.cpp",))
    asked = yaml.safe_load(text(scheduled("compose", serving(8, tp=4), llama)))["services"]["replica-0"]["healthcheck"]
    assert asked["test"] == ["CMD", "curl", "-f", f"http://127.0.0.1:{ENGINE.port}/health"]
    assert "healthcheck" not in yaml.safe_load(text(scheduled("compose")))["services"]["run"]


def torchx_line(piece: Any) -> list[str]:
    return shlex.split(text(piece, "torchx.sh").replace("\\\n", " "), comments=True)


def test_torchx_runs_any_program_by_a_script_and_torchrun_by_its_own_component():
    words = torchx_line(scheduled("torchx", complete(devices(16)), WHO, partition="gpu", time_limit_h=2))
    assert words[:6] == ["torchx", "run", "-s", "slurm", "-cfg", "partition=gpu,time=0-02:00:00"]
    assert words[6:] == [
        *("utils.sh", "--num_replicas", "2", "--cpu", "48", "--gpu", "8", "--memMB", "655360"),
        # Another start goes on from the last checkpoint.
        *("--max_retries", "3"),
        *("sh", "torchx-node.sh", "${replica_id}", "${rank0_env}"),
    ]
    torchrun = f"torchrun --nnodes 2 --nproc_per_node=8 --node_rank {NODE_RANK} --master_addr {MASTER_ADDR} "
    made = scheduled("torchx", complete(devices(16)), Start(torchrun + "train.py --lr 1 'a b'"))
    assert torchx_line(made)[-8:] == [
        *("--name", "/Llama-3.1-8B-sft-full", "--script", "train.py", "--", "--lr", "1", "a b")
    ]
    assert torchx_line(made)[4:7] == ["dist.ddp", "-j", "2x8"]
    assert [file.path for file in made.files] == ["torchx.sh"]
    for odd in ("torchrun --unknown 1 train.py", "torchrun --standalone train.py '${app_id}'", "torchrun"):
        assert "utils.sh" in torchx_line(scheduled("torchx", start=Start(odd)))
    there = torchx_line(scheduled("torchx", namespace="team", queue="q", image="x:1"))
    assert there[2:6] == ["-s", "kubernetes", "-cfg", "queue=q,namespace=team"]
    assert there[there.index("--image") :][:2] == ["--image", "x:1"]
    kept = scheduled("torchx", complete(devices(16)), Start(torchrun + "train.py"), queue="q", image="x:1")
    assert "type=volume,src=llama-3-1-8b-sft-full-work,dst=/work" in torchx_line(kept)
    assert "ln -sfnT /work/saves saves\n" in text(kept, "torchx-node.sh")


def test_replicas_of_slurm_arrays_have_ports_of_their_own():
    script = text(scheduled("slurm", serving(16, tp=4), ENGINE))
    assert "#SBATCH --array=0-3\n" in script
    assert "export PORT=$((8000 + SLURM_ARRAY_TASK_ID))\n" in script
    assert "PORT" not in text(scheduled("slurm", serving(8, tp=8), ENGINE)).replace("${PORT:-8000}", "")
    assert "--gres" not in text(
        scheduled("slurm", serving(cluster={"accelerator": "cpu-epyc-9654", "count": 1, "per_node": 1}), ENGINE)
    )


def test_servers_of_slurm_go_back_into_the_queue_before_their_limit_unless_a_deadline_ends_them():
    script = text(scheduled("slurm", serving(16, tp=4), ENGINE))
    assert "#SBATCH --requeue" in script
    assert f"#SBATCH --signal=B:USR1@{SIGNAL_S}" in script
    assert script.index("trap again USR1") < script.index("srun ")
    ending = text(scheduled("slurm", serving(16, tp=4, goal={"deadline_h": 5.0}), ENGINE))
    assert "trap again" not in ending


@pytest.mark.parametrize("target", TRAINS)
def test_sets_of_a_real_program(target: str):
    made = render(complete({"name": "trial"}), ["llamafactory", target], PREDICTION)
    own = [file for file in made.files if file.target == target]
    assert "# Shardwise: trial" in own[0].text
    assert "60.0 GiB per device" in own[0].text
    assert f"run, from this folder: {made.launch_command}" in own[0].text
    assert made.launch_command == TARGETS[target].launch


@pytest.mark.skipif(not shutil.which("sh"), reason="needs sh")
@pytest.mark.parametrize("target", SCHEDULERS)
@settings(max_examples=examples(20), deadline=None)
@given(st.text(max_size=80) | st.text(alphabet="$(){}`'\"\\;&|<>#!\n\r\t\0 \u2028\u202e\x85~*-=:{}[]", max_size=40))
def test_names_stay_inert(target: str, name: str):
    """A name changes comments and the names of things, and nothing else of any file."""
    plan = plan_of(target, name=name)
    job = launch_of(plan, [target])
    for file, usual in zip(scheduled(target, plan, start_of(target)).files, named(target), strict=True):
        expected = usual.text.replace("Plain.Name", job.slug).replace("plain-name", plain_name(job))
        assert said(file) == [line for line in said(File("", "", expected)) if line]


def named(target: str) -> tuple[File, ...]:
    return scheduled(target, plan_of(target, name="Plain.Name"), start_of(target)).files


def said(file: File) -> list[str]:
    """Lines that are no comments, without the quotes that YAML may or may not need."""
    lines = file.text.split("\n")
    assert len(lines) == len(file.text.splitlines()) + 1
    return [line.replace('"', "") for line in lines if line and not line.lstrip().startswith("# ")]


leaves = st.text(max_size=20) | st.integers() | st.booleans() | st.text(alphabet="ab \n:#", max_size=20).map(TextBlock)
trees = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(st.text(max_size=8), max_size=3)
            | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3)
        ),
    ),
    max_size=4,
)


@settings(max_examples=examples(150), deadline=None)
@given(trees)
def test_trees_survive_yaml(value: dict[str, Any]):
    found = yaml.safe_load("\n".join(tree({YamlNote("note"): "", **value})) + "\n")
    assert (found or {}) == value


def test_files_that_share_a_name_without_folders_are_noticed():
    with pytest.raises(AssertionError):
        scheduled("kubernetes-jobset", files=(File("a/b", "x", ""), File("a-b", "x", "")))


def test_names_of_devices_are_the_catalogues():
    from knowledge.machines.catalogue import accelerators
    from launchers.tables import table

    ids = {accelerator.id for accelerator in accelerators()}
    words = table("data/devices")
    assert set(words["skypilot"]) | set(words["dstack"]) | set(words["tpus"]) <= ids
    makers = {accelerator.vendor for accelerator in accelerators()}
    assert {key.split()[0] for key in words["makers"]} - {"CPU"} <= makers


ENGINES = ["vllm", "sglang", "trtllm", "llamacpp"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "target", ["kubernetes-deployment", "kubernetes-lws", "kubernetes-jobset", "skypilot", "compose"]
)
def test_a_server_that_others_reach_asks_for_a_key_or_it_is_said(target: str, engine: str):
    weights = "gguf" if engine == "llamacpp" else "bf16"
    plan = serving(1, workload={"kind": "inference", "engine": engine, "weight_dtype": weights})
    made = render(plan, [target])
    everything = "\n".join(file.text for file in made.files)
    assert "HOST" in everything
    key = table(f"engines/{engine}/fields").get("key_variable")
    open_to_all = any("without a key" in need or "asks for no key" in need for need in made.needs_from_user)
    published = target != "compose"  # which publishes the port on this machine alone
    assert bool(key) != open_to_all or not published
    if key:
        assert everything.count(key) >= 2


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_namespace_has_the_plans_devices_and_lets_in_its_own_pods(nodes: int):
    made = render(complete(devices(8 * nodes)), ["kubernetes-volcano", "namespace"], site=Site(namespace="team-a"))
    assert made.launch_command == "kubectl apply -f volcano.yaml"
    text = next(file.text for file in made.files if file.target == "namespace")
    found = {part["kind"]: part for part in yaml.safe_load_all(text)}
    assert found.pop("Namespace")["metadata"]["name"] == "team-a"
    assert {part["metadata"]["namespace"] for part in found.values()} == {"team-a"}
    assert found["ResourceQuota"]["spec"]["hard"] == {"requests.nvidia.com/gpu": str(8 * nodes)}
    assert found["NetworkPolicy"]["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}]
    job = next(part for file in made.files if file.target == "kubernetes-volcano"
               for part in yaml.safe_load_all(file.text) if part["kind"] == "Job")  # fmt: skip
    assert job["spec"]["minAvailable"] == nodes
    allowed = {(group, kind) for rule in found["Role"]["rules"] if "create" in rule["verbs"]
               for group in rule["apiGroups"] for kind in rule["resources"]}  # fmt: skip
    assert (job["apiVersion"].split("/")[0], "jobs") in allowed


def test_parallelcluster_has_the_instances_of_the_plan():
    made = render(complete({**devices(32), "cluster.accelerator": "h200-sxm"}), ["parallelcluster"])
    assert made.launch_command == "sbatch job.sbatch"
    text = next(file.text for file in made.files if file.target == "parallelcluster")
    (queue,) = yaml.safe_load(text)["Scheduling"]["SlurmQueues"]
    (nodes,) = queue["ComputeResources"]
    assert (nodes["InstanceType"].split(".")[0], nodes["MaxCount"], nodes["Efa"]) == ("p5e", 4, {"Enabled": True})
    with pytest.raises(PlanError, match="AWS has no instance with 8 mi300x"):
        render(complete({"cluster.accelerator": "mi300x"}), ["parallelcluster"])


@pytest.mark.parametrize("place", ["parallelcluster", "hyperpod"])
def test_a_cluster_on_aws_says_its_devices_and_no_run(place: str):
    plan = complete({**devices(32), "cluster.accelerator": "h200-sxm", "cluster.interconnect": "efa-v3"})
    files = {file.path: file.text for file in render(plan, [place]).files}
    found = read(files)
    assert found.plan["cluster"] == {"accelerator": "h200-sxm", "count": 32, "per_node": 8}
    alone = {path: text for path, text in files.items() if path == f"{place}.yaml"}
    with pytest.raises(PlanError, match="starts no program"):
        read(alone)


def test_hyperpod_replaces_a_node_and_the_job_goes_on():
    plan = complete({**devices(32), "cluster.accelerator": "h200-sxm"})
    efa = render(plan.patch({"cluster.interconnect": "efa-v3"}), ["hyperpod"])
    request = yaml.safe_load(next(file.text for file in efa.files if file.target == "hyperpod"))
    controller, workers = request["InstanceGroups"]
    assert (workers["InstanceType"], workers["InstanceCount"]) == ("ml.p5e.48xlarge", 4)
    assert [group["SlurmConfig"]["NodeType"] for group in (controller, workers)] == ["Controller", "Compute"]
    assert request["NodeRecovery"] == "Automatic"
    assert any("--auto-resume=1" in file.text for file in efa.files if file.target == "slurm")
    assert not any("--interconnect" in need for need in efa.needs_from_user)
    assert any("--interconnect" in need for need in render(plan, ["hyperpod"]).needs_from_user)


def test_a_processor_that_is_the_device_gives_all_its_cores():
    plan = complete({"cluster": {"accelerator": "cpu-epyc-9654", "count": 8, "per_node": 1}})
    script = text(scheduled("slurm", plan))
    assert "#SBATCH --cpus-per-task=96\n" in script
    assert "export OMP_NUM_THREADS=96\n" in script
    pods = yaml.safe_load_all(text(scheduled("kubernetes-jobset", plan, image="x:1")))
    job = next(row for row in pods if row["kind"] == "JobSet")
    pod = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert 90 < pod["containers"][0]["resources"]["requests"]["cpu"] < 96
