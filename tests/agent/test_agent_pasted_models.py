"""A model whose sizes were pasted stays the plan's model, and words for manners ask for nothing."""

from __future__ import annotations

import json

import pytest
from scoring import talk

CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 3072, "intermediate_size": 8192,
          "num_hidden_layers": 36, "num_attention_heads": 24, "num_key_value_heads": 8, "vocab_size": 128256,
          "max_position_embeddings": 16384, "model_type": "llama"}  # fmt: skip
MEGATRON = ("torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
            "--group-query-attention --num-query-groups 8 --ffn-hidden-size 14336 --seq-length 8192 "
            "--micro-batch-size 1 --global-batch-size 512 --tensor-model-parallel-size 2 "
            "--pipeline-model-parallel-size 2 --sequence-parallel --bf16")  # fmt: skip


def test_a_pasted_config_is_the_model_of_what_follows() -> None:
    first, second, third = talk(
        [f"{json.dumps(CONFIG)}\nhow many parameters is this", "pretrain it on 32 h100, 80B tokens, how long?",
         "how many parameters does it have?"]
    )  # fmt: skip
    assert [call.name for call in first.calls] == ["import_config", "describe_model"]
    (estimate,) = [call for call in second.calls if call.name == "estimate_training"]
    assert estimate.arguments["model"]["hidden_size"] == CONFIG["hidden_size"]
    assert [call.name for call in third.calls] == ["describe_model"]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("words", "tool"), [("Serve this on one RTX 4090:", "estimate_inference"), ("LoRA on 2 A100 80GB:", "check_fit")]
)
def test_what_is_said_around_a_pasted_config_is_what_it_runs(words: str, tool: str, indent: int | None) -> None:
    (turn,) = talk([f"{words}\n{json.dumps(CONFIG, indent=indent)}"])
    assert turn.calls[0].name == "import_config"
    assert turn.calls[0].arguments == {"text": json.dumps(CONFIG, indent=indent)}
    asked = next(call for call in turn.calls if call.name == tool)
    assert asked.arguments["model"]["hidden_size"] == CONFIG["hidden_size"]


def test_a_pasted_config_is_previewed_once() -> None:
    (turn,) = talk([f"preview adding this model as acme/tiny-3b: {json.dumps(CONFIG)}"])
    assert [call.name for call in turn.calls] == ["preview_model"]


@pytest.mark.parametrize("later", ["put pp to 1", "make it 128 gpus", "micro batch 2"])
def test_a_run_without_a_models_name_goes_on_with_the_sizes_of_its_flags(later: str) -> None:
    first, second = talk([f"{MEGATRON}\n\n64 H100. How quick is a step?", later])
    assert [call.name for call in first.calls] == ["import_config"]
    (estimate,) = [call for call in second.calls if call.name == "estimate_training"]
    assert estimate.arguments["model"]["num_hidden_layers"] == 32
    assert estimate.arguments["stage"] == "pretrain"


@pytest.mark.parametrize("words", ["ok", "ok cool", "hmm", "merci, byebye", "great, thx", "alright then",
                                   "cool, thanks a lot, that helps"])  # fmt: skip
def test_words_for_manners_ask_for_nothing(words: str) -> None:
    *_, last = talk(["serve Qwen3-8B for 40 users on H100, how many do I need?", words])
    assert not last.calls
    assert not last.asked
