"""The model that a size alone is taken as: one that many others were made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from agent.offline.catalogue import known
from knowledge.models.known import checkpoints
from tests.agent import scoring
from tests.agent.conversations import reading


@pytest.fixture(autouse=True)
def at_home() -> Iterator[None]:
    with scoring.home():
        yield


def _model(size: str) -> str:
    (edit,) = [edit for edit in reading(f"fine-tune a {size} on 8 H100").edits if edit.field == "model"]
    assert "taken as" in str(edit.note)
    return str(edit.value)


@pytest.mark.parametrize("size", [0.5, 1, 1.5, 3, 4, 7, 8, 9, 12, 13, 14, 20, 24, 27, 30, 32, 34, 70, 72, 120, 405])
def test_a_size_is_a_model_that_is_called_so_and_much_used(size: float) -> None:
    id = _model(f"{size:g}B")
    copies = Counter(row.shares for row in checkpoints())
    called = [other for other in known().models_of_size(size * 1e9) if f"{size:g}b" in other.lower().split("-")]
    assert id in called
    assert 2 * copies[id] >= max(copies[other] for other in called if not _is_particular(other))


def _is_particular(id: str) -> bool:
    return any(
        word in id.lower() for word in ("instruct", "-it", "vl", "vision", "distill", "code", "thinking", "omni")
    )


def test_a_maker_calls_a_model_by_a_size_that_its_name_lacks() -> None:
    assert _model("671B").startswith("deepseek-ai/DeepSeek-V3")
    assert any(id.startswith("moonshotai/Kimi-K2") for id in known().models_of_size(1e12))
