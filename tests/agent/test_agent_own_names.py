"""Names that people write whole: with an owner, a tag, an end of their own."""

from __future__ import annotations

import pytest
from conversations import reading


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1:8b-instruct-q4_K_M", "meta-llama/Llama-3.1-8B-Instruct"),
        ("acme/qwen3-32b-legal", "Qwen/Qwen3-32B"),
        ("myorg/Llama-3.1-8B-Instruct-medical", "meta-llama/Llama-3.1-8B-Instruct"),
    ],
)
def test_names_are_read_whole(name: str, model: str) -> None:
    read = reading(f"serve {name} on 2 H100")
    assert read.values("model") == [model]
    notes = [*read.assumed, *(str(edit.note) for edit in read.edits)]
    told = any(name in note and "is not in the catalogue" in note for note in notes)
    assert told == (name.split("/")[0] in ("acme", "myorg"))
    assert not read.unread


def test_a_word_that_no_model_has_makes_it_another() -> None:
    read = reading("fine-tune GLM-5-Air on 8 H100")
    assert not read.values("model")
    assert any("GLM-5-Air" in str(need) and "GLM-4.5-Air" in str(need) for need in read.needs)


def test_networks_and_series_of_machines_by_their_names() -> None:
    read = reading("train llama 3.1 8b on 16 a3-ultragpu over roce-400x8")
    assert read.values("accelerator") == ["h200-sxm"]
    assert read.values("interconnect") == ["roce-400x8"]
