"""Keys, tokens and passwords are left out by their form and by what they are called; the rest stays."""

from __future__ import annotations

import pytest

from estimator.credentials import LEFT_OUT, value_without, without_credentials
from estimator.errors import PlanError

SECRET = "0f9c4Canary7d21b"
FORMS = [
    f"sk-proj-{SECRET}", f"hf_{SECRET}", f"AIzaSy{SECRET * 2}", f"ghp_{SECRET * 2}", f"github_pat_{SECRET * 2}",
    f"glpat-{SECRET}", f"nvapi-{SECRET * 2}", f"xoxb-{SECRET}", "AKIA0123456789CANARY",
    f"eyJ{SECRET}.{SECRET}.{SECRET}",
]  # fmt: skip
GIVEN = [
    f"hub_token: {SECRET}", f"export WANDB_API_KEY={SECRET}", f"vllm serve m --api-key {SECRET}", f"--api-key={SECRET}",
    f'{{"hf_token": "{SECRET}", "seq_len": 4096}}', f"--hf-token '{SECRET}'", f"password: {SECRET}",
    f"Authorization: Bearer {SECRET}", f"postgresql://me:{SECRET}@db/plans", f"my api key: {SECRET}",
]  # fmt: skip
NONE = [
    "pad_token: <|endoftext|>", "eos_token: abcdefghijklmnop", "dataset_tokens: 1000000000", "tokens: 12345678",
    "HF_TOKEN: ${HF_TOKEN}", "--hf-token $HF_TOKEN", "hub_token: <your-own-token>", "usd_per_token=0.0000001234",
    "the secret ingredient of training", "sk-learn and hf_trainer at https://host:8080/v1",
    "hf_dataset_or_datasets=data.hf_dataset_config_name", "task-performance",
    '${SGLANG_API_KEY:+--api-key "$SGLANG_API_KEY"}',
    "fine-tune llama-3.1-8b on 8 h100, 1B tokens, key: throughput", "max_new_tokens=100000000",
]  # fmt: skip


@pytest.mark.parametrize("word", FORMS)
@pytest.mark.parametrize("around", ["{}", "does gpt2 fit? {}", "token={},", '"{}"', "https://x/?k={}&n=1"])
def test_what_looks_like_a_key_is_left_out(word: str, around: str) -> None:
    left = without_credentials(around.format(word))
    assert "anary" not in left.lower()
    assert LEFT_OUT in left


@pytest.mark.parametrize("text", GIVEN)
def test_what_is_called_a_key_is_left_out_and_the_rest_stays(text: str) -> None:
    assert without_credentials(text) == text.replace(f"me:{SECRET}", LEFT_OUT).replace(SECRET, LEFT_OUT)


@pytest.mark.parametrize("text", NONE)
def test_what_is_none_stays(text: str) -> None:
    assert without_credentials(text) == text


def test_values_of_files_are_gone_through_whatever_they_hold() -> None:
    assert value_without("config:3 hub_token", SECRET) == LEFT_OUT
    assert value_without("config pad_token", "<|endoftext|>") == "<|endoftext|>"
    assert value_without("config hub_token", True) is True
    held = {"env": [{"name": "A", "value": FORMS[1]}, {"api_key": SECRET}], "n": 8}
    assert value_without("config", held) == {"env": [{"name": "A", "value": LEFT_OUT}, {"api_key": LEFT_OUT}], "n": 8}


def test_no_error_repeats_one() -> None:
    error = PlanError("model", f"there is no {FORMS[0]!r}, with --api-key {SECRET}", [FORMS[1]])
    assert "Canary" not in f"{error} {error.problem} {error.valid}"
