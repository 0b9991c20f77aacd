"""The token mixers of a decoder layer as matrices and vectors: attention, MLA, Mamba and linear attention.

Every function takes the canonical config fields (see `estimator.model.configs`) and returns a `Mixer`: the matrices of
the forward pass, the parameters that are not in matrices (convolutions, gates, norms inside the mixer, sinks), and the
Block fields that describe it. Splits follow Megatron-LM's tensor parallelism: projections into heads by column, the
projection out by row, small shared projections kept whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator.model.architecture import Role, Split, WeightMatrix
from estimator.model.config_fields import count, flag, problem, whole, word

QK_NORMS = ("per_head", "full_width", "per_head_layernorm", "non_parametric", "none")

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Mixed:
    """What a mixer adds to a block: its matrices, its other parameters, and the Block fields that it sets."""

    matrices: tuple[WeightMatrix, ...]
    vectors: int
    facts: dict[str, Any]


def attention(fields: Fields, window: int | None, sliding: bool = False, borrows_cache: bool = False) -> Mixed:
    """Multi-head, grouped-query or multi-query attention (transformers LlamaAttention and its kin).

    A layer that `borrows_cache` has no k_proj, v_proj and k_norm (Gemma 4's shared layers).

    Layers of a sliding kind may have their own head counts (`swa_*` fields), full layers of such models too
    (`global_head_dim`, `num_global_key_value_heads`). `attention_k_eq_v` full layers have no v_proj. Queries of
    `share_q_dim` go through that width and a norm (multi-matrix factorization attention, arXiv 2412.19255).
    """
    hidden = whole(fields, "hidden_size")
    heads = whole(fields, "num_attention_heads")
    kv_heads = whole(fields, "num_key_value_heads", heads)
    if fields.get("head_dim") is None and hidden % heads:
        raise problem(
            "num_attention_heads", f"{heads} heads do not divide hidden_size {hidden}, and no head_dim is given"
        )
    head_dim = whole(fields, "head_dim", hidden // heads)
    v_head_dim = whole(fields, "v_head_dim", head_dim)
    shares_kv = False
    if sliding:
        heads = whole(fields, "swa_num_attention_heads", heads)
        kv_heads = whole(fields, "swa_num_key_value_heads", kv_heads)
        head_dim = whole(fields, "swa_head_dim", head_dim)
        v_head_dim = whole(fields, "swa_v_head_dim", v_head_dim)
    elif fields.get("global_head_dim") is not None:
        head_dim = v_head_dim = whole(fields, "global_head_dim")
        kv_heads = whole(fields, "num_global_key_value_heads", kv_heads)
        shares_kv = flag(fields, "attention_k_eq_v")
    if heads % kv_heads:
        raise problem(
            "num_key_value_heads", f"{kv_heads} does not divide the {heads} attention heads", _divisors(heads)
        )
    both = flag(fields, "attention_bias")
    in_bias, out_bias = both or flag(fields, "attention_qkv_bias"), both or flag(fields, "attention_out_bias")
    gate = 2 if flag(fields, "attention_output_gate") else 1
    matrices = [
        _matrix("q_proj", hidden, gate * heads * head_dim, "attention", "column", in_bias),
        _matrix("k_proj", hidden, kv_heads * head_dim, "attention", "column", in_bias),
        _matrix("v_proj", hidden, kv_heads * v_head_dim, "attention", "column", in_bias),
        _matrix("o_proj", heads * v_head_dim, hidden, "attention", "row", out_bias),
    ]
    if borrows_cache:
        del matrices[1:3]
    elif shares_kv:
        del matrices[2]
    matrices[:1], of_queries = _queries(fields, hidden, matrices[0])
    if flag(fields, "attention_head_gate"):
        matrices.append(_matrix("g_proj", hidden, heads, "attention", "column"))
    qk_norm = word(fields, "qk_norm", "none", QK_NORMS)
    vectors = _norm_vectors(qk_norm, head_dim, heads, 0 if borrows_cache else kv_heads)
    if flag(fields, "attention_sinks") and (sliding or flag(fields, "full_attention_sinks", True)):
        vectors += heads
    vectors += of_queries
    added, more = _beside_heads(fields, heads, kv_heads, head_dim, window if sliding else None)
    matrices, vectors = matrices + added, vectors + more
    facts = {
        "mixer": "attention", "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "v_head_dim": v_head_dim,
        "window": window, "qk_norm": qk_norm != "none",
    }  # fmt: skip
    return Mixed(tuple(matrices), vectors, facts)


def _queries(fields: Fields, hidden: int, whole_matrix: WeightMatrix) -> tuple[list[WeightMatrix], int]:
    """The projections of queries, and parameters of the norm between them: one matrix, or two of rank `share_q_dim`."""
    rank = count(fields, "share_q_dim")
    if not rank:
        return [whole_matrix], 0
    down = _matrix("q_a_proj", hidden, rank, "attention", "none")
    return [down, _matrix("q_b_proj", rank, whole_matrix.outputs, "attention", "column")], rank


def _norm_vectors(qk_norm: str, head_dim: int, heads: int, kv_heads: int) -> int:
    """Parameters of the norms of queries and, with `kv_heads`, of keys."""
    if qk_norm == "per_head":
        return 2 * head_dim if kv_heads else head_dim
    return (heads + kv_heads) * head_dim if qk_norm in ("full_width", "per_head_layernorm") else 0


def _beside_heads(
    fields: Fields, heads: int, kv_heads: int, head_dim: int, window: int | None
) -> tuple[list[WeightMatrix], int]:
    """What some models do with queries and keys between their projections and the scores: matrices, and the rest."""
    if count(fields, "cca_time0"):
        matrix, vectors = _convolved_heads(fields, heads, kv_heads, head_dim)
    elif count(fields, "d_rel"):
        matrix, vectors = _relative_positions(fields, heads, kv_heads * head_dim, window)
    else:
        return [], 0
    return [matrix], vectors


def _convolved_heads(fields: Fields, heads: int, kv_heads: int, head_dim: int) -> tuple[WeightMatrix, int]:
    """Compressed convolutional attention (arXiv 2510.04476; transformers ZayaCCAProjection): two causal convolutions of
    queries and keys, the second over the width of each head, all with biases, and a scale for each key head."""
    channels = (heads + kv_heads) * head_dim
    across = WeightMatrix(
        "conv_qk_grouped",
        head_dim * whole(fields, "cca_time1"),
        head_dim,
        "attention",
        "column",
        heads + kv_heads,
        True,
    )
    return across, channels * (whole(fields, "cca_time0") + 1) + kv_heads


def _relative_positions(fields: Fields, heads: int, width: int, window: int | None) -> tuple[WeightMatrix, int]:
    """InklingAttention: a matrix and a bank of learned relative positions; convolutions of keys, values (`width` each)
    and of the outputs of attention and experts."""
    hidden, relative = whole(fields, "hidden_size"), whole(fields, "d_rel")
    kernel = whole(fields, "conv_kernel_size", whole(fields, "conv_kernel", 4))
    vectors = relative * (window or whole(fields, "rel_extent")) + 2 * kernel * (width + hidden)
    return _matrix("r_proj", hidden, heads * relative, "attention", "column"), vectors


_INDEX = {"index_heads": "index_n_heads", "index_dim": "index_head_dim"}


def latent_attention(fields: Fields, window: int | None = None, chooses: bool = True) -> Mixed:
    """Multi-head latent attention, with the sparse-attention indexer where `index_n_heads` is given and the layer
    `chooses` tokens itself.

    DeepSeek-V2 (arXiv 2405.04434, eq. 37-47), transformers DeepseekV3Attention; indexer: DeepSeek-V3.2 `Indexer`.
    """
    hidden, heads = whole(fields, "hidden_size"), whole(fields, "num_attention_heads")
    q_rank, kv_rank = count(fields, "q_lora_rank"), whole(fields, "kv_lora_rank")
    rope, nope = count(fields, "qk_rope_head_dim"), whole(fields, "qk_nope_head_dim")
    v_head_dim = whole(fields, "v_head_dim", nope)
    bias = flag(fields, "attention_bias")
    matrices: list[WeightMatrix] = []
    if q_rank:
        matrices.append(_matrix("q_a_proj", hidden, q_rank, "attention", "none", bias))
        fused = flag(fields, "fused_query_gate")
        read, made = (2 * q_rank, nope + rope + v_head_dim) if fused else (q_rank, nope + rope)
        matrices.append(_matrix("q_b_proj", read, heads * made, "attention", "column"))
    else:
        matrices.append(_matrix("q_proj", hidden, heads * (nope + rope), "attention", "column"))
    matrices.append(_matrix("kv_a_proj_with_mqa", hidden, kv_rank + rope, "attention", "none", bias))
    matrices.append(_matrix("kv_b_proj", kv_rank, heads * (nope + v_head_dim), "attention", "column"))
    matrices.append(_matrix("o_proj", heads * v_head_dim, hidden, "attention", "row", bias))
    if flag(fields, "attention_output_gate"):
        matrices.append(_matrix("g_proj", hidden, heads * v_head_dim, "attention", "column"))
    if flag(fields, "attention_head_gate"):
        matrices.append(_matrix("g_proj", hidden, heads, "attention", "column"))
    vectors = q_rank + kv_rank + (rope if flag(fields, "rope_key_norm") else 0)
    vectors += 2 * heads if flag(fields, "softmax_scaling") else 0
    if chooses and (index_heads := count(fields, "index_n_heads")):
        index_dim = whole(fields, "index_head_dim")
        matrices.append(_matrix("indexer_wq_b", q_rank or hidden, index_heads * index_dim, "attention", "none"))
        matrices.append(_matrix("indexer_wk", hidden, index_dim, "attention", "none"))
        matrices.append(_matrix("indexer_weights_proj", hidden, index_heads, "attention", "none"))
        vectors += 2 * index_dim + (2 * index_heads if flag(fields, "softmax_scaling") else 0)
        vectors += 2 * hidden if flag(fields, "index_query_norm") else 0
    facts = {
        "mixer": "mla", "heads": heads, "kv_heads": heads, "head_dim": nope + rope, "v_head_dim": v_head_dim,
        "kv_lora_rank": kv_rank, "rope_head_dim": rope, "window": window,
        "chosen_keys": count(fields, "index_topk"),
    }  # fmt: skip
    if chooses:
        facts |= {name: count(fields, field) for name, field in _INDEX.items()}
    return Mixed(tuple(matrices), vectors, facts)


def compressed_attention(fields: Fields, window: int | None, ratio: int) -> Mixed:
    """DeepSeek-V4's attention: low-rank queries, one key-value head that is key and value at once, a grouped low-rank
    output, and for `ratio` > 0 a compressor (one entry every `ratio` tokens); at ratio 4 an indexer chooses entries.

    After deepseek-ai/DeepSeek-V4 inference code; reproduces the published totals (284 B and 1.6 T). The Block says
    `mla`: an entry of the cache is one latent of `head_dim`.
    """
    hidden, heads = whole(fields, "hidden_size"), whole(fields, "num_attention_heads")
    head_dim = whole(fields, "head_dim")
    q_rank, o_rank, groups = whole(fields, "q_lora_rank"), whole(fields, "o_lora_rank"), whole(fields, "o_groups", 1)
    if heads % groups:
        raise problem("o_groups", f"{groups} does not divide {heads} attention heads", _divisors(heads))
    matrices = [
        _matrix("q_a_proj", hidden, q_rank, "attention", "none"),
        _matrix("q_b_proj", q_rank, heads * head_dim, "attention", "column"),
        _matrix("kv_proj", hidden, head_dim, "attention", "none"),
        WeightMatrix("o_a_proj", heads * head_dim // groups, o_rank, "attention", "column", copies=groups),
        _matrix("o_b_proj", groups * o_rank, hidden, "attention", "row"),
    ]
    vectors = q_rank + head_dim + heads
    if ratio:
        compressor, more = _compressor("compressor", hidden, head_dim, ratio)
        matrices.append(compressor)
        vectors += more
    if ratio == 4 and (index_heads := count(fields, "index_n_heads")):
        index_dim = whole(fields, "index_head_dim")
        compressor, more = _compressor("indexer_compressor", hidden, index_dim, ratio)
        matrices.append(compressor)
        matrices.append(_matrix("indexer_wq_b", q_rank, index_heads * index_dim, "attention", "none"))
        matrices.append(_matrix("indexer_weights_proj", hidden, index_heads, "attention", "none"))
        vectors += more
    facts = {
        "mixer": "mla", "heads": heads, "kv_heads": heads, "head_dim": head_dim, "v_head_dim": head_dim,
        "kv_lora_rank": head_dim, "window": None if ratio else window,
        "cache_every": ratio or 1, "local_window": (window or 0) if ratio else 0,
    }  # fmt: skip
    if ratio == 4:
        facts |= {name: count(fields, field) for name, field in _INDEX.items()}
        facts["chosen_keys"] = count(fields, "index_topk")
    return Mixed(tuple(matrices), vectors, facts)


def _compressor(name: str, hidden: int, width: int, ratio: int) -> tuple[WeightMatrix, int]:
    """The key-value and gate projections of a compressor (twice as wide where windows overlap, at ratio 4), and its
    position table and norm."""
    wide = 2 * width if ratio == 4 else width
    return _matrix(name, hidden, 2 * wide, "attention", "none"), ratio * wide + width


# Defaults of Mamba-2 (transformers, Mamba2Config: head_dim, state_size).
_MAMBA2_HEAD, _MAMBA2_STATE = 64, 128


# transformers MambaConfig: state_size, and the hidden size over time_step_rank.
_MAMBA1_STATE, _MAMBA1_RANK = 16, 16


def mamba1(fields: Fields) -> Mixed:
    """Selective state space layer (transformers MambaMixer; `mamba_inner_norms`: Jamba's norms of dt, B and C)."""
    hidden = whole(fields, "hidden_size")
    inner = whole(fields, "mamba_inner", whole(fields, "expand", 2) * hidden)
    state, kernel = whole(fields, "state_size", _MAMBA1_STATE), whole(fields, "conv_kernel", 4)
    rank = whole(fields, "time_step_rank", -(-hidden // _MAMBA1_RANK))
    bias = flag(fields, "mamba_proj_bias")
    matrices = (
        _matrix("in_proj", hidden, 2 * inner, "ssm", "column", bias),
        _matrix("x_proj", inner, rank + 2 * state, "ssm", "row"),
        _matrix("dt_proj", rank, inner, "ssm", "column", True),
        _matrix("out_proj", inner, hidden, "ssm", "row", bias),
    )
    vectors = _convolution(fields, inner, kernel) + inner * state + inner
    if flag(fields, "mamba_inner_norms"):
        vectors += rank + 2 * state
    facts = {"mixer": "mamba1", "state_size": state, "ssm_inner": inner, "conv_kernel": kernel}
    return Mixed(matrices, vectors, facts)


def mamba2(fields: Fields) -> Mixed:
    """State space duality layer with a gated norm (transformers Mamba2Mixer)."""
    hidden = whole(fields, "hidden_size")
    head_dim = whole(fields, "mamba_head_dim", _MAMBA2_HEAD)
    heads = whole(fields, "mamba_num_heads", max(1, whole(fields, "expand", 2) * hidden // head_dim))
    inner, groups = heads * head_dim, whole(fields, "n_groups", 1)
    state, kernel = whole(fields, "state_size", _MAMBA2_STATE), whole(fields, "conv_kernel", 4)
    bias = flag(fields, "mamba_proj_bias")
    convolved = inner + 2 * groups * state
    matrices = (
        _matrix("in_proj", hidden, inner + convolved + heads, "ssm", "column", bias),
        _matrix("out_proj", inner, hidden, "ssm", "row", bias),
    )
    vectors = _convolution(fields, convolved, kernel) + 3 * heads
    vectors += inner if flag(fields, "mamba_rms_norm", True) else 0
    facts = {
        "mixer": "mamba2", "state_size": state, "ssm_inner": inner, "ssm_heads": heads, "conv_kernel": kernel,
    }  # fmt: skip
    return Mixed(matrices, vectors, facts)


def gated_delta(fields: Fields) -> Mixed:
    """Gated DeltaNet (transformers Qwen3NextGatedDeltaNet). The state of a value head is key_dim x value_dim."""
    hidden, kernel = whole(fields, "hidden_size"), whole(fields, "linear_conv_kernel_dim", 4)
    key_dim, value_dim = whole(fields, "linear_key_head_dim"), whole(fields, "linear_value_head_dim")
    value_heads = whole(fields, "linear_num_value_heads")
    keys, values = whole(fields, "linear_num_key_heads") * key_dim, value_heads * value_dim
    matrices = (
        _matrix("in_proj_qkv", hidden, 2 * keys + values, "ssm", "column"),
        _matrix("in_proj_z", hidden, values, "ssm", "column"),
        _matrix("in_proj_ba", hidden, 2 * value_heads, "ssm", "column"),
        _matrix("out_proj", values, hidden, "ssm", "row"),
    )
    vectors = (2 * keys + values) * kernel + 2 * value_heads + value_dim
    facts = {"mixer": "linear_attention", "state_size": key_dim, "ssm_inner": values, "conv_kernel": kernel}
    return Mixed(matrices, vectors, facts)


def kimi_delta(fields: Fields) -> Mixed:
    """Kimi Delta Attention (arXiv 2510.26692, section 3; fla KimiDeltaAttention): low-rank decay and output gates,
    or plain ones with `linear_full_gates` (transformers BailingHybridDeltaAttention), the output's alone with
    `linear_full_output_gate` (Kimi K3)."""
    hidden, kernel = whole(fields, "hidden_size"), whole(fields, "linear_conv_kernel_dim", 4)
    head_dim = whole(fields, "linear_key_head_dim")
    heads = whole(fields, "linear_num_key_heads")
    width, full = heads * head_dim, flag(fields, "linear_full_gates")
    matrices = (
        _matrix("q_proj", hidden, width, "ssm", "column"),
        _matrix("k_proj", hidden, width, "ssm", "column"),
        _matrix("v_proj", hidden, width, "ssm", "column"),
        _matrix("b_proj", hidden, heads, "ssm", "column"),
        *_gate("f", hidden, head_dim, width, full),
        *_gate("g", hidden, head_dim, width, full or flag(fields, "linear_full_output_gate")),
        _matrix("o_proj", width, hidden, "ssm", "row"),
    )
    vectors = 3 * width * kernel + heads + width + head_dim
    facts = {"mixer": "linear_attention", "state_size": head_dim, "ssm_inner": width, "conv_kernel": kernel}
    return Mixed(matrices, vectors, facts)


def lightning(fields: Fields) -> Mixed:
    """Lightning attention (arXiv 2501.08313, section 2.2; transformers MiniMaxLightningAttention): a decay a head that
    has no weights, a norm over all heads and a gate of the output. The state of a head is head_dim x head_dim."""
    hidden, heads = whole(fields, "hidden_size"), whole(fields, "num_attention_heads")
    head_dim = whole(fields, "head_dim", max(1, hidden // heads))
    width = heads * head_dim
    matrices = (
        _matrix("qkv_proj", hidden, 3 * width, "ssm", "column"),
        _matrix("output_gate", hidden, width, "ssm", "column"),
        _matrix("out_proj", width, hidden, "ssm", "row"),
    )
    return Mixed(matrices, width, {"mixer": "linear_attention", "state_size": head_dim, "ssm_inner": width})


def _gate(name: str, hidden: int, rank: int, width: int, full: bool) -> tuple[WeightMatrix, ...]:
    if full:
        return (_matrix(f"{name}_proj", hidden, width, "ssm", "column"),)
    return (
        _matrix(f"{name}_a_proj", hidden, rank, "ssm", "none"),
        _matrix(f"{name}_b_proj", rank, width, "ssm", "column"),
    )


def short_conv(fields: Fields) -> Mixed:
    """Gated short convolution (transformers Lfm2ShortConv); its state is the last `conv_L_cache` - 1 inputs."""
    hidden, kernel, bias = whole(fields, "hidden_size"), whole(fields, "conv_L_cache", 3), flag(fields, "conv_bias")
    matrices = (
        _matrix("in_proj", hidden, 3 * hidden, "ssm", "column", bias),
        _matrix("out_proj", hidden, hidden, "ssm", "row", bias),
    )
    facts = {"mixer": "linear_attention", "state_size": 1, "ssm_inner": hidden, "conv_kernel": kernel}
    return Mixed(matrices, hidden * kernel + (hidden if bias else 0), facts)


def _convolution(fields: Fields, channels: int, kernel: int) -> int:
    """Parameters of a depthwise causal convolution, with its bias unless `mamba_conv_bias` is false."""
    return channels * kernel + (channels if flag(fields, "mamba_conv_bias", True) else 0)


def _matrix(name: str, inputs: int, outputs: int, role: Role, split: Split, bias: bool = False) -> WeightMatrix:
    return WeightMatrix(name, inputs, outputs, role, split, bias=bias)


# The largest divisor that an error offers.
_MOST_DIVISOR = 512


def _divisors(number: int) -> tuple[int, ...]:
    return tuple(n for n in range(1, min(number, _MOST_DIVISOR) + 1) if number % n == 0)
