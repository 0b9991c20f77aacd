from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.machine.matmul import Kind
from estimator.model.architecture import Architecture
from estimator.model.weight_format import WeightFormat, weight_bytes
from estimator.plan.schema import WeightDtype
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import architecture, find_architecture
from knowledge.models.known import models
from knowledge.models.weight_formats import matrix_bits, plan_format, weight_format, weight_formats, weight_rules

GIB = 2**30
_SIZES = Path(__file__).parents[1] / "data" / "gguf_sizes.csv"
GGUF_FILES = list(csv.DictReader(line for line in _SIZES.read_text().splitlines() if not line.startswith("#")))

# What files hold beside the weights that an engine loads: the vocabulary in their header (bytes of bartowski's
# Qwen3-1.7B over its weights, below), and of gemma-4-E4B keys and values of the 18 layers that read those of others:
# 15 of 2 heads of 256 and 3 of 2 heads of 512 (num_kv_shared_layers), over a width of 2,560.
BYTES_OF_A_TOKEN = 39.17
UNREAD = {"google/gemma-4-E4B-it": (15 * 256 + 3 * 512) * 2 * 2 * 2560}

# Bits per weight of the files of Llama-3.1-8B (llama.cpp tools/quantize/README.md @311c2c9f). Those of iq4 were made
# without an importance matrix, which ours have: 0.6 to 0.8 % more.
LLAMA_8B = {
    "f16": 16.0005, "q8_0": 8.5008, "q6_k": 6.5633, "q5_k_m": 5.7036, "q5_k_s": 5.5704, "q4_k_m": 4.8944,
    "q4_k_s": 4.6672, "iq4_nl": 4.6818, "iq4_xs": 4.4597, "q3_k_l": 4.2979, "q3_k_s": 3.6429, "iq3_m": 3.7628,
    "iq3_xxs": 3.2548, "q2_k": 3.1593, "iq2_xs": 2.5882, "iq2_xxs": 2.3824,
    "iq3_s": 3.6606, "iq3_xs": 3.4977, "iq2_m": 2.9294, "iq2_s": 2.7403, "iq1_m": 2.1460, "iq1_s": 2.0042,
}  # fmt: skip
# GiB of Meta-Llama-3-70B (dranger003 in ggml-org/llama.cpp pull request 6745).
LLAMA_70B = {
    "f16": 131.43, "q8_0": 69.83, "q6_k": 53.91, "q5_k_m": 46.52, "q5_k_s": 45.32, "q4_k_m": 39.60, "q4_k_s": 37.58,
    "iq4_nl": 37.30, "iq4_xs": 35.30, "q3_k_l": 34.59, "q3_k_m": 31.91, "q3_k_s": 28.79, "iq3_m": 29.74,
    "iq3_xxs": 25.58, "q2_k": 24.56, "iq2_xs": 19.69, "iq2_xxs": 17.79,
}  # fmt: skip
# GB of published checkpoints, as their model cards and file lists print them.
CHECKPOINTS = [
    ("meta-llama/Meta-Llama-3-8B", "q4_k_m", "", 4.92),
    ("meta-llama/Meta-Llama-3-8B", "f16", "", 16.07),
    ("meta-llama/Meta-Llama-3-70B", "q4_k_m", "", 42.52),
    ("meta-llama/Llama-3.1-70B", "q4_0", "", 40.12),
    ("meta-llama/Llama-3.1-70B", "q5_k_m", "", 49.95),
    ("meta-llama/Llama-2-7b-hf", "q4_k_m", "", 4.08),
    ("meta-llama/Llama-2-70b-hf", "q4_0", "", 38.87),
    ("meta-llama/Llama-2-13b-hf", "q4_k_m", "", 7.87),
    ("meta-llama/Llama-2-7b-hf", "gptq", "", 3.90),
    ("meta-llama/Llama-2-70b-hf", "awq", "", 36.61),
    ("mistralai/Mixtral-8x7B-v0.1", "awq", "", 24.65),
    ("openai/gpt-oss-120b", "mxfp4", "", 60.8 * GIB / 1e9),
    ("openai/gpt-oss-20b", "mxfp4", "", 12.8 * GIB / 1e9),
]


def held_by(name: str, model: str, engine: str = "") -> tuple[WeightFormat, Architecture]:
    """The format as a model is held in it, and the model."""
    built = architecture(model)
    return weight_format(name, engine, built), built


@pytest.mark.parametrize(("kind", "bits"), LLAMA_8B.items())
def test_bits_per_weight_of_an_8b_file(kind: str, bits: float) -> None:
    held, model = held_by(kind, "meta-llama/Llama-3.1-8B")
    size = weight_bytes(held, model) * 8 / model.parameters
    assert size == pytest.approx(bits, rel=0.01 if kind.startswith("iq4") else 1e-4)


@pytest.mark.parametrize(("kind", "gib"), LLAMA_70B.items())
def test_size_of_a_70b_file(kind: str, gib: float) -> None:
    assert weight_bytes(*held_by(kind, "meta-llama/Meta-Llama-3-70B")) / GIB == pytest.approx(gib, rel=0.006)


@pytest.mark.parametrize(("model", "name", "engine", "gigabytes"), CHECKPOINTS)
def test_size_of_published_checkpoints(model: str, name: str, engine: str, gigabytes: float) -> None:
    assert weight_bytes(*held_by(name, model, engine)) / 1e9 == pytest.approx(gigabytes, rel=0.006)


@pytest.mark.parametrize("row", GGUF_FILES, ids=lambda row: f"{row['model']}-{row['format']}")
def test_size_of_a_gguf_file(row: dict[str, str]) -> None:
    held, model = held_by(row["format"], row["model"], "llamacpp")
    printed = 0.5 * 10.0 ** -len(row["gb"].partition(".")[2])
    weights = weight_bytes(held, model) * (1 + UNREAD.get(row["model"], 0) / model.parameters)
    size = weights + BYTES_OF_A_TOKEN * model.vocab
    assert size / 1e9 == pytest.approx(float(row["gb"]), abs=0.01 * float(row["gb"]) + printed)


# Bytes of bartowski/Qwen_Qwen3-1.7B-GGUF at dcb19155 by the API of huggingface.co, with an output that is not tied.
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("q8_0", 2_165_039_520), ("q6_k_l", 1_823_728_032), ("q6_k", 1_673_007_520), ("q5_k_l", 1_663_852_960),
        ("q5_k_m", 1_471_805_856), ("q4_k_l", 1_513_382_304), ("q4_k_m", 1_282_439_584), ("q3_k_xl", 1_409_474_976),
        ("q3_k_l", 1_137_205_664), ("q2_k_l", 1_183_768_992), ("q2_k", 879_896_992), ("iq4_xs", 1_175_689_632),
    ],
)  # fmt: skip
def test_sizes_of_the_files_of_one_maker(kind: str, size: int) -> None:
    model = replace(architecture("Qwen/Qwen3-1.7B"), tied=False)
    assert weight_bytes(weight_format(kind, "llamacpp", model), model) == pytest.approx(size, rel=0.01)


def test_a_mix_that_is_not_published_is_said_to_be_one() -> None:
    for name, is_mix in (("Qwen3-30B-A3B-UD-Q4_K_XL", True), ("unsloth/Qwen3-8B-GGUF:UD-IQ2_XXS", True),
                         ("Qwen3-8B-Q4_K_M.gguf", False), ("Qwen3-8B-Q4_K_L.gguf", False)):  # fmt: skip
        assert any("Unsloth's own" in note for note in architecture(name).notes) == is_mix, name


def test_tables_of_each_layer_are_held_as_the_embedding() -> None:
    """Not as vectors: they are more than a third of Gemma 4 E4B."""
    held, model = held_by("q8_0", "google/gemma-4-E4B-it", "llamacpp")
    bare = replace(
        model,
        extra_parameters=model.extra_parameters - model.layer_embedding_parameters,
        layer_embedding_parameters=0,
    )
    tables = weight_bytes(held, model) - weight_bytes(held, bare)
    assert model.layer_embedding_parameters > model.parameters / 3
    assert tables * 8 == pytest.approx(model.layer_embedding_parameters * held.embedding_bits)


def test_every_kind_of_file_can_be_planned_for() -> None:
    kinds = {plan_format(name) for name in weight_formats() if name.startswith(("q", "iq"))}
    assert kinds <= set(get_args(WeightDtype))


def test_every_format_of_a_plan_is_known() -> None:
    for name in get_args(WeightDtype):
        assert weight_format(name).source


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("FP4", "nvfp4"),
        ("NVFP4", "nvfp4"),
        ("Q4_K_M", "q4_k_m"),
        ("Q4-K-M", "q4_k_m"),
        ("4bit", "int4"),
        (" BFloat16 ", "bf16"),
        ("f16", "fp16"),
        ("GGUF", "q4_k_m"),
        ("w8a8", "int8"),
        ("MXFP4", "mxfp4"),
    ],
)
def test_names_are_read(said: str, means: str) -> None:
    assert weight_format(said).name == means


def test_no_alias_means_two_formats() -> None:
    own = set(weight_formats())
    assert all(weight_format(name).name == name for name in own)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError) as caught:
        weight_format("q4_k_x")
    assert caught.value.field == "workload.weight_dtype"
    assert {"q4_k_m", "q4_k_s"} <= set(caught.value.valid)
    with pytest.raises(PlanError):
        weight_format("")


@pytest.mark.parametrize("name", weight_formats())
def test_every_format_is_complete(name: str) -> None:
    held = weight_format(name)
    assert held.source
    for kernels in (held.kernels, held.expert_kernels):
        assert not kernels[-1].needs
        assert all(one.kind in get_args(Kind) for one in kernels)
        assert all(3.0 < one.activation_bits <= 32.0 for one in kernels)
    assert held.group >= 0
    assert 1.5 < held.bits <= 32.0


def test_order_of_sizes() -> None:
    order = ["iq2_xxs", "iq2_xs", "q2_k", "iq3_xxs", "q3_k_s", "iq3_m", "q3_k_m", "q3_k_l", "iq4_xs", "q4_0", "q4_k_s",
             "q4_k_m", "q4_1", "q5_k_s", "q5_k_m", "q5_1", "q6_k", "q8_0", "fp16", "fp32"]  # fmt: skip
    bits = [weight_format(name).bits for name in order]
    assert bits == sorted(bits)
    assert weight_format("q4_k_m").bits == pytest.approx(4.7975, abs=1e-4)


def test_what_the_engine_changes() -> None:
    ours = {engine: weight_format("int4", engine) for engine in ("vllm", "gpt-fast", "mlc")}
    assert [held.bits for held in ours.values()] == [4.15625, 5.0, 4.5]
    assert ours["vllm"].head_bits == 16
    assert ours["mlc"].head_bits == ours["mlc"].embedding_bits == 4.5
    peaks = find_accelerator("a100-sxm-80gb").value.peak_flops
    assert weight_format("int8", "gpt-fast").kernel(peaks).kind == "int8_weights"
    assert weight_format("int8", "vllm").kernel(peaks).kind == "int8"


@pytest.mark.parametrize(
    ("name", "device", "kind", "activations"),
    [
        ("fp8", "h100-sxm", "fp8", 8),
        ("fp8", "a100-sxm-80gb", "int8_weights", 16),
        ("nvfp4", "b200-sxm", "nvfp4", 4.5),
        ("nvfp4", "h100-sxm", "int4_weights", 16),
        ("mxfp4", "b200-sxm", "fp8_block", 8.25),
        ("mxfp4", "h100-sxm", "int4_weights", 16),
        ("awq", "l40s", "int4_weights", 16),
        ("q4_k_m", "rtx-4090", "int8", 9),
        ("q4_k_m", "apple-m2-ultra", "int4_weights", 16),
        ("bf16", "v100-sxm-16gb", "bf16", 16),
    ],
)
def test_what_multiplies_the_experts(name: str, device: str, kind: str, activations: float) -> None:
    kernel = weight_format(name).experts.kernel(find_accelerator(device).value.peak_flops)
    assert (kernel.kind, kernel.activation_bits) == (kind, activations)


def test_only_experts_of_gpt_oss_have_four_bits() -> None:
    held, _ = held_by("mxfp4", "openai/gpt-oss-120b")
    assert (held.expert_bits, held.bits, held.router_bits, held.head_bits) == (4.25, 16, 16, 16)
    peaks = find_accelerator("b200-sxm").value.peak_flops
    assert (held.kernel(peaks).kind, held.experts.kernel(peaks).kind) == ("bf16", "fp8_block")
    assert held.experts.bits == 4.25
    file, _ = held_by("mxfp4", "openai/gpt-oss-120b", "llamacpp")
    assert (file.expert_bits, file.bits, file.router_bits, file.head_bits) == (4.25, 8.5, 32, 8.5)


def test_attention_of_mla_models_stays_in_16_bits_with_nvfp4() -> None:
    rules = weight_rules("nvfp4")
    model = architecture("deepseek-ai/DeepSeek-R1")
    bits = {one.name: matrix_bits(rules, one, model.blocks[-1], model.layers) for one in model.blocks[-1].matrices}
    assert (bits["kv_b_proj"], bits["down_proj"], bits["shared_up_proj"]) == (16, 4.5, 4.5)
    assert 4.5 < weight_format("nvfp4", "", model).bits < 16
    assert held_by("nvfp4", "meta-llama/Llama-3.1-8B")[0].bits == 4.5


def test_given_bits_are_those_of_the_blocks() -> None:
    held = weight_format("exl2", "exllamav2", None, 3.0)
    assert (held.bits, held.expert_bits, held.head_bits, held.embedding_bits) == (3.0, 3.0, 6.3, 16)


def test_rows_that_no_block_divides_take_wider_types() -> None:
    held, model = held_by("q4_k_m", "Qwen/Qwen2.5-0.5B")  # 896 wide, embedding and head are one
    assert model.hidden % 256
    assert held.embedding_bits == held.head_bits == 8.5
    assert held.bits > weight_format("q4_k_m").bits


def test_few_queries_keep_a_large_value_projection_small() -> None:
    assert held_by("iq4_xs", "meta-llama/Llama-2-7b-hf")[0].bits == 4.25
    assert held_by("iq4_xs", "meta-llama/Llama-3.1-8B")[0].bits > 4.25


@settings(deadline=None)
@given(st.sampled_from(weight_formats()), st.sampled_from([row.id for row in models()]))
def test_sizes_lie_between_the_smallest_and_the_widest_type(name: str, model: str) -> None:
    held, built = held_by(name, model)
    size = weight_bytes(held, built)
    assert 1.5 / 8 * built.parameters < size <= 4 * built.parameters * (1 + 1e-9)
    assert 1.5 < held.bits <= 32
    assert 1.5 < held.expert_bits <= 32


# GB that ollama.com/library prints beside tags without a format (D3rhami/ollama_gallery @5d4b6561, 2026-07-15).
@pytest.mark.parametrize(
    ("tag", "kind", "gb"),
    [
        ("llama3.2:1b", "q8_0", 1.3), ("llama3.2:1b-instruct", "q8_0", 1.3), ("llama3.2:3b", "q4_k_m", 2.0),
        ("codellama:34b", "q4_0", 19), ("llama3:8b", "q4_0", 4.7), ("llama3:70b", "q4_0", 40),
        ("qwen2:7b", "q4_0", 4.4),
        ("smollm2:360m", "fp16", 0.726), ("falcon3:1b", "q8_0", 1.8), ("deepseek-r1:671b", "q4_k_m", 404),
        ("mistral:7b", "q4_k_m", 4.4), ("mistral:v0.2", "q4_0", 4.1), ("gpt-oss:120b", "mxfp4", 65),
    ],
)  # fmt: skip
def test_a_tag_of_ollama_loads_what_its_library_holds(tag: str, kind: str, gb: float) -> None:
    model, _ = find_architecture(tag)
    assert model.weight_format == kind
    size = weight_bytes(weight_format(kind, architecture=model), model) + BYTES_OF_A_TOKEN * model.vocab
    printed = 0.5 * 10.0 ** (1 - len(str(gb).replace(".", "").lstrip("0")) + math.floor(math.log10(gb)))
    assert size / 1e9 == pytest.approx(gb, abs=0.02 * gb + printed)
