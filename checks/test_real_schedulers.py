"""Kubernetes' schemas and models, Docker Compose, TorchX, SkyPilot and ShellCheck take our files and read the plan."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from conftest import Ask

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "launchers"))

from launch_plans import PREDICTION, complete, devices  # pyright: ignore[reportMissingImports]
from scheduler_starts import (  # pyright: ignore[reportMissingImports]
    ALONE,
    ENGINE,
    SCHEDULERS,
    TRAINS,
    WHO,
    scheduled,
    serving,
    text,
)

from estimator.errors import PlanError
from launchers.pieces import File
from launchers.render import render
from launchers.targets import TARGETS

HOSTILE = 'it\'s $(touch x) ${HOME} "b" `c` # {d: e}\n---\nkind: Pod'
TRAINING: list[tuple[int, int, dict[str, Any]]] = [
    (1, 8, {"workload": {"method": "qlora", "optimizer": "paged_adamw_8bit"}, "layout.zero_stage": 0}),
    (2, 8, {"workload": {"method": "lora"}}),
    (8, 8, {}),
    (8, 4, {"workload.stage": "dpo", "goal": {"deadline_h": 7}}),
    (16, 8, {"layout.zero_stage": 3, "name": HOSTILE}),
    (64, 8, {"cluster.accelerator": "mi300x"}),
    (1024, 8, {"layout.zero_stage": 3, "layout.offload": "optimizer"}),
]
SERVING = [(1, 1, 1), (8, 2, 1), (8, 8, 1), (16, 8, 2), (64, 4, 2), (64, 8, 2)]
SITES: list[dict[str, Any]] = [
    {},
    {"namespace": "team", "queue": "gpus", "image": "registry:5000/x:1", "time_limit_h": 1.5},
]


def sets(target: str) -> list[tuple[int, int, tuple[File, ...]]]:
    """Devices, nodes and the files of varied sets that a target can carry."""
    found = []
    for number, (count, per_node, changes) in enumerate(TRAINING if target in TRAINS else ()):
        plan = complete({**devices(count, per_node), **changes})
        site = SITES[number % 2]
        try:
            own = scheduled(target, plan, WHO if count > per_node else ALONE, **site).files
            real = render(plan, ["llamafactory", target], PREDICTION).files
        except PlanError:
            assert target == "compose"
            continue
        nodes = -(-count // per_node)
        found += [(count, nodes, own), (count, nodes, tuple(file for file in real if file.target == target))]
    for count, tp, pp in SERVING if "inference" in TARGETS[target].kinds else ():
        try:
            files = scheduled(target, serving(count, tp=tp, pp=pp), ENGINE, **SITES[tp % 2]).files
        except PlanError:
            assert target in (
                "compose",
                "torchx",
                "dstack",
                "kubernetes-deployment",
                "kubernetes-kserve",
                "production-stack",
                "dynamo",
                "llm-d",
            )
            continue
        found.append((count, count // min(8, tp * pp), files))
    return found


def asked(ask: Ask, check: str, texts: list[str]) -> list[dict[str, Any]]:
    return ask("schedulers", "schedulers", [{"check": check, "text": one} for one in texts])


def test_kubernetes_takes_the_manifests(ask: Ask):
    targets = [name for name in SCHEDULERS if name.startswith("kubernetes")]
    texts = [file.text for target in targets for _, _, files in sets(target) for file in files]
    assert len(texts) > 50
    places = [complete(devices(8)), complete(devices(16)), serving(8, tp=8)]
    texts += [file.text for plan in places for file in render(plan, ["namespace"]).files if file.target == "namespace"]
    good = scheduled("kubernetes-jobset").files[0].text
    train = scheduled("kubernetes-trainjob").files[0].text
    torch = scheduled("kubernetes-pytorchjob").files[0].text
    served = scheduled("kubernetes-lws", serving(tp=8), ENGINE).files[0].text
    broken = [
        good.replace("completionMode:", "completionsMode:"),
        good.replace("mountPath:", "mount:"),
        good.replace("kind: ConfigMap", "kind: ConfigMaps"),
        train.replace("numNodes: 1", "numNodes: one"),
        train.replace("runtimePatches:", "podTemplateOverride:"),
        train.replace("maxRestarts:", "maximumRestarts:"),
        torch.replace("runPolicy:", "runPolicies:"),
        served.replace("size: 1", 'size: "1"'),
    ]
    assert not set(broken) & {good, train, torch, served}
    answers = asked(ask, "kubernetes", texts + broken)
    assert [answer["error"] for answer in answers[: len(texts)]] == [None] * len(texts)
    assert all(answer["error"] for answer in answers[len(texts) :])


def test_parallelcluster_takes_its_configuration(ask: Ask):
    plans = [complete(devices(count)) for count in (1, 8, 64)] + [serving(8, tp=8)]
    texts = [
        file.text
        for plan in plans
        for file in render(plan, ["parallelcluster"]).files
        if file.target == "parallelcluster"
    ]
    broken = [texts[0].replace("MaxCount:", "MaxCounts:"), texts[0].replace("FsxLustre\n", "Lustre\n")]
    answers = ask("parallelcluster", "parallelcluster", [{"text": one} for one in [*texts, *broken]])
    assert [answer["error"] for answer in answers[:4]] == [None] * 4
    assert [(answer["nodes"], answer["efa"]) for answer in answers[:4]] == [
        (1, False),
        (1, False),
        (8, True),
        (1, False),
    ]
    assert all(answer["error"] for answer in answers[4:])


def test_sagemakers_api_takes_a_cluster_of_hyperpod(ask: Ask):
    plans = [complete(devices(count)) for count in (1, 8, 64)] + [serving(8, tp=8)]
    texts = [file.text for plan in plans for file in render(plan, ["hyperpod"]).files if file.target == "hyperpod"]
    broken = [
        texts[0].replace("InstanceCount:", "Instances:"),
        texts[0].replace("InstanceCount: 1", "InstanceCount: a"),
    ]
    answers = ask("parallelcluster", "hyperpod", [{"text": one} for one in [*texts, *broken]])
    assert [answer["error"] for answer in answers[:4]] == [None] * 4
    assert [answer["nodes"] for answer in answers[:4]] == [1, 1, 8, 1]
    assert all(answer["error"] for answer in answers[4:])


def test_compose_reads_the_devices(ask: Ask):
    made = sets("compose")
    good = made[0][2][0].text
    broken = [good.replace("entrypoint:", "entry:"), good.replace("memlock: -1", "memlock: many")]
    answers = asked(ask, "compose", [files[0].text for _, _, files in made] + broken)
    for (count, _, _), answer in zip(made, answers, strict=False):
        assert answer["error"] is None
        given = 0
        for service in answer["services"].values():
            device = service["deploy"]["resources"]["reservations"]["devices"][0]
            given += int(device.get("count", 0)) or len(device["device_ids"])
            assert "$$(touch owned)" not in service["entrypoint"][-1]
        assert given == count
    assert all(answer["error"] for answer in answers[len(made) :])


def test_compose_gives_the_program_its_words_unchanged(ask: Ask):
    answers = asked(ask, "compose", [text(scheduled("compose", start=WHO))])
    # Compose doubles dollar signs in what it prints, so that it could read it again.
    assert answers[0]["services"]["run"]["entrypoint"][-1].replace("$$", "$") == f"exec env {WHO.command}"
    assert answers[0]["services"]["run"]["environment"]["FLAG"].replace("$$", "$") == "a b$c"


def test_shell_scripts_are_clean(ask: Ask):
    scripts = []
    for target in SCHEDULERS:
        for _, _, files in sets(target):
            scripts += [file.text for file in files if file.text.startswith("#!")]
            scripts += [body for file in files for body in _inner(file)]
    assert len(scripts) > 80
    answers = asked(ask, "shellcheck", [*scripts, "#!/bin/sh\necho $1\n", "#!/bin/sh\n[[ a ]]\n"])
    bad = [(answer["error"], script) for answer, script in zip(answers, scripts, strict=False) if answer["error"]]
    assert not bad, bad[0]
    assert all(answer["error"] for answer in answers[-2:])


def _inner(file: File) -> list[str]:
    """Scripts inside YAML: those of nodes in a ConfigMap, and the commands of SkyPilot and dstack."""
    import yaml

    found = []
    for document in yaml.safe_load_all(file.text) if file.path.endswith((".yaml", ".yml")) else ():
        found += [value for value in document.get("data", {}).values() if value.startswith("#!")]
        if file.target == "skypilot":
            found.append("#!/bin/bash\n" + document["run"])
        if file.target == "dstack":
            found += ["#!/bin/bash\n" + command for command in document["commands"]]
    return found


def test_torchx_makes_jobs_of_the_planned_size(ask: Ask):
    made = [row for row in sets("torchx")[::2] if row[1] <= 8]
    answers = asked(
        ask, "torchx", [files[0].text for _, _, files in made] + ["torchx run -s slurm utils.sh --gpus 8 x"]
    )
    assert answers.pop()["error"]
    for (count, nodes, files), answer in zip(made, answers, strict=True):
        assert answer["error"] is None, files[0].text
        request = answer["request"]
        if "-s slurm" in files[0].text:
            groups = re.findall(r"^#SBATCH --job-name=.*--gpus-per-task=(\d+)", request, re.M)
        else:
            groups = re.findall(r"nvidia\.com/gpu: '?(\d+)", request.split("SCHEDULER REQUEST")[-1])[: 2 * nodes : 2]
        assert [int(group) for group in groups] == [count // nodes] * nodes, request


def test_skypilot_reads_the_plan(ask: Ask):
    made = sets("skypilot")
    good = made[0][2][0].text
    broken = [good.replace("num_nodes:", "num_node:"), good.replace("workdir:", "workdirs:")]
    texts = [files[0].text for _, _, files in made]
    managed = [text.replace("# file_mounts: ", "file_mounts: ") for text in texts if "# file_mounts: " in text]
    assert len(managed) > 3
    questions = [{"text": one} for one in [*texts, *broken, *managed]]
    answers = ask("skypilot", "skypilot", questions)
    taken = answers[len(texts) + len(broken) :]
    assert [answer["error"] for answer in taken] == [None] * len(managed)
    assert all(answer["restarts"] and answer["mounts"] == ["~/sky_workdir/saves"] for answer in taken)
    for (count, nodes, files), answer in zip(made, answers, strict=False):
        assert answer["error"] is None, files[0].text
        each = sum(answer["accelerators"].values())
        assert each * answer["nodes"] * (answer["replicas"] or 1) == count
        assert answer["replicas"] or answer["nodes"] == nodes
        assert "exec env " in answer["run"]
    assert all(answer["error"] for answer in answers[len(texts) :][: len(broken)])


def test_dstack_reads_the_plan(ask: Ask):
    made = sets("dstack")
    good = made[0][2][0].text
    broken = [
        good.replace("nodes:", "node:"),
        good.replace('gpu: "', 'gpu: "::'),
        good.replace("no-capacity", "no-room"),
    ]
    assert good not in broken
    questions = [{"text": files[0].text} for _, _, files in made] + [{"text": one} for one in broken]
    answers = ask("dstack", "dstack", questions)
    for (count, nodes, files), answer in zip(made, answers, strict=False):
        assert answer["error"] is None, files[0].text
        assert answer["each"] * answer["nodes"] * answer["replicas"] == count
        assert answer["replicas"] > 1 or answer["nodes"] == nodes
        assert len(answer["commands"]) == 1
        assert "exec env " in answer["commands"][0]
    assert all(answer["error"] for answer in answers[len(made) :])
