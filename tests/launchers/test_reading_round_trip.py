"""What we write is read back as the plan: batch, sizes, method, precision, optimizer, shards, adapters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from launch_plans import complete

from estimator.errors import PlanError
from estimator.plan import Plan
from launchers import render
from launchers.reading import read

_FIELDS = (
    "workload.seq_len", "workload.micro_batch", "workload.global_batch", "workload.method", "workload.precision",
    "workload.optimizer", "layout.tp", "layout.pp", "layout.cp", "layout.zero_stage", "layout.recompute",
    "layout.offload", "cluster.count",
)  # fmt: skip
_LORA = ("rank", "alpha", "dropout", "train_embeddings")
powers = st.sampled_from([1, 2, 4])


def value(plan: Plan, field: str) -> Any:
    part: Any = plan
    for name in field.split("."):
        part = getattr(part, name)
    return part


def read_back(plan: Plan, targets: list[str]) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Values by field, read or the program's own, what is blocked, and the warnings."""
    try:
        rendered = render(plan, targets)
    except PlanError:
        assume(False)
        raise
    found = read({file.path: file.text for file in rendered.files})
    values = {row.field: row.value for row in found.assumed} | {row.field: row.value for row in found.read}
    return values, found.blocked, found.warnings


def plans(framework: str, **space: Any):
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
    names = {
        name: part for name, part in space.items() if name not in ("tp", "pp", "cp", "zero", "recompute", "offload")
    }
    layout = {
        "zero_stage": space.get("zero", st.just(0)),
        "recompute": space.get("recompute", st.sampled_from(["none", "full"])),
        "offload": space.get("offload", st.just("none")),
    }
    return st.tuples(
        st.fixed_dictionaries(workload | names),
        st.fixed_dictionaries(layout),
        st.tuples(space.get("tp", st.just(1)), space.get("pp", st.just(1)), space.get("cp", st.just(1))),
        st.tuples(powers, powers, st.sampled_from([1, 2, 8])),
    ).map(_plan)


def _plan(parts: Any) -> Plan:
    workload, layout, (tp, pp, cp), (micro, accumulation, dp) = parts
    count = tp * pp * cp * dp
    return complete(
        {
            "workload": workload | {"micro_batch": micro, "global_batch": micro * accumulation * dp},
            "layout": layout | {"tp": tp, "pp": pp, "cp": cp, "dp": dp},
            "cluster": {"count": count, "per_node": 8},
        }
    )


methods = st.sampled_from(["full", "lora", "qlora", "dora", "freeze"])
stages = st.sampled_from(["pretrain", "sft", "dpo", "kto", "orpo", "simpo", "ipo", "rm", "ppo"])
optimizers = st.sampled_from(["adamw", "adamw", "paged_adamw", "adamw_8bit", "lion", "adafactor", "sgd"])
precisions = st.sampled_from(["bf16", "bf16", "fp16", "fp32"])
SETS = {
    "llamafactory": plans(
        "deepspeed", method=methods, stage=stages, optimizer=optimizers, precision=precisions,
        zero=st.integers(0, 3), offload=st.sampled_from(["none", "none", "optimizer", "params"]),
    ),
    "trl": plans(
        "fsdp2", method=st.sampled_from(["full", "lora", "qlora"]), stage=st.sampled_from(["sft", "dpo", "kto", "rm"]),
        optimizer=optimizers, zero=st.integers(0, 3),
    ),
    "axolotl": plans(
        "axolotl", method=st.sampled_from(["full", "lora", "qlora"]), stage=st.sampled_from(["sft", "pretrain", "dpo"]),
        optimizer=optimizers, zero=st.integers(0, 3), tp=st.sampled_from([1, 1, 2]), cp=st.sampled_from([1, 1, 2]),
    ),
    "torchtune": plans(
        "torchtune", method=st.sampled_from(["full", "lora", "qlora"]), stage=st.just("sft"),
        zero=st.sampled_from([2, 3]), optimizer=st.sampled_from(["adamw", "paged_adamw_8bit"]),
    ),
    "torchtitan": plans(
        "torchtitan", stage=st.just("pretrain"), tp=powers, pp=st.sampled_from([1, 2]), cp=st.sampled_from([1, 2]),
        zero=st.sampled_from([2, 3]), recompute=st.sampled_from(["none", "selective", "full"]), packing=st.just(True),
    ),
    "megatron-lm": plans(
        "megatron-lm", stage=st.just("pretrain"), tp=powers, pp=powers, cp=st.sampled_from([1, 2]),
        packing=st.just(True), zero=st.sampled_from([0, 1, 3]),
        recompute=st.sampled_from(["none", "selective", "full", "block:4"]),
        precision=st.sampled_from(["bf16", "fp16", "fp8", "mxfp8"]),
        optimizer=st.sampled_from(["adamw", "sgd", "muon"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", SETS)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_a_written_set_is_read_back(target: str, data: Any):
    plan = data.draw(SETS[target])
    values, blocked, warnings = read_back(plan, [target, "slurm"])
    fields = [
        *_FIELDS,
        *([] if target in ("trl", "torchtune") and plan.training.stage == "pretrain" else ["workload.stage"]),
    ]
    expected = {name: value(plan, name) for name in fields}
    if plan.cluster.count == 1 and target in ("torchtune", "torchtitan"):
        # A recipe of one device shards nothing.
        values["layout.zero_stage"] = expected["layout.zero_stage"]
    if plan.training.method in ("lora", "qlora", "dora", "pissa"):
        expected |= {f"workload.lora.{name}": getattr(plan.training.lora, name) for name in _LORA[:3]}
    if plan.training.method == "qlora":
        expected["workload.lora.quantisation"] = plan.training.lora.quantisation
    assert {name: values.get(name) for name in expected} == expected
    assert not blocked
    assert not warnings


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["vllm", "sglang"]), st.sampled_from([1, 2, 8]), st.sampled_from(["auto", "fp8"]), st.booleans())
def test_a_written_server_is_read_back(engine: str, tp: int, kv: str, limited: bool):
    workload = {
        "kind": "inference", "engine": engine, "input_len": 1000, "output_len": 200, "concurrency": 16, "kv_dtype": kv,
        "max_context": 4096, "max_batch": 64 if limited else None, "memory_share": 0.8,
    }  # fmt: skip
    cluster = {"accelerator": "h100-sxm", "count": tp, "per_node": 8}
    plan = Plan.parse(
        {"model": "meta-llama/Llama-3.1-8B", "workload": workload, "cluster": cluster, "layout": {"tp": tp, "pp": 1}}
    )
    values, blocked, _ = read_back(plan, [engine, "slurm"])
    said = {f"workload.{name}": value for name, value in workload.items() if value is not None and value != "auto"}
    assert {name: values.get(name) for name in said} == said
    assert (values["layout.tp"], values["cluster.count"], values["model"]) == (tp, tp, "meta-llama/Llama-3.1-8B")
    assert not blocked
