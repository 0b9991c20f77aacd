"""config.json files as the hub has them (only transformers' own fields), against known parameter counts."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.models.catalogue import architecture

LLAMA = {"model_type": "llama", "hidden_act": "silu", "vocab_size": 128256, "num_attention_heads": 32}
# name: (config, parameters, active parameters, embedding + head + positions)
COUNTED: dict[str, tuple[dict[str, Any], int, int, int]] = {
    "DeepSeek-V2-Lite": (
        {
            "model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944,
            "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
            "num_key_value_heads": 16, "n_shared_experts": 2, "n_routed_experts": 64, "num_experts_per_tok": 6,
            "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "qk_nope_head_dim": 128, "moe_layer_freq": 1, "first_k_dense_replace": 1, "max_position_embeddings": 163840,
            "tie_word_embeddings": False, "attention_bias": False, "scoring_func": "softmax", "n_group": 1,
        }, 15706484224, 2661150208, 419430400,
    ),
    "GPT2-XL": (
        {
            "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1600, "n_layer": 48, "n_head": 25,
            "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1, "n_inner": None,
        }, 1557611200, 1557611200, 82049600,
    ),
    "Gemma-2-9B": (
        {
            "model_type": "gemma2", "vocab_size": 256000, "hidden_size": 3584, "intermediate_size": 14336,
            "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
            "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 8192, "sliding_window": 4096,
            "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
        }, 9241705984, 9241705984, 917504000,
    ),
    "Llama-2-7B": (
        LLAMA | {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                 "max_position_embeddings": 4096}, 6738415616, 6738415616, 262144000,
    ),
    "Llama-3.1-8B": (
        LLAMA | {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_key_value_heads": 8,
                 "max_position_embeddings": 131072, "tie_word_embeddings": False}, 8030261248, 8030261248, 1050673152,
    ),
    "Llama-3.2-1B": (
        LLAMA | {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_key_value_heads": 8,
                 "head_dim": 64, "max_position_embeddings": 131072, "tie_word_embeddings": True},
        1235814400, 1235814400, 262668288,
    ),
    "Llama-3.2-3B": (
        LLAMA | {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
                 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
                 "tie_word_embeddings": True}, 3212749824, 3212749824, 394002432,
    ),
    "Mistral-7B-v0.1": (
        {
            "model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 4096,
            "max_position_embeddings": 32768, "tie_word_embeddings": False,
        }, 7241732096, 7241732096, 262144000,
    ),
    "Mixtral-8x7B": (
        {
            "model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": None,
            "max_position_embeddings": 32768, "num_local_experts": 8, "num_experts_per_tok": 2,
        }, 46702792704, 12879925248, 262144000,
    ),
    "Phi-3-mini-4k": (
        {
            "model_type": "phi3", "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "sliding_window": 2047,
            "max_position_embeddings": 4096, "tie_word_embeddings": False, "resid_pdrop": 0.0,
        }, 3821079552, 3821079552, 197001216,
    ),
    "Qwen2.5-7B": (
        {
            "model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "use_sliding_window": False,
            "sliding_window": 131072, "max_position_embeddings": 131072, "tie_word_embeddings": False,
        }, 7615616512, 7615616512, 1089994752,
    ),
    "gpt-oss-20b": (
        {
            "model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880,
            "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
            "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": True,
            "max_position_embeddings": 131072, "tie_word_embeddings": False,
        }, 20914757184, 4187440704, 1158266880,
    ),
}  # fmt: skip

# name: (config as on the hub, the count that the hub's checkpoint has or the maker states)
HUB: dict[str, tuple[dict[str, Any], int]] = {
    "falcon-7b": (
        {"architectures": ["FalconForCausalLM"], "model_type": "falcon", "alibi": False, "bias": False,
         "hidden_size": 4544, "multi_query": True, "new_decoder_architecture": False, "num_attention_heads": 71,
         "num_hidden_layers": 32, "num_kv_heads": 71, "parallel_attn": True, "vocab_size": 65024}, 6921720704,
    ),
    "falcon-40b": (
        {"model_type": "falcon", "alibi": False, "bias": False, "hidden_size": 8192, "multi_query": True,
         "new_decoder_architecture": True, "num_attention_heads": 128, "num_hidden_layers": 60, "num_kv_heads": 8,
         "parallel_attn": True, "vocab_size": 65024}, 41303293952,
    ),
    "falcon-rw-1b": (
        {"model_type": "falcon", "alibi": True, "bias": True, "hidden_size": 2048, "multi_query": False,
         "new_decoder_architecture": False, "num_attention_heads": 32, "num_hidden_layers": 24, "parallel_attn": False,
         "vocab_size": 50304}, 1311625216,
    ),
    "bloom-560m": (
        {"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880},
        559214592,
    ),
    "opt-125m": (
        {"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
         "vocab_size": 50272, "max_position_embeddings": 2048, "do_layer_norm_before": True,
         "word_embed_proj_dim": 768}, 125239296,
    ),
    "opt-350m": (
        {"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
         "vocab_size": 50272, "max_position_embeddings": 2048, "do_layer_norm_before": False,
         "word_embed_proj_dim": 512}, 331196416,
    ),
    "gpt-neo-125m": (
        {"model_type": "gpt_neo", "hidden_size": 768, "num_layers": 12, "num_heads": 12, "intermediate_size": None,
         "vocab_size": 50257, "max_position_embeddings": 2048}, 125198592,
    ),
    "pythia-70m": (
        {"model_type": "gpt_neox", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6,
         "num_attention_heads": 8, "vocab_size": 50304, "max_position_embeddings": 2048, "use_parallel_residual": True,
         "tie_word_embeddings": False}, 70426624,
    ),
    "gpt-j-6b": (
        {"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048, "n_inner": None,
         "vocab_size": 50400, "tie_word_embeddings": False, "rotary_dim": 64}, 6050882784,
    ),
    "starcoder": (
        {"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_layer": 40, "n_positions": 8192,
         "n_inner": 24576, "multi_query": True, "vocab_size": 49152}, 15517456384,
    ),
    "phi-2": (
        {"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": None, "vocab_size": 51200, "max_position_embeddings": 2048,
         "tie_word_embeddings": False, "qk_layernorm": False}, 2779683840,
    ),
    "gemma-7b": (
        {"model_type": "gemma", "hidden_act": "gelu", "hidden_activation": None, "hidden_size": 3072, "head_dim": 256,
         "intermediate_size": 24576, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16,
         "vocab_size": 256000, "max_position_embeddings": 8192, "attention_bias": False}, 8537680896,
    ),
    "gemma-3-4b text decoder": (
        {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "vision_config": {},
         "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
                         "num_hidden_layers": 34, "sliding_window": 1024}}, 3880263168,
    ),
    "qwen2-57b-a14b": (
        {"model_type": "qwen2_moe", "hidden_size": 3584, "intermediate_size": 18944, "moe_intermediate_size": 2560,
         "shared_expert_intermediate_size": 20480, "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 28,
         "num_attention_heads": 28, "num_key_value_heads": 4, "decoder_sparse_step": 1, "vocab_size": 151936,
         "max_position_embeddings": 131072, "tie_word_embeddings": False}, 57408658944,
    ),
    "qwen-7b": (
        {"architectures": ["QWenLMHeadModel"], "model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016,
         "kv_channels": 128, "num_hidden_layers": 32, "num_attention_heads": 32, "seq_length": 8192,
         "tie_word_embeddings": False, "vocab_size": 151936, "max_position_embeddings": 32768}, 7721324544,
    ),
    "deepseek-v3": (
        {"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
         "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
         "moe_layer_freq": 1, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
         "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "vocab_size": 129280, "max_position_embeddings": 163840, "tie_word_embeddings": False,
         "num_nextn_predict_layers": 1, "attention_bias": False}, 671026419200,
    ),
    "mpt-7b": (
        {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4,
         "max_seq_len": 2048, "vocab_size": 50432, "no_bias": True, "attn_config": {"alibi": True, "clip_qkv": None}},
        6649286656,
    ),
    "dbrx": (
        {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768,
         "vocab_size": 100352, "tie_word_embeddings": False, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
         "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}}, 131596523520,
    ),
    "llama-4-scout text decoder": (
        {"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"], "vision_config": {},
         "text_config": {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
                         "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
                         "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 16, "num_experts_per_tok": 1,
                         "interleave_moe_layer_step": 1, "use_qk_norm": True, "vocab_size": 202048,
                         "max_position_embeddings": 10485760, "tie_word_embeddings": False}}, 107769861120,
    ),
    "glm-4.5-air": (
        {"model_type": "glm4_moe", "attention_bias": True, "use_qk_norm": False, "hidden_size": 4096,
         "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 1,
         "num_experts_per_tok": 8, "first_k_dense_replace": 1, "num_hidden_layers": 46, "num_attention_heads": 96,
         "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151552, "max_position_embeddings": 131072,
         "tie_word_embeddings": False}, 106852251264,
    ),
    "command-r-plus": (
        {"model_type": "cohere", "hidden_size": 12288, "intermediate_size": 33792, "num_hidden_layers": 64,
         "num_attention_heads": 96, "num_key_value_heads": 8, "use_qk_norm": True, "vocab_size": 256000,
         "max_position_embeddings": 131072}, 103810674688,
    ),
    "jamba-v0.1": (
        {"model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "num_experts": 16, "num_experts_per_tok": 2,
         "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1,
         "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256, "vocab_size": 65536,
         "max_position_embeddings": 262144, "tie_word_embeddings": False}, 51570323328,
    ),
    "mamba-2.8b": (
        {"model_type": "mamba", "hidden_size": 2560, "intermediate_size": 5120, "num_hidden_layers": 64,
         "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": 160, "use_bias": False,
         "use_conv_bias": True, "vocab_size": 50280}, 2768345600,
    ),
    "stablelm-2-1.6b": (
        {"model_type": "stablelm", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
         "num_attention_heads": 32, "num_key_value_heads": 32, "use_qkv_bias": True, "vocab_size": 100352,
         "max_position_embeddings": 4096, "tie_word_embeddings": False}, 1644515328,
    ),
    "starcoder2-3b": (
        {"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30,
         "num_attention_heads": 24, "num_key_value_heads": 2, "use_bias": True, "sliding_window": 4096,
         "vocab_size": 49152, "max_position_embeddings": 16384}, 3030371328,
    ),
    "glm-4-9b-chat": (
        {"model_type": "chatglm", "architectures": ["ChatGLMModel"], "add_bias_linear": False, "add_qkv_bias": True,
         "ffn_hidden_size": 13696, "hidden_size": 4096, "kv_channels": 128, "multi_query_attention": True,
         "multi_query_group_num": 2, "num_attention_heads": 32, "num_layers": 40, "padded_vocab_size": 151552,
         "seq_length": 131072, "tie_word_embeddings": False}, 9399951360,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_counts_of_instantiated_models_are_exact(name: str) -> None:
    config, parameters, active, outside = COUNTED[name]
    built = architecture(config)
    assert built.parameters == parameters
    assert built.active_parameters == active
    assert built.embedding_parameters + built.head_parameters + built.position_parameters == outside
    assert built.notes == ()


@pytest.mark.parametrize("name", HUB)
def test_hub_configs_are_read_with_their_conventions(name: str) -> None:
    config, parameters = HUB[name]
    assert architecture(config).parameters == parameters


def test_gpt_neox_hub_fields_give_one_key_value_head_per_query_head() -> None:
    built = architecture(HUB["pythia-70m"][0])
    assert built.kv_heads == built.heads == 8
    assert built.blocks[0].norms == 2
    assert built.parallel_block


def test_window_patterns() -> None:
    gemma = architecture(COUNTED["Gemma-2-9B"][0])
    windows = [gemma.blocks[kind].window for kind in gemma.pattern]
    assert windows[:4] == [4096, None, 4096, None]
    oss = architecture(COUNTED["gpt-oss-20b"][0])
    assert [oss.blocks[kind].window for kind in oss.pattern][:2] == [128, None]
    assert {block.window for block in architecture(COUNTED["Mistral-7B-v0.1"][0]).blocks} == {4096}
    assert {block.window for block in architecture(COUNTED["Qwen2.5-7B"][0]).blocks} == {None}
    third = architecture(HUB["gemma-3-4b text decoder"][0])
    assert [third.blocks[kind].window for kind in third.pattern][:6] == [1024] * 5 + [None]


def test_nested_text_config_is_multimodal_and_said() -> None:
    built = architecture(HUB["llama-4-scout text decoder"][0])
    assert built.multimodal
    assert any("vision" in note for note in built.notes)


def _published(parameters: float) -> Any:
    return pytest.approx(parameters, rel=0.005)


_MAMBA = {"mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_expand": 2, "mamba_n_groups": 1}
_WIDE = {"num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "hidden_size": 4096}
_BAMBA = {  # ibm-ai-platform/Bamba-9B-v1: the numbers of the layers that are attention
    **_MAMBA, **_WIDE, "model_type": "bamba", "attn_layer_indices": [9, 18, 27], "intermediate_size": 14336,
    "mamba_n_heads": 128, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
_EXAONE = {  # LGAI-EXAONE/EXAONE-4.0-32B: windows as letters
    "model_type": "exaone4", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 27392, "vocab_size": 102400,
    "num_attention_heads": 40, "num_hidden_layers": 64, "num_key_value_heads": 8, "sliding_window": 4096,
    "sliding_window_pattern": "LLLG", "tie_word_embeddings": False,
}  # fmt: skip
_HUNYUAN = {  # tencent/Hunyuan-A13B: one number for every layer
    **_WIDE, "model_type": "hunyuan_v1_moe", "attention_head_dim": 128, "intermediate_size": 3072, "num_experts": 64,
    "moe_intermediate_size": [3072] * 32, "moe_topk": [8] * 32, "num_shared_expert": [1] * 32, "vocab_size": 128167,
}  # fmt: skip
_SCAN = {  # state-spaces/mamba2-2.7b: mamba_ssm's own fields
    "d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {"layer": "Mamba2"}, "d_intermediate": 0,
    "attn_layer_idx": [], "attn_cfg": {}, "pad_vocab_size_multiple": 16, "tie_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize(("config", "billions"), [(_BAMBA, 9.78), (_EXAONE, 32.0), (_HUNYUAN, 80.4), (_SCAN, 2.70)])
def test_fields_as_their_makers_write_them(config: dict[str, Any], billions: float) -> None:
    assert architecture(config).parameters / 1e9 == _published(billions)


def test_windows_as_letters_are_windows() -> None:
    config = {
        "model_type": "exaone4", "head_dim": 64, "hidden_size": 512, "intermediate_size": 1024, "vocab_size": 1000,
        "num_attention_heads": 8, "num_hidden_layers": 8, "num_key_value_heads": 8, "sliding_window_pattern": "LLLG",
    }  # fmt: skip
    assert not any(block.window for block in architecture(config).blocks)
    assert {block.window for block in architecture(config | {"sliding_window": 256}).blocks} == {None, 256}
