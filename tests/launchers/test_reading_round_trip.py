"""What we write is read back as the plan, for every target and scheduler: batch, sizes, method, precision, shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from launch_plans import complete
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.reading.sets import read
from launchers.render import render
from launchers.targets import TARGETS

_FIELDS = (
    "workload.stage", "workload.seq_len", "workload.micro_batch", "workload.global_batch", "workload.method",
    "workload.precision", "workload.optimizer", "layout.tp", "layout.pp", "layout.cp", "layout.dp",
    "layout.zero_stage", "layout.recompute", "layout.offload", "cluster.count", "cluster.accelerator",
)  # fmt: skip
_LORA = ("rank", "alpha", "dropout")
_LLAMA = "meta-llama/Llama-3.1-8B"
_SCHEDULERS = [name for name, target in TARGETS.items() if target.role == "scheduler"]
powers = st.sampled_from([1, 2, 4])


def value(plan: Plan, field: str) -> Any:
    part: Any = plan
    for name in field.split("."):
        part = getattr(part, name)
    return part


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, part in data.items():
        inner = isinstance(part, Mapping) and name != "model"
        found |= flat(part, f"{prefix}{name}.") if inner else {f"{prefix}{name}": part}
    return found


def read_back(plan: Plan, targets: list[str]) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Values by field, read or the program's own, what is blocked, and the warnings."""
    try:
        rendered = render(plan, targets)
    except PlanError:
        assume(False)
        raise
    found = read({file.path: file.text for file in rendered.files})
    return {row.field: row.value for row in found.assumed} | flat(found.plan), found.blocked, found.warnings


def plans(framework: str, accelerator: str = "h100-sxm", per_node: int = 8, **space: Any):
    workload = {
        "framework": st.just(framework),
        "seq_len": st.sampled_from([512, 4096, 8192]),
        "packing": st.booleans(),
        "fused_loss": st.sampled_from(["auto", True, False]),
        "lora": st.fixed_dictionaries(
            {
                "rank": st.integers(1, 256),
                "alpha": st.integers(1, 512),
                "dropout": st.sampled_from([0.0, 0.05]),
                "quantisation": st.sampled_from(["nf4", "nf4-single"]),
            }
        ),
    }
    split = ("tp", "pp", "cp", "zero", "recompute", "offload", "dp")
    layout = {
        "zero_stage": space.get("zero", st.just(0)),
        "recompute": space.get("recompute", st.sampled_from(["none", "full"])),
        "offload": space.get("offload", st.just("none")),
    }
    return st.tuples(
        st.fixed_dictionaries(workload | {name: part for name, part in space.items() if name not in split}),
        st.fixed_dictionaries(layout),
        st.tuples(*(space.get(name, st.just(1)) for name in ("tp", "pp", "cp"))),
        st.tuples(powers, powers, space.get("dp", st.sampled_from([1, 2, 8]))),
        st.just((accelerator, per_node)),
    ).map(_plan)


def _plan(parts: Any) -> Plan:
    workload, layout, (tp, pp, cp), (micro, accumulation, dp), (accelerator, per_node) = parts
    count = tp * pp * cp * dp
    return complete(
        {
            "workload": workload | {"micro_batch": micro, "global_batch": micro * accumulation * dp},
            "layout": layout | {"tp": tp, "pp": pp, "cp": cp, "dp": dp},
            "cluster": {"accelerator": accelerator, "count": count, "per_node": min(per_node, count)},
        }
    )


methods = st.sampled_from(["full", "lora", "qlora", "dora", "freeze"])
stages = st.sampled_from(["pretrain", "sft", "dpo", "kto", "orpo", "simpo", "ipo", "rm", "ppo"])
optimizers = st.sampled_from(["adamw", "adamw", "paged_adamw", "adamw_8bit", "lion", "adafactor", "sgd"])
precisions = st.sampled_from(["bf16", "bf16", "fp16", "fp32"])
_adapted = st.sampled_from(["full", "lora", "qlora", "dora"])
_swift = st.sampled_from(["pretrain", "sft", "dpo", "kto", "orpo", "simpo", "rm"])
_hosts = ["none", "optimizer", "params", "activations", "optimizer+activations"]
pretraining: dict[str, Any] = {"stage": st.just("pretrain"), "packing": st.just(True)}
SETS = {
    "llamafactory": plans(
        "deepspeed", method=methods, stage=stages, optimizer=optimizers, precision=precisions,
        zero=st.integers(0, 3), offload=st.sampled_from(["none", "none", "optimizer", "params"]),
    ),
    "trl": st.one_of(
        plans(
            "fsdp2", method=st.sampled_from(["full", "lora", "qlora"]),
            stage=st.sampled_from(["sft", "dpo", "kto", "rm"]), optimizer=optimizers, zero=st.sampled_from([2, 3]),
        ),
        plans(
            "deepspeed", method=st.sampled_from(["full", "lora", "qlora"]),
            stage=st.sampled_from(["sft", "dpo", "kto", "rm"]), optimizer=optimizers, zero=st.integers(0, 3),
        ),
    ),
    "axolotl": plans(
        "axolotl", method=st.sampled_from(["full", "lora", "qlora"]),
        stage=st.sampled_from(["sft", "pretrain", "dpo", "grpo"]),
        rollout=st.sampled_from(["colocated", "separate", "trainer"]), group_size=st.sampled_from([2, 4]),
        optimizer=optimizers, zero=st.integers(0, 3), tp=st.sampled_from([1, 1, 2]), cp=st.sampled_from([1, 1, 2]),
    ),
    "torchtune": plans(
        "torchtune", method=st.sampled_from(["full", "lora", "qlora"]), stage=st.just("sft"),
        zero=st.sampled_from([2, 3]), optimizer=st.sampled_from(["adamw", "paged_adamw_8bit"]),
    ),
    "unsloth": plans(
        "unsloth", method=st.sampled_from(["full", "lora", "qlora"]),
        stage=st.sampled_from(["sft", "dpo", "kto", "orpo", "grpo"]),
        rollout=st.sampled_from(["colocated", "trainer"]), group_size=st.sampled_from([2, 4]),
        optimizer=optimizers, precision=st.sampled_from(["bf16", "fp16"]), fused_loss=st.just("auto"),
        dp=st.sampled_from([1, 2]), offload=st.sampled_from(["none", "none", "activations"]),
    ),
    "ms-swift": st.one_of(
        plans("ms-swift", method=_adapted, stage=_swift, optimizer=optimizers, precision=precisions),
        plans(
            "deepspeed", method=_adapted, stage=_swift, precision=st.sampled_from(["bf16", "fp16"]),
            optimizer=st.just("adamw"), zero=st.integers(1, 3),
            offload=st.sampled_from(["none", "none", "optimizer", "params"]),
        ),
    ),
    "verl": plans(
        "verl", method=st.sampled_from(["full", "lora"]), stage=st.sampled_from(["sft", "grpo", "ppo"]),
        rollout=st.just("colocated"), group_size=st.sampled_from([2, 4]), zero=st.just(3), cp=st.sampled_from([1, 2]),
        offload=st.sampled_from(["none", "none", "optimizer", "params"]), precision=st.sampled_from(["bf16", "fp16"]),
    ),
    "openrlhf": plans(
        "openrlhf", method=st.sampled_from(["full", "lora", "qlora"]), zero=st.sampled_from([0, 2, 3]),
        stage=st.sampled_from(["sft", "dpo", "rm", "grpo", "ppo"]),
        rollout=st.just("colocated"), group_size=st.sampled_from([2, 4]), cp=st.sampled_from([1, 2]),
        offload=st.sampled_from(["none", "none", "optimizer"]), precision=st.sampled_from(["bf16", "fp16"]),
    ),
    "prime-rl": plans(
        "prime-rl", method=st.sampled_from(["full", "lora"]), stage=st.sampled_from(["sft", "grpo"]),
        rollout=st.just("separate"), group_size=st.sampled_from([2, 4]), zero=st.sampled_from([2, 3]),
        cp=st.sampled_from([1, 2]), optimizer=st.sampled_from(["adamw", "muon"]), compile=st.booleans(),
        precision=st.sampled_from(["bf16", "fp8"]), offload=st.sampled_from(_hosts),
    ),
    "nemo-rl": plans(
        "nemo-rl", method=st.sampled_from(["full", "lora"]), stage=st.sampled_from(["sft", "dpo", "grpo"]),
        rollout=st.just("colocated"), group_size=st.sampled_from([2, 4]), zero=st.sampled_from([0, 1]),
        tp=powers, pp=st.sampled_from([1, 2]), cp=st.sampled_from([1, 2]), fused_loss=st.just("auto"),
        recompute=st.sampled_from(["none", "selective", "full"]),
        offload=st.sampled_from(["none", "none", "optimizer"]),
    ),
    "slime": plans(
        "slime", stage=st.sampled_from(["sft", "grpo"]), rollout=st.just("colocated"), zero=st.just(1),
        group_size=st.sampled_from([2, 4]), tp=powers, pp=powers, cp=st.sampled_from([1, 2]), packing=st.just(True),
        recompute=st.sampled_from(["none", "selective", "full", "block:4"]),
        offload=st.sampled_from(["none", "none", "optimizer"]),
    ),
    "torchrun": plans(
        "deepspeed", method=methods, stage=stages, optimizer=optimizers, precision=precisions, zero=st.integers(0, 3),
        offload=st.sampled_from(["none", "optimizer"]),
    ),
    "torchtitan": plans(
        "torchtitan", **pretraining, fused_loss=st.just(True), tp=powers,
        pp=st.sampled_from([1, 2]), cp=st.sampled_from([1, 2]),
        zero=st.sampled_from([2, 3]), recompute=st.sampled_from(["none", "selective", "full"]),
    ),
    "megatron-lm": plans(
        "megatron-lm", **pretraining, tp=powers, pp=powers, cp=st.sampled_from([1, 2]), zero=st.sampled_from([0, 1, 3]),
        recompute=st.sampled_from(["none", "selective", "full", "block:4"]),
        precision=st.sampled_from(["bf16", "fp16", "fp8", "mxfp8"]),
        optimizer=st.sampled_from(["adamw", "sgd", "muon"]),
    ),
    "megatron-bridge": plans(
        "megatron-bridge", stage=st.sampled_from(["pretrain", "sft"]), method=st.sampled_from(["full", "lora"]),
        packing=st.just(True), tp=powers, pp=powers, cp=st.sampled_from([1, 2]), zero=st.sampled_from([0, 1]),
        recompute=st.sampled_from(["none", "selective", "full", "block:4"]),
        precision=st.sampled_from(["bf16", "fp8", "mxfp8"]), fused_loss=st.sampled_from(["auto", False]),
    ),
    "nemo-automodel": plans(
        "nemo-automodel", method=_adapted, stage=st.just("sft"), zero=st.sampled_from([0, 2, 3]),
        tp=st.sampled_from([1, 1, 2]), cp=st.sampled_from([1, 1, 2]), precision=st.sampled_from(["bf16", "fp8"]),
        optimizer=st.sampled_from(["adamw", "sgd"]), offload=st.sampled_from(["none", "none", "params"]),
    ),
    "nanotron": plans(
        "nanotron", **pretraining, tp=powers, pp=st.sampled_from([1, 2]), cp=st.sampled_from([1, 2]),
        zero=st.sampled_from([0, 1]), optimizer=st.sampled_from(["adamw", "sgd"]), fused_loss=st.just("auto"),
    ),
    "mlx": plans(
        "mlx", "apple-m4-max", 1, method=st.sampled_from(["lora", "qlora", "dora"]), dp=st.just(1),
        stage=st.just("sft"), optimizer=st.sampled_from(["adamw", "sgd", "muon"]), fused_loss=st.just("auto"),
        packing=st.just(False),
    ),
    "optimum-habana": plans(
        "optimum-habana", "gaudi3", method=st.sampled_from(["full", "lora"]), stage=st.just("sft"),
        optimizer=st.sampled_from(["adamw", "sgd"]), precision=st.sampled_from(["bf16", "fp32"]),
        zero=st.integers(0, 3), offload=st.sampled_from(["none", "none", "optimizer", "params"]),
        fused_loss=st.just("auto"),
    ),
    "optimum-neuron": plans(
        "neuronx", "trainium2", 16, method=st.sampled_from(["full", "lora"]), stage=st.just("sft"), zero=st.just(1),
        fused_loss=st.just("auto"), tp=powers, pp=st.sampled_from([1, 2]),
    ),
    "primus": plans(
        "primus", "mi300x", **pretraining, tp=powers, pp=powers, cp=st.sampled_from([1, 2]),
        zero=st.sampled_from([0, 1]),
        recompute=st.sampled_from(["none", "selective", "full", "block:4"]), precision=st.sampled_from(["bf16", "fp8"]),
    ),
    "maxtext": plans(
        "maxtext", "tpu-v5p", 4, **pretraining, tp=powers, cp=st.sampled_from([1, 2]), zero=st.sampled_from([0, 3, 3]),
        recompute=st.sampled_from(["none", "selective", "full"]), fused_loss=st.just("auto"),
        precision=st.sampled_from(["bf16", "bf16", "fp32", "fp8"]),
        offload=st.sampled_from(["none", "none", "none", "optimizer", "params"]),
    ),
}  # fmt: skip
_slow = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_every_target_that_starts_a_program_is_read_back():
    programs = {name for name, target in TARGETS.items() if target.role == "program" and "training" in target.kinds}
    assert programs == set(SETS)
    assert {
        name for name, target in TARGETS.items() if target.kinds == ("inference",) and target.role == "program"
    } == {
        *_ENGINES,
        "mlperf",
        "mlx-server",
    }


@pytest.mark.parametrize("target", SETS)
@_slow
@given(data=st.data())
def test_a_written_set_is_read_back(target: str, data: Any):
    plan = data.draw(SETS[target])
    scheduler = data.draw(st.sampled_from(["slurm", *_SCHEDULERS]))
    values, blocked, warnings = read_back(plan, [target, scheduler])
    expected = {name: value(plan, name) for name in _FIELDS}
    if target in ("trl", "torchtune", "unsloth") and plan.training.stage == "pretrain":
        # Their scripts train on plain text as on conversations.
        del expected["workload.stage"]
    if plan.cluster.count == 1 and target in ("torchtune", "torchtitan", "maxtext", "verl"):
        # A recipe of one device shards nothing.
        values["layout.zero_stage"] = expected["layout.zero_stage"]
    if target == "maxtext" and plan.layout.dp == 1:
        values["layout.zero_stage"] = expected["layout.zero_stage"]
    if plan.training.method in ("lora", "qlora", "dora", "pissa"):
        expected |= {f"workload.lora.{name}": getattr(plan.training.lora, name) for name in _LORA}
    if plan.training.method == "qlora":
        expected["workload.lora.quantisation"] = plan.training.lora.quantisation
    assert {name: values.get(name) for name in expected} == expected
    assert str(values["model"]).endswith("Llama-3.1-8B")
    assert not blocked
    assert not warnings


_ENGINES: dict[str, tuple[list[str], list[str]]] = {
    "vllm": (["auto", "fp8"], ["bf16"]),
    "sglang": (["auto", "fp8", "fp4"], ["bf16"]),
    "trtllm": (["auto", "fp8", "fp4"], ["bf16"]),
    "llamacpp": (["auto", "int8"], ["q4_k_m", "q8_0", "bf16"]),
}


@pytest.mark.parametrize("engine", _ENGINES)
@_slow
@given(data=st.data())
def test_a_written_server_is_read_back(engine: str, data: Any):
    devices, replicas = data.draw(st.sampled_from([1, 2, 8])), data.draw(st.sampled_from([1, 1, 2]))
    caches, weights = _ENGINES[engine]
    workload = {
        "kind": "inference", "engine": engine, "input_len": 1000, "output_len": 200, "concurrency": 16,
        "kv_dtype": data.draw(st.sampled_from(caches)), "weight_dtype": data.draw(st.sampled_from(weights)),
        "max_context": 4096, "max_batch": 64 if engine == "llamacpp" else data.draw(st.sampled_from([None, 64])),
        "memory_share": 0.8 if engine != "llamacpp" else None,
    }  # fmt: skip
    layers = engine == "llamacpp"
    if not layers and data.draw(st.booleans()):
        methods = ("ngram", "mtp") if engine == "trtllm" else ("ngram", "mtp", "eagle3")
        workload |= {"speculative_tokens": 3, "draft_method": data.draw(st.sampled_from(methods))}
    split = {"tp": 1 if layers else devices, "pp": devices if layers else 1}
    parts = {"cp": data.draw(st.sampled_from([2, 4]))} if engine == "vllm" and data.draw(st.booleans()) else {}
    cluster = {"accelerator": "h100-sxm", "count": devices * replicas, "per_node": 8}
    plan = Plan.parse({"model": _LLAMA, "workload": workload, "cluster": cluster, "layout": split | parts})
    scheduler = data.draw(st.sampled_from(["slurm", *_SCHEDULERS]))
    values, blocked, _ = read_back(plan, [engine, scheduler])
    # Each server is sent its part of the load, which is read back whole.
    said = {f"workload.{name}": part for name, part in workload.items() if part is not None and part != "auto"}
    said |= {f"layout.{name}": size for name, size in parts.items()}
    said |= {"layout.tp": split["tp"], "layout.pp": split["pp"], "cluster.count": devices * replicas, "model": _LLAMA}
    assert {name: values.get(name) for name in said} == said
    assert values["cluster.accelerator"] == "h100-sxm"
    assert not blocked


@pytest.mark.parametrize("weights", ["bf16", "int8", "int4"])
def test_a_written_server_of_a_mac_is_read_back(weights: str):
    workload = {"kind": "inference", "engine": "mlx", "input_len": 900, "output_len": 100, "concurrency": 4,
                "max_batch": 8, "weight_dtype": weights}  # fmt: skip
    cluster = {"accelerator": "apple-m4-max", "count": 1, "per_node": 1}
    plan = Plan.parse({"model": _LLAMA, "workload": workload, "cluster": cluster, "layout": {"tp": 1, "pp": 1}})
    values, blocked, _ = read_back(plan, ["mlx-server"])
    expected = {f"workload.{name}": part for name, part in workload.items()} | {"layout.tp": 1}
    if weights == "bf16":
        del expected["workload.weight_dtype"]
    assert {name: values.get(name) for name in expected} == expected
    assert values["model"].rpartition("/")[2] == "Llama-3.1-8B"
    assert not blocked


@pytest.mark.parametrize("scenario", ["offline", "server"])
def test_a_written_mlperf_run_is_read_back(scenario: str):
    workload = {"kind": "inference", "engine": "vllm", "scenario": scenario, "input_len": 871, "output_len": 128}
    cluster = {"accelerator": "h100-sxm", "count": 2, "per_node": 8}
    plan = Plan.parse({"model": _LLAMA, "workload": workload, "cluster": cluster, "layout": {"tp": 2, "pp": 1}})
    values, blocked, _ = read_back(plan, ["mlperf", "slurm"])
    expected = {f"workload.{name}": part for name, part in workload.items()} | {"layout.tp": 2, "cluster.count": 2}
    assert {name: values.get(name) for name in expected} == expected
    assert not blocked
