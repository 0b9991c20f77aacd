from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from estimator.model.configs import build

TINY: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 96, "vocab_size": 100, "max_position_embeddings": 128, "mlp_gated": True,
    "norm_type": "rmsnorm", "tie_word_embeddings": False,
}  # fmt: skip
MOE = TINY | {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1}
MLA = TINY | {"kv_lora_rank": 24, "q_lora_rank": 40, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 20}


def names(built: Architecture, kind: int = 0) -> list[str]:
    return [matrix.name for matrix in built.blocks[kind].matrices]


def test_dense_layer_by_hand() -> None:
    built = build(TINY, "tiny")
    attention = 64 * 64 + 2 * 64 * 32 + 64 * 64
    per_layer = attention + 3 * 64 * 96 + 2 * 64
    assert built.parameters == 3 * per_layer + 2 * 100 * 64 + 64
    assert names(built) == ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    assert built.active_parameters == built.parameters
    assert built.kv_elements_per_token == 3 * 2 * 2 * 16
    assert [matrix.split for matrix in built.blocks[0].matrices] == ["column"] * 3 + ["row"] + ["column"] * 2 + ["row"]


def test_plain_mlp_with_biases_and_learned_positions() -> None:
    fields = TINY | {
        "mlp_gated": False, "mlp_bias": True, "attention_bias": True, "norm_type": "layernorm",
        "position_embedding": "learned", "position_offset": 2, "lm_head_bias": True, "embedding_norm": True,
    }  # fmt: skip
    built = build(fields)
    attention = 64 * 64 + 64 + 2 * (64 * 32 + 32) + 64 * 64 + 64
    mlp = 64 * 96 + 96 + 96 * 64 + 64
    assert built.blocks[0].parameters == attention + mlp + 2 * 128
    assert built.position_parameters == 130 * 64
    assert built.head_parameters == 6400 + 100
    assert built.extra_parameters == 256
    assert built.norm == "layernorm"
    assert names(built)[-2:] == ["up_proj", "down_proj"]


def test_qkv_bias_leaves_the_output_without() -> None:
    biased = {m.name for m in build(TINY | {"attention_qkv_bias": True}).blocks[0].matrices if m.bias}
    assert biased == {"q_proj", "k_proj", "v_proj"}


def test_experts_share_a_table_row() -> None:
    built = build(MOE | {"shared_expert_gate": True, "router_score_bias": True, "first_k_dense_replace": 1})
    assert built.pattern == (0, 1, 1)
    dense, sparse = built.blocks
    assert dense.feed == "dense"
    assert dense.ffn_width == 96
    experts = [matrix for matrix in sparse.matrices if matrix.role == "expert"]
    assert [(m.name, m.copies) for m in experts] == [("gate_proj", 8), ("up_proj", 8), ("down_proj", 8)]
    assert sparse.shared_width == 32
    assert sparse.vector_parameters == 2 * 64 + 8
    spared = 2 * 6 * 3 * 64 * 32
    assert built.parameters - built.active_parameters == spared


def test_mla_by_hand() -> None:
    block = build(MLA).blocks[0]
    projections = 64 * 40 + 40 * 4 * 24 + 64 * 32 + 24 * 4 * 36 + 80 * 64
    assert block.parameters == projections + 40 + 24 + 3 * 64 * 96 + 2 * 64
    assert block.kv_elements_per_token == 32
    assert (block.head_dim, block.v_head_dim) == (24, 20)
    assert "q_proj" in names(build(MLA | {"q_lora_rank": None}))


@pytest.mark.parametrize(
    ("extra", "vectors"),
    [
        ({"qk_norm": "per_head"}, 32),
        ({"qk_norm": "full_width"}, 96),
        ({"qk_norm": "non_parametric"}, 0),
        ({"attention_sinks": True}, 4),
    ],
)
def test_vectors_of_attention(extra: dict[str, Any], vectors: int) -> None:
    assert build(TINY | extra).blocks[0].vector_parameters == 2 * 64 + vectors


def test_hybrid_pattern_has_one_mixer_a_layer() -> None:
    fields = MOE | {
        "hybrid_override_pattern": "M*-E", "mixer": "mamba2", "mamba_num_heads": 4, "mamba_head_dim": 32,
        "n_groups": 2, "state_size": 16, "moe_latent_size": 24,
    }  # fmt: skip
    built = build(fields)
    assert built.layers == 4
    assert [block.mixer for block in built.blocks] == ["mamba2", "attention", "none", "none"]
    assert [block.feed for block in built.blocks] == ["none", "none", "dense", "moe"]
    assert [block.norms for block in built.blocks] == [1, 1, 1, 1]
    mamba = built.blocks[0]
    convolved = 128 + 2 * 2 * 16
    assert mamba.parameters == 64 * (128 + convolved + 4) + 128 * 64 + convolved * 5 + 3 * 4 + 128 + 64
    assert mamba.ssm_inner * mamba.state_size == 128 * 16
    latent = {m.name: (m.inputs, m.outputs) for m in built.blocks[3].matrices}
    assert latent["latent_in_proj"] == (64, 24)
    assert latent["up_proj"] == (24, 32)


def test_linear_attention_layers_keep_no_cache() -> None:
    fields = TINY | {
        "mixer": "gated_delta", "full_attention_interval": 3, "attention_output_gate": True,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 4,
    }  # fmt: skip
    built = build(fields)
    assert [built.blocks[kind].mixer for kind in built.pattern] == ["linear_attention"] * 2 + ["attention"]
    assert built.kv_elements_per_token == 64
    assert built.heads == 4
    full = built.blocks[1]
    assert full.matrices[0].outputs == 2 * 4 * 16


def test_searched_layers_may_lack_a_part() -> None:
    layers = [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.0}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.0}},
        {"attention": {"n_heads_in_group": 2}, "ffn": {"no_op": True}},
    ]
    built = build(TINY | {"block_configs": layers})
    assert [(block.mixer, block.feed, block.norms) for block in built.blocks] == [
        ("attention", "dense", 2), ("none", "dense", 1), ("attention", "none", 1),
    ]  # fmt: skip
    assert [block.kv_heads for block in built.blocks] == [1, 0, 2]


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads"])
def test_a_missing_essential_field_is_named(name: str) -> None:
    fields = {key: value for key, value in TINY.items() if key != name}
    with pytest.raises(PlanError) as caught:
        build(fields)
    assert caught.value.field == f"model.{name}"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_key_value_heads": 3}, "model.num_key_value_heads"),
        ({"hidden_size": "64"}, "model.hidden_size"),
        ({"hidden_size": 0}, "model.hidden_size"),
        ({"hidden_size": float("nan")}, "model.hidden_size"),
        ({"num_hidden_layers": 10**7}, "model.num_hidden_layers"),
        ({"norm_type": "batchnorm"}, "model.norm_type"),
        ({"layer_types": ["full_attention"]}, "model.layer_types"),
        ({"layer_types": ["lstm"] * 3}, "model.layer_types"),
        ({"head_dim": None, "num_attention_heads": 5}, "model.num_attention_heads"),
        ({"num_experts": 4, "num_experts_per_tok": 5}, "model.num_experts_per_tok"),
        ({"block_configs": [1, 2, 3]}, "model.block_configs"),
        ({"compress_ratios": [[1], 2, 3]}, "model.compress_ratios"),
        ({"tie_word_embeddings": "yes"}, "model.tie_word_embeddings"),
    ],
)
def test_unusable_values_are_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        build(TINY | change)
    assert caught.value.field == field


def test_assumptions_are_said() -> None:
    bare = {k: v for k, v in TINY.items() if k not in ("mlp_gated", "norm_type", "tie_word_embeddings")}
    notes = " ".join(build(bare).notes)
    assert "mlp_gated" in notes
    assert "norm_type" in notes
    assert "tie_word_embeddings" in notes
    assert build(TINY).notes == ()


@settings(max_examples=examples(60), deadline=None)
@given(
    layers=st.integers(1, 40),
    heads=st.sampled_from([1, 2, 4, 8, 16]),
    group=st.sampled_from([1, 2, 4]),
    width=st.integers(1, 500),
    experts=st.sampled_from([0, 2, 8]),
    tied=st.booleans(),
)
def test_parameters_are_the_sum_of_the_parts(
    layers: int, heads: int, group: int, width: int, experts: int, tied: bool
) -> None:
    fields = MOE | {
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": max(1, heads // group),
        "moe_intermediate_size": width, "num_experts": experts, "tie_word_embeddings": tied,
    }  # fmt: skip
    built = build(fields)
    rows = sum(
        m.copies * (m.inputs * m.outputs + m.outputs * m.bias)
        for kind in built.pattern
        for m in built.blocks[kind].matrices
    )
    vectors = sum(built.blocks[kind].vector_parameters for kind in built.pattern)
    outside = (1 if tied else 2) * 100 * 64 + 64
    assert built.parameters == rows + vectors + outside
    assert built.active_parameters <= built.parameters
    deeper = build(fields | {"num_hidden_layers": layers + 1})
    assert deeper.parameters > built.parameters


@settings(max_examples=examples(200), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*MOE, *MLA, "mixer", "layer_types", "block_configs", "hybrid_override_pattern", "qk_norm",
                         "sliding_window", "moe_layer_freq", "mlp_only_layers", "hc_mult", "compress_ratios", "notes",
                         "expand", "linear_num_value_heads", "full_attention_interval", "attn_layer_period"]),
        st.none() | st.booleans() | st.integers(-5, 200) | st.floats() | st.text(max_size=4)
        | st.lists(st.integers(0, 3) | st.text(max_size=3), max_size=4),
    )
)  # fmt: skip
def test_no_field_value_raises_anything_but_plan_error(changes: dict[str, Any]) -> None:
    try:
        built = build(TINY | changes)
    except PlanError:
        return
    assert built.parameters > 0
