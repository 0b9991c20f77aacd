"""Files of a run that ends: limits from the prediction, checkpoints in between, resuming wherever it restarts."""

from __future__ import annotations

import dataclasses
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_plans import PREDICTION, complete, devices
from native_plans import native
from samples import examples

from launchers.launch.duration import Duration, duration, restarts, save_steps
from launchers.launch.of_plan import launch_of
from launchers.render import render
from launchers.site import Site


def predicted(step_s: float):
    return dataclasses.replace(PREDICTION, step_s=step_s, step_low_s=step_s * 0.9, step_high_s=step_s * 1.2)


def found(step_s: float, steps: int, limit_h: float | None = None) -> tuple[Duration, int]:
    site = Site(time_limit_h=limit_h)
    launch = launch_of(complete({"workload.steps": steps}), ["llamafactory"], predicted(step_s), site=site)
    assert launch.kind == "training"
    known = duration(launch)
    assert known is not None
    return known, save_steps(launch, 500)


@settings(max_examples=examples(200), deadline=None)
@given(st.floats(0.05, 20_000), st.integers(1, 10**6), st.sampled_from([None, 0.5, 4.0, 24.0, 168.0]))
def test_jobs_hold_the_run_and_checkpoints_come_every_half_to_whole_hour(step_s, steps, limit_h):
    run, interval = found(step_s, steps, limit_h)
    assert run.longest_s > run.expected_s
    assert run.jobs * run.job_s >= run.longest_s - 1800
    assert run.job_s <= (168 if limit_h is None else limit_h) * 3600
    if 1 < interval < steps:
        assert 1700 <= interval * step_s <= 3700
    assert 1 <= interval <= steps


@settings(max_examples=examples(100), deadline=None)
@given(st.floats(0.05, 2000), st.integers(1, 10**6), st.integers(0, 10))
def test_a_run_may_be_started_again_as_often_as_its_machines_break(step_s, steps, doublings):
    """Two devices of which one breaks every 9,000 hours break twice as often as one, and twice the time as well."""
    count = 2**doublings
    plan = complete({**devices(count), "workload.steps": steps})
    allowed = restarts(launch_of(plan, ["llamafactory"], predicted(step_s)))
    hours = duration(launch_of(plan, ["llamafactory"], predicted(step_s))).longest_s / 3600  # type: ignore[union-attr]
    assert hours * count / 10_000 <= allowed <= 4 + hours * count / 8_000


@pytest.mark.parametrize("target", ["kubernetes-jobset", "kubernetes-pytorchjob", "kubernetes-rayjob", "skypilot"])
def test_a_long_run_of_many_nodes_is_not_given_up_after_three_failures(target):
    files = text(["llamafactory", target], {**devices(1024), "workload.steps": 500_000})
    said = [int(number) for number in re.findall(
        r"(?:maxRestarts|backoffLimit|max_restarts_on_errors): (\d+)", "\n".join(files.values())
    )]  # fmt: skip
    assert max(said) > 100


def text(targets: list[str], changes: dict, step_s: float = 7.0, **site) -> dict[str, str]:
    rendered = render(complete(changes), targets, predicted(step_s), site=Site(**site))
    return {file.path: file.text for file in rendered.files}


def test_a_limit_that_is_shorter_than_the_run_makes_a_chain():
    plan = complete({"workload.steps": 100_000})
    rendered = render(plan, ["llamafactory", "slurm"], predicted(7.0), site=Site(time_limit_h=24))
    job = next(file.text for file in rendered.files if file.path == "job.sbatch")
    assert "#SBATCH --time=1-00:00:00" in job
    assert {"#SBATCH --requeue", "#SBATCH --signal=B:USR1@300"} <= set(job.splitlines())
    said = re.search(r"which is (\d+) jobs of 24 h", rendered.warnings[0])
    assert said
    assert 100_000 * 7.0 * 1.2 / 86_400 < int(said[1]) < 20
    assert rendered.warnings[0] in job.splitlines()[1]


def test_a_limit_that_nobody_named_is_said_to_be_assumed():
    plan = complete({"workload.steps": 1_000_000})
    rendered = render(plan, ["llamafactory", "slurm"], predicted(7.0))
    assert "jobs of 168 h, which is assumed" in rendered.warnings[0]


def test_a_deadline_that_is_missed_is_said_first():
    changes = {"workload.steps": 60_000, "goal.deadline_h": 5}
    files = text(["llamafactory", "slurm"], changes)
    for path, content in files.items():
        if not path.endswith(".json"):
            line = content.splitlines()[1 if path == "job.sbatch" else 0]
            assert "WARNING: the run is predicted to take 4.9 days, and its deadline is 5.0 hours" in line
    assert "--time=0-05" not in files["job.sbatch"]


def test_a_program_that_starts_over_is_not_started_again():
    job = text(["llamafactory", "slurm"], {"workload": {"stage": "rm", "steps": 100}})["job.sbatch"]
    assert "#SBATCH --no-requeue" in job
    assert "USR1" not in job


RESUMING = {
    "axolotl": ({"workload.framework": "axolotl"}, "axolotl.yaml", "auto_resume_from_checkpoints: true"),
    "trl": ({"workload.framework": "fsdp2"}, "trl_resume.py", "resume_from_checkpoint=resume_from_checkpoint or last"),
    "unsloth": (
        {"workload.framework": "unsloth", "layout.zero_stage": 0},
        "train_unsloth.py",
        "trainer.train(resume_from_checkpoint=last)",
    ),
    "torchtune": ({"workload.framework": "torchtune"}, "torchtune.sh", 'resume_from_checkpoint="$resume"'),
}


@pytest.mark.parametrize("target", RESUMING)
def test_trainers_go_on_from_their_last_checkpoint(target):
    changes, path, words = RESUMING[target]
    assert words in text([target], changes)[path]


@pytest.mark.parametrize("stage", ["pretrain", "sft"])
def test_megatron_loads_what_it_saves(stage):
    plan = native("megatron-lm", "meta-llama/Llama-3.1-8B", {}, stage=stage)
    script = render(plan, ["megatron-lm"], PREDICTION).files[0].text
    folders = {name: re.search(rf"--{name} (\S+)", script) for name in ("save", "load")}
    assert all(folders.values())
    assert len({match[1] for match in folders.values() if match}) == 1
    every = {name: int(re.search(rf"--save-{name} (\d+)", script)[1]) for name in ("interval", "retain-interval")}  # type: ignore[index]
    assert every["retain-interval"] % every["interval"] == 0
    # --finetune would start counting anew after each restart.
    assert "--finetune" not in script
    assert ("--pretrained-checkpoint" in script) == (stage == "sft")


def test_bridge_and_primus_load_what_they_save():
    bridge = render(native("megatron-bridge", "meta-llama/Llama-3.1-8B", {}), ["megatron-bridge"], PREDICTION)
    saved, loaded = (re.search(rf"checkpoint\.{name}=(\S+)", bridge.files[0].text) for name in ("save", "load"))
    assert saved
    assert loaded
    assert saved[1] == loaded[1]
    primus = render(native("primus", "meta-llama/Llama-3.1-8B", {}), ["primus"], PREDICTION).files[0].text
    assert yaml.safe_load(primus)["modules"]["pre_trainer"]["overrides"]["auto_continue_train"] is True
