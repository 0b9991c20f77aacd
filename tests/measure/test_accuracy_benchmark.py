"""The benchmark's arithmetic and what it prints, with predictions whose errors are known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy import GROUPS, as_json, as_text, main, run
from estimator.errors import PlanError
from estimator.plan.schema import Plan
from measure.history.scores import POOLED, CasePrediction, Score, by_group, over_sources, summarise, worst
from measure.history.training import RAN_OUT, Case, Observed


def case(name: str, source: str = "a", rate: float = 100.0, reason: str | None = None) -> Case:
    plan = Plan.parse({"model": "m", "workload": {"framework": "fsdp2", "method": "lora"}})
    observed = Observed(
        tokens_per_s_per_device=rate,
        step_s=1.0,
        peak_bytes=rate,
        peak_kind="allocated",
        out_of_memory=reason == RAN_OUT,
    )
    return Case(name, source, plan, observed, reason, (), (), "2026", "ref")


def off_by(error: float, source: str = "a", spread: float = 0.15) -> Score:
    value = 100.0 * (1 + error)
    return Score(case("c", source), 100.0, CasePrediction(value, value * (1 - spread), value * (1 + spread), True))


def test_summary_of_known_errors():
    summary = summarise([off_by(0.05), off_by(-0.10), off_by(0.30)])
    assert summary.mape == pytest.approx(0.15)
    assert summary.median_error == pytest.approx(0.10)
    assert summary.bias == pytest.approx(0.25 / 3)
    assert summary.within_10 == pytest.approx(2 / 3)
    assert summary.within_20 == pytest.approx(2 / 3)
    assert summary.coverage == pytest.approx(2 / 3)


def test_nothing_to_summarise_is_an_error():
    with pytest.raises(ValueError, match="nothing"):
        summarise([])


def test_a_large_source_counts_once_and_small_ones_are_pooled():
    scores = [off_by(0.0, "large")] * 95 + [off_by(0.4, "middle")] * 5 + [off_by(0.2, "x"), off_by(0.2, "y")]
    sources, mean = over_sources(scores)
    assert sources == 3
    assert mean.mape == pytest.approx((0.0 + 0.4 + 0.2) / 3)
    assert POOLED not in by_group(scores, GROUPS["source"])


@given(st.lists(st.floats(-0.9, 5.0), min_size=1, max_size=30))
def test_shares_are_shares_and_errors_are_ordered(errors: list[float]):
    summary = summarise([off_by(error) for error in errors])
    assert 0 <= summary.within_10 <= summary.within_20 <= 1
    assert 0 <= summary.coverage <= 1
    assert abs(summary.bias) <= summary.mape + 1e-12


def test_worst_treats_half_and_double_alike():
    half, double, third = off_by(-0.5), off_by(1.0), off_by(-2 / 3)
    assert worst([half, double, third], 1) == [third]
    assert worst([off_by(0.9), half], 1) == [half]


def predictions(given: Case) -> CasePrediction:
    if given.id == "refused":
        raise PlanError("layout.tp", "tp=3 does not divide 32", [1, 2])
    if given.id.startswith("oom"):
        return CasePrediction(1.0, 1.0, 1.0, fits=given.id == "oom-missed")
    return CasePrediction(110.0, 90.0, 130.0, True)


CASES = [
    case("one"), case("two", "b", 200.0), case("refused"), case("doubtful", reason="printed twice"),
    case("oom-seen", reason=RAN_OUT), case("oom-missed", reason=RAN_OUT),
]  # fmt: skip


def test_a_run_scores_counts_refusals_and_leaves_doubtful_rows_out():
    report = run("training", CASES, predictions)
    assert [score.case.id for score in report.scores] == ["one", "two"]
    assert [(refused.id, "32" in reason) for refused, reason in report.refused] == [("refused", True)]
    assert [unscored.id for unscored in report.unscored] == ["doubtful"]
    assert (report.ran_out, report.ran_out_seen) == (2, 1)


def test_text_names_the_basis_the_groups_and_what_was_not_scored():
    text = as_text(run("training", CASES, predictions), "framework", markdown=False)
    for part in ("in-sample", "fsdp2", "two", "-45%", "tp=3 does not divide", "printed twice", "2, of which 1"):
        assert part in text


def test_markdown_tables_are_even():
    text = as_text(run("memory", CASES, predictions), "method", markdown=True)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) >= 4
    assert len({line.count("|") for line in table}) == 1


def test_json_holds_the_same_figures():
    result = json.loads(as_json(run("training", CASES, predictions), "source"))
    assert result["overall"]["runs"] == 2
    assert result["by_source"]["b"]["mape"] == pytest.approx(0.45)
    assert result["ran_out_of_memory"] == {"runs": 2, "predicted_not_to_fit": 1}
    assert result["unscored"][0]["reason"] == "printed twice"


def test_nothing_scored_is_said():
    report = run("training", [case("doubtful", reason="no")], predictions)
    assert "Nothing was scored" in as_text(report, "source", markdown=False)
    assert json.loads(as_json(report, "source"))["overall"] is None


def test_unknown_arguments_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["rendering"])
    assert "training" in capsys.readouterr().err
