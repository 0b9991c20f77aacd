"""Batch and length of the maker's own run are the default, and said."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.plan.schema import Plan
from knowledge.data_files import document
from knowledge.jobs.training import job_of
from knowledge.models.catalogue import find_architecture
from knowledge.recipes import usual_tokens


def job(model: str, count: int, **workload: Any):
    plan = {"model": model, "cluster": {"accelerator": "h100-sxm", "count": count}}
    return job_of(Plan.parse(plan | {"workload": {"kind": "training", "stage": "pretrain", **workload}}))


def test_every_recipe_is_of_a_model_of_the_catalogue_and_names_its_source():
    for rows in document("recipes.yaml").values():
        for row in rows:
            assert row["source"]
            for model in row["models"]:
                architecture, _ = find_architecture(model)
                assert architecture.id == model
                assert not architecture.context or row.get("seq_len", 0) <= architecture.context


def test_tokens_are_the_makers_or_twenty_a_parameter():
    known, why = usual_tokens("meta-llama/Llama-3.1-405B", 405e9)
    assert known == 15.6e12
    assert "2407.21783" in why
    assert usual_tokens("acme/acme-1b", 1e9)[0] == 20e9


@pytest.mark.parametrize(
    ("model", "batch", "seq_len"), [("deepseek-v3", 15360, 4096), ("llama-3.1-405b", 2048, 8192), ("bloom", 2048, 2048)]
)
def test_pretraining_takes_the_makers_batch_and_length_and_says_so(model: str, batch: int, seq_len: int):
    made = job(model, 2048)
    assert (made.global_batch, made.seq_len) == (batch, seq_len)
    said = {each.field: each.why for each in made.assumptions}
    assert "as the model was trained" in said["workload.global_batch"]
    assert "as the model was trained" in said["workload.seq_len"]


def test_another_length_keeps_the_tokens_of_a_step():
    assert job("llama-3.1-405b", 2048, seq_len=4096).global_batch == 4096


def test_replicas_on_every_device_still_get_whole_sequences():
    made = job("deepseek-v3", 2048, framework="fsdp1")
    assert made.global_batch % 2048 == 0
