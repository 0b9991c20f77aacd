"""One's own runs: kept once, found again, and the same after a journey through a file."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from measure.history import exchange, store
from measure.history.run import MeasuredRun, StepSeries, quartiles
from measure.logs.reading import read, read_text
from tui.cli import main


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path))
    monkeypatch.delenv("SHARDWISE_DATA", raising=False)


def run(step_s: float = 1.0, **fields: object) -> MeasuredRun:
    plan = {
        "model": "meta-llama/Llama-3.1-8B",
        "cluster": {"accelerator": "h100-sxm", "count": 8},
        "workload": {"kind": "training", "framework": "torchtitan", "seq_len": 8192, "global_batch": 16},
    }
    return MeasuredRun.model_validate({"plan": plan, "figures": {"step_s": step_s}, "date": "2026-11-20"} | fields)


@pytest.mark.usefixtures("either_store")
def test_a_run_is_kept_once_and_takes_a_new_name_and_tags() -> None:
    first = store.add([run(name="a", tags=["x"])])
    assert store.add([run(name="b", tags=["y"])]) == first
    assert [(kept.name, kept.tags) for kept in store.runs()] == [("b", ["x", "y"])]


@pytest.mark.usefixtures("either_store")
def test_runs_are_filtered_and_come_in_the_order_of_their_days() -> None:
    store.add([run(2.0, date="2026-11-22"), run(1.0, date="2026-11-21", tags=["best"]), run(3.0, outcome="oom")])
    assert [kept.figures["step_s"] for kept in store.runs()] == [3.0, 1.0, 2.0]
    assert len(store.runs(model="LLAMA-3.1", accelerator="h100", software="torchtitan")) == 3
    assert [kept.figures["step_s"] for kept in store.runs(since="2026-11-21", tag="best")] == [1.0]
    assert store.runs(model="qwen") == store.runs(kind="serving") == []


@pytest.mark.usefixtures("either_store")
def test_a_run_is_found_by_name_id_or_the_beginning_of_one_and_no_other_is() -> None:
    (id,) = store.add([run(name="mine")])
    assert store.find("mine").id == store.find(id).id == store.find(id[:5]).id == id
    store.change("mine", tags=["t", "t"], rename="ours", note="warm")
    assert (store.find("ours").tags, store.find("ours").note) == (["t"], "warm")
    with pytest.raises(PlanError):
        store.find("mine")
    assert store.remove("ours").id == id
    assert store.runs() == []


def test_a_file_that_is_no_history_is_refused_and_stays() -> None:
    store.history_file().write_bytes(b"not a database, but long enough to look at" * 50)
    with pytest.raises(PlanError, match="history"):
        store.add([run()])
    assert store.history_file().read_bytes().startswith(b"not a database")


def test_a_full_disk_takes_nothing_and_says_nothing_of_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    (id,) = store.add([run()])
    real = sqlite3.connect

    def full(*place: Any, **options: Any) -> sqlite3.Connection:
        connection = real(*place, **options)
        if "uri" not in options:
            # As a disk without room, to the byte: SQLite itself refuses the next page.
            connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
        return connection

    monkeypatch.setattr(store.sqlite3, "connect", full)
    with pytest.raises(PlanError, match="the disk is full; make room") as caught:
        store.add([run(float(place)) for place in range(1, 200)])
    assert "move it away" not in str(caught.value)
    assert [kept.id for kept in store.runs()] == [id]


def test_looking_begins_no_history() -> None:
    assert store.runs() == []
    assert not store.history_file().exists()


def test_what_another_version_wrote_is_passed_over() -> None:
    store.add([run()])
    with sqlite3.connect(store.history_file()) as connection:
        connection.execute("INSERT INTO runs (id, added, document) VALUES ('z', '2026', '{\"format\": \"x/9\"}')")
    assert len(store.runs()) == 1


@pytest.mark.parametrize("format", ["json", "yaml", "csv"])
@pytest.mark.parametrize("count", [1, 3])
def test_runs_come_back_from_a_file(format: exchange.Format, count: int) -> None:
    runs = [run(1.0 + place, name=f"no. {place}, 'x'", tags=["a", "b"], software={"torch": "2.9"},
                spread={"step_s": (0.9, 1.1)}, steps=5) for place in range(count)]  # fmt: skip
    again = exchange.read(exchange.written(runs, format))
    of_csv = {"exported_as"}
    assert [each.model_dump(exclude=of_csv) for each in again] == [each.model_dump(exclude=of_csv) for each in runs]
    assert [each.id for each in again] == [each.id for each in runs]


@pytest.mark.parametrize("format", ["json", "yaml", "csv"])
def test_runs_that_come_back_to_their_own_history_stay_one(format: exchange.Format) -> None:
    series = StepSeries(step=[1, 2], step_s=[1.0, 1.0])
    ids = store.add([run(float(at), series=series, findings=["a; b"]) for at in range(1, 4)])
    back = exchange.read(exchange.written(store.runs(), format))
    assert store.add([each.model_copy(update={"tags": ["back"]}) for each in back]) == ids
    assert [(each.id, each.tags, each.series) for each in store.runs()] == [(id, ["back"], series) for id in ids]


def test_ids_do_not_change_from_one_version_to_the_next() -> None:
    """A history that is at hand would have all its runs twice, once they are read again."""
    plan = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}
    known = MeasuredRun(plan=plan, figures={"step_s": 1.5}, source="log a.log", date="2026-01-31")
    assert known.id == "5eb6fa36d8"


def test_a_line_of_csv_has_its_steps_back_where_its_run_comes_back(tmp_path: Path) -> None:
    """By the command, whichever of the two was there first."""
    series = StepSeries(step=[1, 2], step_s=[1.0, 1.0])
    (id,) = store.add([run(series=series)])
    for end in ("csv", "json"):
        (tmp_path / f"all.{end}").write_text(exchange.written(store.runs(), "csv" if end == "csv" else "json"))
    assert main(["measure", "add", str(tmp_path / "all.csv"), "--tag", "back"]) == 0
    assert [(each.id, each.tags, each.series) for each in store.runs()] == [(id, ["back"], series)]
    store.remove(id)
    assert main(["measure", "add", str(tmp_path / "all.csv")]) == 0
    assert [(each.id, each.series.step) for each in store.runs()] == [(id, [])]
    assert main(["measure", "tag", id, "mine"]) == 0
    assert main(["measure", "add", str(tmp_path / "all.json")]) == 0
    assert [(each.id, each.tags, each.series) for each in store.runs()] == [(id, ["mine"], series)]


@given(st.text(max_size=200))
def test_any_text_is_read_as_runs_or_refused(text: str) -> None:
    with suppress(PlanError):
        assert exchange.read(text)


def test_a_series_is_thinned_to_its_ends() -> None:
    series = StepSeries(step=list(range(10_001)), loss=[float(step) for step in range(10_001)])
    thin = series.thinned(100)
    assert len(thin.step) == len(thin.loss) == 100
    assert (thin.step[0], thin.step[-1]) == (0, 10_000)
    assert thin.step_s == []
    with pytest.raises(ValueError, match="as long"):
        StepSeries(step=[1], loss=[1.0, 2.0])


def test_quartiles_stand_between_values() -> None:
    assert quartiles([4.0]) == (4.0, 4.0, 4.0)
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 3.0, 4.0)


@pytest.mark.parametrize("format", ["json", "yaml", "csv"])
def test_a_shared_file_is_read_as_a_log_is_and_refused_where_its_figures_cannot_be(
    format: exchange.Format, tmp_path: Path
) -> None:
    path = tmp_path / f"shared.{format}"
    path.write_text(exchange.written([run(), run(2.0)], format))
    assert [kept.figures["step_s"] for kept in read(path)] == [1.0, 2.0]
    for wrong in ("1e+308", "-5.0"):
        path.write_text(exchange.written([run(1.5)], format).replace("1.5", wrong))
        with pytest.raises(PlanError, match=r"figures\.step_s"):
            read(path)


def test_figures_that_cannot_be_are_left_out_of_a_log() -> None:
    text = "\n".join(f"step: {at} loss: 2.0 step_time: 1e300 tps: 1e290" for at in range(1, 6))
    assert not read_text(text).figures
    served = '{"completed": 9, "output_throughput": 1e300, "total_output_tokens": 1e300, "request_throughput": 3}'
    kept = read_text(served)
    assert kept.figures == {"requests_per_s": 3.0}
    assert "output_len" not in kept.plan["workload"]


def test_what_a_shared_run_is_called_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "shared.json"
    path.write_text(exchange.written([run(name="a\x1b[31m\x9b\u202eb", tags=["\x1b]0;x\x07"])], "json"))
    assert main(["measure", "add", str(path)]) == 0
    assert main(["measure", "export", "--format", "csv"]) == 0
    assert not set(capsys.readouterr().out) & set("\x1b\x9b\u202e\x07")
