"""What frameworks offer together: every measured run lies inside the table, and what is refused says who has it."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.plan.schema import Method, Optimizer, Plan, Precision, Stage, Training
from estimator.search.layouts import candidates
from knowledge.data_files import rows
from knowledge.fitted.training import framework, framework_tables, frameworks_known
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.offers import able_frameworks, check_offered, has_precision, maker, offers

# Submissions of AMD and of makers of nodes through a stack of their own, kept under its nearest kin.
_KIN = {("nemo", "AMD"), ("mlperf-nemo", "AMD")}


def test_every_measured_run_is_inside_the_table() -> None:
    outside = set()
    for row in rows("../measurements/training.csv"):
        if not row["accelerator"] or row["method"] not in get_args(Method):
            continue
        name, device = row["framework"], find_accelerator(row["accelerator"]).value
        precision = row["precision"] or "bf16"
        if (name, device.vendor) in _KIN or name not in frameworks_known() or precision not in get_args(Precision):
            continue
        said = {"stage": row["stage"], "method": row["method"], "precision": precision}
        if row["optimizer"] in get_args(Optimizer):
            said["optimizer"] = row["optimizer"]
        run = Training.model_validate(said)
        if not offers(name, run, device) or not has_precision(device, precision):
            outside.add((name, device.id, run.stage, run.method, precision, run.optimizer))
    assert outside == set()


def test_the_table_names_what_there_is() -> None:
    tables = framework_tables()
    makers = {maker(device) for device in accelerators()}
    assert set(tables["searched"]) <= set(frameworks_known())
    assert set(tables["makers"]) <= makers
    for name in frameworks_known():
        limits = framework(name).limits
        assert set(limits.devices) <= makers
        assert set(limits.stages) <= set(get_args(Stage))
        assert set(limits.methods) <= set(get_args(Method))
        assert set(limits.optimizers) <= set(get_args(Optimizer))
        assert set(limits.precisions) <= {*get_args(Precision), *tables["precisions"]}


_DEVICES = st.sampled_from([device.id for device in accelerators() if device.memory_bytes > 7e9])
_RUNS = st.fixed_dictionaries(
    {
        "framework": st.sampled_from(["auto", *frameworks_known()]),
        "stage": st.sampled_from(get_args(Stage)),
        "method": st.sampled_from(get_args(Method)),
        "precision": st.sampled_from(get_args(Precision)),
        "optimizer": st.sampled_from(get_args(Optimizer)),
    }
)


@given(_DEVICES, _RUNS, st.sampled_from([1, 8]))
def test_a_refusal_names_values_that_are_not_refused_for_the_same(device: str, run: dict[str, str], count: int) -> None:
    data = {"model": "Qwen/Qwen3-0.6B", "workload": {"kind": "training"} | run}
    plan = Plan.parse(data | {"cluster": {"accelerator": device, "count": count}})
    try:
        job = job_of(plan)
        check_offered(job)
    except PlanError as error:
        field = error.field.removeprefix("workload.")
        if field not in ("framework", "stage", "method", "precision", "optimizer"):
            return
        for value in error.valid:
            if field == "precision" and value not in get_args(Precision):
                continue
            other = Training.model_validate({"kind": "training"} | run | {field: value})
            if field == "framework":
                assert value in able_frameworks(other, find_accelerator(device).value)
            elif field == "precision" and not has_precision(find_accelerator(device).value, run["precision"]):
                assert has_precision(find_accelerator(device).value, value)
        return
    accelerator = job.machine.accelerator
    assert offers(job.framework.name, job.training, accelerator)
    assert has_precision(accelerator, job.training.precision)


@pytest.mark.parametrize("device", ["inferentia2", "groq-lpu"])
def test_devices_that_only_serve_say_so(device: str) -> None:
    plan = Plan.parse(
        {"model": "Qwen/Qwen3-0.6B", "workload": {"kind": "training"}, "cluster": {"accelerator": device, "count": 8}}
    )
    with pytest.raises(PlanError, match="no training framework that is estimated runs on") as refused:
        check_offered(job_of(plan))
    assert refused.value.field == "cluster.accelerator"


@pytest.mark.parametrize(
    ("name", "stage", "method"),
    [
        ("torchtune", "ppo", "lora"),
        ("nemo-rl", "rm", "lora"),
        ("megatron-bridge", "pretrain", "lora"),
        ("litgpt", "pretrain", "qlora"),
    ],
)
def test_a_method_that_a_stage_lacks_is_refused_and_the_stage_named(name: str, stage: str, method: str) -> None:
    workload = {"kind": "training", "framework": name, "stage": stage, "method": method}
    plan = {"model": "gpt2", "cluster": {"accelerator": "h100-sxm", "count": 1}, "workload": workload}
    with pytest.raises(PlanError, match=f"{name} has no {method} in {stage}") as refused:
        check_offered(job_of(Plan.parse(plan)))
    assert method not in refused.value.valid


@pytest.mark.parametrize(
    ("framework", "precision", "problem"),
    [
        ("megatron-lm", "nvfp4", "megatron-lm has no run in 4 bits that ends in 8; megatron-bridge has it"),
        ("megatron-bridge", "mxfp8", "is the end in 8 bits of a run in 4, and this one is in mxfp8"),
    ],
)
def test_runs_end_in_eight_bits_where_a_framework_has_it_and_after_four(
    framework: str, precision: str, problem: str
) -> None:
    workload = {"framework": framework, "stage": "sft", "precision": precision, "fp8_healing": 0.4}
    plan = {"model": "gpt2", "cluster": {"accelerator": "b200-sxm", "count": 1}, "workload": workload}
    with pytest.raises(PlanError, match=problem) as refused:
        check_offered(job_of(Plan.parse(plan)))
    assert refused.value.field == "workload.fp8_healing"
    assert refused.value.valid[0] == "0"


def test_what_was_read_names_frameworks_with_version_and_date() -> None:
    for name, where in framework_tables()["read"].items():
        assert name in frameworks_known()
        assert re.search(r"/.*\((?:[0-9a-f]{7,10}), 20\d\d-\d\d-\d\d\)", where)


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ({"tp": 2}, "axolotl has no tensor parallelism with lomo"),
        ({"zero_stage": 3}, "axolotl has no ZeRO-3 with lomo"),
    ],
)
def test_an_optimizer_that_steps_on_whole_gradients_has_nothing_sharded(layout: dict[str, int], problem: str) -> None:
    workload = {"framework": "axolotl", "stage": "sft", "optimizer": "lomo"}
    plan = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "count": 8}, "workload": workload}
    assert set(candidates(job_of(Plan.parse(plan))).zero_stage) == {0}
    with pytest.raises(PlanError, match=problem):
        candidates(job_of(Plan.parse(plan | {"layout": layout})))


@pytest.mark.parametrize("workload", [{"stage": "dpo"}, {"method": "qlora"}, {"optimizer": "lomo"}])
def test_what_no_framework_has_is_not_told_of_one(workload: dict[str, str]) -> None:
    plan = {"model": "llama-3.1-8b", "cluster": {"accelerator": "b200-sxm", "count": 8}}
    with pytest.raises(PlanError, match="no framework has nvfp4 with") as refused:
        check_offered(job_of(Plan.parse(plan | {"workload": workload | {"precision": "nvfp4"}})))
    for precision in refused.value.valid:
        check_offered(job_of(Plan.parse(plan | {"workload": workload | {"precision": precision}})))


@pytest.mark.parametrize(("framework", "stage"), [("fsdp2", "grpo"), ("axolotl", "grpo")])
def test_a_stage_whose_sequences_are_not_split_has_no_context_parallelism(framework: str, stage: str) -> None:
    plan = {"model": "qwen2.5-7b", "cluster": {"accelerator": "h100-sxm", "count": 4}, "layout": {"cp": 2}}
    assert len(candidates(job_of(Plan.parse(plan | {"workload": {"framework": framework, "stage": "sft"}}))))
    with pytest.raises(PlanError, match=f"{framework} has no context parallelism in {stage}"):
        candidates(job_of(Plan.parse(plan | {"workload": {"framework": framework, "stage": stage}})))
