"""Every field of a plan can be said: it has a line in the lexicon, or is read otherwise."""

from __future__ import annotations

import pytest

from agent.offline.catalogue import known
from agent.offline.language import read
from agent.offline.language.lexicon import lexicon
from planner.requests import ALL_PATHS

# Names, machines, dates and sizes of pictures, which are looked up or counted.
OTHERWISE = {"model", "name", "accelerator", "beside", "interconnect", "provider", "overrides", "software_version",
             "image_size", "credits_end", "hours_per_day", "days_per_week"}  # fmt: skip
# What only files and tools' callers set.
UNSAID = {"recompute_modules", "fp8_attention", "fp8_healing", "expert_exchange", "device_layers",
          "admission_steps", "visual_tokens"}  # fmt: skip


def test_every_field_has_words() -> None:
    words = lexicon()
    assert {name for name in ALL_PATHS if name not in words.values and name not in words.quantities} == (
        OTHERWISE | UNSAID
    )


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
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
