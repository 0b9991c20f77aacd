"""The length of a run: every way to say it gives the same steps for the same data, and contradictions are named."""

from __future__ import annotations

import math
from typing import Any

import pytest
from estimator_jobs import make_job
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.plan.schema import Training
from estimator.plan.training.run_length import RunSize, full_sample, padded_share, run_size


def size(**fields: Any) -> RunSize | None:
    training = Training.model_validate({"seq_len": 1024, "global_batch": 16} | fields)
    paired = 2 if training.stage in ("dpo", "orpo", "rm") else 1
    return run_size(training, 16 * 1024 * paired)


def test_nothing_said_is_no_length() -> None:
    assert size() is None
    assert size(sample_tokens=500) is None
    assert size(dataset_samples=500) is None  # of which the length is not known, where samples are packed
    assert make_job().run is None


@given(st.integers(1, 10**9), st.floats(1, 1024), st.floats(0.1, 50), st.booleans())
def test_tokens_or_samples_say_the_same(samples: int, length: float, epochs: float, packing: bool) -> None:
    tokens = samples * length
    known = {"sample_tokens": length, "epochs": epochs, "packing": packing}
    by_samples, by_tokens = size(dataset_samples=samples, **known), size(dataset_tokens=tokens, **known)
    assert by_samples is not None
    assert by_tokens is not None
    assert by_samples.tokens == pytest.approx(by_tokens.tokens) == pytest.approx(tokens * epochs)
    assert abs(by_samples.steps - by_tokens.steps) <= 1  # rounding at whole steps
    assert size(dataset_samples=samples, dataset_tokens=tokens, epochs=epochs, packing=packing) is not None


def test_packed_steps_follow_from_tokens_and_unpacked_ones_from_samples() -> None:
    data = {"dataset_samples": 1600, "sample_tokens": 256}
    packed, rows = size(**data), size(**data, packing=False)
    assert packed is not None
    assert rows is not None
    assert packed.steps == math.ceil(1600 * 256 / (16 * 1024)) == 25
    assert rows.steps == 100
    assert packed.tokens == rows.tokens == 1600 * 256
    only_tokens = size(dataset_tokens=1600 * 256, packing=False)
    assert only_tokens is not None
    assert only_tokens.steps == 25


def test_long_samples_fill_several_rows_or_are_cut() -> None:
    data = {"dataset_samples": 160, "sample_tokens": 4096}
    packed, cut = size(**data), size(**data, packing=False)
    assert packed == RunSize(40, 160 * 4096, 1)
    assert cut == RunSize(10, 160 * 1024, 1)


def test_a_pair_is_one_sample_and_a_prompt_has_several_answers() -> None:
    pairs = size(stage="dpo", dataset_samples=1600, sample_tokens=900)
    assert pairs == RunSize(100, 1600 * 900, 1)
    prompts = size(stage="grpo", group_size=8, dataset_samples=1600, sample_tokens=700)
    assert prompts == RunSize(800, 1600 * 8 * 700, 1)


def test_steps_win_and_tokens_follow() -> None:
    assert size(steps=1000) == RunSize(1000, 1000 * 16 * 1024, None)
    assert size(steps="2k", dataset_tokens=16 * 1024 * 500, epochs=3) == RunSize(2000, 2000 * 16 * 1024, 4.0)
    assert size(steps=10, packing=False, dataset_samples=1600, sample_tokens=100) == RunSize(10, 160 * 100, 0.1)


@given(st.integers(1, 10**6))
def test_steps_of_the_data_give_the_data_back(steps: int) -> None:
    run = size(steps=steps)
    assert run is not None
    assert size(dataset_tokens=run.tokens) == RunSize(steps, run.tokens, 1)


def test_contradictions_are_errors_with_the_figures() -> None:
    with pytest.raises(PlanError) as caught:
        size(dataset_tokens="1M", dataset_samples=1000, sample_tokens=500)
    assert caught.value.field == "workload.dataset_tokens"
    assert "1,000,000 tokens" in caught.value.problem
    assert "500,000" in caught.value.problem
    assert caught.value.valid[0] == "500000"
    assert size(dataset_tokens="1M", dataset_samples=1000, sample_tokens=1010) is not None  # rounded figures


@pytest.mark.parametrize(("field", "value"), [
    ("steps", 0), ("steps", 1.5), ("steps", True), ("steps", -3), ("steps", "many"), ("steps", 10**13),
    ("dataset_samples", 0), ("dataset_samples", float("inf")), ("sample_tokens", 0), ("sample_tokens", float("nan")),
    ("sample_tokens", [1]),
])  # fmt: skip
def test_impossible_lengths_are_refused(field: str, value: Any) -> None:
    with pytest.raises(PlanError, match=rf"^workload\.{field}: "):
        make_job({f"workload.{field}": value})


def test_a_complete_plan_says_how_long_samples_are_taken_to_be() -> None:
    job = make_job({"workload.dataset_samples": "1k", "workload.seq_len": 512})
    said = {row.field: row.value for row in job.assumptions}
    assert said["workload.sample_tokens"] == 512
    assert job.run is not None
    assert job.run.tokens == 512_000
    assert "workload.epochs" not in {row.field for row in make_job({"workload.steps": 5}).assumptions}


def test_tokens_samples_padding_and_hours_agree() -> None:
    """Tokens of the data are those of all rows of the run less their padding, in every stage and either way."""
    for stage in ("sft", "dpo", "rm"):
        for packing in (True, False):
            fields = {"stage": stage, "packing": packing, "dataset_samples": 10_000, "sample_tokens": 600}
            training = Training.model_validate({"seq_len": 1024, "global_batch": 16} | fields)
            run = run_size(training, 16 * full_sample(training))
            assert run is not None
            rows = run.steps * 16 * full_sample(training)
            assert run.tokens == pytest.approx(rows * (1.0 - padded_share(training)), rel=0.02)
            assert (padded_share(training) > 0) == (not packing or stage != "sft")


def test_rows_of_samples_that_are_padded_have_room_for_them() -> None:
    """Nobody pads pairs of 1,000 tokens to a common length of 4,096; samples that are packed fill whatever there is."""
    lengths = {
        stage: make_job({"workload.stage": stage, "workload.dataset_samples": "60k", "workload.sample_tokens": 1000,
                         "workload.seq_len": None}).seq_len for stage in ("dpo", "sft")
    }  # fmt: skip
    assert lengths == {"dpo": 1024, "sft": 4096}
