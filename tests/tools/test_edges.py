"""What no argument is, whichever face it comes through: a sentence, at once, and never a figure that is none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from pace import within

from estimator.errors import PlanError
from tools import call
from tools.registry import registry

RUN: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 1}


def nested(depth: int, kind: type = dict) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if kind is dict else [value]
    return value


@pytest.mark.parametrize(
    ("tool", "odd"),
    [
        ("estimate_inference", {"request_rate": 5e-324}),
        ("estimate_inference", {"request_rate": "5e-324"}),
        ("size_serving", {"request_rate": 1e-300}),
        ("estimate_inference", {"ttft_slo_ms": 5e-324}),
        ("estimate_inference", {"tpot_slo_ms": 1e-320}),
        ("size_serving", {"request_rate": 1, "ttft_slo_ms": 5e-324}),
        ("estimate_inference", {"plan": {"workload": {"request_rate": 5e-324}}}),
        ("explain", {"kind": [1], "figure": "memory"}),
        ("explain", {"plan": {"workload": {"kind": [1]}}, "figure": "memory.weights"}),
        ("check_fit", {"plan": nested(500)}),
        ("check_fit", {"overrides": nested(5000)}),
        ("check_fit", {"count": nested(500, list)}),
        ("check_fit", {"model": nested(500)}),
        ("check_fit", {"count": 10**5000}),
        ("check_fit", {"count": -(10**5000)}),
        ("check_fit", {"model": 10**5000}),
        ("check_fit", {"seq_len": "1" * 5000}),
        ("check_fit", {"plan": {"workload": {"seq_len": 10**5000}}}),
        ("check_fit", {"count": math.nan}),
        ("check_fit", {"dataset_tokens": math.inf}),
        ("check_fit", {"model": "x" * 900_000}),
        ("check_fit", {"x" * 900_000: 1}),
        *(("check_fit", {"accelerator": name}) for name in
          ("-8 h100", "8.5 h100", "1e3 h100", "0 h100", "-8xh100", "8.5xh100", "h100 x -8")),
        *(("check_fit", {"count": count}) for count in (-8, 8.5, "1e3", 0, "-8")),
        *(("check_fit", {"seq_len": length}) for length in (-4, "-4k", 1.5, 0)),
        ("estimate_inference", {"input_len": -1}),
        ("estimate_inference", {"output_len": -5}),
    ],
)  # fmt: skip
def test_what_no_argument_is_gets_a_short_sentence(tool: str, odd: dict[str, Any]) -> None:
    with within(10), pytest.raises(PlanError) as error:
        call(tool, RUN | odd)
    assert len(str(error.value)) < 6000


@pytest.mark.parametrize("name", [*registry()])
def test_halves_of_characters_and_names_that_no_file_can_have_are_refused(name: str) -> None:
    fields = registry()[name].request.model_fields
    for field in fields:
        with pytest.raises(PlanError):
            call(name, {field: "\ud800"})
    for field in {"folder", "file", "model", "config", "name", "source"} & fields.keys():
        for long in ("a" * 300, "a/" * 3000):
            with suppress(PlanError):
                call(name, {field: long})


def test_errors_repeat_nothing_that_steers_a_terminal() -> None:
    error = PlanError("f\x1b[2Jg", "has \x1b]0;x\x07 and \u202e", ["\x9b31m"])
    assert str(error).isprintable()
    assert "\\x1b" in str(error)


def test_digits_of_other_scripts_count() -> None:
    assert call("check_fit", {"model": "llama-3.1-8b", "accelerator": "８ h100"})["plan"]["cluster"]["count"] == 8


def unbounded(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from unbounded(each)
    elif isinstance(value, float) and not math.isfinite(value):
        yield value


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("goal", ["context", "input_len"])
def test_the_longest_request_meets_the_limits_of_latency(goal: str) -> None:
    free = call("find_limit", RUN | {"goal": goal, "concurrency": 1})
    wanted = call("find_limit", RUN | {"goal": goal, "concurrency": 1, "ttft_slo_ms": 200})
    assert wanted["value"] < free["value"]
    assert wanted["limited_by"] == "ttft_slo_ms"
    assert wanted["chosen"]["ttft_s"] <= 0.2
    assert wanted["chosen"]["meets_slo"] is True
    none = call("find_limit", RUN | {"goal": goal, "ttft_slo_ms": 1, "plan": {"workload": {"kind": "inference"}}})
    assert none["value"] is None
    assert not list(unbounded(none))


@pytest.mark.parametrize(
    "text",
    ["\n".join(f"k{i}: 1" for i in range(18_000)), "{" + ",".join(f'"k{i:05d}":1' for i in range(16_000)) + "}",
     "a=b " * 49_000, "python train.py " + " ".join(f"--k{i} 1" for i in range(18_000)), "a " * 99_000],
    ids=["yaml", "json", "assignments", "flags", "words"],
)  # fmt: skip
def test_reading_takes_time_in_proportion(text: str) -> None:
    assert len(json.dumps(text)) > 100_000
    with within(6), suppress(PlanError):
        call("import_config", {"text": text[:199_000]})


@pytest.mark.parametrize("value", ["y", "on", "1", "True ", 1, 0, 1.0])
@pytest.mark.parametrize(
    ("tool", "path"),
    [("describe_machine", "torch"), ("check_fit", "packing"), ("check_fit", "fused_loss"),
     ("check_fit", "plan.workload.fused_loss"), ("check_fit", "plan.workload.lora.train_embeddings")],
)  # fmt: skip
def test_only_true_and_false_are_truth_values(tool: str, path: str, value: Any) -> None:
    said: Any = value
    for name in reversed(path.split(".")):
        said = {name: said}
    run = {} if tool == "describe_machine" else RUN
    with pytest.raises(PlanError, match=r"^(\w+\.)*\w+: .* is not one of|neither true nor false"):
        call(tool, {**run, **said})


@pytest.mark.parametrize("size", ["tp", "pp", "cp"])
def test_a_size_of_none_beside_a_file_divides_nothing(size: str) -> None:
    answer = call("import_config", {"text": "model_name_or_path: gpt2", "accelerator": "h100", "count": 8, size: 0})
    assert answer["plan"]["layout"][size] == 0
