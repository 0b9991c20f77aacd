"""Is a measured speed good? And the history beside estimates, and a local calibration that they rest on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.search.bounds import least_training_s
from estimator.training.schedule import COMPONENTS
from knowledge.own.calibration import FORMAT, calibration_file, own_factors, shipped_factors
from measure.fit import own
from measure.history import store
from measure.history.run import MeasuredRun, StepSeries
from pages.results.of_results import blocks_of
from planner.history.listing import HistoryRequest, list_runs
from planner.history.rating import RateRequest, rate_run
from planner.history.reading import ReadRequest, read_run
from planner.training.planned import plan_training, throughput_of
from tui.cli import main

PLAN: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8,
                        "framework": "torchtitan", "seq_len": 8192, "global_batch": 16}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    for name in ("SHARDWISE_DATA", "SHARDWISE_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def rate(**fields: Any) -> Any:
    return rate_run(RateRequest.model_validate(PLAN | fields))


def expected() -> float:
    return throughput_of(plan_training(RateRequest.model_validate(PLAN).to_plan(), offload=False)).tokens_per_s


def test_a_speed_is_placed_by_whichever_figure_says_it() -> None:
    usual = expected()
    ratings = [rate(tokens_per_s=usual), rate(tokens_per_s_per_device=usual / 8), rate(step_s=8192 * 16 / usual)]
    ratings += [rate(samples_per_s=usual / 8192), rate(mfu=ratings[0].mfu), rate(mfu=100 * ratings[0].mfu)]
    for each in ratings:
        assert each.verdict == "as expected"
        assert each.tokens_per_s == pytest.approx(usual)
        assert each.tokens_low_per_s < usual < each.tokens_high_per_s
    slow, fast = rate(tokens_per_s=usual * 0.77), rate(tokens_per_s=usual * 1.5)
    assert (slow.verdict, fast.verdict) == ("low", "good")
    assert slow.percentile <= ratings[0].percentile <= fast.percentile
    assert slow.causes
    assert all(abs(cause.explained_tokens_per_s / (usual * 0.77) - 1.0) < 0.25 for cause in slow.causes)
    assert blocks_of(slow)
    assert rate(tokens_per_s=usual * 10).verdict == "impossible"
    with pytest.raises(PlanError, match="no measured speed"):
        rate()


def run_of(factor: float, **fields: Any) -> MeasuredRun:
    plan = RateRequest.model_validate(PLAN | fields).to_plan()
    rate = throughput_of(plan_training(plan, offload=False)).tokens_per_s_per_device * factor
    return MeasuredRun(plan=plan.given(), figures={"tokens_per_s_per_device": rate}, date="2026-11-20")


def test_a_run_of_the_history_is_rated_and_stands_beside_its_estimate() -> None:
    (id,) = store.add([run_of(0.5)])
    assert rate_run(RateRequest.model_validate({"run": id})).verdict == "low"
    history = list_runs(HistoryRequest.model_validate({}))
    assert history.runs[0].error == pytest.approx(1.0, rel=0.01)
    assert [(row.software, row.runs) for row in history.drift] == [("torchtitan", 1)]
    assert blocks_of(history)


def test_a_pasted_log_is_read_and_rated() -> None:
    text = "\n".join(f"step: {n}  loss: 9.0  memory: 40.0GiB(50%)  tps: 6,000  mfu: 30.0%" for n in range(1, 9))
    reading = read_run(ReadRequest.model_validate(PLAN | {"text": text}))
    assert reading.rating is not None
    assert reading.step_s == pytest.approx(8192 * 16 / 8 / 6000) or reading.step_s is None
    assert reading.rating.tokens_per_s == pytest.approx(48_000)
    assert blocks_of(reading)
    bare = read_run(ReadRequest.model_validate({"text": text}))
    assert bare.rating is None
    assert "model" in bare.missing


def test_a_local_calibration_makes_estimates_of_the_same_cluster_better() -> None:
    settings = [{}, {"seq_len": 4096}, {"global_batch": 32}, {"count": 16, "global_batch": 32}]
    runs = [run_of(0.8, **each) for each in settings]
    (fit,) = own.fitted(runs)
    assert fit.used
    assert fit.after is not None
    assert fit.after < 0.5 * fit.before
    before = expected()
    assert own.save([fit])
    after = expected()
    assert after == pytest.approx(0.8 * before, rel=0.05)
    with shipped_factors():
        assert expected() == pytest.approx(before)
    planned = plan_training(Plan.parse(runs[0].plan), offload=False)
    assert planned.job.calibration.time_measured
    factors = own_factors("Hopper")
    assert factors is not None
    assert factors.runs == {"torchtitan": 4}
    assert main(["measure", "fit", "--reset", "--dry"]) == 0
    assert own_factors("Hopper") == factors
    calibration_file().write_text("format: [")
    assert own_factors("Hopper") is None
    assert own.reset()
    assert expected() == pytest.approx(before)


def test_a_slower_machine_takes_as_many_times_as_long_for_all_of_a_step() -> None:
    """One run far off does not speak for the machine, and what so few runs leave unknown widens the interval."""
    lengths = (2048, 4096, 8192, 16384, 32768)
    runs = [run_of(1 / 1.4 if length < 32768 else 1.0, seq_len=length) for length in lengths]
    plan = RateRequest.model_validate(PLAN).to_plan()
    before = plan_training(plan, offload=False)
    (fit,) = own.fitted(runs)
    assert fit.used
    assert fit.step > 1.15
    usual = expected()
    assert own.save([fit])
    assert expected() == pytest.approx(usual / 1.4, rel=0.1)
    assert fit.spread["torchtitan"] > before.job.calibration.time_spread / 2
    row = {"device": {"step": 1.4}, "frameworks": {"torchtitan": {"runs": 4, "time_spread": 0.2}}}
    calibration_file().write_text(json.dumps({"format": FORMAT, "families": {"Hopper": row}}))
    after = plan_training(plan, offload=False)
    for name, (one, other) in zip(COMPONENTS, _components(before, after), strict=True):
        assert other == pytest.approx(1.4 * one), name
    assert least_training_s(after.job) == pytest.approx(1.4 * least_training_s(before.job))


def _components(before: Any, after: Any) -> list[tuple[float, float]]:
    one, other = (each.estimates.of(each.index).step.components for each in (before, after))
    return [(float(one[name][0]), float(other[name][0])) for name in COMPONENTS]


def test_a_model_that_is_off_by_itself_speaks_for_others_the_less() -> None:
    """Two models are as estimated and a third is slower however it is run: the third's estimates follow its own runs
    more than those of a model that was never run."""
    others = [run_of(1.0, model=model, seq_len=length) for model in ("Qwen/Qwen3-8B", "Qwen/Qwen3-14B")
              for length in (2048, 4096)]  # fmt: skip
    own_runs = [run_of(0.75, seq_len=length) for length in (2048, 4096, 8192)]
    (fit,) = own.fitted([*others, *own_runs])
    before, unseen = expected(), rate(model="mistralai/Mistral-7B-v0.1", tokens_per_s=1.0).expected_tokens_per_s
    assert fit.models == {"meta-llama/Llama-3.1-8B", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B"}
    assert own.save([fit])
    ratio = expected() / before
    again = rate(model="mistralai/Mistral-7B-v0.1", tokens_per_s=1.0).expected_tokens_per_s
    assert 0.7 < ratio < 0.9
    assert again / unseen > 1.02 * ratio


def test_what_does_not_help_is_not_used() -> None:
    (fit,) = own.fitted([run_of(1.0)])
    assert fit.after is None
    assert not fit.used
    assert not own.save([fit])


def test_the_commands_keep_show_and_share_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(f"step: {n}  loss: 9.0  memory: 40.0GiB(50%)  tps: 6,000  mfu: 30.0%" for n in range(9)))
    told = ("--name", "mine", "--tag", "a", "--accelerator", "8xh100-sxm", "--set", "layout.tp=2")
    assert main(["measure", "add", str(log), *told]) == 0
    assert main(["measure", "export", "--format", "yaml"]) == 0
    shared = tmp_path / "run.yaml"
    shared.write_text(capsys.readouterr().out.partition("\n")[2])
    assert main(["measure", "forget", "mine"]) == 0
    assert main(["measure", "add", str(shared)]) == 0
    assert store.find("mine").planned("cluster.count") == 8
    assert store.find("mine").planned("layout.tp") == 2
    assert store.find("mine").planned("name") is None
    assert main(["measure", "tag", "mine", "b"]) == 0
    assert store.find("mine").tags == ["b"]
    assert main(["measure", "runs"]) == 0
    for form, start in (("html", b"<!"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        assert main(["measure", "board", str(tmp_path / f"board.{form}")]) == 0
        assert (tmp_path / f"board.{form}").read_bytes().lstrip().startswith(start)
    # What stands there is not written over.
    assert main(["measure", "board", str(tmp_path / "board.png")]) == 2
    capsys.readouterr()
    assert main(["measure", "logs", str(log)]) == 0
    assert "To rate that I need the model" in " ".join(capsys.readouterr().out.split())
    assert main(["measure", "logs", str(log), "--json"]) == 0
    assert main(["measure", "fit"]) == 1
    assert "can be fitted to" in capsys.readouterr().out


def test_a_served_run_of_the_history_stands_beside_its_estimate_and_is_rated() -> None:
    load = {"kind": "inference", "input_len": 512, "output_len": 128, "concurrency": 16, "engine": "vllm"}
    plan = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "count": 2}, "workload": load}
    (id,) = store.add([MeasuredRun(kind="serving", plan=plan, figures={"output_tokens_per_s": 500.0})])
    (row,) = list_runs(HistoryRequest.model_validate({})).runs
    assert row.tokens_per_s_per_device == 250.0
    rating = rate_run(RateRequest.model_validate({"run": id}))
    assert rating.verdict == "low"
    assert row.expected_tokens_per_s_per_device == pytest.approx(rating.expected_tokens_per_s / 2, rel=1e-6)


def test_a_history_without_what_is_asked_is_not_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "runs", "--tag", "a"]) == 0
    assert "No run of your own is kept yet" in capsys.readouterr().out
    store.add([run_of(1.0)])
    assert main(["measure", "runs", "--tag", "a"]) == 0
    assert capsys.readouterr().out.startswith("No run of the 1 in the history is as asked.")
    assert main(["measure", "runs", "--since", "yesterday"]) == 2
    assert "since: 'yesterday' is no day; valid: 2026-01-31" in capsys.readouterr().err


def test_a_board_has_what_runs_say_and_no_empty_picture() -> None:
    series = StepSeries(step=[1, 2, 3], step_s=[2.0, 1.0, 1.0], loss=[3.0, 2.0, 1.0])
    store.add([run_of(1.0, count=count).model_copy(update={"series": series}) for count in (8, 16)])
    plots = {plot.title: plot for plot in list_runs(HistoryRequest.model_validate({})).plots}
    assert plots.keys() >= {"Tokens per second and device", "Utilisation", "Loss", "Step time", "Scaling"}
    assert not plots.keys() & {"Learning rate", "Peak memory per device"}
    (curve,) = plots["Scaling"].series
    assert curve.x == [8.0, 16.0]
    assert all(value and 0 < value < 100 for value in plots["Utilisation"].series[0].y)


def test_what_is_told_of_a_log_s_plan_contradicts_its_figures_too(tmp_path: Path) -> None:
    """6,000 tokens/s on each of 8 devices are steps of 2.73 s, and a line came every 2.00 s; on 11 they belong
    together. A mean between lines may hold an evaluation: one that is the longer contradicts nothing."""
    head = (
        "Training starts at step 1, with local batch size 2, global batch size 16, sequence length 8192, total steps 9"
    )
    line = "[titan] 2026-11-01 10:{:02}:{:02},000 - root - INFO - step: {}  loss: 8.0  tps: 6,000  mfu: 30.0%"
    told: dict[tuple[int, int], list[str]] = {}
    for every, count in ((2, 8), (4, 8), (2, 11)):
        lines = [line.format(*divmod(every * step, 60), step) for step in range(1, 15)]
        asked = {"text": "\n".join([head, *lines]), "model": "llama-3.1-8b", "accelerator": "h100", "count": count}
        reading = read_run(ReadRequest.model_validate(asked))
        told[every, count] = [finding for finding in reading.findings if "do not belong to steps of" in finding]
    assert [len(findings) for findings in told.values()] == [1, 0, 0]
    assert "8,192 tokens on 8 devices" in told[2, 8][0]


def test_a_board_shows_the_latest_runs_in_their_order() -> None:
    series = StepSeries(step=[1, 2], step_s=[2.0, 1.0])
    days = [f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}" for day in range(30)]
    update = [{"series": series, "date": day, "name": day} for day in days]
    store.add([run_of(1.0).model_copy(update=each) for each in reversed(update)])
    plots = {plot.title: plot for plot in list_runs(HistoryRequest.model_validate({"estimates": False})).plots}
    assert plots["Tokens per second and device"].series[0].x == days[-24:]
    assert [curve.name for curve in plots["Step time"].series] == days[-8:]


def test_a_run_added_with_what_its_log_leaves_open_stands_beside_its_estimate(tmp_path: Path) -> None:
    """Of a log that tells no plan steps are known, and the plan is said in words of the command line."""
    log = tmp_path / "train.log"
    bars = [f" {n}%|#| {n}/100 [00:{n:02d}<00:50,  1.00s/it]" for n in range(1, 40)]
    log.write_text("\n".join(f"{{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1}}\n{bar}" for bar in bars))
    paths = {"accelerator": "cluster.accelerator", "count": "cluster.count", "model": "model"}
    said = [f"{paths.get(name, f'workload.{name}')}={value}" for name, value in PLAN.items()]
    assert main(["measure", "add", str(log), *(part for each in said for part in ("--set", each))]) == 0
    (row,) = list_runs(HistoryRequest.model_validate({})).runs
    assert row.platform == "8 x h100-sxm"
    assert row.tokens_per_s_per_device == pytest.approx(8192 * 16 / 8 / (row.step_s or 0.0))
    assert row.expected_tokens_per_s_per_device == pytest.approx(expected() / 8)
    assert main(["measure", "add", str(log), "--set", "workload.seq_len=long"]) != 0


def test_runs_are_listed_alone_by_their_names() -> None:
    ids = store.add(
        [MeasuredRun(kind="training", plan={}, figures={"step_s": float(at)}, name=f"run-{at}") for at in (1, 2, 3)]
    )
    assert [row.id for row in list_runs(HistoryRequest.model_validate({"runs": ["run-1", ids[2]]})).runs] == [
        ids[0],
        ids[2],
    ]
    with pytest.raises(PlanError, match="no run"):
        list_runs(HistoryRequest.model_validate({"runs": ["run-9"]}))


def test_a_run_is_rated_when_its_config_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fields = {"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
              "num_attention_heads": 8, "vocab_size": 1000}  # fmt: skip
    Path("mine.json").write_text(json.dumps(fields))
    Path("train.log").write_text("".join(f"step {at} loss 2.5 tokens/s 10000\n" for at in range(20)))
    words = ["--model", "mine.json", "--accelerator", "h100", "--count", "1", "--seq-len", "512", "--global-batch", "8"]
    assert main(["measure", "add", "train.log", *words]) == 0
    Path("mine.json").unlink()
    (row,) = list_runs(HistoryRequest.model_validate({})).runs
    assert (row.model, row.error is None) == ("mine", False)
    assert rate_run(RateRequest.model_validate({"run": row.id})).tokens_per_s == pytest.approx(10_000.0)
