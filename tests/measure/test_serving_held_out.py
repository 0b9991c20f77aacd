"""What is said of serving runs with factors that were fitted without them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_serving import PLACES, made, measured, slower, truth

from measure.fit.serving import held_out as serving_held_out
from measure.fit.serving.factors import Observation, ServedRun, fit, observations, runs_of
from measure.fit.serving.held_out import LEAST_SPREAD, MissedServing, misses, predictions, spreads
from measure.history.serving import METRICS, ServingCase

SOURCES = ("a", "b", "c")
Sample = tuple[list[ServedRun], list[Observation], Any]


def sample(cases: list[ServingCase]) -> Sample:
    """As of `measure.fit.serving.factors.everything`."""
    runs = runs_of(cases)
    seen = observations(runs)
    return runs, seen, fit(runs, seen)


def made_up(**errors: float) -> list[ServingCase]:
    """Three sources on the same places, by how many times as slow each measured."""
    return [
        case
        for index, source in enumerate(SOURCES)
        for case in slower(made(truth(decode=1.2), source, PLACES[: 3 + index]), errors.get(source, 1.0))
    ]


def test_every_figure_is_left_out_once() -> None:
    runs, seen, full = sample(made_up())
    for hold_out in ("rows", "source"):
        found = misses(runs, seen, full, hold_out)
        assert set(found) == {(one.case.id, one.metric) for one in seen}
        assert max(map(abs, found.values())) < 0.1


def test_what_is_said_of_a_source_does_not_follow_what_it_measured() -> None:
    said = {}
    for error in (1.0, 1.6):
        runs, seen, full = sample(made_up(c=error))
        found = misses(runs, seen, full, "source")
        said[error] = {
            (one.case.id, one.metric): one.value * math.exp(found[one.case.id, one.metric])
            for one in seen
            if one.case.source == "c"
        }
        inside = [one for one in seen if one.case.source == "c"]
        # All of what it is off by is a miss.
        wanted = {"throughput": -1.0, "tpot": 1.0, "ttft": 1.0}
        for one in inside:
            miss = found[one.case.id, one.metric]
            assert miss == pytest.approx(-wanted[one.metric] * math.log(error), abs=0.1)
    for key, value in said[1.0].items():
        assert value == pytest.approx(said[1.6][key], rel=0.03), key


def test_what_is_said_of_measured_runs_does_not_follow_them() -> None:
    kept = list(measured("gpt-fast")[::3])
    said = []
    for error in (1.0, 1.5):
        runs, seen, full = sample([*kept, *slower(measured("exllamav2")[::4], error)])
        found = misses(runs, seen, full, "source")
        said.append(
            {one.case.id: one.value * math.exp(found[one.case.id, one.metric]) for one in seen
             if one.case.source == "exllamav2"}
        )  # fmt: skip
    assert said[0]
    for name, value in said[0].items():
        assert value == pytest.approx(said[1][name], rel=0.03), name


def test_rows_that_differ_in_their_load_only_are_left_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, seen, full = sample(made_up())
    kept: list[set[int]] = []

    def watched(runs: Any, part: list[Observation], start: Any = None) -> Any:
        kept.append({one.group for one in part})
        return full

    monkeypatch.setattr(serving_held_out, "fit", watched)
    misses(runs, seen, full, "rows")
    groups = {one.group for one in seen}
    left = [groups - part for part in kept]
    # No group is cut in two: each is left out once and there all other times.
    assert sorted(group for part in left for group in part) == sorted(groups)
    assert 1 < len(kept) <= 10


def missed(
    engine: str, metric: Any, rows: float, source: str = "a", apart: float | None = None, name: str = "x"
) -> MissedServing:
    case = ServingCase(name, source, None, {}, None, True, "server", (), "")
    return MissedServing(Observation(case, 0, 0, metric, 2.0), engine, rows, rows if apart is None else apart)


def test_an_interval_holds_four_in_five() -> None:
    errors = [0.01 * index for index in range(1, 101)]
    found = spreads([missed("vllm", "tpot", error) for error in errors])
    assert found["default", "tpot"] == pytest.approx(math.expm1(0.8))
    assert found["vllm", "tpot"] == pytest.approx(math.expm1(0.8))
    assert ("vllm", "ttft") not in found


def test_few_runs_of_an_engine_are_trusted_less_than_all() -> None:
    all_others = [missed("vllm", "ttft", 1.0, source=f"s{index}") for index in range(40)]
    few, many = (spreads([*all_others, *[missed("mlc", "ttft", 0.2)] * count]) for count in (2, 30))
    assert few["vllm", "ttft"] == many["vllm", "ttft"] == pytest.approx(math.expm1(1.0))
    assert math.expm1(0.2) < many["mlc", "ttft"] < few["mlc", "ttft"] < math.expm1(1.0)


def test_an_interval_is_never_too_narrow() -> None:
    found = spreads([missed("vllm", "throughput", 0.0)] * 100)
    assert found["vllm", "throughput"] == LEAST_SPREAD


@given(
    st.lists(st.tuples(st.sampled_from(["vllm", "hf"]), st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=30)
)
def test_spreads_of_others_are_the_widest_that_are_known(drawn: list[tuple[str, float, float]]) -> None:
    found = spreads([missed(engine, "tpot", rows, f"s{i % 3}", apart) for i, (engine, rows, apart) in enumerate(drawn)])
    widest = max(max(abs(rows), abs(apart)) for _, rows, apart in drawn)
    assert LEAST_SPREAD <= found["default", "tpot"] <= max(LEAST_SPREAD, math.expm1(widest)) + 1e-9
    assert all(found["default", "tpot"] >= value for value in found.values())
    for engine in {engine for engine, _, _ in drawn}:
        assert found[engine, "tpot"] >= LEAST_SPREAD


@pytest.fixture
def of_sources(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Sources whose figures are all off by so much (a logarithm); what is said is taken from them."""
    off = {"a": 0.1, "b": 0.2, "c": 1.5}
    cases = [
        ServingCase(f"{source}-{index}", source, None, {"tpot": 2.0}, None, True, "server", (), "")
        for source in off
        for index in range(20)
    ]
    seen = [Observation(case, index % 7, 0, "tpot", 2.0) for index, case in enumerate(cases)]
    found = [MissedServing(one, "vllm", off[one.case.source], off[one.case.source]) for one in seen]
    monkeypatch.setattr(serving_held_out, "everything", lambda: ([], seen, {}))
    monkeypatch.setattr(serving_held_out, "missed", lambda: found)
    return off


def test_intervals_come_from_other_sources_only(of_sources: dict[str, float]) -> None:
    found = predictions("source")
    assert len(found) == 60
    for (name, _), said in found.items():
        own = of_sources[name[0]]
        assert said.value == pytest.approx(2.0 * math.exp(own))
        assert said.low < said.value < said.high
        assert said.high / said.value == pytest.approx(said.value / said.low)
    width = {
        source: math.log(found[f"{source}-0", "tpot"].high / found[f"{source}-0", "tpot"].value)
        for source in of_sources
    }
    # The worst source is judged by the others, which are better, and the others by it.
    assert width["c"] == pytest.approx(0.2)
    assert width["a"] > 1.0
    assert not found["c-0", "tpot"].low <= 2.0 <= found["c-0", "tpot"].high
    assert found["a-0", "tpot"].low <= 2.0 <= found["a-0", "tpot"].high


def test_intervals_of_rows_come_from_other_folds_only(
    of_sources: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_sources
    _, seen, _ = serving_held_out.everything()
    wild = [MissedServing(one, "vllm", 3.0 if one.group == 6 else 0.1, 3.0 if one.group == 6 else 0.1) for one in seen]
    monkeypatch.setattr(serving_held_out, "missed", lambda: wild)
    found = predictions("rows")
    own, other = (next(one.case.id for one in seen if one.group == group) for group in (6, 0))
    assert found[own, "tpot"].high / found[own, "tpot"].value == pytest.approx(math.exp(0.1))
    assert found[other, "tpot"].high / found[other, "tpot"].value >= math.exp(0.1) * (1 - 1e-9)
    assert set(METRICS) >= {metric for _, metric in found}
    assert all(said.fits for said in found.values())
