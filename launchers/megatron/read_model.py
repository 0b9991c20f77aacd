"""The model of Megatron's arguments: the catalogue's of that name, or one by its dimensions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from launchers.reading.dimensions import model_of
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_certain, is_set

_DIMENSIONS = (
    "num_layers", "hidden_size", "num_attention_heads", "ffn_hidden_size", "num_query_groups", "kv_channels",
    "vocab_size", "max_position_embeddings", "seq_length", "normalization", "position_embedding_type",
    "num_experts", "moe_router_topk", "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size",
)  # fmt: skip


_SWITCHES = (
    "swiglu", "untie_embeddings_and_output_weights", "disable_bias_linear", "add_qkv_bias", "group_query_attention",
    "qk_layernorm",
)  # fmt: skip


# Arguments of the model that Megatron has and an inline model of a Plan has not.
_SPECIAL = ("hybrid_override_pattern", "experimental_attention_variant")
# Switches that are a field of a config, and sizes of latent attention with what they are unless given
# (megatron/core/transformer/transformer_config.py MLATransformerConfig).
_FIELDS = {
    "squared_relu": {"hidden_act": "relu2", "mlp_gated": False},
    "quick_geglu": {"mlp_gated": True},
    "moe_router_enable_expert_bias": {"router_score_bias": True},
    "moe_shared_expert_gate": {"shared_expert_gate": True},
}
_LATENT = {
    "kv_lora_rank": ("kv_lora_rank", 512), "q_lora_rank": ("q_lora_rank", None),
    "qk_head_dim": ("qk_nope_head_dim", 128), "qk_pos_emb_head_dim": ("qk_rope_head_dim", 64),
    "v_head_dim": ("v_head_dim", 128),
}  # fmt: skip


# Words of tokenizers that come with Megatron (megatron/core/tokenizers; GPT-2's and Llama 2's own).
_VOCABULARIES = {"GPT2BPETokenizer": 50257, "Llama2Tokenizer": 32000}


# The least and the most that tokenizers in use have: Llama 2's and Gemma's (their config.json, vocab_size).
_VOCABULARY_SIZES = (32000, 262144)


def read_model(keys: Keys, findings: Findings, names: Sequence[Item]) -> None:
    """The catalogue's model that the tokenizer is of, if its dimensions agree; else a model of these dimensions."""
    if (heads := keys.take("attention_head_type")) is not None and heads.value == "multiquery":
        # bigcode-project/Megatron-LM megatron/arguments.py: all heads share one of keys and values.
        keys.put("num_query_groups", 1, heads.line)
        keys.put("group_query_attention", True, heads.line)
    items = {name: item for name in _DIMENSIONS if (item := keys.take(name)) is not None}
    tokenizer, kind = keys.take("tokenizer_model"), keys.take("tokenizer_type")
    if tokenizer is not None and not is_certain(tokenizer.value):
        findings.leave(tokenizer, "names the tokenizer only where it runs")
    switches = {name: is_set(keys.take(name)) for name in _SWITCHES if name in keys}
    special = [name for name in _SPECIAL if (item := keys.take(name)) is not None and item.value is not False]
    origin = items.get("num_layers")
    fields, unknown = _beyond(keys, as_number(origin.value) if origin is not None else None)
    special += unknown
    if origin is None:
        return
    numbers = {name: as_number(item.value) for name, item in items.items()}
    for item in ([tokenizer] if tokenizer is not None else []) + list(names):
        if isinstance(item.value, str) and (known := model_of(item.value, numbers)):
            findings.put("model", known, item)
            return
    if "vocab_size" not in numbers and (size := _VOCABULARIES.get(str(kind.value) if kind is not None else "")):
        numbers["vocab_size"] = size
    needed = ("num_layers", "hidden_size", "num_attention_heads")
    if special:
        findings.block("model", origin, f"{special[0]} is not read; name the model")
    elif any((numbers.get(name) or 0) <= 0 for name in needed):
        findings.block("model", origin, "layers, width and heads are not all known")
    elif not numbers.get("vocab_size"):
        why = "the size of the vocabulary is in the tokenizer's files"
        models = (_inline(numbers | {"vocab_size": size}, items, switches) | fields for size in _VOCABULARY_SIZES)
        findings.one_of("model", tuple(models), origin, why)
    else:
        findings.put("model", _inline(numbers, items, switches) | fields, origin)


def _inline(numbers: Mapping[str, Any], items: Mapping[str, Item], switches: Mapping[str, bool]) -> dict[str, Any]:
    """Canonical config fields; what Megatron takes where an argument is left out is its own default."""

    def whole(name: str, otherwise: float | None = None) -> int:
        return int(numbers.get(name) or otherwise or 0)

    hidden, heads, gated = whole("hidden_size"), whole("num_attention_heads"), switches.get("swiglu", False)
    usual = 4 * hidden * 2 / 3 // 64 * 64 if gated else 4 * hidden
    biased = not switches.get("disable_bias_linear", False)
    norm = items["normalization"].value if "normalization" in items else "LayerNorm"
    kind = items["position_embedding_type"].value if "position_embedding_type" in items else "learned_absolute"
    fields: dict[str, Any] = {
        "canonical": True,
        "num_hidden_layers": whole("num_layers"),
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": whole("num_query_groups", 1) if switches.get("group_query_attention") else heads,
        "head_dim": whole("kv_channels", hidden // heads),
        "intermediate_size": whole("ffn_hidden_size", usual),
        "vocab_size": whole("vocab_size"),
        "max_position_embeddings": whole("max_position_embeddings", whole("seq_length", 4096)),
        "norm_type": "rmsnorm" if norm == "RMSNorm" else "layernorm",
        "mlp_gated": gated,
        "hidden_act": "silu" if gated else "gelu",
        "mlp_bias": biased,
        "attention_bias": biased,
        "attention_qkv_bias": biased or switches.get("add_qkv_bias", False),
        "position_embedding": {"learned_absolute": "learned", "alibi": "alibi", "none": "none"}.get(str(kind), "rope"),
        "tie_word_embeddings": not switches.get("untie_embeddings_and_output_weights", False),
    }
    if switches.get("qk_layernorm"):
        fields["qk_norm"] = "per_head"
    if numbers.get("num_experts"):
        fields |= {
            "num_experts": whole("num_experts"),
            "num_experts_per_tok": whole("moe_router_topk", 2),
            "moe_intermediate_size": whole("moe_ffn_hidden_size", fields["intermediate_size"]),
        }
        if numbers.get("moe_shared_expert_intermediate_size"):
            fields["shared_expert_intermediate_size"] = whole("moe_shared_expert_intermediate_size")
    return fields


def _beyond(keys: Keys, layers: float | None) -> tuple[dict[str, Any], list[str]]:
    """What arguments say of the model beyond dimensions, as fields of a config, and those that are not read."""
    fields: dict[str, Any] = {}
    for name, field in _FIELDS.items():
        if is_set(keys.take(name)):
            fields |= field
    softmax = keys.take("softmax_type")
    if softmax is not None and softmax.value == "learnable":
        fields["attention_sinks"] = True
    sizes = {name: keys.take(name) for name in _LATENT}
    if is_set(keys.take("multi_latent_attention")):
        for name, (field, usual) in _LATENT.items():
            item = sizes[name]
            value = usual if item is None else as_number(item.value)
            if value is not None:
                fields[field] = int(value)
    unknown: list[str] = []
    window, among, feeds = (keys.take(name) for name in ("window_size", "window_attn_skip_freq", "moe_layer_freq"))
    if window is not None:
        spans = _spans(window.value, among.value if among is not None else None, layers)
        fields |= spans or {}
        unknown += [] if spans else ["window_size"]
    if feeds is not None:
        # One of experts after N - 1 others, or a list of all.
        kinds = _flags(feeds.value, layers, lambda at, every: at % every == 0)
        fields |= {"moe_layer_freq": kinds} if kinds and 0 in kinds else {}
        unknown += [] if kinds else ["moe_layer_freq"]
    return fields, unknown


def _spans(window: Any, among: Any, layers: float | None) -> dict[str, Any] | None:
    """The width that layers look back over, and which do (core/transformer/utils.py is_layer_window_attention)."""
    try:
        left, right = (window if isinstance(window, list) else ast.literal_eval(str(window)))[:2]
        width = int(left) + 1
    except (ValueError, SyntaxError, TypeError):
        return None
    if int(right) not in (0, -1) or width < 1:
        return None
    if among is None:
        return {"sliding_window": width, "sliding_window_pattern": 0}
    flags = _flags(among, layers, lambda at, every: at % every != every - 1)
    if flags is None:
        return None
    kinds = ["sliding_attention" if on else "full_attention" for on in flags]
    return {"sliding_window": width, "layer_types": kinds}


def _flags(value: Any, layers: float | None, of_every: Callable[[int, int], bool]) -> list[int] | None:
    """One 0 or 1 a layer of a number N (`of_every` N layers) or of the expression that Megatron evaluates:
    ([0]*3+[1]*58)."""
    if layers is None:
        return None
    count, every = int(layers), as_number(value)
    if every is not None:
        return [int(of_every(at, int(every))) for at in range(count)] if every >= 1 else None
    try:
        flags = value if isinstance(value, list) else _evaluated(ast.parse(str(value), mode="eval").body)
    except (ValueError, SyntaxError, RecursionError):
        return None
    return list(flags) if len(flags) == count and set(flags) <= {0, 1} else None


_LONGEST = 4096


def _evaluated(node: ast.expr) -> list[int]:
    """Lists of 0 and 1, put together by + and repeated by *, and nothing else. Raises ValueError."""
    if isinstance(node, ast.List):
        return [row.value for row in node.elts if isinstance(row, ast.Constant) and isinstance(row.value, int)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _evaluated(node.left) + _evaluated(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        part, times = (node.left, node.right) if isinstance(node.right, ast.Constant) else (node.right, node.left)
        flags = _evaluated(part)
        if isinstance(times, ast.Constant) and isinstance(times.value, int) and len(flags) * times.value <= _LONGEST:
            return flags * times.value
    raise ValueError("no list")
