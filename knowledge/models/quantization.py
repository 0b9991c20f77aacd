"""What a checkpoint holds its weights in, by the quantization_config of its config.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# quant_method -> entry of weight_formats.yaml, where the method alone says it (transformers, quantizers/auto.py).
_BY_METHOD = {
    "awq": "awq", "mxfp4": "mxfp4", "exl2": "exl2", "fbgemm_fp8": "fp8", "fp8_e4m3": "fp8", "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
}  # fmt: skip
# quant_algo of ModelOpt's hf_quant_config.json (TensorRT-LLM, quantization/mode.py).
_BY_ALGORITHM = {
    "FP8": "fp8", "FP8_PB_WO": "fp8_block", "FP8_BLOCK_SCALES": "fp8_block", "NVFP4": "nvfp4", "NVFP4_AWQ": "nvfp4",
    "W4A16_AWQ": "awq", "W4A8_AWQ": "awq", "INT4_AWQ": "awq", "W8A16": "int8", "W8A8_SQ_PER_CHANNEL": "int8",
    "MXFP8": "mxfp8", "W4A8_MXFP4_FP8": "mxfp4",
}  # fmt: skip
_EXPERTS_ONLY = {"nvfp4": "nvfp4_experts", "int4": "int4_experts"}
_BY_BITS = {4: "int4", 8: "int8"}


def published_format(config: Mapping[str, Any]) -> tuple[str, str]:
    """(Entry of the weight formats, or '' for 16 bits; what could not be read of it, or '')."""
    stated = _mapping(config.get("quantization_config")) or _mapping(config.get("compression_config"))
    if not stated:
        stated = _mapping(config.get("quantization"))  # MLX: bits and group_size alone
        if not stated and isinstance(inner := config.get("text_config"), Mapping):
            return published_format(inner)
    if not stated:
        return "", ""
    method = str(stated.get("quant_method") or "").casefold()
    name = _named(method, stated)
    if name == "fp8_block" and str(config.get("expert_dtype")) == "fp4":
        name = "fp8_mxfp4"
    if name in _EXPERTS_ONLY and _spares_attention(stated):
        name = _EXPERTS_ONLY[name]
    if name == "mxfp4" and method != "mxfp4" and not _spares_attention(stated):
        name = "mxfp4_linear"  # gpt-oss's own method leaves everything but the experts
    unread = "" if name else f"quantization_config of {method or 'no quant_method'!r} is not known: taken as 16 bits"
    return name, unread


def _named(method: str, stated: Mapping[str, Any]) -> str:
    match method:
        case "fp8":
            return "fp8_block" if stated.get("weight_block_size") else "fp8"
        case "compressed-tensors" | "compressed_tensors":
            return _compressed(stated)
        case "modelopt" | "modelopt_fp4" | "modelopt_mixed":
            return _of_algorithm(stated)
        case "bitsandbytes":
            return "int4" if stated.get("load_in_4bit") else "int8"
        case "gptq":
            return "gptq" if stated.get("bits", 4) == 4 else _BY_BITS.get(_whole(stated.get("bits")), "")
        case "quark":
            return _weights(_mapping(_mapping(stated.get("global_quant_config")).get("weight")))
    if method in _BY_METHOD:
        return _BY_METHOD[method]
    return _BY_BITS.get(_whole(stated.get("bits") or stated.get("nbits")), "")


def _compressed(stated: Mapping[str, Any]) -> str:
    """compressed-tensors: the weights of its first group (quant_args.py, QuantizationArgs)."""
    packed = str(stated.get("format") or "")
    for prefix in ("nvfp4", "mxfp4", "mxfp8"):
        if packed.startswith(prefix):
            return prefix
    groups = _mapping(stated.get("config_groups"))
    weights = next((_mapping(_mapping(group).get("weights")) for group in groups.values()), {})
    bits, kind = _whole(weights.get("num_bits")), str(weights.get("type") or "int")
    if kind == "float":
        return {8: "fp8_block" if weights.get("strategy") == "block" else "fp8", 4: "nvfp4"}.get(bits, "")
    return _BY_BITS.get(bits, "")


def _of_algorithm(stated: Mapping[str, Any]) -> str:
    algorithm = str(stated.get("quant_algo") or _mapping(stated.get("quantization")).get("quant_algo") or "")
    if algorithm != "MIXED_PRECISION":
        return _BY_ALGORITHM.get(algorithm.upper(), "")
    layers = _mapping(stated.get("quantized_layers")).values()
    kinds = {str(_mapping(layer).get("quant_algo")) for layer in layers}
    return "fp8_nvfp4" if {"FP8", "NVFP4"} <= kinds else _BY_ALGORITHM.get(next(iter(sorted(kinds)), ""), "")


def _weights(weight: Mapping[str, Any]) -> str:
    """AMD Quark: the type of the weights."""
    kind = str(weight.get("dtype") or "")
    if kind.startswith("fp8"):
        return "fp8"
    return {"fp4": "mxfp4", "int4": "int4", "uint4": "int4", "int8": "int8"}.get(kind, "")


def _spares_attention(stated: Mapping[str, Any]) -> bool:
    """Whether what is left in 16 bits names attention: only experts are quantised."""
    names = [
        name
        for key in ("ignore", "exclude", "exclude_modules", "modules_to_not_convert")
        for name in _texts(stated.get(key))
    ]
    return any("self_attn" in name or "attention" in name for name in names)


def _texts(value: object) -> Iterable[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
