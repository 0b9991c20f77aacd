"""An endpoint under load: what it answers is timed as it is, and what it does not say is not made up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from openai_server import BETWEEN_S, FIRST_S, openai_server

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from measure.run.answers import figures_of, percentile, steady_span
from measure.run.load import Answered, TimedRequest, arrivals
from measure.run.rouge import longest_common, rouge
from pages.rendering import markdown
from pages.results.of_results import blocks_of
from planner.measuring.serving import EndpointLoad, LoadPart, ServingMeasurement, kept_run, measure_serving
from planner.requests import parsed


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with openai_server() as address:
        yield address


def measured(url: str, **changes: Any) -> ServingMeasurement:
    asked = {"url": url, "served_model": "tiny", "input_len": 8, "output_len": 4, "requests": 12, "concurrency": 4}
    return measure_serving(parsed(EndpointLoad, asked | changes))


def mean(part: LoadPart, name: str) -> float:
    value = next(row.mean_ms for row in part.latencies if row.latency == name)
    assert value is not None
    return value


def test_latencies_are_those_of_the_server(url: str) -> None:
    told = measured(url)
    whole, steady = told.parts[:2]
    assert (whole.requests, whole.unanswered, steady.unanswered) == (12, 0, 0)
    assert told.tokens_counted
    assert steady.mean_output_tokens == 4
    assert steady.mean_input_tokens == 8
    # A busy machine only adds to it.
    assert mean(whole, "ttft") >= 1e3 * FIRST_S
    assert mean(whole, "tpot") * 1.05 >= 1e3 * BETWEEN_S
    assert mean(whole, "e2e") == pytest.approx(mean(whole, "ttft") + 3 * mean(whole, "tpot"), rel=0.01)
    assert "steady part" in markdown.render(blocks_of(told)).lower()


def test_one_client_sends_one_after_another(url: str) -> None:
    told = measured(url, concurrency=1, requests=4)
    least = FIRST_S + 3 * BETWEEN_S
    assert told.parts[0].requests_per_s <= 1.0 / least * 1.05


def test_a_server_that_counts_nothing_is_said(url: str) -> None:
    told = measured(url, served_model="uncounted")
    assert not told.tokens_counted
    assert told.parts[0].mean_output_tokens == 4
    assert told.parts[0].mean_input_tokens is None


def test_an_endpoint_that_refuses_all_is_an_error(url: str) -> None:
    with pytest.raises(PlanError, match="no room"):
        measured(url, served_model="full")
    with pytest.raises(PlanError, match="answered none"):
        measured("http://127.0.0.1:9", requests=2)
    with pytest.raises(PlanError, match="is no address"):
        measured("file:///etc/passwd")
    with pytest.raises(PlanError, match="not set"):
        measured(url, key_variable="NO_SUCH_KEY_HERE")


def test_a_trace_is_sent_as_it_stands(url: str, tmp_path: Path) -> None:
    rows = [{"at_s": 0.0, "input_len": 4, "output_len": 2}, {"at_s": 0.2, "input_len": 6, "output_len": 3}]
    for name, text in (
        ("a.jsonl", "\n".join(map(json.dumps, rows))),
        ("a.json", json.dumps(rows)),
        ("a.csv", "at_s,input_len,output_len\n0,4,2\n0.2,6,3\n"),
    ):
        (tmp_path / name).write_text(text)
        told = measured(url, trace=str(tmp_path / name))
        assert told.parts[0].mean_input_tokens == 5
        assert told.parts[0].mean_output_tokens == 2.5
    (tmp_path / "b.json").write_text('[{"at_s": -1, "input_len": 4, "output_len": 2}]')
    with pytest.raises(PlanError, match="request 1"):
        measured(url, trace=str(tmp_path / "b.json"))


def test_a_prediction_stands_beside_where_devices_are_named(url: str) -> None:
    told = measured(url, model="llama-3.1-8b", accelerator="h100-sxm", count=1)
    assert all(row.predicted_ms for row in told.parts[1].latencies)
    assert told.served_model == "tiny"


def test_arrivals_keep_their_rate() -> None:
    asked = [TimedRequest(None, 8, 4)] * 2000
    rows = arrivals(asked, 10.0, 1)
    assert rows[-1].at_s == pytest.approx(200.0, rel=0.1)
    assert rows == arrivals(asked, 10.0, 1)
    assert arrivals(asked, None, 1)[2].at_s is None


def test_several_endpoints_share_the_load(url: str) -> None:
    with openai_server() as second:
        told = measured(f"{url}, {second}", requests=9, concurrency=3)
    own = {part.part: part for part in told.parts}
    assert (own[url].requests, own[second].requests, own["all"].requests) == (5, 4, 9)
    assert own["all"].unanswered == 0
    assert second in markdown.render(blocks_of(told))


def test_a_turn_has_all_that_was_said_before(url: str) -> None:
    told = measured(url, requests=2, concurrency=1, turns=3)
    # 8 words asked and 4 answered a turn: prompts of 8, 20 and 32.
    assert told.parts[0].requests == 6
    assert told.parts[0].mean_input_tokens == 20


def test_answers_are_scored_against_references(url: str, tmp_path: Path) -> None:
    (tmp_path / "wanted.jsonl").write_text('{"prompt": "say it", "reference": "a a b b"}\n' * 3)
    told = measured(url, references=str(tmp_path / "wanted.jsonl"), requests=None, output_len=2)
    assert told.parts[0].requests == 3
    assert told.rouge == pytest.approx({"rouge1": 200 / 3, "rouge2": 50.0, "rougeL": 200 / 3})
    (tmp_path / "none.json").write_text('[{"prompt": "say it"}]')
    with pytest.raises(PlanError, match="entry 1"):
        measured(url, references=str(tmp_path / "none.json"))


def test_rouge_is_that_of_the_reference_program() -> None:
    # google-research/rouge, README.
    scores = rouge("The quick brown fox jumps over the lazy dog", "The quick brown dog jumps on the log.")
    assert (scores["rouge1"], scores["rougeL"]) == pytest.approx((0.70588, 0.58824), abs=1e-4)
    assert set(rouge("", "a").values()) == {0.0}


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_the_longest_common_sequence_is_that_of_the_table(one: list[str], other: list[str]) -> None:
    row = [0] * (len(other) + 1)
    for word in one:
        before = row[:]
        for place, beside in enumerate(other, start=1):
            row[place] = before[place - 1] + 1 if word == beside else max(before[place], row[place - 1])
    assert longest_common(one, other) == row[-1]


def test_a_load_is_told_as_mlperf_tells_it(url: str) -> None:
    told = measured(url, requests=6, concurrency=None, request_rate=50, ttft_slo_ms=1).summary
    assert told is not None
    assert (told.scenario, told.valid) == ("Server", False)
    assert [word for text in told.why_not for word in ("600", "first token") if word in text] == ["600", "first token"]
    assert measured(url, requests=6, concurrency=3).summary is None


def test_a_load_is_kept_as_a_run_that_can_be_rated(url: str) -> None:
    plan = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 1, "input_len": 8, "output_len": 4}
    load = {"url": url, "served_model": "tiny", "requests": 6, "concurrency": 2}
    asked = parsed(EndpointLoad, plan | load)
    run = kept_run(asked, measure_serving(asked))
    assert run.kind == "serving"
    assert Plan.parse(run.plan).inference.concurrency == 2
    assert run.figures.keys() >= {"output_tokens_per_s", "ttft_s", "tpot_p99_s"}


def test_the_steady_part_leaves_out_filling_up_and_running_dry() -> None:
    filling = [Answered(number * 1.0, number + 0.5, 100.0, 8, 4, True) for number in range(10)]
    start, end = steady_span([*filling, Answered(50.0, 51.0, 60.0, 8, 4, True)])
    assert (start, end) == (5.0, 50.0)
    inside = figures_of(filling, start, end)
    assert inside.requests == 5
    assert inside.ttft.percentiles[99] == 0.5


def test_percentiles_lie_between_ranks() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5
    assert percentile([7.0], 99) == 7.0
