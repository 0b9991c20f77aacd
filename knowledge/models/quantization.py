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
    "MXFP8": "mxfp8", "W4A8_MXFP4_FP8": "mxfp4", "W4A16_NVFP4": "nvfp4", "W4A8_NVFP4_FP8": "nvfp4",
}  # fmt: skip
_EXPERTS_ONLY = {"nvfp4": "nvfp4_experts", "int4": "int4_experts"}
_FEED_ONLY = {"nvfp4": "nvfp4_mlp"}
_BY_BITS = {4: "int4", 8: "int8"}
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok")
_SHARED = ("n_shared_experts", "num_shared_experts", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
           "shared_expert_intermediate_size")  # fmt: skip
# What of a model attends or scans, in the names of tensors that ModelOpt lists.
_MIXERS = ("attn", "attention", "mixer.in_proj", "mixer.out_proj", "q_proj", "k_proj", "v_proj", "o_proj")


def published_format(config: Mapping[str, Any]) -> tuple[str, str]:
    """(Entry of the weight formats, or '' for 16 bits; what could not be read of it, or '')."""
    stated = _mapping(config.get("quantization_config")) or _mapping(config.get("compression_config"))
    if not stated:
        stated = _mapping(config.get("quantization"))  # MLX: bits and group_size alone
        if not stated and isinstance(inner := config.get("text_config"), Mapping):
            return published_format(inner)
    if not stated:
        odd = config.get("quantization_config") or {}
        return "", "" if isinstance(odd, Mapping) else "quantization_config is no mapping: taken as 16 bits"
    method = str(stated.get("quant_method") or "").casefold()
    name = _named(method, stated)
    if _BY_ALGORITHM.get(str(stated.get("moe_quant_algo")).upper()) == "nvfp4" and name.startswith("fp8"):
        name = "fp8_nvfp4"
    elif name == "fp8_block" and str(config.get("expert_dtype")) == "fp4":
        name = "fp8_mxfp4"
    if _spares_attention(stated):
        name = _without_attention(name, stated, config)
    if name == "mxfp4" and method != "mxfp4" and not _spares_attention(stated):
        name = "mxfp4_linear"  # gpt-oss's own method leaves everything but the experts
    unread = "" if name else f"quantization_config of {method or 'no quant_method'!r} is not known: taken as 16 bits"
    return name, unread


def beside(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The quantization_config that ModelOpt's hf_quant_config.json stands for; empty where it is not one."""
    inner = _mapping(stated.get("quantization"))
    return {**inner, "quant_method": "modelopt"} if inner.get("quant_algo") else {}


def _without_attention(name: str, stated: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The format where attention is left in 16 bits: of experts alone where shared experts are left too or there are
    none, else of the whole feed-forward part."""
    text = {**config, **_mapping(config.get("text_config"))}
    shares = any(text.get(field) for field in _SHARED)
    if any(text.get(field) for field in _EXPERTS) and (not shares or _spares(stated, "shared_expert", "layers.0*")):
        return _EXPERTS_ONLY.get(name, name)
    kept = _FEED_ONLY if not text.get("kv_lora_rank") else {"nvfp4": "nvfp4"}  # which leaves that of MLA anyway
    return kept.get(name, _EXPERTS_ONLY.get(name, name))


def _named(method: str, stated: Mapping[str, Any]) -> str:
    match method:
        case "fp8":
            return "fp8_block" if stated.get("weight_block_size") else "fp8"
        case "compressed-tensors" | "compressed_tensors":
            return _compressed(stated)
        case "" if stated.get("quant_algo"):
            return _of_algorithm(stated)
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
    kinds: dict[str, set[str]] = {"experts": set(), "mixers": set(), "feed": set()}
    for layer, how in _mapping(stated.get("quantized_layers")).items():
        kinds[_part(str(layer))].add(_BY_ALGORITHM.get(str(_mapping(how).get("quant_algo")).upper(), ""))
    routed, mixers, feed = (_only(kinds[part]) for part in ("experts", "mixers", "feed"))
    if routed == "nvfp4" and mixers.startswith(("fp8", "mxfp8")):
        return "fp8_nvfp4"
    if not routed and feed == "nvfp4" and mixers.startswith("fp8"):
        return "fp8_nvfp4_mlp"
    return _EXPERTS_ONLY.get(routed, routed) if routed and not mixers else routed or feed or mixers


def _part(layer: str) -> str:
    """Which part of a model a name of its tensors is of."""
    if "expert" in layer and "shared" not in layer:
        return "experts"
    return "mixers" if any(mark in layer for mark in _MIXERS) else "feed"


def _only(kinds: set[str]) -> str:
    """The format of a part; of several the one with the most bits."""
    return max(kinds, key=lambda kind: ("4" not in kind, kind), default="")


def _weights(weight: Mapping[str, Any]) -> str:
    """AMD Quark: the type of the weights."""
    kind = str(weight.get("dtype") or "")
    if kind.startswith("fp8"):
        return "fp8"
    return {"fp4": "mxfp4", "int4": "int4", "uint4": "int4", "int8": "int8"}.get(kind, "")


def _spares_attention(stated: Mapping[str, Any]) -> bool:
    """Whether what is left in 16 bits names attention."""
    return _spares(stated, "self_attn", "attention")


def _spares(stated: Mapping[str, Any], *parts: str) -> bool:
    """Whether what is left in 16 bits names one of these parts."""
    keys = ("ignore", "exclude", "exclude_modules", "modules_to_not_convert")
    return any(part in name for key in keys for name in _texts(stated.get(key)) for part in parts)


def _texts(value: object) -> Iterable[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
