"""What is given twice is refused, however it is given: one of the two would be ignored."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from estimator.errors import PlanError
from knowledge.own.files import parsed
from tui.cli import main
from tui.plan_fields import assignments

_RUN = ("fit", "llama-3.1-8b", "8xh100")
# A field in every way that the command line has for it, with a value other than the one that stands beside it.
_WAYS = [
    ("--set", "count=abc"), ("--set", "count=16"), ("--set", "cluster.count=16"), ("--count", "16"),
    ("--accelerator", "a100"), ("--set", "accelerator=a100"), ("--set", "cluster.accelerator=a100"),
    ("--set", "model=qwen3-8b"), ("--tp", "4", "--set", "layout.tp=2"), ("--tp", "4", "--tp", "2"),
    ("--set", "tp=4", "--set", "layout.tp=2"), ("--serving", "--set", "workload.kind=training"),
    ("--sequence-parallel", "--no-sequence-parallel"), ("--set", "sequence_parallel=true", "--no-sequence-parallel"),
    ("--brief", "--why"), ("--json", "--plot"), ("--plan", "a.yaml", "--plan", "b.yaml"),
]  # fmt: skip


@pytest.mark.parametrize("words", _WAYS, ids=" ".join)
def test_two_values_of_one_field_are_refused(words: tuple[str, ...]) -> None:
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        assert main([*_RUN, *words]) == 2
    # The flag, and that it is not alone.
    assert any(word.removeprefix("--no-").removeprefix("--") in told.getvalue() for word in words)
    assert any(text in told.getvalue() for text in ("give it once", "give one of them", "given twice", "stands with"))


def test_one_value_may_be_said_twice() -> None:
    again = ("--count", "8", "--set", "cluster.count=8", "--tp", "2", "--tp", "2", "--brief")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main([*_RUN, *again]) == 0
    assert "GiB" in printed.getvalue()


@pytest.mark.parametrize("text", ["a: 1\nb: {c: 1}\na: 2\n", "b:\n  a: 1\n  a: 1\n", '{"b": [{"a": 1, "a": 2}]}'])
def test_a_name_stands_once_in_a_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="'a' is given twice"):
        parsed(text, "--plan")
    (tmp_path / "plan.yaml").write_text(text)
    with contextlib.redirect_stderr(io.StringIO()) as told:
        assert main(["fit", "--plan", str(tmp_path / "plan.yaml")]) == 2
    assert "'a' is given twice" in told.getvalue()


def test_a_change_of_the_plan_has_a_field_once() -> None:
    assert assignments(["count=8", "cluster.count=8"], {}) == {"cluster.count": "8"}
    with pytest.raises(PlanError, match="is given twice"):
        assignments(["count=8", "cluster.count=16"], {})
