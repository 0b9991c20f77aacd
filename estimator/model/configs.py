"""From the fields of a model config to its Architecture, exact to the last parameter.

`build` reads canonical fields: the names of transformers' configs, plus these for what transformers keeps in code:

    norm_type            rmsnorm | layernorm | layernorm_no_bias | layernorm_non_parametric | layernorm1p
    norms_per_layer      norms of width hidden in a layer (2; 1 in a parallel block; 4 with post-norms)
    position_embedding   rope | learned | alibi | none;  position_offset: extra rows of a learned table (OPT: 2)
    mlp_gated, mlp_bias, attention_bias (q k v o), attention_qkv_bias (q k v), attention_out_bias (o), lm_head_bias,
    embedding_norm
    parallel_block       attention and MLP read the same input;  qk_norm per_head | full_width | per_head_layernorm
    attention_sinks      a learned logit per head;  attention_output_gate: q_proj is twice as wide (MLA: a g_proj)
    fused_query_gate     MLA: q_b_proj makes a gate of the output too, from queries before and after their norm
    gated_norm_rank      width of the gate behind norms of attention and experts (A.X-K2)
    attn_res_block_size  layers whose sums later ones attend to (Kimi K3);  scaled_residual: scales and biases of sums
    cca_time0, cca_time1 convolutions of queries and keys;  router_hidden_size: the router is an MLP (ZAYA)
    swa_*                head counts and widths of sliding layers, where they differ;  share_q_dim: rank of queries
    sliding_window       with layer_types, or sliding_window_pattern N (every Nth layer is full; 0 = all slide)
    num_experts, num_experts_per_tok, moe_intermediate_size, n_shared_experts (in units of moe_intermediate_size),
    shared_expert_intermediate_size, shared_expert_gate, router_bias, expert_bias, moe_latent_size,
    router_score_bias (a correction added to the scores, outside the matmul),
    n_group, topk_group (groups of experts, and of how many a token's experts are)
    mixer                ssm kind of non-attention layers: mamba1 | mamba2 | gated_delta | kimi_delta | short_conv |
                         lightning
    parallel_ssm         attention layers have the mixer beside them (Falcon-H1)
    hybrid_override_pattern (M * - E), attn_layer_period/offset, block_configs, layer_types, compress_ratios, hc_mult
    indexer_types        which layers of sparse attention choose tokens themselves (full) or take the choice (shared)
    moe_norms_per_layer  norms_per_layer of layers with experts;  router_scales (of the input, and of each expert)
    num_kv_shared_layers last layers that read the cache of others;  use_double_wide_mlp: with an MLP twice as wide
    hidden_size_per_layer_input, vocab_size_per_layer_input: an embedding of its own for each layer (Gemma 3n, 4)
    altup_num_inputs     residual streams, of which a layer works on one;  laurel_rank: of a path beside it (Gemma 3n)
    latent_norms         norms of moe_latent_size around experts;  shared_expert_sink: the router scores shared experts
    no_rope_layers       0 where latent attention has no rotary part;  rel_extent, d_rel: learned relative positions
    vision_moe_intermediate_size: as many experts again for images;  embedding_extra_rows, zero_expert_num

`knowledge.models.fields` makes them from a raw config.json. Absent and null fields mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from estimator.model.architecture import Architecture, Block, Feed, Role, WeightMatrix
from estimator.model.config_fields import count, flag, items, problem, whole, word
from estimator.model.mixers import (
    Mixed,
    attention,
    compressed_attention,
    gated_delta,
    kimi_delta,
    latent_attention,
    lightning,
    mamba1,
    mamba2,
    short_conv,
)

NORM_TYPES = ("rmsnorm", "layernorm", "layernorm_no_bias", "layernorm_non_parametric", "layernorm1p")
POSITIONS = ("rope", "learned", "alibi", "none")
SSM_MIXERS = {
    "mamba1": mamba1, "mamba2": mamba2, "gated_delta": gated_delta, "kimi_delta": kimi_delta, "short_conv": short_conv,
    "lightning": lightning,
}  # fmt: skip
# Bounds of what is read as a model: more is a mistake in its config.json.
MOST_LAYERS = 4096
MOST_PARAMETERS = 10**15
_MOST_WIDENING = 1000
# Tokens that a model without attention is taken to read: an assumption, as nothing bounds them.
_UNBOUNDED_CONTEXT = 1_048_576
# What Llama rounds the feed-forward width up to (meta-llama/llama, model.py, multiple_of).
_FEED_MULTIPLE = 256
# Scales and biases of a layer's two sums, of the residual and of what is added (transformers ZayaResidualScaling).
_RESIDUAL_SCALES = 8

Fields = Mapping[str, Any]
_Kind = Literal["attention", "sliding", "ssm", "none"]


@dataclass(frozen=True)
class _Layer:
    """What one layer is, before its sizes: mixer, attention span, feed-forward kind and, where they vary, widths."""

    mixer: _Kind
    window: int | None
    feed: Feed
    norms: int
    ffn_width: int = 0
    kv_heads: int = 0
    compress_ratio: int | None = None
    chooses: bool = True
    rotates: bool = True
    borrows_cache: bool = False
    crosses: bool = False


def build(fields: Fields, id: str = "") -> Architecture:
    """The Architecture of a model with these canonical config fields.

    Raises PlanError(field="model.<name>") when a needed field is missing or unusable. Values that had to be assumed are
    in `Architecture.notes`.
    """
    hidden, vocab = whole(fields, "hidden_size"), whole(fields, "vocab_size")
    layers = _layers(fields)
    kinds: dict[_Layer, int] = {}
    pattern = tuple(kinds.setdefault(layer, len(kinds)) for layer in layers)
    blocks = tuple(_block(fields, layer) for layer in kinds)
    norm_type = word(fields, "norm_type", "rmsnorm", NORM_TYPES)
    learned = word(fields, "position_embedding", "rope", POSITIONS) == "learned"
    default = 0 if any(block.heads for block in blocks) else _UNBOUNDED_CONTEXT
    context = whole(fields, "max_position_embeddings", None if learned else default)
    norm = norm_parameters(norm_type, hidden)
    extra = norm if flag(fields, "final_norm", True) else 0
    extra += norm if flag(fields, "embedding_norm") else 0
    tables, beside = _layer_embeddings(fields, len(layers))
    extra += count(fields, "embedding_extra_rows") * hidden + tables + beside
    if (streams := count(fields, "hc_mult")) > 1:
        extra += streams * streams * hidden + streams + 1  # DeepseekV4HyperHead
    extra += 2 * max(count(fields, "altup_num_inputs") - 1, 0) * hidden * hidden  # into the other streams, and back
    extra -= count(fields, "router_hidden_size")  # the scale of an earlier layer's scores, which the first has not
    extra += 2 * hidden * (bool(count(fields, "attn_res_block_size")) + flag(fields, "scaled_residual"))
    if isinstance(crossing := fields.get("cross_attention_layers"), list):
        extra += len(crossing) * 2 * (whole(fields, "head_dim", hidden // whole(fields, "num_attention_heads")) + 1)
    if embedded := count(fields, "word_embed_proj_dim"):
        # a narrower embedding with projections in and out: the table below counts hidden-wide rows
        extra += (vocab * (embedded - hidden) + 2 * hidden * embedded) if embedded != hidden else 0
    built = Architecture(
        id=id,
        hidden=hidden,
        vocab=vocab,
        context=context,
        blocks=blocks,
        pattern=pattern,
        tied=flag(fields, "tie_word_embeddings"),
        head_bias=flag(fields, "lm_head_bias"),
        position_parameters=(context + count(fields, "position_offset")) * hidden if learned else 0,
        extra_parameters=extra,
        layer_embedding_parameters=tables,
        norm="rmsnorm" if norm_type == "rmsnorm" else "layernorm",
        gemma_norm=flag(fields, "gemma_norm"),
        activation=word(fields, "hidden_act", "silu"),
        logit_softcap=fields.get("final_logit_softcapping") is not None,
        dropout=_dropout(fields),
        parallel_block=flag(fields, "parallel_block"),
        multimodal=flag(fields, "multimodal"),
        family=word(fields, "family", word(fields, "model_type", "")),
        notes=_notes(fields, blocks),
    )
    if built.parameters > MOST_PARAMETERS:
        raise problem(
            "hidden_size", f"comes to {built.parameters:,} parameters with the other sizes: no model has as many"
        )
    return built


def norm_parameters(norm_type: str, width: int) -> int:
    """Parameters of one norm over `width` elements."""
    if norm_type == "layernorm_non_parametric":
        return 0
    return 2 * width if norm_type in ("layernorm", "layernorm1p") else width


def _layers(fields: Fields) -> list[_Layer]:
    """One description a layer, from whichever per-layer fields the config has."""
    if fields.get("hybrid_override_pattern") is not None:
        return _pattern_layers(fields)
    layers = whole(fields, "num_hidden_layers")
    if layers > MOST_LAYERS:
        raise problem("num_hidden_layers", f"{layers} is more than any model has; at most {MOST_LAYERS}")
    if fields.get("block_configs") is not None:
        return _searched_layers(fields, layers)
    norms = whole(fields, "norms_per_layer", 1 if flag(fields, "parallel_block") or _is_pure_ssm(fields) else 2)
    moe_norms = whole(fields, "moe_norms_per_layer", norms)
    mixers, feeds, ratios = _mixers(fields, layers), _feeds(fields, layers), _compress_ratios(fields, layers)
    chosen = items(fields, "indexer_types", layers) or ["full"] * layers
    rotates = items(fields, "no_rope_layers", layers) or [1] * layers
    borrowers = count(fields, "num_kv_shared_layers")
    crossing = fields.get("cross_attention_layers") or []
    wide = 2 * whole(fields, "intermediate_size") if borrowers and flag(fields, "use_double_wide_mlp") else 0
    return [
        _Layer(
            mixer,
            window,
            feed,
            moe_norms if feed == "moe" else norms,
            ffn_width=wide if i >= layers - borrowers else 0,
            compress_ratio=ratio,
            chooses=chosen[i] == "full",
            rotates=bool(rotates[i]),
            borrows_cache=i >= layers - borrowers,
            crosses=i in crossing,
        )
        for i, ((mixer, window), feed, ratio) in enumerate(zip(mixers, feeds, ratios, strict=True))
    ]


def _layer_embeddings(fields: Fields, layers: int) -> tuple[int, int]:
    """Parameters outside the blocks of the embedding that each layer has of its own: its table, and the rest (Gemma 4's
    `embed_tokens_per_layer`; `per_layer_model_projection` and its norm)."""
    width = count(fields, "hidden_size_per_layer_input")
    table = count(fields, "vocab_size_per_layer_input") * layers * width
    return table, whole(fields, "hidden_size") * layers * width + width


def _compress_ratios(fields: Fields, layers: int) -> Sequence[int | None]:
    """Tokens per cache entry of every layer (DeepSeek-V4); 0 where a layer only has its window."""
    ratios = items(fields, "compress_ratios", layers)
    if ratios is None:
        return [None] * layers
    return [count({"compress_ratios": ratio}, "compress_ratios") for ratio in ratios]


def _is_pure_ssm(fields: Fields) -> bool:
    return "mixer" in fields and not count(fields, "num_attention_heads")


def _mixers(fields: Fields, layers: int) -> list[tuple[_Kind, int | None]]:
    """(mixer, attention window) of every layer."""
    window = _window(fields)
    if _is_pure_ssm(fields):
        return [("ssm", None)] * layers
    if (types := items(fields, "layer_types", layers)) is not None:
        return [_typed(str(kind), window) for kind in types]
    if period := count(fields, "attn_layer_period"):
        offset = count(fields, "attn_layer_offset")
        return [("attention", None) if i % period == offset else ("ssm", None) for i in range(layers)]
    if "mixer" in fields and (interval := count(fields, "full_attention_interval")):
        return [("ssm", None) if (i + 1) % interval else ("attention", None) for i in range(layers)]
    if window is None:
        return [("attention", None)] * layers
    every = count(fields, "sliding_window_pattern")
    return [("attention", None) if every and (i + 1) % every == 0 else ("sliding", window) for i in range(layers)]


def _typed(kind: str, window: int | None) -> tuple[_Kind, int | None]:
    match kind:
        case "full_attention" | "attention" | "indexed_attention" | "hybrid" | "minimax_m3_sparse":
            return "attention", None
        case "deepseek_sparse_attention" | "qwen_sparse_attention":  # earlier names of indexed_attention
            return "attention", None
        case "sliding_attention" | "chunked_attention" | "hybrid_sliding":
            return "sliding", window
        case "linear_attention" | "mamba" | "conv":
            return "ssm", None
    valid = ("full_attention", "sliding_attention", "chunked_attention", "linear_attention", "mamba", "conv")
    raise problem("layer_types", f"{kind!r} is not a known kind of layer", valid)


def _window(fields: Fields) -> int | None:
    """Tokens that bounded attention layers look back, None when no layer is bounded."""
    if not flag(fields, "use_sliding_window", True):
        return None
    return count(fields, "sliding_window") or count(fields, "attention_chunk_size") or None


def _feeds(fields: Fields, layers: int) -> list[Feed]:
    """Which layers are mixtures of experts (the fields of DeepSeek, Qwen, Jamba and Llama 4)."""
    if _is_pure_ssm(fields) and not count(fields, "intermediate_size"):
        return ["none"] * layers
    if count(fields, "num_experts") < 2:
        return ["dense"] * layers
    frequency = fields.get("moe_layer_freq")
    if isinstance(frequency, list):
        return ["moe" if on else "dense" for on in items(fields, "moe_layer_freq", layers) or ()]
    step = whole(fields, "moe_layer_freq", whole(fields, "decoder_sparse_step", 1))
    first = count(fields, "first_k_dense_replace")
    only_dense = fields.get("mlp_only_layers") or []
    if not isinstance(only_dense, list):
        raise problem("mlp_only_layers", "must be a list of layer numbers")
    period, offset = whole(fields, "expert_layer_period", 1), count(fields, "expert_layer_offset")
    interleave = whole(fields, "interleave_moe_layer_step", 1)
    sparse_from_step = fields.get("decoder_sparse_step") is not None

    def is_moe(i: int) -> bool:
        on_step = (i + 1) % step == 0 if sparse_from_step else i % step == 0
        return (
            i >= first
            and i not in only_dense
            and on_step
            and i % period == offset % period
            and ((i + 1) % interleave == 0)
        )

    return ["moe" if is_moe(i) else "dense" for i in range(layers)]


def _pattern_layers(fields: Fields) -> list[_Layer]:
    """Nemotron-H: one mixer or one feed-forward a layer, each behind one norm (M Mamba, * attention, - MLP, E MoE)."""
    pattern = word(fields, "hybrid_override_pattern", "")
    if not pattern or len(pattern) > MOST_LAYERS or set(pattern) - set("M*-E"):
        raise problem("hybrid_override_pattern", "must hold one of M * - E for each layer", ("MEM*EME",))
    kinds: dict[str, tuple[_Kind, Feed]] = {
        "M": ("ssm", "none"), "*": ("attention", "none"), "-": ("none", "dense"), "E": ("none", "moe"),
    }  # fmt: skip
    return [_Layer(mixer, None, feed, 1) for mixer, feed in (kinds[letter] for letter in pattern)]


def _searched_layers(fields: Fields, layers: int) -> list[_Layer]:
    """Nemotron-NAS (DeciLM): attention and MLP of each layer were searched; either may be missing.

    The MLP's width follows from ffn_mult as in nvidia modeling_decilm.py `_ffn_mult_to_intermediate_size`.
    """
    hidden, heads = whole(fields, "hidden_size"), whole(fields, "num_attention_heads")
    result = []
    for entry in items(fields, "block_configs", layers) or ():
        mixer = entry.get("attention") if isinstance(entry, Mapping) else None
        feed = entry.get("ffn") if isinstance(entry, Mapping) else None
        if not isinstance(mixer, Mapping) or not isinstance(feed, Mapping):
            raise problem("block_configs", "must hold a mapping with attention and ffn for each layer")
        times = feed.get("ffn_mult") or 0
        if isinstance(times, bool) or not isinstance(times, int | float) or not 0 <= times <= _MOST_WIDENING:
            raise problem("block_configs", f"ffn_mult must be a number from 0 to {_MOST_WIDENING}, not {times!r}")
        has_mixer = not mixer.get("no_op") and not mixer.get("replace_with_linear")
        width = 0 if feed.get("no_op") else _rounded(int(2 * times * hidden / 3))
        kv_heads = heads // whole(mixer, "n_heads_in_group", 1) if has_mixer else 0
        kind: _Kind = "attention" if has_mixer else "none"
        norms = (1 if has_mixer else 0) + (1 if width else 0)
        result.append(_Layer(kind, None, "dense" if width else "none", norms, width, kv_heads))
    return result


def _rounded(width: int, multiple: int = _FEED_MULTIPLE) -> int:
    """The feed-forward width rounded up as Llama's FeedForward does."""
    return -(-width // multiple) * multiple


def _block(fields: Fields, layer: _Layer) -> Block:
    hidden = whole(fields, "hidden_size")
    mixed = _mixed(fields, layer)
    feed, feed_vectors, feed_facts = _feed(fields, layer)
    norm = norm_parameters(word(fields, "norm_type", "rmsnorm", NORM_TYPES), hidden)
    per_layer: tuple[WeightMatrix, ...] = ()
    if width := count(fields, "hidden_size_per_layer_input"):
        feed_vectors += norm
        per_layer = (
            WeightMatrix("per_layer_input_gate", hidden, width, "mlp", "none"),
            WeightMatrix("per_layer_projection", width, hidden, "mlp", "none"),
        )
    return Block(
        feed=layer.feed,
        matrices=mixed.matrices + feed + per_layer,
        vector_parameters=mixed.vectors + feed_vectors + layer.norms * norm + _around_sublayers(fields, layer),
        borrows_cache=layer.borrows_cache and layer.mixer != "ssm",
        crosses=layer.crosses,
        norms=layer.norms,
        gated=flag(fields, "mlp_gated", True),
        fused_qkv=flag(fields, "fused_qkv"),
        copied_output=flag(fields, "copied_output"),
        **mixed.facts,
        **feed_facts,
    )


def _around_sublayers(fields: Fields, layer: _Layer) -> int:
    """Parameters beside norms: what mixes `hc_mult` residual streams (DeepSeek-V4 inference code, hc_split), gates of
    `gated_norm_rank` behind the norms of attention and of experts (transformers AXK2GatedRMSNorm), a norm and a query
    before attention and MLP that choose among earlier sums (Kimi K3, attention residuals), scales and biases of both
    sums (transformers ZayaResidualScaling), and what predicts and corrects `altup_num_inputs` streams with a path of
    `laurel_rank` beside attention (transformers Gemma3nTextAltUp, Gemma3nTextLaurelBlock)."""
    hidden, streams = whole(fields, "hidden_size"), count(fields, "hc_mult")
    gates = 2 * count(fields, "gated_norm_rank") * hidden * (2 if layer.feed == "moe" else 1)
    gates += 4 * hidden if count(fields, "attn_res_block_size") else 0
    gates += _RESIDUAL_SCALES * hidden if flag(fields, "scaled_residual") else 0
    if inputs := count(fields, "altup_num_inputs"):
        gates += inputs**2 * (inputs + 1) + (inputs + 2) * hidden
    if rank := count(fields, "laurel_rank"):
        gates += (2 * rank + 1) * hidden
    if streams < 2:
        return gates
    mixed = (2 + streams) * streams
    return gates + layer.norms * (mixed * streams * hidden + mixed + 3)


def _mixed(fields: Fields, layer: _Layer) -> Mixed:
    match layer.mixer:
        case "none":
            return Mixed((), 0, {"mixer": "none"})
        case "ssm":
            kind = word(fields, "mixer", "", tuple(SSM_MIXERS))
            if not kind:
                raise problem("mixer", "is required for layers that are not attention", tuple(SSM_MIXERS))
            return SSM_MIXERS[kind](fields)
    if layer.compress_ratio is not None:
        return compressed_attention(fields, layer.window, layer.compress_ratio)
    if count(fields, "kv_lora_rank"):
        if not layer.rotates:
            plain = whole(fields, "qk_nope_head_dim") + count(fields, "qk_rope_head_dim")
            fields = {**fields, "qk_nope_head_dim": plain, "qk_rope_head_dim": 0}
        if layer.mixer == "sliding":
            fields = {**fields, **{name[4:]: value for name, value in fields.items() if name.startswith("swa_")}}
        return latent_attention(fields, layer.window, layer.chooses and layer.mixer != "sliding")
    if layer.kv_heads:
        fields = {**fields, "num_key_value_heads": layer.kv_heads}
    mixed = attention(fields, layer.window, layer.mixer == "sliding", layer.borrows_cache)
    if flag(fields, "parallel_ssm"):
        beside = SSM_MIXERS[word(fields, "mixer", "mamba2", tuple(SSM_MIXERS))](fields)
        return Mixed(mixed.matrices + beside.matrices, mixed.vectors + beside.vectors, beside.facts | mixed.facts)
    return mixed


def _feed(fields: Fields, layer: _Layer) -> tuple[tuple[WeightMatrix, ...], int, dict[str, Any]]:
    """Matrices, other parameters and Block fields of the feed-forward part."""
    hidden = whole(fields, "hidden_size")
    if layer.feed == "none":
        return (), 0, {}
    if layer.feed == "dense":
        width = layer.ffn_width or count(fields, "dense_intermediate_size") or whole(fields, "intermediate_size")
        bias = flag(fields, "mlp_bias")
        vectors = count(fields, "activation_parameters") + count(fields, "global_scales")
        return tuple(_mlp(fields, "", hidden, width, "mlp", bias)), vectors, {"ffn_width": width}
    experts, top_k = whole(fields, "num_experts"), whole(fields, "num_experts_per_tok")
    if top_k > experts:
        raise problem("num_experts_per_tok", f"{top_k} is more than the {experts} experts there are")
    width = whole(fields, "moe_intermediate_size", count(fields, "intermediate_size") or None)
    shared = _shared_width(fields, width)
    latent = count(fields, "moe_latent_size")
    choices = experts + count(fields, "zero_expert_num")
    choices += count(fields, "n_shared_experts") if flag(fields, "shared_expert_sink") else 0
    matrices, vectors = _router(fields, hidden, choices)
    if latent:
        matrices.append(WeightMatrix("latent_in_proj", hidden, latent, "mlp", "none"))
    matrices += _mlp(fields, "", latent or hidden, width, "expert", flag(fields, "expert_bias"), experts)
    if seen := count(fields, "vision_moe_intermediate_size"):
        matrices.append(WeightMatrix("vision_router", hidden, experts, "router", "none"))
        matrices += _mlp(fields, "vision_", hidden, seen, "expert", flag(fields, "expert_bias"), experts)
    if latent:
        matrices.append(WeightMatrix("latent_out_proj", latent, hidden, "mlp", "none"))
    if shared:
        matrices += _mlp(fields, "shared_", hidden, shared, "shared_expert", flag(fields, "mlp_bias"))
        if flag(fields, "shared_expert_gate"):
            matrices.append(WeightMatrix("shared_expert_gate", hidden, 1, "router", "none"))
    groups = 2 if count(fields, "vision_moe_intermediate_size") else 1
    corrected = experts if flag(fields, "shared_expert_sink") else groups * choices
    vectors += corrected if flag(fields, "router_score_bias") else 0
    vectors += count(fields, "global_scales")
    vectors += hidden + experts if flag(fields, "router_scales") else 0
    vectors += latent * count(fields, "latent_norms")
    facts: dict[str, Any] = {"experts": experts, "top_k": top_k, "expert_width": width, "shared_width": shared}
    groups_of_experts = whole(fields, "n_group", 1)
    facts["expert_reach"] = min(1.0, whole(fields, "topk_group", groups_of_experts) / groups_of_experts)
    return tuple(matrices), vectors, facts


def _router(fields: Fields, hidden: int, choices: int) -> tuple[list[WeightMatrix], int]:
    """What scores experts: a matrix, or with `router_hidden_size` a projection and an MLP of three with a norm and a
    scale of the layer before's (transformers ZayaRouter)."""
    width = count(fields, "router_hidden_size")
    if not width:
        return [WeightMatrix("router", hidden, choices, "router", "none", bias=flag(fields, "router_bias"))], 0
    matrices = [
        WeightMatrix("router_down_proj", hidden, width, "router", "none", bias=True),
        WeightMatrix("router_fc", width, width, "router", "none", 2, True),
        WeightMatrix("router_out_proj", width, choices, "router", "none"),
    ]
    return matrices, 2 * width


def _shared_width(fields: Fields, expert_width: int) -> int:
    if width := count(fields, "shared_expert_intermediate_size"):
        return width
    return count(fields, "n_shared_experts") * expert_width


def _mlp(
    fields: Fields, prefix: str, hidden: int, width: int, role: Role, bias: bool, copies: int = 1
) -> list[WeightMatrix]:
    """gate_proj (when gated), up_proj and down_proj of an MLP; `copies` of each for routed experts."""
    names = ["gate_proj", "up_proj"] if flag(fields, "mlp_gated", True) else ["up_proj"]
    rows = [WeightMatrix(prefix + name, hidden, width, role, "column", copies, bias) for name in names]
    return [*rows, WeightMatrix(prefix + "down_proj", width, hidden, role, "row", copies, bias)]


def _dropout(fields: Fields) -> float:
    values = [fields.get(name) for name in ("resid_pdrop", "hidden_dropout", "dropout", "residual_dropout")]
    rates = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return max(rates, default=0.0)


def _notes(fields: Fields, blocks: tuple[Block, ...]) -> tuple[str, ...]:
    written = fields.get("notes")
    notes = [str(note) for note in written] if isinstance(written, list | tuple) else []
    if fields.get("mlp_gated") is None and any(block.feed != "none" for block in blocks):
        notes.append("mlp_gated is not given: a gated MLP (gate, up, down) is assumed")
    if fields.get("tie_word_embeddings") is None:
        notes.append("tie_word_embeddings is not given: an output head of its own is assumed")
    if fields.get("max_position_embeddings") is None and any(block.heads for block in blocks):
        notes.append("max_position_embeddings is not given: no length is taken to be too long")
    if fields.get("norm_type") is None:
        notes.append("norm_type is not given: rmsnorm is assumed")
    return tuple(notes)
