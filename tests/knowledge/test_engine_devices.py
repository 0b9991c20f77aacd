"""What engines have kernels for, by device: nothing else is offered, and all that was measured is among it."""

from __future__ import annotations

import pytest

from estimator.plan.schema import Plan
from knowledge.data_files import document
from knowledge.engines import engine, engines_known, kernels_for, reads_format, runs_on
from knowledge.jobs.serving import offered_formats, serving_job
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.models.catalogue import find_architecture
from measure.history.serving import serving_cases

SERVERS = ("vllm", "sglang", "trtllm")


def offered(model: str, accelerator: str) -> set[tuple[str, str]]:
    """Engine and format of everything that a search may take."""
    device, architecture = find_accelerator(accelerator).value, find_architecture(model)[0]
    return {
        (name, kind)
        for name in SERVERS
        if kernels_for(runs := engine(name, None, device), architecture)
        for kind in offered_formats(architecture, runs, device)
    }


def test_every_measured_run_is_inside_the_table() -> None:
    outside = []
    for case in serving_cases():
        if case.plan is None or case.reason_unscored:
            continue
        job = serving_job(case.plan)
        if not reads_format(job.engine, job.inference.weight_dtype) or job.kv_dtype not in job.engine.cache_formats:
            outside.append(case.id)
    assert outside == []


def test_every_card_and_processor_has_an_engine() -> None:
    """Chips with programs of their own are planned for training alone, or by what was measured."""
    makers = {"NVIDIA", "AMD", "Intel", "Apple"}
    bare = {device.id for device in accelerators() if device.vendor in makers and not device.announced
            and not any(runs_on(engine(name, None, device), device) for name in engines_known())}  # fmt: skip
    assert not bare


def test_every_row_names_its_source_and_devices_that_exist() -> None:
    families = {device.family for device in accelerators()} | {device.id for device in accelerators()}
    vendors = {f"any {device.vendor}" for device in accelerators()}
    for name, rows in document("engine_devices.yaml").items():
        assert name in engines_known()
        for row in rows:
            assert len(row["source"]) > 5
            for device in row["devices"]:
                assert device in families | vendors or any(id.startswith(device) for id in families), device
            assert {*row.get("ended", {}), *row.get("since", {})} <= {*row["weights"], *row["caches"]}


@pytest.mark.parametrize(
    ("engine_name", "accelerator"), [("sglang", "gaudi3"), ("trtllm", "mi300x"), ("llamacpp", "trainium2")]
)
def test_an_engine_does_not_run_where_it_has_no_row(engine_name: str, accelerator: str) -> None:
    device = find_accelerator(accelerator).value
    assert not runs_on(engine(engine_name, None, device), device)


@pytest.mark.parametrize(
    ("model", "accelerator", "never"),
    [
        ("meta-llama/Llama-3.1-70B", "tpu-v6e", {"awq", "gptq", "int4", "int8"}),
        ("meta-llama/Llama-3.1-70B", "trainium2", {"awq", "gptq", "int4"}),
        ("meta-llama/Llama-3.1-70B", "mi355x", {"nvfp4"}),
        ("openai/gpt-oss-120b", "h100-sxm", {"awq", "gptq", "int4", "fp8"}),
        ("deepseek-ai/DeepSeek-R1", "h200-sxm", {"awq", "gptq", "int8"}),
    ],
)
def test_formats_without_kernels_or_checkpoints_are_not_offered(model: str, accelerator: str, never: set[str]) -> None:
    assert not {kind for _, kind in offered(model, accelerator)} & never


def test_the_checkpoint_comes_first_and_four_bits_are_native_where_they_are() -> None:
    device = find_accelerator("mi355x").value
    dense, experts = (find_architecture(name)[0] for name in ("meta-llama/Llama-3.1-70B", "openai/gpt-oss-120b"))
    assert offered_formats(experts, engine("vllm", None, device), device)[0] == "mxfp4"
    assert offered_formats(dense, engine("vllm", None, device), device) == ["bf16", "fp8", "mxfp4"]


def test_mxfp4_of_a_model_without_experts_is_four_bits() -> None:
    plan = Plan.parse(
        {
            "model": "meta-llama/Llama-3.1-70B",
            "workload": {"kind": "inference", "engine": "vllm", "weight_dtype": "mxfp4"},
            "cluster": {"accelerator": "mi355x", "count": 1},
        }
    )
    job = serving_job(plan)
    assert job.block_bytes == pytest.approx(4.25 / 8.0)
    assert job.peak_flops == job.machine.accelerator.peak_flops["mxfp4"]


def test_latent_attention_is_not_served_where_an_engine_lacks_it() -> None:
    assert ("sglang", "bf16") not in offered("deepseek-ai/DeepSeek-V2-Lite", "tpu-v6e")
    assert ("sglang", "bf16") in offered("Qwen/Qwen3-8B", "tpu-v6e")


def test_formats_are_read_by_the_versions_that_have_them() -> None:
    device = find_accelerator("h100-sxm").value
    assert reads_format(engine("vllm", "0.23", device), "gguf")
    assert not reads_format(engine("vllm", "0.24", device), "gguf")
    assert reads_format(engine("vllm", "0.10.1", device), "mxfp4")
    assert not reads_format(engine("vllm", "0.9.2", device), "mxfp4")
