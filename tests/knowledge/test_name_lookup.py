from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from estimator.errors import PlanError
from knowledge.machines.catalogue import accelerators, aliases, find_accelerator
from knowledge.models.catalogue import architecture, find_architecture, find_model, models

MODELS = {
    "llama 3 70b": "meta-llama/Meta-Llama-3-70B",
    "llama3.1 8b instruct": "meta-llama/Llama-3.1-8B",
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "  LLAMA3.1-8B ": "meta-llama/Llama-3.1-8B",
    "Llama 3.3 70B": "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen2.5-7B-Instruct": "Qwen/Qwen2.5-7B",
    "qwen 2.5 7b": "Qwen/Qwen2.5-7B",
    "mixtral 8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "deepseek v3": "deepseek-ai/DeepSeek-V3",
    "deepseek r1": "deepseek-ai/DeepSeek-R1",
    "gpt-oss 20b": "openai/gpt-oss-20b",
    "phi 3 mini": "microsoft/Phi-3-mini-4k-instruct",
    "phi-4": "microsoft/phi-4",
    "command r": "CohereForAI/c4ai-command-r-v01",
    "command r+": "CohereForAI/c4ai-command-r-plus",
    "bloom 7b1": "bigscience/bloom-7b1",
    "gpt2": "openai-community/gpt2",
    "pythia 1.4 b": "EleutherAI/pythia-1.4b",
    "glm 4.5 air": "zai-org/GLM-4.5-Air",
}
MODELS_SAID = {
    "lama 3.1 8b": "meta-llama/Llama-3.1-8B",
    "qwn2.5-7b": "Qwen/Qwen2.5-7B",
    "mitsral 7b v0.3": "mistralai/Mistral-7B-v0.3",
    "gemma 9b": "google/gemma-2-9b",
    "qwen3 235b": "Qwen/Qwen3-235B-A22B",
    "NousResearch/Meta-Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "llama 13b": "huggyllama/llama-13b",
}
MODELS_AMBIGUOUS = ["llama 70b", "llama 8b", "llama 3.1", "gemma 2", "llama 4", "mistral small", "qwen 32b", "mixtral"]
MODELS_UNKNOWN = ["Llama-3.1-9B", "llama 3.1 80b", "gpt-4", "claude", "70b", "!!!", "", "qwen2.5-8b", "mixtral 8x8b"]

ACCELERATORS = {
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "H100 PCIe": "h100-pcie",
    "h100 nvl": "h100-nvl",
    "4090": "rtx-4090",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "3090": "rtx-3090",
    "3090 ti": "rtx-3090-ti",
    "4080 super": "rtx-4080-super",
    "l40": "l40",
    "l40s": "l40s",
    "A10": "a10",
    "A10G": "a10g",
    "v5e": "tpu-v5e",
    "TPU v5p": "tpu-v5p",
    "trillium": "tpu-v6e",
    "ironwood": "tpu-v7",
    "trn2": "trainium2",
    "gaudi 3": "gaudi3",
    "H800": "h800-sxm",
    "B100": "b100",
    "gb200": "gb200",
    "Tesla V100-SXM2-32GB": "v100-sxm-32gb",
    "m3 max": "apple-m3-max",
    "AMD Instinct MI300X": "mi300x",
}
ACCELERATORS_SAID = {
    "h100": "h100-sxm",
    "H1OO": "h100-sxm",
    "a100 80g": "a100-sxm-80gb",
    "mi300": "mi300x",
    "b200": "b200-sxm",
    "gaudy 3": "gaudi3",
    "rtx 4060 ti": "rtx-4060-ti-16gb",
}
ACCELERATORS_AMBIGUOUS = ["a100", "v100", "gh200", "gaudi", "trainium", "v100 sxm", "xeon"]
ACCELERATORS_UNKNOWN = [
    "4060", "5070", "4070 super", "a100x", "rtx 6000", "h100 40gb", "h300", "a1000", "8xh100", "80gb", "gpu", "", "??",
]  # fmt: skip


@pytest.mark.parametrize(("name", "id"), MODELS.items())
def test_a_plain_name_means_one_model(name: str, id: str) -> None:
    assert find_model(name).value.id == id


@pytest.mark.parametrize(("name", "id"), MODELS_SAID.items())
def test_a_vague_model_name_is_read_aloud(name: str, id: str) -> None:
    found = find_model(name)
    assert found.value.id == id
    assert found.note is not None
    assert id in found.note
    assert find_architecture(name)[1] == found.note
    assert architecture(name).notes[0] == found.note


@pytest.mark.parametrize("name", MODELS_AMBIGUOUS)
def test_an_ambiguous_model_name_lists_the_candidates(name: str) -> None:
    with pytest.raises(PlanError, match="is ambiguous") as caught:
        find_model(name)
    assert caught.value.field == "model"
    assert len(caught.value.valid) > 1
    assert all(find_model(id).value.id == id for id in caught.value.valid)


@pytest.mark.parametrize("name", MODELS_UNKNOWN)
def test_an_unknown_model_name_lists_near_ones(name: str) -> None:
    with pytest.raises(PlanError) as caught:
        find_model(name)
    assert caught.value.field == "model"
    assert caught.value.valid


def test_the_nearest_names_come_first() -> None:
    with pytest.raises(PlanError) as caught:
        find_model("Llama-3.1-9B")
    assert "meta-llama/Llama-3.1-8B" in caught.value.valid[:3]


@pytest.mark.parametrize(("name", "id"), ACCELERATORS.items())
def test_a_plain_name_means_one_accelerator(name: str, id: str) -> None:
    assert find_accelerator(name).value.id == id


@pytest.mark.parametrize(("name", "id"), ACCELERATORS_SAID.items())
def test_a_vague_accelerator_name_is_read_aloud(name: str, id: str) -> None:
    found = find_accelerator(name)
    assert found.value.id == id
    assert found.note is not None
    assert found.value.name in found.note


def test_what_else_it_could_be_is_said() -> None:
    said = find_accelerator("h100").note
    assert said is not None
    assert "h100-pcie" in said
    assert "h100-nvl" in said


@pytest.mark.parametrize("name", ACCELERATORS_AMBIGUOUS)
def test_an_ambiguous_accelerator_lists_the_candidates(name: str) -> None:
    with pytest.raises(PlanError, match="is ambiguous") as caught:
        find_accelerator(name)
    assert caught.value.field == "cluster.accelerator"
    assert len(caught.value.valid) > 1


@pytest.mark.parametrize("name", ACCELERATORS_UNKNOWN)
def test_an_unknown_accelerator_is_never_replaced(name: str) -> None:
    with pytest.raises(PlanError) as caught:
        find_accelerator(name)
    assert caught.value.field == "cluster.accelerator"
    assert caught.value.valid


def test_every_id_and_alias_finds_its_own_row() -> None:
    for row in models():
        for name in (row.id, row.id.upper(), *row.aliases):
            found = find_model(name)
            assert (found.value.id, found.note) == (row.id, None)
    for device in accelerators():
        assert find_accelerator(device.id).note is None
        for name in (device.id, device.name, *aliases(device.id)):
            assert find_accelerator(name).value.id == device.id


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=40))
@example("a/b/c")
@example("\0")
@example("x" * 5000)
@example("~root/config.json")
@example("~nobody-such-user/x")
@example("../..")
@example("lla.ma-3..1")
@example("²³b")
def test_any_text_gives_an_answer_or_a_plan_error(text: str) -> None:
    for look_up in (find_model, find_accelerator, architecture):
        with contextlib.suppress(PlanError):
            assert look_up(text)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([row.id for row in models()]), st.data())
def test_a_changed_number_is_never_forgiven(id: str, data: st.DataObject) -> None:
    """Whatever digit is changed in a name: it is unknown, ambiguous or another row that has that very number."""
    tail = id.rpartition("/")[2]
    places = [i for i, letter in enumerate(tail) if letter.isdigit()]
    if not places:
        return
    at = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([d for d in "123456789" if d != tail[at]]))
    changed = tail[:at] + digit + tail[at + 1 :]
    try:
        found = find_model(changed).value.id
    except PlanError:
        return
    assert found != id
