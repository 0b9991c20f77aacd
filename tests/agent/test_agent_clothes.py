"""The same question in other clothes is the same question: greetings, marks of Markdown, capitals, room, signs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conversations import begun
from pace import within
from samples import part
from scoring import conversations as written

from agent.offline.catalogue import known
from agent.offline.form import Edit
from agent.offline.language import read

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def _each(text: str, **words: str) -> str:
    for word, other in words.items():
        text = re.sub(rf"\b{word}\b", other, text, flags=re.IGNORECASE)
    return text


CLOTHES: dict[str, Callable[[str], str]] = {
    "greeting": lambda text: f"Hey there, {text}",
    "thanks": lambda text: f"{text} Thanks in advance!",
    "please": lambda text: f"{text.rstrip(' ?.!')}, please",
    "title": lambda text: text[:1].upper() + text[1:],
    "room": lambda text: text.replace(" ", "  "),
    "no-break": lambda text: re.sub(r"(?<=\d) ", "\u00a0", text),
    "no-end": lambda text: text.rstrip(" ?.!"),
    "excited": lambda text: text.rstrip(" ?.!") + "!!",
    "picture": lambda text: f"{text} 🙂",
    "bold": lambda text: re.sub(r"\b(H100|A100|H200|B200|MI300X)\b", r"**\1**", text),
    "times": lambda text: re.sub(r"(?<=\d)x(?=[A-Z])", "×", text),
    "quotes": lambda text: text.replace("'", "’"),
    "synonyms": lambda text: _each(
        text, bf16="bfloat16", cheapest="least expensive", pretraining="pre training", parallel="paralell"
    ),
    "hesitation": lambda text: f"um, {text}",
    "dollars": lambda text: re.sub(r"\$ ?(\d[\d,.]*\d[km]?|\d[km]?)(?![\w/]| (?:per|an?)\b)", r"\1 USD", text),
}


def _said(text: str) -> dict[str, Any]:
    """What the form says, where in the text it was said aside."""
    found = read(text, known(), {}, {}, NOW)
    options = sorted(sorted(_plain(edit) for edit in option) for option in found.options)
    return {
        "edits": {_plain(edit) for edit in found.edits},
        "options": options,
        "needs": [need.field for need in found.needs],
        "own": repr(sorted(found.own.items())).lower(),
        **{name: getattr(found, name) for name in ("tool", "scope", "pricing", "serving")},
    }


def _plain(edit: Edit) -> tuple[str, str, str]:
    return edit.field, edit.op, repr(edit.value).lower()


@cache
def _first_turns() -> list[str]:
    turns = [
        conversation[0]["say"]
        for path in sorted((Path(__file__).parent.parent / "data").glob("questions*.yaml"))
        for conversation in written(path)
    ]
    # Of several lines are files and logs.
    return [turn for turn in turns if "\n" not in turn and "--" not in turn]


@pytest.mark.parametrize("clothes", CLOTHES)
def test_clothes_do_not_make_the_question(clothes: str) -> None:
    index = list(CLOTHES).index(clothes)
    asked = [turn for turn in _first_turns() if CLOTHES[clothes](turn) != turn][index :: part(124, 31)]
    assert asked
    other = [turn for turn in asked if _said(CLOTHES[clothes](turn)) != _said(turn)]
    # What is unsure tips over for a word more: few do.
    assert len(other) <= max(2, len(asked) // 25), other


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        ("QLORA LLAMA 3.3 70B ON 2X4090", [("rtx-4090", 2)]),
        ("DOES QWEN3-32B FIT ON 16 H100S?", [("h100-sxm", 16)]),
        ("LORA OF LLAMA-3.1-8B ON AN L40S", [("l40s", 1)]),
        ("2xp5.48xlarge, llama-3.1-70b lora", [("h100-sxm", 16)]),
        ("qlora llama 3.3 70b on 2 NVIDIA L40S", [("l40s", 2)]),
        ("qlora llama 3.1 8b on 2 NVIDIA 4090", [("rtx-4090", 2)]),
        ("gemma-2-27b lora on 4 H100s NVL", [("h100-nvl", 4)]),
        ("qwen3-4b full on a 48gb l40s", [("l40s", 1)]),
    ],
)
def test_names_in_capitals_and_behind_a_count(words: str, devices: list[tuple[str, int | None]]) -> None:
    found = read(words, known(), {}, {}, NOW)
    counts = [*found.values("count"), *([None] * 2)]
    assert list(zip(found.values("accelerator"), counts, strict=False)) == devices


def test_a_sentence_in_another_language_is_read_beside_english() -> None:
    asked = "Was kostet es, llama 3.1 8b mit lora auf 500 mio tokens zu trainieren? 4x l40s bei runpod"
    assert _said(f"I'm new to this. {asked}") == _said(asked)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("sweep sequence length 4096, 8192, 16,384 and 32,768", [4096, 8192, 16384, 32768]),
        ("try sequence length 4096 - 8192 - 16384", [4096, 8192, 16384]),
        ("try global batch 256, 512, 768", [256, 512, 768]),
        ("sweep from 4 to 64 machines", [32, 64, 128, 256, 512]),
    ],
)
def test_lists_of_numbers(words: str, values: list[int]) -> None:
    sweep = begun(f"{words} for full fine-tuning of Llama 3.2 3B on 8 H100s").arguments("sweep")
    assert sweep is not None
    assert sweep["values"] == values


@pytest.mark.parametrize(
    "piece",
    ["a", "a - ", "9.", "1", "|", " \n", "**a", "x: 1\n", "用8张H20全参微调", "no fp8, ", "8 h100 or ", "llama-3.1-",
     "step 100 loss 2.33 lr 1e-4 tokens/s 33000 mem 71GiB\n"],
)  # fmt: skip
def test_a_hundred_thousand_characters_are_read_in_a_moment(piece: str) -> None:
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    _said("llama-3.1-8b lora on 8 H100")
    with within(2.5):
        _said(f"llama-3.1-8b lora on 8 H100 {text}")
