"""Every field of a plan can be said: it has a line in the lexicon, or is read otherwise."""

from __future__ import annotations

import pytest

from agent.offline.catalogue import known
from agent.offline.language import read
from agent.offline.language.lexicon import lexicon
from planner.asked.money import CostTerms
from planner.requests import ALL_PATHS

# Names, machines, dates and sizes of pictures, which are looked up or counted.
OTHERWISE = {"model", "name", "accelerator", "beside", "interconnect", "provider", "overrides", "software_version",
             "image_size", "credits_end", "hours_per_day", "days_per_week"}  # fmt: skip
# What only files and tools' callers set.
UNSAID = {"recompute_modules"}
# Terms of payment that are looked up.
LOOKED_UP = {"providers", "region"}


def test_every_field_has_words() -> None:
    words = lexicon()
    assert {name for name in ALL_PATHS if name not in words.values and name not in words.quantities} == (
        OTHERWISE | UNSAID
    )


def test_every_term_of_payment_has_words() -> None:
    words = lexicon()
    assert {name for name in CostTerms.model_fields if name not in (*words.values, *words.quantities)} == LOOKED_UP


@pytest.mark.parametrize(
    ("words", "term", "value"),
    [
        ("one failure every 50k gpu hours", "device_hours_between_failures", 50_000),
        ("20 min to restart, ckpt every half hour", "restart_minutes", 20),
        ("20 min to restart, ckpt every half hour", "checkpoint_interval_minutes", 30),
        ("restarts take an hour and a half", "restart_minutes", 90),
        ("owned at $35k each, colo is 180 per kW a month", "colocation_usd_per_kw_month", 180),
        ("owned at $35k each, staff $2000 per gpu per year", "staff_usd_per_device_year", 2000),
        ("owned at $35k each, 4 % maintenance", "maintenance_share", 0.04),
        ("keep the last 3 checkpoints", "checkpoints_kept", 3),
        ("storage at $0.02 per gb month", "usd_per_gb_month", 0.02),
        ("at 1.39", "usd_per_device_hour", 1.39),
    ],
)
def test_terms_of_payment_are_read(words: str, term: str, value: float) -> None:
    reading = read(f"llama-3.1-8b on 1B tokens, 64 h100 {words}", known())
    assert reading.pricing[term] == pytest.approx(value)
    assert reading.lost == []


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("serve llama 3.1 70b q4_k_m with llama.cpp on a 4090, 42 layers on the gpu", "device_layers", 42),
        ("serve qwen2.5-vl-7b on an l40s, 1200 visual tokens per request", "visual_tokens", 1200),
        ("qwen2.5-vl-7b lora on a h200, 2 images a sample at 1024 px", "image_size", "1024x1024"),
        ("serve deepseek-v3 on 64 h100 with sglang and deepep", "expert_exchange", "all_to_all"),
        ("llama-3.1-8b on 64 h100 with fp8 attention", "fp8_attention", True),
        ("LoRA of qwen2.5-vl-7b on 4 L40S, keep the vision tower frozen", "vision", "frozen"),
        ("LoRA of qwen2.5-vl-7b on 4 L40S, train the vision encoder too", "vision", "trained"),
        ("LoRA of qwen2.5-vl-7b on 4 L40S, don't train the vision tower", "vision", "frozen"),
        ("llama-3.1-8b on 8 h100, fp32 gradients", "gradients", "fp32"),
        ("llama-3.1-8b on 8 h100 with gradients in bf16", "gradients", "bf16"),
        ("llama-3.1-8b on 8 h100 without gradient overlap", "dp_overlap", False),
        ("serve deepseek-v3 on 16 h200 with sglang, two-batch overlap", "two_batch_overlap", True),
    ],
)
def test_what_is_done_to_vision_gradients_and_overlap_is_read(words: str, field: str, value: object) -> None:
    edits = {edit.field: edit.value for edit in read(words, known()).edits}
    assert edits[field] == value
    assert "precision" not in edits
