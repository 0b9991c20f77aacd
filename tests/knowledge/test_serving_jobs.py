"""From a serving plan to everything that formulas need: names read, gaps filled and said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.model.weight_format import weight_bytes
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from knowledge.data_files import document
from knowledge.engines import engine as find_engine
from knowledge.engines import engines_known, runs_on
from knowledge.fitted.serving import ENGINE, SHARED, SPREADS, serving_factors
from knowledge.jobs.serving import serving_job
from knowledge.machines.catalogue import accelerators, find_accelerator

SMALL = "meta-llama/Llama-3.1-8B"


def make(
    model: str = SMALL,
    accelerator: str | None = "h100-sxm",
    count: int | None = None,
    layout: dict[str, int] | None = None,
    **workload: Any,
) -> ServingJob:
    cluster = {name: value for name, value in {"accelerator": accelerator, "count": count}.items() if value is not None}
    return serving_job(
        Plan.parse(
            {"model": model, "cluster": cluster, "layout": layout or {}, "workload": {"kind": "inference"} | workload}
        )
    )


def said(job: ServingJob) -> dict[str, Any]:
    return {one.field: one.value for one in job.assumptions}


def test_what_was_not_given_is_filled_and_said() -> None:
    job = make()
    assert said(job) == {
        "cluster.count": 1, "workload.input_len": 1024, "workload.output_len": 256, "workload.engine": "vllm",
        "workload.weight_dtype": "bf16", "workload.scenario": "server", "workload.concurrency": 32,
        "workload.kv_dtype": "auto",
    }  # fmt: skip
    assert job.inference.concurrency == 32
    assert all(one.why for one in job.assumptions)


def test_what_was_given_is_no_assumption() -> None:
    given_all = {
        "input_len": 100, "output_len": 10, "engine": "sglang", "weight_dtype": "fp8", "scenario": "server",
        "concurrency": 4, "kv_dtype": "bf16",
    }  # fmt: skip
    found = said(make(count=1, **given_all))
    assert not {name for name in found if name.startswith(("workload", "cluster"))}
    assert said(make(count=1))["workload.concurrency"] == 32


@pytest.mark.parametrize(
    ("workload", "field", "value"),
    [
        ({"request_rate": 3.0}, "workload.concurrency", "absent"),
        ({"scenario": "offline"}, "workload.concurrency", "absent"),
        ({"scenario": "single-stream"}, "workload.concurrency", "absent"),
        ({"ttft_slo_ms": 100}, "workload.request_rate", None),
        ({"tpot_slo_ms": 100, "scenario": "interactive"}, "workload.request_rate", None),
        ({"tpot_slo_ms": 100, "concurrency": 3}, "workload.request_rate", "absent"),
    ],
)
def test_how_requests_come_is_said_where_it_is_not_given(workload: dict[str, Any], field: str, value: Any) -> None:
    assert said(make(**workload)).get(field, "absent") == value


def test_devices_are_those_of_the_layout_unless_given() -> None:
    split = make(layout={"tp": 4, "pp": 2})
    assert split.machine.count == said(split)["cluster.count"] == 8
    assert "cluster.per_node" in said(split)
    assert make(count=2).machine.count == 2
    wide = make(count=16)
    assert wide.machine.nodes == 2
    assert said(wide)["cluster.interconnect"] == wide.machine.network.name


def test_names_are_read_in_any_usual_spelling() -> None:
    job = make(model="llama 3.1 8b", accelerator="NVIDIA H100 SXM", engine="TensorRT-LLM", weight_dtype="FP8")
    assert (job.architecture.id, job.machine.accelerator.id) == (SMALL, "h100-sxm")
    assert (job.engine.name, job.weights.name) == ("trtllm", "fp8")
    assert said(job)["cluster.accelerator"] == "h100-sxm"


@pytest.mark.parametrize(
    ("spelt", "name"),
    [
        ("FP4", "nvfp4"), ("NVFP4", "nvfp4"), ("4bit", "int4"), ("w4a16", "int4"), ("Q4_K_M", "q4_k_m"),
        ("gguf", "q4_k_m"), ("F16", "fp16"), ("half", "fp16"), ("BFloat16", "bf16"), ("float8", "fp8"),
        ("8bit", "int8"), ("AWQ", "awq"), ("Q8_0", "q8_0"), ("MXFP4", "mxfp4_linear"),
    ],
)  # fmt: skip
def test_formats_by_any_of_their_names(spelt: str, name: str) -> None:
    assert make(weight_dtype=spelt).weights.name == name


@pytest.mark.parametrize("version", [None, "0.9.1", "0.14.0", "0.24.0"])
def test_four_bits_of_a_dense_model_are_four_bits_in_every_version(version: str | None) -> None:
    job = make("llama-3.1-70b", "mi355x", engine="vllm", weight_dtype="mxfp4", software_version=version)
    assert job.weights.name == "mxfp4_linear"
    assert job.kernel.activation_bits < 8


@pytest.mark.parametrize(
    ("spelt", "name"),
    [
        ("vLLM", "vllm"), ("SGLang", "sglang"), ("TRT-LLM", "trtllm"), ("tensorrt_llm", "trtllm"), ("NIM", "trtllm"),
        ("llama.cpp", "llamacpp"), ("llama-cpp", "llamacpp"), ("transformers", "hf"), ("HF", "hf"), ("MLC-LLM", "mlc"),
        ("ExLlamaV2", "exllamav2"), ("gpt-fast", "gpt-fast"),
    ],
)  # fmt: skip
def test_engines_by_any_of_their_names(spelt: str, name: str) -> None:
    assert make(engine=spelt).engine.name == name


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"accelerator": None}, r"cluster.accelerator: which accelerator.*h100"),
        ({"accelerator": "h1000"}, r"cluster.accelerator: .*h100"),
        ({"model": "meta-llama/Llama-9"}, r"model: "),
        (
            {"accelerator": "mi300x", "engine": "trtllm"},
            r"workload.engine: trtllm does not run on .*MI300X.*; valid: vllm",
        ),
        (
            {"accelerator": "apple-m3-max", "engine": "vllm"},
            r"workload.engine: vllm does not run on .*; valid: llamacpp",
        ),
    ],
)
def test_what_is_not_known_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        make(**fields)


def test_a_training_plan_is_refused() -> None:
    with pytest.raises(PlanError, match=r"workload.kind: .*serving.*inference"):
        serving_job(Plan.parse({"model": SMALL, "cluster": {"accelerator": "h100-sxm"}}))


def test_the_usual_engine_of_macs_cpus_and_cards_without_narrow_formats_is_llama_cpp_unless_one_is_named() -> None:
    for accelerator in ("apple-m3-max", "cpu-xeon-8480plus", "ryzen-ai-max-395-128gb", "rx-7900-xtx"):
        job = make(accelerator=accelerator)
        assert job.engine.name == said(job)["workload.engine"] == "llamacpp"
        assert [one.field for one in job.assumptions].count("workload.engine") == 1
        assert make(accelerator=accelerator, engine="hf").engine.name == "hf"


@pytest.mark.parametrize("accelerator", ["rtx-5090", "rtx-4090", "a100-sxm-80gb"])
@pytest.mark.parametrize(("weights", "reading"), [("q4_k_m", "llamacpp"), ("q8_0", "llamacpp"), ("awq", "vllm")])
def test_the_usual_engine_reads_the_weights_that_are_asked_for(accelerator: str, weights: str, reading: str) -> None:
    assert make(accelerator=accelerator, weight_dtype=weights).engine.name == reading


@pytest.mark.parametrize(
    ("model", "accelerator", "name", "kind"),
    [
        (SMALL, "h100-sxm", "fp8", "fp8"),
        ("deepseek-ai/DeepSeek-V3", "h100-sxm", "fp8_block", "fp8_block"),
        ("moonshotai/Kimi-K2-Instruct", "h200-sxm", "fp8_block", "fp8_block"),
        ("Qwen/Qwen3-32B", "h100-sxm", "fp8_block", "fp8_block"),
        ("Qwen/Qwen2.5-7B", "h100-sxm", "fp8", "fp8"),
        # Without units for 8 bits weights are unpacked.
        (SMALL, "a100-sxm-80gb", "fp8", "int8_weights"),
        ("deepseek-ai/DeepSeek-V3", "a100-sxm-80gb", "fp8_block", "int8_weights"),
    ],
)
def test_scales_of_eight_bits_are_those_of_the_family(model: str, accelerator: str, name: str, kind: str) -> None:
    job = make(model, accelerator, weight_dtype="fp8")
    assert (job.weights.name, job.kernel.kind) == (name, kind)


@pytest.mark.parametrize(
    ("accelerator", "dtype", "kind"),
    [
        ("b200-sxm", "nvfp4", "nvfp4"), ("h100-sxm", "nvfp4", "int4_weights"), ("h100-sxm", "awq", "int4_weights"),
        ("h100-sxm", "bf16", "bf16"), ("h100-sxm", "int8", "int8"), ("tpu-v7", "int8", "int8_weights"),
    ],
)  # fmt: skip
def test_kernels_are_those_that_the_device_has(accelerator: str, dtype: str, kind: str) -> None:
    job = make(accelerator=accelerator, weight_dtype=dtype)
    assert job.kernel.kind == kind
    assert job.peak_flops > 0


def test_only_experts_are_in_four_bits_in_mxfp4() -> None:
    hopper, blackwell = (make("openai/gpt-oss-120b", name, weight_dtype="mxfp4") for name in ("h100-sxm", "b200-sxm"))
    assert hopper.kernel.kind == blackwell.kernel.kind == "bf16"
    assert (hopper.expert_matmul.kind, blackwell.expert_matmul.kind) == ("int4_weights", "fp8_block")
    # 2880 columns are padded to 3072 by the kernels.
    assert hopper.expert_bytes == pytest.approx(4.25 / 8 * 3072 / 2880)
    assert hopper.block_bytes == pytest.approx(2.0)


def test_the_cache_is_what_the_engine_keeps_for_the_weights() -> None:
    kept = {
        (engine, dtype): make(engine=engine, weight_dtype=dtype).kv_dtype
        for engine in ("vllm", "sglang", "trtllm")
        for dtype in ("bf16", "fp8", "nvfp4", "awq")
    }
    assert {engine for (engine, _), dtype in kept.items() if dtype == "fp8"} == {"trtllm"}
    assert [kept["trtllm", dtype] for dtype in ("bf16", "fp8", "nvfp4", "awq")] == ["bf16", "fp8", "fp8", "bf16"]
    assert make(engine="trtllm", weight_dtype="fp8", kv_dtype="bf16").kv_dtype == "bf16"
    assert make(kv_dtype="fp8").kv_bytes == 1.0
    assert make().kv_bytes == 2.0
    assert "fp8" in next(
        one.why for one in make(engine="trtllm", weight_dtype="fp8").assumptions if one.field == "workload.kv_dtype"
    )


def test_an_engine_is_that_of_its_version_and_device() -> None:
    old, new = make(software_version="0.7.3"), make(software_version="0.10.0")
    assert (old.mixes, new.mixes) == (False, True)
    assert make(software_version="0.7.3", chunked_prefill=True).mixes
    assert make(accelerator="a100-sxm-80gb").engine.max_batch < make().engine.max_batch
    assert make(engine="llamacpp", software_version="b4000").engine.max_batch == 1


def test_given_bits_replace_those_of_the_format() -> None:
    job = make(engine="exllamav2", weight_dtype="exl2", weight_bits=3.5)
    assert job.block_bytes == pytest.approx(3.5 / 8)
    assert job.operand_bytes[1] == pytest.approx(3.5 / 8)


def test_links_and_memory_that_the_user_knows_come_first() -> None:
    plan = Plan.parse(
        {
            "model": SMALL,
            "cluster": {"accelerator": "h100-sxm", "count": 16},
            "workload": {"kind": "inference"},
            "overrides": {"usable_gib": 70, "reserve_gib": 2, "network_gb_per_s": 100},
        }
    )
    job = serving_job(plan)
    assert job.usable_bytes == 68 * 2**30
    assert job.machine.network.bandwidth_per_node == 100e9


def test_experts_are_chosen_unevenly_and_dense_models_have_none() -> None:
    assert make("Qwen/Qwen3-30B-A3B").expert_spread > 1.0
    assert make().expert_spread == 1.0


@settings(max_examples=examples(60))
@given(
    st.sampled_from([one.id for one in accelerators()]), st.sampled_from(engines_known()),
    st.sampled_from(["bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4", "q4_k_m"]),
    st.sampled_from([SMALL, "deepseek-ai/DeepSeek-V3", "ai21labs/Jamba-v0.1"]),
)  # fmt: skip
def test_every_device_engine_and_format_make_a_job_or_a_refusal_that_says_why(
    accelerator: str, engine: str, dtype: str, model: str
) -> None:
    device = find_accelerator(accelerator).value
    if not runs_on(find_engine(engine, None, device), device):
        with pytest.raises(PlanError, match=rf"workload.engine: {engine} does not run on") as caught:
            make(model, accelerator, engine=engine, weight_dtype=dtype)
        assert engine not in caught.value.valid
        return
    job = make(model, accelerator, engine=engine, weight_dtype=dtype)
    assert job.peak_flops > 0
    assert job.expert_peak_flops > 0
    assert job.kernel.kind in job.device.surfaces
    assert job.expert_matmul.kind in job.device.surfaces
    assert job.usable_bytes > 0
    for name in (*SHARED, *ENGINE, *SPREADS):
        assert getattr(job.factors, name) > 0, name


def test_factors_of_an_engine_and_a_device_are_multiplied() -> None:
    fitted = document("../serving_factors.yaml")
    engine, device = fitted["engines"]["vllm"], fitted["devices"]["Hopper"]
    found = serving_factors("vllm", "Hopper")
    for name in SHARED:
        assert getattr(found, name) == pytest.approx(engine[name] * device[name])
    for name in ENGINE:
        assert getattr(found, name) == engine[name]
    assert (found.engine_measured, found.device_measured, found.runs) == (True, True, engine["runs"])


def test_what_was_never_measured_has_the_interval_of_unseen_sources_at_least() -> None:
    fitted = document("../serving_factors.yaml")
    for engine, family in (("hf", "Hopper"), ("vllm", "Wormhole"), ("some engine", "some family")):
        found = serving_factors(engine, family)
        assert not (found.engine_measured and found.device_measured)
        for name in SPREADS:
            assert getattr(found, name) >= fitted["unmeasured"][name]


@pytest.mark.parametrize(
    ("model", "engine", "weight_dtype"),
    [
        ("llama3.1:8b", "llamacpp", "q4_k_m"),
        ("unsloth/Qwen3-30B-A3B-GGUF", "llamacpp", "q4_k_m"),
        ("deepseek-ai/DeepSeek-V3", "vllm", "fp8"),
        ("moonshotai/Kimi-K2.5", "vllm", "int4"),
        ("nvidia/Qwen3-235B-A22B-NVFP4", "vllm", "nvfp4"),
        ("Qwen/Qwen2.5-7B-Instruct", "vllm", "bf16"),
    ],
)
def test_weights_are_those_of_the_checkpoint_unless_others_are_asked_for(
    model: str, engine: str, weight_dtype: str
) -> None:
    def job(**workload: str) -> ServingJob:
        cluster = {"accelerator": "b200-sxm", "count": 8}
        whole = {"model": model, "workload": {"kind": "inference"} | workload, "cluster": cluster}
        return serving_job(Plan.parse(whole))

    own, plain = job(), job(weight_dtype="bf16", engine="vllm")
    assert (own.engine.name, own.inference.weight_dtype) == (engine, weight_dtype)
    assert plain.weights.name == "bf16"
    assert weight_bytes(own.weights, own.architecture) <= weight_bytes(plain.weights, plain.architecture)


def test_only_experts_are_in_four_bits_where_the_checkpoint_says_so() -> None:
    """Kimi-K2.5 is published at 595 GB (huggingface.co file list, as recalled)."""
    plan = {"model": "moonshotai/Kimi-K2.5", "workload": {"kind": "inference"}, "cluster": {"accelerator": "h200"}}
    job = serving_job(Plan.parse(plan))
    assert (job.weights.bits, job.weights.expert_bits) == (16, 4.5)
    assert weight_bytes(job.weights, job.architecture) == pytest.approx(595e9, rel=0.01)


@pytest.mark.parametrize(
    ("engine", "accelerator", "dtype"), [("ollama", "rtx-4090", "q4_k_m"), ("mlx", "apple-m4-max", "int4")]
)
def test_engines_of_one_s_own_machine_are_given_four_bits_unless_told_otherwise(
    engine: str, accelerator: str, dtype: str
) -> None:
    job = make(accelerator=accelerator, engine=engine)
    assert job.inference.weight_dtype == dtype
    assert said(job)["workload.weight_dtype"]
    assert make(accelerator=accelerator, engine=engine, weight_dtype="bf16").block_bytes == 2.0
    own = make("openai/gpt-oss-20b", accelerator=accelerator, engine=engine)
    assert own.inference.weight_dtype == "mxfp4"


def test_ollama_makes_room_for_its_usual_context_and_no_more_than_the_model_s() -> None:
    assert make(accelerator="rtx-4090", engine="ollama").inference.max_context == 32768
    longest = make("Qwen/Qwen2.5-7B-Instruct", accelerator="h100-sxm", engine="ollama")
    assert longest.inference.max_context == longest.architecture.context < 262144
    assert make(accelerator="rtx-4090", engine="ollama", max_context=8192).inference.max_context == 8192
