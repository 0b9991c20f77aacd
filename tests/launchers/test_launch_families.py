"""Which chat template, layer names and fused kernels a model's name leads to."""

from __future__ import annotations

import re

import pytest

from launchers.families import is_known_to_liger, linear_layers_of, template_of
from launchers.tables import table


@pytest.mark.parametrize(
    ("model", "template"),
    [
        ("meta-llama/Llama-2-7b-hf", "llama2"),
        ("meta-llama/Meta-Llama-3-8B", "llama3"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4"),
        ("/data/checkpoints/Llama-3.1-8B-Instruct/", "llama3"),
        ("Qwen/Qwen2.5-7B", "qwen"),
        ("Qwen/Qwen3-8B", "qwen3"),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3_nothink"),
        ("Qwen/Qwen3-VL-8B-Instruct", "qwen3_vl_nothink"),
        ("Qwen/Qwen3.5-27B", "qwen3_5"),
        ("mistralai/Mistral-7B-v0.1", "mistral"),
        ("mistralai/Mistral-Nemo-Base-2407", "ministral"),
        ("mistralai/Mistral-Small-24B-Base-2501", "mistral_small"),
        ("mistralai/Mixtral-8x7B-v0.1", "mistral"),
        ("google/gemma-2b", "gemma"),
        ("google/gemma-2-9b", "gemma2"),
        ("google/gemma-3-1b-pt", "gemma2"),
        ("google/gemma-3-27b-pt", "gemma3"),
        ("deepseek-ai/DeepSeek-V3", "deepseek3"),
        ("deepseek-ai/DeepSeek-V2-Lite", "deepseek"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "deepseekr1"),
        ("microsoft/phi-4", "phi4"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi"),
        ("openai/gpt-oss-20b", "gpt_oss"),
        ("zai-org/GLM-4.5-Air", "glm4_moe"),
        ("deepseek-ai/DeepSeek-V3.2", None),
        ("huggyllama/llama-7b", None),
        ("openai-community/gpt2", None),
        ("someone/my-finetune", None),
        (None, None),
    ],
)
def test_template(model, template):
    assert template_of(model) == template


def test_layer_names():
    assert linear_layers_of("Qwen/Qwen2.5-7B") == linear_layers_of("google/gemma-2-9b")
    assert (linear_layers_of("tiiuae/falcon-7b") or {})["attention"] == "query_key_value,dense"
    assert (linear_layers_of("deepseek-ai/DeepSeek-V3") or {})["attention"].startswith("q_a_proj")
    assert (linear_layers_of("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B") or {})["attention"].startswith("q_proj")
    assert linear_layers_of("microsoft/Phi-3.5-MoE-instruct") is None
    assert linear_layers_of("someone/my-finetune") is None


def test_fused_kernels():
    known = ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "google/gemma-2-9b"]
    unknown = ["tiiuae/falcon-7b", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen2-57B-A14B", "meta-llama/Llama-4-Scout-17B-16E"]
    assert all(map(is_known_to_liger, known))
    assert not any(map(is_known_to_liger, unknown))


def test_tables_are_well_formed():
    for kind, rows in table("data/families").items():
        for pattern, value in rows:
            re.compile(pattern)
            assert pattern == pattern.lower(), f"{kind}: names are matched in lower case"
            assert value is None or isinstance(value, (str, bool, dict))
