"""Names as people write them: tags, files, shops' and clouds' names, and what is no language model with weights."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from estimator.errors import PlanError
from knowledge.data_files import document
from knowledge.machines.counted import find_devices
from knowledge.models.catalogue import find_model
from knowledge.models.known import architecture_row, checkpoints, models
from knowledge.models.naming import model_form
from knowledge.models.weight_formats import weight_formats

_FILE = Path(__file__).parents[1] / "data" / "names_written.csv"
_ROWS = list(csv.DictReader(line for line in _FILE.read_text(encoding="utf-8").splitlines() if line[0] != "#"))


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row["name"])
def test_names_mean_what_people_mean_by_them(row: dict[str, str]) -> None:
    wanted = row["expected"].split("|")
    if wanted == ["!"]:
        with pytest.raises(PlanError) as refused:
            find_model(row["name"]) if row["kind"] == "model" else find_devices(row["name"])
        assert "there is no" not in refused.value.problem, "refused for what it is, not as unknown"
        return
    if wanted == ["-"]:
        with pytest.raises(PlanError, match=r"there is no|ambiguous"):
            find_model(row["name"]) if row["kind"] == "model" else find_devices(row["name"])
        return
    if row["kind"] == "device":
        found = find_devices(row["name"])
        assert found.match.value.id in wanted or f"{found.match.value.id}*{found.count}" in wanted
        return
    if wanted == ["?"]:
        with pytest.raises(PlanError, match="ambiguous"):
            find_model(row["name"])
        return
    assert find_model(row["name"]).value.id in wanted


def _names() -> list[tuple[str, str]]:
    tails = [(facts.id, facts.id.rpartition("/")[2]) for facts in (*models(), *checkpoints())]
    # Tails that several makers have are told apart by the maker alone.
    return [(id, tail) for id, tail in tails if sum(other.casefold() == tail.casefold() for _, other in tails) == 1]


def _architecture(name: str) -> str:
    """The row that a name leads to; what is wrong with it where it leads to none."""
    try:
        return architecture_row(find_model(name).value.id)
    except PlanError as error:
        return error.problem


@pytest.mark.parametrize("written", [str.lower, lambda tail: tail.lower().replace("-", " "), lambda tail: f"X/{tail}"])
def test_the_name_of_every_checkpoint_is_found_however_it_is_parted(written) -> None:
    # A dash between two numbers is no other mark's place: neural-chat-7b-v3-3.
    names = [(id, written(tail)) for id, tail in _names() if not re.search(r"\d-\d(?!\d)(-|$)", tail)]
    wrong = [(name, _architecture(name)) for id, name in names if _architecture(name) != architecture_row(id)]
    assert len(wrong) <= 2, wrong  # GLM-4-9B is two architectures under one name


def test_the_kind_of_a_file_does_not_hide_its_format() -> None:
    words = document("name_words.yaml")
    for container, usual in words["containers"].items():
        assert find_model(f"Qwen2.5-7B-Instruct-{container}").value.weight_format == usual
        for written, held in words["formats"].items():
            name = f"Qwen2.5-7B-Instruct-{container}:{written}"
            assert model_form(name).formats == {held}, name


def test_every_kind_of_gguf_file_is_read_in_its_name() -> None:
    for kind in weight_formats():
        if re.fullmatch(r"i?q\d_\w+", kind):
            assert find_model(f"Qwen3-8B-{kind.upper()}.gguf").value.weight_format == kind


def test_of_versions_that_cost_the_same_the_newest_is_meant() -> None:
    assert find_model("devstral small").value.id == "mistralai/Devstral-Small-2507"
    assert find_model("magistral small").value.id == "mistralai/Magistral-Small-2509"


def test_a_version_may_have_a_dash_for_its_point() -> None:
    for id, tail in _names():
        if re.search(r"(?<![\d.])\d\.\d(?![\d.a-z_])", tail.lower()) and "_" not in tail:
            name = re.sub(r"(?<![\d.])(\d)\.(\d)(?![\d.a-z_])", r"\1-\2", tail.lower())
            assert _architecture(name) == architecture_row(id), name


@pytest.mark.parametrize(
    ("apart", "joined"), [("tiny llama", "tinyllama"), ("star coder 2 15b", "starcoder2 15b"), ("gptj", "gpt-j")]
)
def test_words_may_be_parted_or_joined(apart: str, joined: str) -> None:
    assert find_model(apart).value.id == find_model(joined).value.id


def test_dense_and_moe_are_never_taken_for_one_another() -> None:
    assert find_model("phi 3.5 moe").value.id == "microsoft/Phi-3.5-MoE-instruct"
    assert find_model("granite3.1-dense:8b").value.id == "ibm-granite/granite-3.1-8b-instruct"
    for name in ("mixtral 8x7b dense", "llama 8b moe"):
        with pytest.raises(PlanError, match=r"is (dense|a mixture of experts)"):
            find_model(name)
