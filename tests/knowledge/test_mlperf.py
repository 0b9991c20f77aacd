from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from knowledge.mlperf import Lengths, benchmark, benchmarks, loadgen_name, samples_of_run
from knowledge.models.catalogue import find_model


@pytest.mark.parametrize("id", list(benchmarks()))
def test_every_entry_is_sane(id: str) -> None:
    bench = benchmarks()[id]
    assert find_model(bench.model).value.id == bench.model, "the catalogue knows the model by this very id"
    assert bench.source
    assert set(bench.limits) <= set(bench.loadgen) <= {"server", "interactive", "offline", "single-stream"}
    assert "offline" in bench.loadgen
    assert bench.rounds[1] is None or float(bench.rounds[0]) <= float(bench.rounds[1])
    for lengths in (bench.input, bench.output):
        _check_lengths(lengths)
    for limits in bench.limits.values():
        assert (limits.ttft_ms is None) == (limits.tpot_ms is None)
        assert limits.e2e_ms or (limits.ttft_ms and limits.tpot_ms)
        assert float(limits.since) >= float(bench.rounds[0])


def _check_lengths(lengths: Lengths) -> None:
    assert 0 < lengths.mean <= lengths.most
    known = [value for value in (lengths.p50, lengths.p90, lengths.p99, lengths.most) if value is not None]
    assert known == sorted(known)
    assert lengths.sd is None or lengths.sd < lengths.most


def test_interactive_is_tighter_than_server() -> None:
    both = [bench.limits for bench in benchmarks().values() if {"server", "interactive"} <= set(bench.limits)]
    assert len(both) == 5
    for limits in both:
        for field in ("ttft_ms", "tpot_ms"):
            assert getattr(limits["interactive"], field) < getattr(limits["server"], field)


def test_limits_and_sets_of_the_rules() -> None:
    # mlcommons/inference loadgen/mlperf.conf.
    table = {
        "llama2-70b": (24576, 2000, 200),
        "llama3.1-8b": (13368, 2000, 100),
        "llama3.1-405b": (8313, 6000, 175),
        "mixtral-8x7b": (15000, 2000, 200),
        "deepseek-r1": (4388, 2000, 80),
        "gpt-oss-120b": (6396, 3000, 80),
    }
    for id, (samples, ttft, tpot) in table.items():
        bench = benchmark(id)
        server = bench.limits["server"]
        assert (bench.samples, server.ttft_ms, server.tpot_ms) == (samples, ttft, tpot)
    assert benchmark("gpt-j").limits["server"].e2e_ms == 20_000
    assert benchmark("gpt-j").beams == 4


def test_other_names() -> None:
    assert benchmark("Llama3_1-8B").id == "llama3.1-8b"
    assert benchmark(" llama2-70b-99.9 ") is benchmark("llama2-70b")
    assert loadgen_name(benchmark("llama3.1-8b"), "interactive") == "llama3_1-8b-interactive"
    assert loadgen_name(benchmark("llama3.1-405b"), "server") == "llama3_1-405b"


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(PlanError) as caught:
        benchmark("llama3-8b")
    assert caught.value.field == "benchmark"
    assert "llama3.1-8b" in caught.value.valid
    with pytest.raises(PlanError) as caught:
        loadgen_name(benchmark("mixtral-8x7b"), "interactive")
    assert caught.value.valid == ["server", "offline"]
    with pytest.raises(PlanError, match="samples_per_s"):
        samples_of_run(benchmark("llama2-70b"), "offline", math.nan)
    with pytest.raises(PlanError, match="min_duration_s"):
        samples_of_run(benchmark("llama2-70b"), "offline", 1, 0)


@pytest.mark.parametrize(
    ("id", "scenario", "target_qps", "duration", "issued"),
    [
        # generated_samples_per_query and generated_query_count of submitted logs (MLPerf Inference v5.1 and v4.1).
        ("llama2-70b", "offline", 376, 2400, 1_007_616),
        ("llama2-70b", "server", 364, 2400, 884_736),
        ("llama2-70b", "server", 71.2, 2400, 172_032),
        ("llama2-70b", "interactive", 23, 1200, 49_152),
        ("llama2-70b", "offline", 116, 2400, 319_488),
        ("llama3.1-8b", "offline", 360, 2400, 962_496),
        ("llama3.1-405b", "offline", 2.18, 600, 8313),
        ("llama3.1-405b", "server", 0.91, 600, 8313),
        ("gpt-j", "server", 279.36, 600, 173_784),
    ],
)
def test_samples_of_submitted_runs(id: str, scenario: str, target_qps: float, duration: float, issued: int) -> None:
    assert samples_of_run(benchmark(id), scenario, target_qps, duration) == issued


@given(
    id=st.sampled_from(sorted(benchmarks())),
    rate=st.floats(1e-3, 1e5),
    duration=st.floats(1, 1e5),
)
def test_runs_are_whole_passes_and_long_enough(id: str, rate: float, duration: float) -> None:
    bench = benchmark(id)
    for scenario in bench.loadgen:
        samples = samples_of_run(bench, scenario, rate, duration)
        assert samples % bench.samples == 0
        assert samples >= max(bench.samples, rate * duration * (1 - 1e-12))
        assert samples_of_run(bench, scenario, rate * 2, duration) >= samples
