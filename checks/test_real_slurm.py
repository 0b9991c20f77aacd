"""A real Slurm takes our scripts, and every node is told what the plan says."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import python_of
from slurm_cluster import Cluster, cluster

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "launchers"))

from launch_plans import complete, devices  # pyright: ignore[reportMissingImports]
from scheduler_starts import ENGINE, scheduled, serving, text  # pyright: ignore[reportMissingImports]

from launchers.matrix import Cell, matrix_files
from launchers.pieces import Start
from launchers.predictions import TrainingPrediction
from launchers.render import render
from launchers.shell.quoting import MASTER_ADDR, MASTER_PORT, NODE_RANK
from launchers.site import Site
from launchers.writing import write

STUB = """#!/bin/bash
echo "$SLURMD_NODENAME|$SLURM_PROCID|${NODE_RANK-}|${MASTER_ADDR-}|${MASTER_PORT-}|${PORT-}|$CUDA_VISIBLE_DEVICES|$*" \\
  >>"$SLURM_SUBMIT_DIR/told"
"""
SUM = """import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
where, rank = os.environ["SLURMD_NODENAME"], dist.get_rank()
with open(f"sum-{rank}", "w") as out:
    out.write(f"{where} {rank} {dist.get_world_size()} {int(one)}")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    with cluster(Path("/tmp") / f"slurm-{secrets.token_hex(4)}") as found:
        yield found


def stub(folder: Path, *names: str) -> Path:
    path = folder / "bin"
    path.mkdir()
    for name in names:
        (path / name).write_text(STUB)
        (path / name).chmod(0o755)
    return path


def told(folder: Path) -> list[list[str]]:
    return sorted(line.split("|") for line in (folder / "told").read_text().splitlines())


PLANS = [
    (16, 8, {}),
    (8, 8, {"workload.stage": "dpo"}),
    (2, 8, {"workload": {"method": "lora"}}),
    (8, 4, {"layout.zero_stage": 3}),
    (1, 8, {"workload": {"method": "qlora", "optimizer": "paged_adamw_8bit"}, "layout.zero_stage": 0}),
    (16, 8, {"name": 'it\'s $(touch owned) "a" `b`\n#SBATCH --nodes=9', "goal": {"deadline_h": 40.5}}),
]


@pytest.mark.parametrize(("count", "per_node", "changes"), PLANS)
def test_training_scripts_run_on_the_planned_nodes(slurm: Cluster, tmp_path: Path, count, per_node, changes):
    nodes = -(-count // per_node)
    made = render(complete({**devices(count, per_node), **changes}), ["llamafactory", "slurm"])
    for file in made.files:
        (tmp_path / file.path).write_text(file.text)
    tested = slurm.run("sbatch", "--test-only", "job.sbatch", folder=tmp_path)
    assert tested.returncode == 0, tested.stderr
    assert not re.search("error|failure", tested.stderr), tested.stderr
    assert slurm.submit(tmp_path, "job.sbatch", path=stub(tmp_path, "llamafactory-cli")) == "COMPLETED"
    rows = told(tmp_path)
    assert [row[0] for row in rows] == [f"node{index + 1}" for index in range(nodes)]
    assert [row[2] for row in rows] == ([str(rank) for rank in range(nodes)] if nodes > 1 else [""])
    assert {row[3] for row in rows} == ({"node1"} if nodes > 1 else {""})
    assert len({row[4] for row in rows}) == 1
    used = min(count, per_node)
    assert {row[6] for row in rows} == {",".join(str(index) for index in range(used))}
    assert {row[7] for row in rows} == {"train llamafactory.yaml"}
    assert not list(tmp_path.rglob("owned"))


def test_replicas_are_a_job_array_with_ports_of_their_own(slurm: Cluster, tmp_path: Path):
    (tmp_path / "job.sbatch").write_text(text(scheduled("slurm", serving(16, tp=4), ENGINE)))
    assert slurm.submit(tmp_path, "job.sbatch", "--mem=1000", path=stub(tmp_path, "serve")) == "COMPLETED"
    assert sorted(row[5] for row in told(tmp_path)) == ["8000", "8001", "8002", "8003"]


def test_a_server_goes_back_into_the_queue_at_the_signal_before_its_limit(slurm: Cluster, tmp_path: Path):
    (tmp_path / "job.sbatch").write_text(text(scheduled("slurm", serving(4, tp=4), ENGINE)))
    programs = stub(tmp_path, "serve")
    (programs / "serve").write_text(STUB + "exec sleep 600\n")
    variables = {"PATH": f"{programs}:{slurm.environment['PATH']}"}
    job = slurm.run("sbatch", "--parsable", "--mem=1000", "job.sbatch", folder=tmp_path, **variables).stdout.strip()
    slurm.wait(lambda: (tmp_path / "told").exists(), 60, job)
    slurm.run("scancel", "--signal=USR1", "--batch", job)
    slurm.wait(lambda: "Restarts=1" in slurm.run("scontrol", "show", "job", job).stdout, 60, job)
    slurm.wait(lambda: "JobState=PENDING" in slurm.run("scontrol", "show", "job", job).stdout, 60, job)
    slurm.run("scancel", job)


def test_a_replica_of_several_nodes_meets_on_its_first(slurm: Cluster, tmp_path: Path):
    start = Start(f"serve {NODE_RANK} {MASTER_ADDR} {MASTER_PORT}", port=8000)
    (tmp_path / "job.sbatch").write_text(text(scheduled("slurm", serving(16, tp=8, pp=2), start)))
    assert slurm.submit(tmp_path, "job.sbatch", path=stub(tmp_path, "serve")) == "COMPLETED"
    said = [row[7].split() for row in told(tmp_path)]
    assert [words[:2] for words in said] == [["0", "node1"], ["1", "node1"]]


def test_torchrun_sums_over_both_nodes(slurm: Cluster, tmp_path: Path):
    """Two processes on each of two nodes find each other through our script and sum over gloo."""
    torchrun = python_of("train").parent / "torchrun"
    (tmp_path / "sum.py").write_text(SUM)
    start = Start(
        f"{torchrun} --nnodes 2 --nproc_per_node 2 --node_rank {NODE_RANK} --master_addr {MASTER_ADDR} "
        f"--master_port {MASTER_PORT} sum.py",
        {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    (tmp_path / "job.sbatch").write_text(text(scheduled("slurm", complete(devices(4, 2)), start)))
    state = slurm.submit(tmp_path, "job.sbatch")
    output = "".join(path.read_text() for path in tmp_path.glob("slurm-*.out"))
    assert state == "COMPLETED", output[-2000:]
    sums = [(tmp_path / f"sum-{rank}").read_text() for rank in range(4)]
    assert sums == ["node1 0 4 4", "node1 1 4 4", "node2 2 4 4", "node2 3 4 4"]


TINY = TrainingPrediction(
    memory_bytes=2**30,
    memory_low_bytes=2**30,
    memory_high_bytes=2**30,
    capacity_bytes=2**36,
    step_s=270.0,
    step_low_s=200.0,
    step_high_s=400.0,
)


# What ends a run: the signal before its limit, which its script is told, and the end of its processes.
LIMIT, FAILURE = ("--batch", "--signal=USR1", "{job}"), ("--signal=KILL", "{job}.0")


@pytest.mark.parametrize("ends", [[LIMIT], [FAILURE], [LIMIT, FAILURE]], ids=["limit", "failure", "twice"])
def test_a_run_that_is_put_back_goes_on(slurm: Cluster, tmp_path: Path, ask, ends):
    """LlamaFactory trains a tiny model on two nodes over gloo; at the signal before its limit, and when it is killed,
    the job goes back into the queue, starts again from its last whole checkpoint, and ends with all of its steps."""
    assert ask("train", "tiny", [{"folder": str(tmp_path)}])[0]["error"] is None
    workload = {"stage": "pretrain", "precision": "fp32", "attention": "sdpa", "seq_len": 16, "steps": 150}
    plan = complete({**devices(2, 1), "workload": {**workload, "framework": "ddp"}, "layout.zero_stage": 0})
    site = Site(dataset="tiny", time_limit_h=24)
    made = render(plan, ["llamafactory", "slurm"], TINY, model_id="./model", site=site)
    for file in made.files:
        (tmp_path / file.path).write_text(file.text)
    settings = tmp_path / "llamafactory.yaml"
    # There is no device here; and of the hub nothing is asked.
    settings.write_text(settings.read_text().replace("dataloader_num_workers: 4", "use_cpu: true"))
    (tmp_path / "data" / "dataset_info.json").write_text(
        '{"tiny": {"file_name": "train.jsonl", "columns": {"prompt": "text"}}}'
    )
    programs = python_of("train").parent
    # LlamaFactory imports it for sounds, which are not trained on here. The Trainer loads states of processes without a
    # device to "cpu:0", which torch.load does not know.
    (tmp_path / "torchaudio.py").write_text(
        "import torch\n"
        "torch.serialization.register_package(\n"
        "    1, lambda storage: None, lambda storage, place: storage if place == 'cpu:0' else None\n"
        ")\n"
    )
    variables = {
        "PYTHONPATH": str(tmp_path),
        "PATH": f"{programs}:{slurm.environment['PATH']}",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    variables |= {"HF_HUB_OFFLINE": "1", "DISABLE_VERSION_CHECK": "1"}
    job = slurm.run("sbatch", "--parsable", "job.sbatch", folder=tmp_path, **variables).stdout.strip()
    saved = tmp_path / "saves"
    said = tmp_path / f"slurm-{job}.out"

    def whole() -> list[int]:
        return sorted(int(path.parent.name.split("-")[1]) for path in saved.glob("*/checkpoint-*/trainer_state.json"))

    before = [0]
    for end in ends:
        slurm.wait(
            lambda: max(whole(), default=0) > before[-1],
            240,
            job,
            lambda: said.stat().st_size if said.exists() else 0,
        )
        before.append(max(whole()))
        assert before[-1] < 149
        slurm.run("scancel", *(word.format(job=job) for word in end))
        slurm.wait(lambda: "JobState=PENDING" in slurm.run("scontrol", "show", "job", job).stdout, 60, job)
        # A save that the end cut short, newer than all that are whole.
        (run,) = saved.iterdir()
        (run / "checkpoint-149").mkdir(exist_ok=True)
        (run / "checkpoint-149" / "model.safetensors").write_bytes(b"cut")
    slurm.wait(
        lambda: "JobState=COMPLETED" in slurm.run("scontrol", "show", "job", job).stdout,
        300,
        job,
        lambda: (said.stat().st_size, sorted(path.name for path in saved.glob("*/checkpoint-*"))),
    )
    output = said.read_text()
    again = re.findall(r"Resuming training from \S+checkpoint-(\d+)", output)
    # A process over gloo may abort where the other node leaves first: the run is put back once more, all steps done.
    starts = [step for step in dict.fromkeys(map(int, again)) if step < 150]
    assert len(starts) == len(ends)
    assert all(saved_by <= step < 149 for saved_by, step in zip(before[1:], starts, strict=True))
    (log,) = saved.glob("*/trainer_state.json")
    assert json.loads(log.read_text())["global_step"] >= 150
    assert len(list(saved.glob("*/checkpoint-*"))) <= 3


def test_a_matrix_runs_its_cells_one_after_another(slurm: Cluster, tmp_path: Path):
    """The script waits for each job and takes its end for the cell's: one succeeds, one fails, one is refused."""
    cells = [
        Cell("llama", "h100-sxm", strategy, complete({**devices(count), "layout.zero_stage": stage}), None, {})
        for strategy, count, stage in (("small", 2, 2), ("broken", 2, 3), ("large", 64, 2))
    ]
    rendered, rows = matrix_files(cells, "slurm", 0, {})
    write(rendered, tmp_path / "matrix")
    path = stub(tmp_path, "llamafactory-cli")
    good, broken, large = (row["id"] for row in rows)
    program = path / "llamafactory-cli"
    program.write_text(f"{STUB}[[ $SLURM_SUBMIT_DIR != */{broken} ]]\n")
    done = subprocess.run(
        ["bash", "matrix/run_all.sh"],
        cwd=tmp_path,
        env=slurm.environment | {"PATH": f"{path}:{slurm.environment['PATH']}"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    said = {name: line for line in done.stdout.splitlines() for name in (good, broken, large) if line.endswith(name)}
    assert said[good].startswith("ran")
    assert said[broken].startswith("FAILED")
    assert said[large].startswith("FAILED")
    for name in (good, broken):
        assert [row[7] for row in told(tmp_path / "matrix" / name)] == ["train llamafactory.yaml"]
    assert not (tmp_path / "matrix" / large / "told").exists()
    assert [(tmp_path / "matrix" / name / "done").exists() for name in (good, broken, large)] == [True, False, False]


def test_more_than_there_is_is_refused(slurm: Cluster, tmp_path: Path):
    """The cluster is a real judge: nine devices a node, three nodes or eight days are not there."""
    script = text(scheduled("slurm", complete(devices(16))))
    for old, new in (("gpu:8", "gpu:9"), ("--nodes=2", "--nodes=3"), ("--time=1-", "--time=8-"), ("--gres", "--gress")):
        assert old in script
        (tmp_path / "job.sbatch").write_text(script.replace(old, new))
        assert slurm.run("sbatch", "--test-only", "job.sbatch", folder=tmp_path).returncode != 0, new


def test_a_cell_whose_job_is_put_back_is_waited_for(slurm: Cluster, tmp_path: Path):
    """Its job starts twice, the cell ends once, and the next cell begins after that."""
    cells = [
        Cell("llama", "h100-sxm", strategy, complete({**devices(2), "layout.zero_stage": stage}), None, {})
        for strategy, stage in (("first", 2), ("second", 3))
    ]
    rendered, rows = matrix_files(cells, "slurm", 0, {})
    write(rendered, tmp_path / "matrix")
    first, second = (tmp_path / "matrix" / row["id"] for row in rows)
    path = stub(tmp_path, "llamafactory-cli")
    waits = f"[[ $SLURM_SUBMIT_DIR == */{rows[0]['id']} && -z ${{SLURM_RESTART_COUNT-}} ]]"
    program = STUB.replace("$*", "$SLURM_JOB_ID")
    (path / "llamafactory-cli").write_text(f"{program}{waits} && exec sleep 100\nexit 0\n")
    runner = subprocess.Popen(
        ["bash", "matrix/run_all.sh"],
        cwd=tmp_path,
        env=slurm.environment | {"PATH": f"{path}:{slurm.environment['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    while not (first / "told").exists() and runner.poll() is None:
        time.sleep(0.2)
    job = told(first)[0][7]
    assert slurm.run("scontrol", "requeue", job).returncode == 0
    assert not (second / "told").exists()
    said, _ = runner.communicate(timeout=400)
    assert runner.returncode == 0, said
    assert [row[7] for row in told(first)] == [job, job]
    assert (first / "done").exists()
    assert len(told(second)) == 1
    assert (first / "told").stat().st_mtime <= (second / "told").stat().st_mtime
