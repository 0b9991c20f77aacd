"""An endpoint under load: what it answers is timed as it is, and what it does not say is not made up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from openai_server import BETWEEN_S, FIRST_S, openai_server

from estimator.errors import PlanError
from measure.run.answers import figures_of, percentile, steady_span
from measure.run.load import Answered, arrivals
from pages.rendering import markdown
from pages.results.of_results import blocks_of
from planner.measuring.serving import EndpointLoad, LoadPart, ServingMeasurement, measure_serving
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
    whole, steady = told.parts
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
    rows = arrivals(2000, 10.0, 8, 4, 1)
    assert rows[-1].at_s == pytest.approx(200.0, rel=0.1)
    assert rows == arrivals(2000, 10.0, 8, 4, 1)
    assert arrivals(3, None, 8, 4, 1)[2].at_s is None


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
