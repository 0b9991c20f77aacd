"""The serving part of the accuracy benchmark: what it prints of figures whose errors are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import accuracy, serving_accuracy
from benchmarks.serving_accuracy import CacheMemory, as_json, as_text, rival, side_by_side, table
from estimator.plan.schema import Plan
from measure.history.scores import POOLED, CasePrediction, Score
from measure.history.serving import METRICS, OUT_OF_MEMORY, ServingCase, serving_cases

SUMMARY = {"runs", "mape", "median_error", "bias", "within_10", "within_20", "coverage"}


def case(name: str, source: str, reason: str | None = None, ran: bool = True, plan: Plan | None = None) -> ServingCase:
    return ServingCase(name, source, plan, {"tpot": 1.0}, reason, ran, "server", (), "ref")


def score(name: str, source: str, error: float, spread: float = 0.15) -> Score[ServingCase]:
    value = 100.0 * (1 + error)
    return Score(case(name, source), 100.0, CasePrediction(value, value / (1 + spread), value * (1 + spread), True))


# Of one source six figures 10 % too high, of one six 30 % too low, and two of sources with few rows.
SCORES = {
    metric: [
        *(score(f"{metric}-a{i}", "alpha", 0.1) for i in range(6)),
        *(score(f"{metric}-b{i}", "beta", -0.3) for i in range(6)),
        score(f"{metric}-c", "gamma", 0.0),
        score(f"{metric}-d", "delta", 0.2),
    ]
    for metric in METRICS
}
UNSEEN = {
    metric: [Score(s.case, s.observed, CasePrediction(150.0, 80.0, 200.0, True)) for s in SCORES[metric]]
    for metric in METRICS
}
CASES = (
    case("x", "alpha"), case("y", "alpha", "duplicate: printed twice"), case("z", "beta", "duplicate: again"),
    case("o", "beta", OUT_OF_MEMORY, ran=False),
)  # fmt: skip


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_accuracy, "scores", lambda hold_out: UNSEEN if hold_out == "source" else SCORES)
    monkeypatch.setattr(serving_accuracy, "memory_verdicts", lambda: CacheMemory(20, 19, 100, 3))
    monkeypatch.setattr(serving_accuracy, "serving_cases", lambda: CASES)
    # The rival is right of one, and twice as high of the other.
    monkeypatch.setattr(serving_accuracy, "rival", lambda: {("tpot-a0", "tpot"): 100.0, ("tpot-b0", "tpot"): 200.0})


def test_the_table_has_every_figure_and_source_with_both_ways_of_leaving_out() -> None:
    lines = table().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")]
    assert all(line.count("|") == lines[0].count("|") for line in lines[: 2 + 3 * 4])
    for title in serving_accuracy.TITLES.values():
        # alpha, beta, and those with few rows together.
        assert any(line.startswith(f"| **{title}, mean of 3 sources**") for line in lines)
    first = next(row for row in rows if row[0] == "| alpha")
    assert first[1:] == ["6", "10.0 %", "10.0 %", "+10.0 %", "100 %", "50.0 %", "100 % |"]
    assert next(row for row in rows if row[0] == "| beta")[1:6] == ["6", "30.0 %", "30.0 %", "-30.0 %", "0 %"]
    pooled = next(row for row in rows if row[0] == f"| {POOLED}")
    assert pooled[1:4] == ["2", "10.0 %", "10.0 %"]
    mean = next(row for row in rows if row[0].startswith("| **time per"))
    assert mean[1:3] == ["14", "16.7 %"]


def test_the_table_tells_of_memory_and_of_the_rival_on_the_same_rows() -> None:
    text = table()
    assert "Of 20 runs of llama.cpp that ran out of memory, 19 are estimated not to fit; of 100 that ran, 3." in text
    assert "| time per output token | 2 | 20.0 % / 20.0 % | 50.0 % / 50.0 % |" in text
    (found,) = side_by_side()
    assert (found.metric, found.rows) == ("tpot", 2)
    assert (found.ours_mean, found.rival_mean) == pytest.approx((0.2, 0.5))


def test_the_table_is_written_between_its_markers_and_nothing_else_is_touched(tmp_path: Path) -> None:
    first, last = accuracy.markers("inference")
    assert (first, last) == ("<!-- inference table -->", "<!-- end of inference table -->")
    path = tmp_path / "README.md"
    path.write_text(f"before\n{first}\nold\n{last}\nafter\n", encoding="utf-8")
    assert accuracy.main(["inference", "--write", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == f"before\n{first}\n{table()}\n{last}\nafter\n"
    assert accuracy.main(["inference", "--write", str(path)]) == 0
    assert path.read_text(encoding="utf-8").count(first) == 1
    assert list(tmp_path.glob("*.partial")) == []


def test_a_file_without_its_markers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "README.md"
    path.write_text("<!-- memory table -->\n<!-- end of memory table -->\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        accuracy.main(["inference", "--write", str(path)])
    assert "inference table" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "<!-- memory table -->\n<!-- end of memory table -->\n"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert accuracy.main(["inference", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("hold_out", ["rows", "source", "none"])
def test_json_holds_the_promised_keys(hold_out: str, capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = json.loads(printed(capsys, "--json", "--hold-out", hold_out))
    assert found.keys() >= {"benchmark", "hold_out", "memory", *METRICS}
    assert (found["benchmark"], found["hold_out"]) == ("inference", hold_out)
    assert found["memory"] == {"ran_out": 20, "ran_out_seen": 19, "ran": 100, "ran_refused": 3}
    assert ("side_by_side" in found) == (hold_out == "rows")
    for metric in METRICS:
        part = found[metric]
        assert part["mean_over_sources"].keys() == SUMMARY | {"sources"}
        assert part["mean_over_sources"]["sources"] == 3
        assert set(part["by_source"]) == {"alpha", "beta", "gamma", "delta"}
        assert all(summary.keys() == SUMMARY for summary in part["by_source"].values())
        assert len(part["worst"]) == 10
        assert all(row.keys() == {"id", "observed", "predicted"} for row in part["worst"])
    assert json.loads(as_json(hold_out)) == found


def test_json_is_of_what_was_left_out() -> None:
    rows, source = (json.loads(as_json(hold_out))["tpot"]["mean_over_sources"] for hold_out in ("rows", "source"))
    assert rows["mape"] == pytest.approx((0.1 + 0.3 + 0.1) / 3)
    assert source["mape"] == pytest.approx(0.5)
    assert rows["coverage"] == pytest.approx((1.0 + 0.0 + 0.5) / 3)
    assert rows["runs"] == 14
    worst = json.loads(as_json("rows"))["ttft"]["worst"]
    assert {row["id"][:6] for row in worst[:6]} == {"ttft-b"}
    assert worst[0]["predicted"] == pytest.approx(70.0)


def test_text_names_its_basis_and_what_is_not_scored(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert as_text("rows", accuracy.BASES["rows"]) + "\n" == text
    for part in ("each row left out", "alpha", "14 figures", "furthest off: tpot-b0 100 -> 70", "20, of which 19",
                 "aiconfigurator 50.0%", "Not scored: 2", "1 of alpha: duplicate"):  # fmt: skip
        assert part in text, part
    apart = printed(capsys, "--hold-out", "source")
    assert "each source left out" in apart
    assert "aiconfigurator" not in apart


def test_arguments_that_are_none_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        accuracy.main(["inference", "--hold-out", "everything"])
    assert "rows" in capsys.readouterr().err


def test_the_rival_s_figures_are_of_rows_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    ids = {one.id for one in serving_cases()}
    found = rival()
    assert len(found) > 1000
    assert {name for name, _ in found} <= ids
    assert all(value > 0 for value in found.values())
    seconds = [value for (_, metric), value in found.items() if metric == "tpot"]
    assert 1e-4 < min(seconds) < max(seconds) < 10.0
