"""A model by the arguments of Megatron-LM, as fields of a config: from what starts it or from the list that it prints.

Names and what they are where they are left out: megatron/training/arguments.py and
megatron/core/transformer/transformer_config.py of NVIDIA/Megatron-LM.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

SIZES = (
    "num_layers", "hidden_size", "num_attention_heads", "ffn_hidden_size", "num_query_groups", "kv_channels",
    "vocab_size", "max_position_embeddings", "seq_length", "num_experts", "moe_router_topk", "moe_ffn_hidden_size",
    "moe_shared_expert_intermediate_size", "kv_lora_rank", "q_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim",
    "v_head_dim",
)  # fmt: skip
# Switches that are a field of a config, and sizes of latent attention with what they are unless given
# (MLATransformerConfig).
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
SWITCHES = (
    "swiglu", "untie_embeddings_and_output_weights", "disable_bias_linear", "add_qkv_bias", "group_query_attention",
    "qk_layernorm", "multi_latent_attention", *_FIELDS,
)  # fmt: skip
WORDS = (
    "normalization", "position_embedding_type", "softmax_type", "window_size", "window_attn_skip_freq",
    "moe_layer_freq",
)  # fmt: skip
# Arguments of the model that Megatron has and an inline model of a Plan has not.
SPECIAL = ("hybrid_override_pattern", "experimental_attention_variant")
NEEDED = ("num_layers", "hidden_size", "num_attention_heads")


def config_of(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Canonical fields of a config, and the arguments that it has no field for. SIZES are numbers, the NEEDED among
    them, SWITCHES true or false, WORDS as they stand; those that were left out are what Megatron takes for them."""

    def whole(name: str, otherwise: float | None = None) -> int:
        return int(arguments.get(name) or otherwise or 0)

    hidden, heads, gated = whole("hidden_size"), whole("num_attention_heads"), bool(arguments.get("swiglu"))
    usual = 4 * hidden * 2 / 3 // 64 * 64 if gated else 4 * hidden
    biased = not arguments.get("disable_bias_linear")
    kind = str(arguments.get("position_embedding_type", "learned_absolute"))
    fields: dict[str, Any] = {
        "canonical": True,
        "num_hidden_layers": whole("num_layers"),
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": whole("num_query_groups", 1) if arguments.get("group_query_attention") else heads,
        "head_dim": whole("kv_channels", hidden // heads),
        "intermediate_size": whole("ffn_hidden_size", usual),
        "vocab_size": whole("vocab_size"),
        "max_position_embeddings": whole("max_position_embeddings", whole("seq_length", 4096)),
        "norm_type": "rmsnorm" if arguments.get("normalization") == "RMSNorm" else "layernorm",
        "mlp_gated": gated,
        "hidden_act": "silu" if gated else "gelu",
        "mlp_bias": biased,
        "attention_bias": biased,
        "attention_qkv_bias": biased or bool(arguments.get("add_qkv_bias")),
        "position_embedding": {"learned_absolute": "learned", "alibi": "alibi", "none": "none"}.get(kind, "rope"),
        "tie_word_embeddings": not arguments.get("untie_embeddings_and_output_weights"),
    }
    if arguments.get("qk_layernorm"):
        fields["qk_norm"] = "per_head"
    if arguments.get("num_experts"):
        fields |= {
            "num_experts": whole("num_experts"),
            "num_experts_per_tok": whole("moe_router_topk", 2),
            "moe_intermediate_size": whole("moe_ffn_hidden_size", fields["intermediate_size"]),
        }
        if arguments.get("moe_shared_expert_intermediate_size"):
            fields["shared_expert_intermediate_size"] = whole("moe_shared_expert_intermediate_size")
    more, unknown = _beyond(arguments)
    return fields | more, unknown


def _beyond(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What arguments say of the model beyond dimensions, as fields of a config, and those that are not read."""
    fields: dict[str, Any] = {}
    for name, field in _FIELDS.items():
        if arguments.get(name):
            fields |= field
    if arguments.get("softmax_type") == "learnable":
        fields["attention_sinks"] = True
    if arguments.get("multi_latent_attention"):
        sizes = {field: arguments.get(name, usual) for name, (field, usual) in _LATENT.items()}
        fields |= {field: int(value) for field, value in sizes.items() if value is not None}
    unknown: list[str] = []
    window, feeds, layers = (arguments.get(name) for name in ("window_size", "moe_layer_freq", "num_layers"))
    if window is not None:
        spans = _spans(window, arguments.get("window_attn_skip_freq"), layers)
        fields |= spans or {}
        unknown += [] if spans else ["window_size"]
    if feeds is not None:
        # One of experts after N - 1 others, or a list of all.
        kinds = _flags(feeds, layers, lambda at, every: at % every == 0)
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
    count, every = int(layers), _number(value)
    if every is not None:
        return [int(of_every(at, int(every))) for at in range(count)] if every >= 1 else None
    try:
        flags = value if isinstance(value, list) else _evaluated(ast.parse(str(value), mode="eval").body)
    except (ValueError, SyntaxError, RecursionError):
        return None
    return list(flags) if len(flags) == count and set(flags) <= {0, 1} else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


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
