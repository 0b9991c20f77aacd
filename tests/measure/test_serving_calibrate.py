"""What is written of a fit of serving runs, and that the file is such a fit's."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from measured_serving import PLACES, made, truth

from estimator.serving.estimates import estimate
from knowledge.data_files import document
from knowledge.engines import engines_known, kernels_of
from knowledge.fitted.serving import ENGINE, SHARED, SPREADS
from knowledge.machines.catalogue import find_accelerator
from measure.fit.serving import calibrate as serving_calibrate
from measure.fit.serving.calibrate import calibrated, main
from measure.fit.serving.factors import DEVICE_FACTORS, ENGINE_FACTORS, figures, observations, runs_of
from measure.history.serving import METRICS, serving_cases

SPREAD: dict[tuple[str, Any], float] = {("default", metric): 0.5 for metric in METRICS} | {("vllm", "tpot"): 0.1234}


def made_up() -> dict[str, Any]:
    runs = runs_of(made(truth(decode=1.23456)))
    return calibrated(truth(decode=1.23456), runs, observations(runs), SPREAD)


def test_every_engine_and_every_family_that_was_measured_has_an_entry() -> None:
    found = made_up()
    assert set(found["engines"]) == {"default", *engines_known()}
    assert set(found["devices"]) == {"default", "Hopper", "Ampere", "Blackwell"}
    for row in found["engines"].values():
        assert set(row) == {*SHARED, *ENGINE, *SPREADS, "figures", "runs", "source"}
    for row in found["devices"].values():
        assert set(row) == {*SHARED, "figures", "runs", "source"}


def test_figures_and_runs_behind_an_entry_are_counted() -> None:
    found = made_up()
    counted = Counter(engine for engine, _, _ in PLACES)
    for name, row in found["engines"].items():
        assert row["runs"] == 4 * counted[name]
        assert row["figures"] == 12 * counted[name]
        assert row["source"] == ("made up" if counted[name] else "")
    assert found["devices"]["Hopper"]["runs"] == 12
    assert found["engines"]["default"]["runs"] == 0


def test_numbers_are_rounded_and_what_was_not_measured_has_what_all_share() -> None:
    found = made_up()
    assert found["engines"]["vllm"]["decode"] == 1.23
    for name in (*SHARED, *ENGINE):
        assert found["engines"]["mlc"][name] == found["engines"]["default"][name]
    assert found["engines"]["vllm"]["tpot_spread"] == 0.123
    assert found["engines"]["vllm"]["ttft_spread"] == 0.5
    assert found["unmeasured"] == dict.fromkeys(SPREADS, 0.5)


def test_main_writes_the_file_whole_and_says_how_much_is_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = runs_of(made(truth()))
    seen = observations(runs)
    path = tmp_path / "serving_factors.yaml"
    monkeypatch.setattr(serving_calibrate, "_FILE", path)
    monkeypatch.setattr(serving_calibrate, "everything", lambda: (runs, seen, truth()))
    monkeypatch.setattr(serving_calibrate, "missed", list)
    monkeypatch.setattr(serving_calibrate, "spreads", lambda _: SPREAD)
    assert main() == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Fitted factors of serving engines")
    assert yaml.safe_load(text) == calibrated(truth(), runs, seen, SPREAD)
    assert list(tmp_path.iterdir()) == [path]
    assert f"{len(seen)} figures of 20 runs of 1 sources" in capsys.readouterr().out


def test_the_file_is_of_the_engines_and_families_that_the_measurements_have() -> None:
    kept = document("../serving_factors.yaml")
    scored = [one for one in serving_cases() if one.reason_unscored is None and one.plan is not None]
    engines = Counter(one.plan.inference.engine for one in scored if one.plan)
    families = Counter(_family(one.plan.cluster.accelerator or "") for one in scored if one.plan)
    assert set(kept["engines"]) == {"default", *engines_known()}
    for name, row in kept["engines"].items():
        # Few rows name a layout that their engine does not have.
        assert 0.8 * engines[name] - 1 <= row["runs"] <= engines[name], name
        assert row["runs"] <= row["figures"] <= 3 * row["runs"]
        assert bool(row["source"]) == bool(row["runs"])
    assert {name for name, count in families.items() if count > 5} <= set(kept["devices"]) <= {"default", *families}
    for name, row in kept["devices"].items():
        assert row["runs"] <= families[name]


def _family(accelerator: str) -> str:
    return kernels_of(find_accelerator(accelerator).value.family)


def test_the_file_s_numbers_are_within_the_bounds_of_the_fit() -> None:
    kept = document("../serving_factors.yaml")
    for rows, factors in ((kept["engines"], ENGINE_FACTORS), (kept["devices"], DEVICE_FACTORS)):
        for name, row in rows.items():
            for factor in factors:
                assert factor.low * 0.99 <= row[factor.name] <= factor.high * 1.01, (name, factor.name)
    for row in (*kept["engines"].values(), kept["unmeasured"]):
        assert all(0.05 < row[name] < 3.0 for name in SPREADS)


def test_factors_are_few_beside_the_figures_behind_them() -> None:
    kept = document("../serving_factors.yaml")
    measured_engines = [row for name, row in kept["engines"].items() if row["runs"] or name == "default"]
    factors = len(measured_engines) * len(ENGINE_FACTORS) + len(kept["devices"]) * len(DEVICE_FACTORS)
    figures_behind = sum(row["figures"] for row in kept["engines"].values())
    assert figures_behind == sum(row["figures"] for row in kept["devices"].values())
    assert factors < 150
    assert figures_behind > 25 * factors


def test_a_sample_of_the_runs_is_estimated_as_well_as_the_file_says() -> None:
    scored = [one for one in serving_cases() if one.reason_unscored is None]
    runs = runs_of(scored[::25])
    said = [figures(estimate(run.job, run.these)) for run in runs]
    errors: dict[str, list[float]] = {metric: [] for metric in METRICS}
    covered: dict[str, list[bool]] = {metric: [] for metric in METRICS}
    for one in observations(runs):
        error = abs(math.log(said[one.group][one.metric][one.entry] / one.value))
        errors[one.metric].append(error)
        covered[one.metric].append(error <= math.log1p(getattr(runs[one.group].job.factors, f"{one.metric}_spread")))
    for metric, limit in (("throughput", 0.25), ("tpot", 0.25), ("ttft", 0.6)):
        assert len(errors[metric]) > 15, metric
        assert np.median(errors[metric]) < limit, metric
        # Four in five are said; sources count by a root of their rows there, and rows here.
        assert np.mean(covered[metric]) > 0.65, metric
