"""A plan as a list of labels, a table or a block of settings is a plan, not a program's file."""

from __future__ import annotations

from typing import Any

import pytest
from scoring import talk

from agent.offline.language.pasted import apart

LISTS = {
    "labels": "model: llama 3.1 70b\ngpus: 32 (H100)\nzero: 3\ncontext: 32k\nglobal batch: 128\n\n"
    "how long for 2B tokens?",
    "signs": "Model = llama-3.1-70b\nHardware = 32 x H100\nZeRO = 3\nSeq_len = 32k\nglobal_batch = 128\n"
    "Tokens = 2B\nfit?",
    "bullets": "Hi all,\n- **model**: Llama-3.1-70B\n- GPUs: 32x H100\n- ZeRO-3\n- context: 32k\n- global bs 128\n"
    "- 2B tokens\n\nHow long?\nThanks!",
    "table": "| what | value |\n|---|---|\n| model | llama-3.1-70b |\n| GPUs | 32 H100 |\n| zero | 3 |\n"
    "| seq len | 32k |\n| global batch | 128 seqs |\n| data | 2B tokens |\nfits?",
}
MEANT: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 32, "zero_stage": 3, "seq_len": 32768,
    "global_batch": 128, "dataset_tokens": 2e9,
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_read(name: str) -> None:
    (turn,) = talk([LISTS[name]])
    assert turn.calls[0].name == "estimate_training"
    assert {field: turn.calls[0].arguments.get(field) for field in MEANT} == MEANT


@pytest.mark.parametrize(
    "text",
    [
        "base_model: x/y\nadapter: lora\nsequence_len: 2048\nfits?",
        '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nsteps = 10\nfits on 8 h100?',
        "```yaml\nmodel: a\nepochs: 3\nlr: 1\n```\nok?",
        "#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\nsrun x\nfits?",
    ],
)
def test_a_programs_file_is_none(text: str) -> None:
    assert apart(text).config is not None


def test_what_a_card_reports_is_a_log() -> None:
    table = "| 0  NVIDIA A100   | 79000MiB / 81920MiB |\n| 1  NVIDIA A100   | 79000MiB / 81920MiB |\n"
    (turn,) = talk([f"{table}llama-3.1-8b lora on 2 a100-sxm-80gb at 4k: does it fit?"])
    assert turn.calls[0].arguments["count"] == 2


def test_how_long_a_sequence_although_one_was_said() -> None:
    (turn,) = talk(["Qwen2.5-14B LoRA on 2x A100 80GB OOMs, seq len is 16384. How long a sequence could we use?"])
    assert [call.name for call in turn.calls] == ["find_limit"]
    assert turn.calls[0].arguments["goal"] == "seq_len"
    assert "seq_len" not in turn.calls[0].arguments


def test_what_stands_behind_instead_of_is_left_in_serving_too() -> None:
    *_, turn = talk(["serve qwen2.5-32b in fp8 on 2 h100, 50 users, 2k in 500 out", "and with awq instead of fp8?"])
    assert turn.calls[0].arguments["weight_dtype"] == "awq"


def test_documents_and_their_tokens_are_requests_of_a_batch() -> None:
    (turn,) = talk(["batch inference: 2 million docs, 1200 tokens each, 80 token summary out, qwen3 30b a3b on 8 h100"])
    found = turn.calls[0].arguments
    assert (found["requests"], found["input_len"], found["output_len"]) == (2_000_000, 1200, 80)


def test_few_tokens_are_not_those_of_all_requests() -> None:
    (turn,) = talk(["serve llama-3.1-8b on 1 h100, 6k token prompts, short answers like 100 tokens, 20 users. ttft?"])
    assert turn.calls[0].arguments["output_len"] == 100
    assert "requests" not in turn.calls[0].arguments
