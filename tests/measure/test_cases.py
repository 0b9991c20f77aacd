"""The transcription: every row becomes a Plan or says why not, and what it says about itself agrees."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import yaml

import knowledge
from estimator.plan.schema import Plan
from measure.history.training import RAN_OUT, Case, memory_cases, plan_data, training_cases

FOLDER = Path(knowledge.__file__).parent / "measurements"


def cases() -> list[Case]:
    return training_cases() + memory_cases()


def scored(kind_cases: list[Case]) -> list[Case]:
    return [case for case in kind_cases if case.reason_unscored is None]


def find(kind_cases: list[Case], name: str) -> Case:
    return next(case for case in kind_cases if case.id == name)


def test_ids_are_unique_and_each_case_has_a_source_and_a_reference():
    for group in (training_cases(), memory_cases()):
        assert len({case.id for case in group}) == len(group)
    assert all(case.source and case.reference for case in cases())


def test_enough_runs_are_scored_from_enough_sources():
    training, memory = scored(training_cases()), scored(memory_cases())
    assert len(training) >= 1700
    assert len({case.source for case in training}) >= 25
    assert len(memory) >= 200
    assert len({case.source for case in memory}) >= 12


def test_every_case_has_a_plan_or_a_reason():
    assert all(case.plan is not None or case.reason_unscored for case in cases())


def test_plans_survive_a_round_trip():
    for case in cases():
        if case.plan is not None:
            assert Plan.parse(case.plan.given()) == case.plan


def test_scored_plans_are_complete_and_multiply_out():
    for case in scored(training_cases()):
        assert case.plan is not None
        workload, layout, cluster = case.plan.training, case.plan.layout, case.plan.cluster
        assert cluster.accelerator
        assert workload.seq_len
        assert workload.micro_batch
        assert workload.global_batch
        sizes = (layout.tp or 1) * (layout.pp or 1) * (layout.cp or 1) * (layout.dp or 1)
        assert sizes == cluster.count, case.id
        assert workload.global_batch % (workload.micro_batch * (layout.dp or 1)) == 0, case.id


def test_scored_runs_have_one_consistent_measurement():
    for case in scored(training_cases()):
        assert case.plan is not None
        rate, step = case.observed["tokens_per_s_per_device"], case.observed["step_s"]
        assert rate
        assert step
        tokens = (case.plan.training.global_batch or 0) * (case.plan.training.seq_len or 0)
        assert rate * step * (case.plan.cluster.count or 0) == pytest.approx(tokens, rel=0.05), case.id


def test_scored_peaks_are_bytes_of_one_device():
    for case in scored(memory_cases()):
        peak = case.observed["peak_bytes"]
        assert peak is not None
        assert 1e9 < peak < 300e9, case.id


def test_runs_out_of_memory_are_kept_apart_with_their_plan():
    ran_out = [case for case in memory_cases() if case.reason_unscored == RAN_OUT]
    assert len(ran_out) >= 5
    assert all(case.observed["out_of_memory"] and case.observed["peak_bytes"] is None for case in ran_out)
    assert all(case.plan is not None for case in ran_out)


def test_doubtful_rows_are_never_scored():
    for name, group in (("training", training_cases()), ("memory", memory_cases())):
        with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            doubted = {row["id"] for row in csv.DictReader(file) if row["doubt"]}
        assert len(doubted) > 50
        assert not doubted & {case.id for case in scored(group)}


def test_a_megatron_bridge_row_reads_as_its_table_says():
    case = find(training_cases(), "mbridge-26.08-gb300-deepseekv3-pretrain-256x-mxfp8-mbs1-gbs4096")
    assert case.plan is not None
    assert case.plan.model == "deepseek-ai/DeepSeek-V3"
    workload, layout = case.plan.training, case.plan.layout
    assert (workload.framework, workload.software_version, workload.precision) == ("megatron-bridge", "26.08", "mxfp8")
    assert (layout.tp, layout.pp, layout.vpp, layout.dp, layout.ep) == (1, 2, 8, 128, 32)
    assert case.observed["tokens_per_s_per_device"] == 6288
    assert "balanced_experts" in case.tags


def test_a_proxy_is_its_own_model():
    case = find(training_cases(), "dgxc-v24.11.1-llama31405b-pretrain-full-h100-96x-bf16-gbs126")
    assert case.plan is not None
    assert isinstance(case.plan.model, dict)
    assert case.plan.model["num_hidden_layers"] == 21
    assert case.observed["tokens_per_s_per_device"] == pytest.approx(117965 / 96, rel=1e-4)


def test_units_of_memory_follow_the_source():
    decimal = find(memory_cases(), "litgpt-rt-phi-1-5-lora-none-mb1-1x")
    binary = find(memory_cases(), "simumax-b200-llama3-70b-tp2-pp1-dp4-l12-mbc4-cef")
    assert decimal.observed["peak_bytes"] == 4.82e9
    assert binary.observed["peak_bytes"] == pytest.approx(62136.4 * 2**20, rel=1e-3)


def test_a_row_becomes_a_plan_with_its_own_cells_and_no_others():
    architectures = {"small": {"hidden_size": 8}}
    row = {
        "id": "r", "model": "small", "devices": "16", "seq_len": "128", "tp": "2", "compile": "true",
        "sequence_parallel": "false", "lora_rank": "8", "recompute": "block:3",
    }  # fmt: skip
    plan = Plan.parse(plan_data(row, architectures))
    assert plan.model == {"hidden_size": 8, "_name_or_path": "small"}
    assert plan.training.compile
    assert plan.training.lora.rank == 8
    assert plan.layout.sequence_parallel is False
    assert plan.layout.recompute == "block:3"
    assert plan.layout.dp is None


def test_every_inline_model_is_used_and_says_its_source():
    entries = yaml.safe_load((FOLDER / "architectures.yaml").read_text(encoding="utf-8"))
    used = {case.plan.model["_name_or_path"] for case in cases() if case.plan and isinstance(case.plan.model, dict)}
    assert used == set(entries)
    assert all(entry["source"] and entry["fields"]["hidden_size"] > 0 for entry in entries.values())


def test_the_trust_table_names_known_sources_and_covers_what_is_scored():
    trust = yaml.safe_load((FOLDER / "sources.yaml").read_text(encoding="utf-8"))
    counted = {case.source for case in scored(training_cases())} | {case.source for case in scored(memory_cases())}
    large = {name for name in counted if sum(case.source == name for case in scored(cases())) >= 10}
    assert large <= set(trust)
    assert all(0 < entry["noise"] < 0.5 for entry in trust.values())


def test_the_folder_stays_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3_700_000
