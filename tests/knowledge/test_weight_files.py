"""Models as files: a GGUF header, safetensors headers and their index, and what a config says it is quantised in."""

from __future__ import annotations

import contextlib
import json
import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weight_files import CONFIG, gguf, llama_metadata, llama_tensors, qwen3_tensors, safetensors, write_folder

from estimator.errors import PlanError
from estimator.model.weight_format import weight_bytes
from estimator.plan.schema import Plan
from knowledge.jobs.serving import serving_job
from knowledge.models.catalogue import architecture
from knowledge.models.quantization import published_format
from knowledge.models.weight_formats import weight_format

# Bytes of a weight in Q4_K, Q6_K and F32 (llama.cpp ggml-common.h: 144 and 210 bytes for 256 weights).
BYTES = {12: 144 / 256, 14: 210 / 256, 0: 4.0}


def held_bytes(path: Path, engine: str = "llamacpp") -> float:
    model = architecture(str(path))
    return weight_bytes(weight_format(model.weight_format or "bf16", engine, model), model)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_a_gguf_header_says_the_model_and_its_bytes(tmp_path: Path, tied: bool, version: int) -> None:
    tensors = llama_tensors(tied)
    path = tmp_path / "tiny-Q4_K_M.gguf"
    path.write_bytes(gguf(llama_metadata(), tensors, version))
    model = architecture(str(path))
    assert model.parameters == sum(prod(shape) for _, shape, _ in tensors)
    assert (model.weight_format, model.tied, model.context) == ("q4_k_m", tied, 4096)
    exact = sum(prod(shape) * BYTES[kind] for _, shape, kind in tensors)
    assert held_bytes(path) == pytest.approx(exact, rel=1e-9)


def test_all_parts_of_a_split_file_are_counted(tmp_path: Path) -> None:
    tensors = llama_tensors()
    whole = tmp_path / "whole.gguf"
    whole.write_bytes(gguf(llama_metadata(), tensors))
    first, second = (tmp_path / f"model-0000{i}-of-00002.gguf" for i in (1, 2))
    first.write_bytes(gguf(llama_metadata(), tensors[:7]))
    with pytest.raises(PlanError, match="model-00002-of-00002"):
        architecture(str(first))
    second.write_bytes(gguf({"split.no": 1}, tensors[7:]))
    assert held_bytes(first) == held_bytes(whole)
    assert architecture(str(second)).parameters == architecture(str(whole)).parameters


def test_a_file_is_served_by_what_reads_it_and_in_its_own_bytes(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf(llama_metadata(), llama_tensors()))
    plan = {"model": str(path), "workload": {"kind": "inference"}, "cluster": {"accelerator": "rtx-4090", "count": 1}}
    job = serving_job(Plan.parse(plan))
    assert job.engine.name == "llamacpp"
    assert weight_bytes(job.weights, job.architecture) == pytest.approx(held_bytes(path))


def test_layers_that_predict_further_tokens_are_no_layers_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "further.gguf"
    further = [(f"blk.2.{name}", shape, kind) for name, shape, kind in (("nextn.eh_proj.weight", (512, 256), 12),)]
    path.write_bytes(gguf(llama_metadata(nextn_predict_layers=1) | {"llama.block_count": 3}, llama_tensors() + further))
    assert architecture(str(path)).layers == 2


def test_an_unknown_architecture_is_taken_by_its_name_where_the_weights_agree(tmp_path: Path) -> None:
    unknown = tmp_path / "Zorg-1B.gguf"
    unknown.write_bytes(gguf(llama_metadata("zorg"), llama_tensors()))
    with pytest.raises(PlanError, match="zorg"):
        architecture(str(unknown))
    known = tmp_path / "Llama-3.2-1B-Instruct-Q4_K_M.gguf"
    count = architecture("Llama-3.2-1B-Instruct").parameters
    known.write_bytes(gguf(llama_metadata("zorg"), [("token_embd.weight", (256, count // 256 + 1), 12)]))
    model = architecture(str(known))
    assert model.parameters == count
    assert any("as many weights" in note for note in model.notes)


@pytest.mark.parametrize(
    "content",
    [
        b"GGUF",
        b"GGUF" + struct.pack("<IQQ", 3, 2**60, 1),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 2**60),
        b"GGUF" + struct.pack("<IQQ", 9, 1, 1),
        b"GGUF" + struct.pack("<IQQQ", 3, 1, 1, 2**62),
        gguf(llama_metadata(), [("token_embd.weight", (2**40, 2**40), 12)]),
        gguf(llama_metadata(), [("token_embd.weight", (256, 256), 99)]),
        gguf(llama_metadata(), [("token_embd.weight", (100, 256), 12)]),
        gguf(llama_metadata(), [("token_embd.weight", (256, 256), 12)])[:-20],
        gguf({"general.architecture": "bert"}, []),
        gguf({}, []),
    ],
)
def test_a_hostile_header_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(PlanError) as caught:
        architecture(str(path))
    assert caught.value.field.startswith("model")


@given(st.data())
def test_a_changed_byte_gives_a_model_or_a_plan_error(tmp_path_factory: Any, data: st.DataObject) -> None:
    content = bytearray(gguf(llama_metadata(), llama_tensors()))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("changed") / "changed.gguf"
    path.write_bytes(bytes(content))
    with contextlib.suppress(PlanError):
        assert architecture(str(path)).parameters > 0


@pytest.mark.parametrize(("kind", "width"), [("BF16", 2.0), ("F8_E4M3", 1.0)])
def test_the_headers_of_safetensors_give_the_bytes(tmp_path: Path, kind: str, width: float) -> None:
    stated = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}} if width == 1 else {}
    folder = write_folder(tmp_path / "model", kind, **stated)
    sizes = {"BF16": 2, "F8_E4M3": 1, "F32": 4}
    exact = sum(sizes[dtype] * prod(shape) for dtype, shape in qwen3_tensors(kind).values())
    for path in (folder, folder / "config.json", folder / "model.safetensors"):
        assert held_bytes(path, "vllm") == pytest.approx(exact, rel=1e-9)
    assert architecture(CONFIG | stated).weight_format == ("fp8_block" if width == 1 else "")


def test_an_index_gives_the_sum_of_its_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    names = dict.fromkeys(qwen3_tensors(), "model-00001-of-00001.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 2_000_000}, "weight_map": names}))
    for path in (folder, index):
        assert held_bytes(path, "vllm") == pytest.approx(2_000_000)
    (folder / "model-00001-of-00001.safetensors").write_bytes(safetensors(qwen3_tensors()))
    assert held_bytes(folder, "vllm") == pytest.approx(2 * architecture(CONFIG).parameters)


def test_the_vision_part_of_a_file_stands_apart(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    tower = {"visual.blocks.0.attn.qkv.weight": ("BF16", (512, 512))}
    (folder / "model.safetensors").write_bytes(safetensors(qwen3_tensors() | tower))
    model = architecture(str(folder))
    assert held_bytes(folder, "vllm") == pytest.approx(2 * model.parameters)
    assert any("524,288 bytes" in note for note in model.notes)


def test_safetensors_without_a_config_say_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(qwen3_tensors()))
    with pytest.raises(PlanError, match=r"put its config\.json beside it"):
        architecture(str(path))


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 8, struct.pack("<Q", 2**40), struct.pack("<Q", 50) + b"{}", struct.pack("<Q", 2) + b"[]",
     safetensors({"a.weight": ("Q9", (2, 2))}), safetensors({"a.weight": ("BF16", (2**40, 2**40))})],
)  # fmt: skip
def test_hostile_safetensors_are_refused(tmp_path: Path, content: bytes) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(PlanError, match="model"):
        architecture(str(folder))


QUANTISED: list[tuple[dict[str, Any], str]] = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
    ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8"),
    ({"quant_method": "fbgemm_fp8"}, "fp8"),
    ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}, "mxfp4"),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq"),
    ({"quant_method": "gptq", "bits": 4}, "gptq"),
    ({"quant_method": "gptq", "bits": 8}, "int8"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
    ({"quant_method": "hqq", "nbits": 4}, "int4"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, "mxfp4_linear"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, "fp8"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}, "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["*self_attn*", "lm_head"]}, "nvfp4_mlp"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
    (
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["re:.*self_attn.*", "lm_head"],
         "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}},
        "int4_experts",
    ),
    (
        {"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
         "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}},
        "fp8",
    ),
    (
        {"quant_method": "compressed-tensors", "format": "int-quantized",
         "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}},
        "int8",
    ),
    ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "nvfp4"),
    (
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
            "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"}, "lm_head": {"quant_algo": "W4A16_NVFP4"},
            "model.layers.0.mlp.up_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16}}},
        "fp8_nvfp4_mlp",
    ),
    (
        {"quant_algo": "MIXED_PRECISION", "quantized_layers": {
            "layers.0.mixer.in_proj": {"quant_algo": "FP8"}, "layers.1.mixer.experts.up": {"quant_algo": "NVFP4"}}},
        "fp8_nvfp4",
    ),
    (
        {"quant_method": "fp8", "quant_algo": "MIXED_PRECISION", "moe_quant_algo": "NVFP4",
         "weight_block_size": [128, 128], "ignore": ["*.attn.*"]},
        "fp8_nvfp4",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("stated", "expected"), QUANTISED)
def test_what_a_config_says_it_is_quantised_in(stated: dict[str, Any], expected: str) -> None:
    assert published_format({"quantization_config": stated}) == (expected, "")
    assert architecture(CONFIG | {"quantization_config": stated}).weight_format == expected
    weight_format(expected)


def test_where_attention_is_left_it_depends_on_what_else_there_is() -> None:
    """As ModelOpt leaves it in models without shared experts, with them, and with those of MLA (DeepSeek-V3.1)."""
    stated = {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.*.self_attn*"]}
    spared = stated | {"exclude_modules": [*stated["exclude_modules"], "model.*.mlp.shared_experts*"]}
    routed = CONFIG | {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    shared = routed | {"n_shared_experts": 1}
    latent = shared | {"kv_lora_rank": 512}
    read = [
        published_format(config | {"quantization_config": how})[0]
        for config, how in ((CONFIG, stated), (routed, stated), (shared, stated), (shared, spared), (latent, stated))
    ]
    assert read == ["nvfp4_mlp", "nvfp4_experts", "nvfp4_mlp", "nvfp4_experts", "nvfp4"]


def test_the_file_of_modelopt_beside_a_config_says_its_format(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    plain = architecture(str(folder))
    written = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (folder / "hf_quant_config.json").write_text(json.dumps(written))
    assert (plain.weight_format, architecture(str(folder)).weight_format) == ("", "fp8")


def test_of_mlx_the_bits_are_read() -> None:
    assert published_format({"quantization": {"group_size": 64, "bits": 4}}) == ("int4", "")


def test_a_quantisation_that_is_not_known_is_said() -> None:
    notes = architecture(CONFIG | {"quantization_config": {"quant_method": "zorg"}}).notes
    assert any("zorg" in note for note in notes)


def test_what_is_no_mapping_and_what_is_no_gguf_file_is_said(tmp_path: Path) -> None:
    assert published_format({"quantization_config": "fp8"})[1] == "quantization_config is no mapping: taken as 16 bits"
    (tmp_path / "odd.gguf").write_bytes(b"GGUX" + bytes(40))
    with pytest.raises(PlanError, match="does not begin as a GGUF file does"):
        architecture(str(tmp_path / "odd.gguf"))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
                        ["quant_method", "bits", "config_groups", "weights", "ignore", "quant_algo", "format"]), inner,
                        max_size=4), max_leaves=12))  # fmt: skip
def test_any_quantisation_is_read_or_said(stated: Any) -> None:
    name, unread = published_format({"quantization_config": stated})
    assert not (name and unread)
