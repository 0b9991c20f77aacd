"""A model's dimensions in the arguments of Megatron-LM's GPT model (pretrain_gpt.py), or what that model lacks."""

from __future__ import annotations

from typing import Any

from estimator.errors import PlanError
from estimator.model.architecture import Architecture, Block
from knowledge.models.catalogue import architecture
from launchers.launch.training import TrainingLaunch
from launchers.megatron.model_fields import beyond_dimensions, fields_of, mtp_layers, not_said, rotary_base
from launchers.yaml_text import Tree

Arguments = dict[str, Tree]
# What the code of pretrain_gpt.py's layers computes, by activation and whether it is gated.
_ACTIVATIONS: dict[tuple[str, bool], Arguments] = {
    ("silu", True): {"swiglu": True},
    ("swigluoai", True): {"quick_geglu": True, "glu_linear_offset": 1.0, "activation_func_clamp_value": 7.0},
    ("gelu", False): {},
    ("gelu_new", False): {"openai_gelu": True},
    ("gelu_pytorch_tanh", False): {"openai_gelu": True},
    ("gelu_fast", False): {"openai_gelu": True},
    ("relu2", False): {"squared_relu": True},
}
# Canonical fields whose meaning pretrain_gpt.py has no argument for.
_LACKS = {
    "parallel_block": "attention and MLP side by side",
    "attn_logit_softcapping": "capped attention scores",
    "final_logit_softcapping": "capped logits",
    "attention_chunk_size": "chunked attention",
    "gemma_norm": "Gemma's norms",
    "position_offset": "an offset of positions",
    "lm_head_bias": "a bias of the output head",
    "embedding_norm": "a norm of the embedding",
    "index_topk": "sparse attention",
    "sparse_attention_config": "sparse attention",
    "compress_ratios": "compressed attention",
    "attention_k_eq_v": "keys that are values",
    "attention_head_gate": "gated heads",
    "attention_output_gate": "gated attention",
    "moe_latent_size": "experts on a latent",
    "hc_mult": "hyper-connections",
    "attn_res_block_size": "attention residuals",
    "block_configs": "layers that differ one by one",
    "parallel_ssm": "Mamba beside attention",
    "hidden_size_per_layer_input": "embeddings of each layer",
    "num_kv_shared_layers": "layers that read the cache of others",
    "vision_moe_intermediate_size": "experts for images",
    "zero_expert_num": "experts that do nothing",
    "shared_expert_sink": "a router of shared experts",
    "d_rel": "learned relative positions",
    "no_rope_layers": "layers without positions",
    "softmax_scaling": "learned factors of attention scores",
    "rope_key_norm": "a norm of the rotary key",
    "cross_attention_layers": "cross-attention",
    "activation_parameters": "an activation with parameters",
    "moe_norms_per_layer": "more norms in layers with experts",
    "swa_num_attention_heads": "heads that differ between layers",
}
# Model types whose code has factors on embeddings, residuals or logits.
_SCALED = ("granite", "granitemoe", "minicpm", "cohere", "cohere2")
# Those whose norms come after attention and MLP, none before (transformers 5.6 modeling_olmo2.py, modeling_exaone4.py).
_NORMED_AFTER = ("olmo2", "olmo3", "exaone4")


def model_arguments(launch: TrainingLaunch, needs: list[str], path: str) -> Arguments:
    """Layers, widths, heads, experts, norm, activation, positions. What the user should check is added to `needs`.

    Raises PlanError(field="model") for an architecture that pretrain_gpt.py does not build.
    """
    model, fields = architecture(launch.plan.model), fields_of(launch.plan.model)
    _check(model, fields)
    block = next((block for block in model.blocks if block.feed == "moe"), model.blocks[0])
    dense = next((block for block in model.blocks if block.feed == "dense"), None)
    arguments: Arguments = {
        "num_layers": model.layers,
        "hidden_size": model.hidden,
        "ffn_hidden_size": dense.ffn_width if dense else block.expert_width,
        "num_attention_heads": block.heads,
        "max_position_embeddings": max(model.context, launch.seq_len),
        "seq_length": launch.seq_len,
        "normalization": "RMSNorm" if model.norm == "rmsnorm" else "LayerNorm",
        "attention_dropout": float(model.dropout),
        "hidden_dropout": float(model.dropout),
        **_attention(block, model, fields),
        **_positions(launch, model, fields, needs, path),
        **_ACTIVATIONS[(str(fields.get("hidden_act") or model.activation), block.gated)],
    }
    if fields.get("norm_type") == "layernorm1p":
        arguments["apply_layernorm_1p"] = True
    if not fields.get("mlp_bias") and not fields.get("expert_bias"):
        arguments["disable_bias_linear"] = True
        if fields.get("attention_qkv_bias"):
            arguments["add_qkv_bias"] = True
    if not model.tied:
        arguments["untie_embeddings_and_output_weights"] = True
    if block.feed == "moe":
        arguments |= _experts(block, model, fields)
    if layers := mtp_layers(launch):
        needs.append(
            f"{path}: --mtp-num-layers {layers}, to train the model's own MTP layers too, which were not planned with"
        )
    arguments |= beyond_dimensions(launch)
    needs += [f"{path}: {what}" for what in not_said(launch, arguments)]
    return arguments


def _check(model: Architecture, fields: Any) -> None:
    """Raises PlanError naming what pretrain_gpt.py cannot build."""
    lacking = [words for name, words in _LACKS.items() if fields.get(name)]
    if model.parallel_block and not fields.get("parallel_block"):
        lacking.append(_LACKS["parallel_block"])
    if any(block.mixer not in ("attention", "mla") for block in model.blocks):
        lacking.append("layers without attention")
    if any(block.feed == "none" for block in model.blocks):
        lacking.append("layers without an MLP")
    if fields.get("norms_per_layer", 2) != 2:
        lacking.append("more than two norms in a layer")
    if fields.get("position_embedding", "rope") not in ("rope", "learned", "none"):
        lacking.append(f"positions by {fields['position_embedding']}")
    if fields.get("qk_norm") not in (None, False, "per_head", "non_parametric"):
        lacking.append("norms over all heads together")
    if fields.get("norm_type", "rmsnorm") not in ("rmsnorm", "layernorm", "layernorm1p"):
        lacking.append("norms without weights or biases")
    if fields.get("model_type") in _SCALED:
        lacking.append("factors on embeddings, residuals and logits")
    if fields.get("model_type") in _NORMED_AFTER:
        lacking.append("norms after attention and MLP alone")
    if bool(fields.get("attention_bias")) != bool(fields.get("mlp_bias") or fields.get("expert_bias")):
        lacking.append("output biases in attention or the MLP alone")
    if len({(block.heads, block.kv_heads, block.head_dim) for block in model.blocks}) > 1:
        lacking.append("heads that differ between layers")
    if len({block.ffn_width for block in model.blocks if block.feed == "dense"}) > 1:
        lacking.append("widths that differ between layers")
    gated = model.blocks[0].gated
    activation = str(fields.get("hidden_act") or model.activation)
    if (activation, gated) not in _ACTIVATIONS:
        lacking.append(f"{'gated ' if gated else ''}{activation}")
    if lacking:
        what = ", ".join(dict.fromkeys(lacking))
        raise PlanError("model", f"Megatron-LM's pretrain_gpt.py has no arguments for {what}")


def _attention(block: Block, model: Architecture, fields: Any) -> Arguments:
    """Heads and their widths, the span of attention, norms of queries and keys."""
    if block.mixer == "mla":
        arguments: Arguments = {
            "multi_latent_attention": True,
            "kv_lora_rank": block.kv_lora_rank,
            "qk_head_dim": block.head_dim - block.rope_head_dim,
            "qk_pos_emb_head_dim": block.rope_head_dim,
            "v_head_dim": block.v_head_dim,
            "qk_layernorm": True,
        }
        if fields.get("q_lora_rank"):
            arguments["q_lora_rank"] = int(fields["q_lora_rank"])
        return arguments
    arguments = {"kv_channels": block.head_dim}
    if block.kv_heads != block.heads:
        arguments |= {"group_query_attention": True, "num_query_groups": block.kv_heads}
    if fields.get("qk_norm") == "per_head":
        arguments["qk_layernorm"] = True
    elif fields.get("qk_norm") == "non_parametric":
        arguments["qk_l2_norm"] = True
    if fields.get("attention_sinks"):
        arguments["softmax_type"] = "learnable"
    spans = [model.blocks[kind].window for kind in model.pattern]
    windows = {span for span in spans if span}
    if windows:
        if len(windows) > 1:
            raise PlanError("model", "Megatron-LM's pretrain_gpt.py has one window size for all layers")
        arguments["window_size"] = f"({windows.pop() - 1},0)"
        if None in spans:
            arguments["window_attn_skip_freq"] = _runs([int(bool(span)) for span in spans])
    return arguments


def _positions(launch: TrainingLaunch, model: Architecture, fields: Any, needs: list[str], path: str) -> Arguments:
    kind = fields.get("position_embedding", "rope")
    if kind != "rope":
        return {"position_embedding_type": "learned_absolute" if kind == "learned" else "none"}
    base = rotary_base(launch)
    if base is None:
        base = 10000
        needs.append(f"{path}: --rotary-base, rope_theta of the model's config (10000 is Megatron's own)")
    arguments: Arguments = {"position_embedding_type": "rope", "rotary_base": base}
    if any(block.mixer == "mla" for block in model.blocks):
        arguments["rope_type"] = "rope"
    if model.family in ("llama3.1", "llama3.2", "llama3.3") or "Llama-3.1-Nemotron" in model.id:
        arguments |= {"use_rope_scaling": True, "rope_scaling_factor": 32.0 if model.family == "llama3.2" else 8.0}
    partial = fields.get("partial_rotary_factor") or fields.get("rotary_pct")
    if isinstance(partial, float) and 0 < partial < 1:
        arguments["rotary_percent"] = partial
    return arguments


def _experts(block: Block, model: Architecture, fields: Any) -> Arguments:
    arguments: Arguments = {
        "num_experts": block.experts,
        "moe_router_topk": block.top_k,
        "moe_ffn_hidden_size": block.expert_width,
    }
    if block.shared_width:
        if fields.get("shared_expert_gate"):
            arguments["moe_shared_expert_gate"] = True
        arguments["moe_shared_expert_intermediate_size"] = block.shared_width
    feeds = [int(model.blocks[kind].feed == "moe") for kind in model.pattern]
    if 0 in feeds:
        arguments["moe_layer_freq"] = _runs(feeds)
    if fields.get("router_score_bias"):
        arguments |= {"moe_router_score_function": "sigmoid", "moe_router_enable_expert_bias": True}
    return arguments


def _runs(flags: list[int]) -> str:
    """A list of 0 and 1 as the Python expression that Megatron evaluates: ([0]*3+[1]*58), or one period repeated."""
    for period in range(1, len(flags) // 2 + 1):
        if len(flags) % period == 0 and flags == flags[:period] * (len(flags) // period) and len(set(flags)) > 1:
            return f"([{','.join(map(str, flags[:period]))}]*{len(flags) // period})"
    parts: list[str] = []
    start = 0
    for end in range(1, len(flags) + 1):
        if end == len(flags) or flags[end] != flags[start]:
            parts.append(f"[{flags[start]}]*{end - start}")
            start = end
    return f"({'+'.join(parts)})"
