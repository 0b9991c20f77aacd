from __future__ import annotations

import contextlib
import re
from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from knowledge.machines.catalogue import accelerators, aliases, find_accelerator
from knowledge.models.catalogue import architecture, find_architecture, find_model
from knowledge.models.known import checkpoints, models

MODELS = {
    "llama 3 70b": "meta-llama/Meta-Llama-3-70B",
    "llama3.1 8b instruct": "meta-llama/Llama-3.1-8B-Instruct",
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "  LLAMA3.1-8B ": "meta-llama/Llama-3.1-8B",
    "Llama 3.3 70B": "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen2.5-7B-Instruct": "Qwen/Qwen2.5-7B-Instruct",
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
    "R1": "deepseek-ai/DeepSeek-R1",
    "V3": "deepseek-ai/DeepSeek-V3",
    "llama-2-70b": "meta-llama/Llama-2-70b-hf",
    "kimi k2.6": "moonshotai/Kimi-K2.6",
    "gemma 3 27b it": "google/gemma-3-27b-it",
    "qwen 2.5 coder 7b instruct": "Qwen/Qwen2.5-Coder-7B-Instruct",
    "Phi-3-mini-128k-instruct": "microsoft/Phi-3-mini-128k-instruct",
    "Qwen3-32B-AWQ": "Qwen/Qwen3-32B-AWQ",
    "deepseek-r1:70b": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    "DSv3": "deepseek-ai/DeepSeek-V3",
    "liquid lfm2 1.2b": "LiquidAI/LFM2-1.2B",
    "ChatGPT OSS 20B": "openai/gpt-oss-20b",
    "mixtral 8x22": "mistralai/Mixtral-8x22B-v0.1",
    "exaone 4 32b": "LGAI-EXAONE/EXAONE-4.0-32B",
}
MODELS_SAID = {
    "lama 3.1 8b": "meta-llama/Llama-3.1-8B",
    "qwn2.5-7b": "Qwen/Qwen2.5-7B",
    "mitsral 7b v0.3": "mistralai/Mistral-7B-v0.3",
    "gemma 9b": "google/gemma-2-9b",
    "qwen3 235b": "Qwen/Qwen3-235B-A22B",
    "NousResearch/Meta-Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "llama 13b": "huggyllama/llama-13b",
    "llama 70b": "meta-llama/Llama-3.1-70B",
    "llama 8b": "meta-llama/Llama-3.1-8B",
    "qwen 32b": "Qwen/Qwen3-32B",
    "70b": "meta-llama/Llama-3.1-70B",
    "gpt oss": "openai/gpt-oss-120b",
    "qwen3-235B-moe": "Qwen/Qwen3-235B-A22B",
    "Qwen3-30B-A3B-Instruct": "Qwen/Qwen3-30B-A3B-Instruct-2507",
    "mistral 7b v0.3 reasoning": "mistralai/Mistral-7B-v0.3",
    "llama 405": "meta-llama/Llama-3.1-405B",
    "oss 120b": "openai/gpt-oss-120b",
    "scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "magistral small": "mistralai/Magistral-Small-2509",
    "nemotron super 49b": "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5",
    "ISTA-DASLab/gemma-3-27b-it-GPTQ-4b-128g": "google/gemma-3-27b-it",
    "deepseek 70b": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
}
HELD = {
    "llama3.1:8b-instruct-q4_K_M": ("meta-llama/Llama-3.1-8B-Instruct", "q4_k_m"),
    "llama3.1:8b": ("meta-llama/Llama-3.1-8B-Instruct", "q4_k_m"),
    "gpt-oss:20b": ("openai/gpt-oss-20b", "mxfp4"),
    "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit": ("meta-llama/Llama-3.1-8B-Instruct", "int4"),
    "unsloth/Qwen3-30B-A3B-GGUF": ("Qwen/Qwen3-30B-A3B", "q4_k_m"),
    "Qwen2.5-7B-Instruct-Q5_K_M-00001-of-00002.gguf": ("Qwen/Qwen2.5-7B-Instruct", "q5_k_m"),
    "Qwen3-32B-FP8": ("Qwen/Qwen3-32B-FP8", "fp8_block"),
    "deepseek v3": ("deepseek-ai/DeepSeek-V3", "fp8_block"),
    "deepseek-ai/DeepSeek-V4-Pro": ("deepseek-ai/DeepSeek-V4-Pro", "fp8_mxfp4"),
    "moonshotai/Kimi-K2.5": ("moonshotai/Kimi-K2.5", "int4_experts"),
    "Qwen/Qwen2.5-7B": ("Qwen/Qwen2.5-7B", ""),
}
OTHER_MODELS = [
    "Hunyuan video", "bge-m3", "BAAI/bge-large-en-v1.5", "Qwen3-Embedding-8B", "Qwen3-Reranker-4B", "whisper large v3",
    "google-t5/t5-11b", "clip vit-l/14", "HunyuanVideo", "sentence-transformers/all-mpnet-base-v2",
    "stable diffusion xl", "FLUX.1-dev", "Hunyuan image 3", "jina-embeddings-v3", "bert base uncased", "Wan 2.2 video",
]  # fmt: skip
MODELS_AMBIGUOUS = ["llama 3.1", "gemma 2", "llama 4", "mistral small", "mixtral"]
MODELS_UNKNOWN = [
    "Llama-3.1-9B", "llama 3.1 80b", "gpt-4", "claude", "!!!", "", "qwen2.5-8b", "mixtral 8x8b", "GLM 5 air", "3",
    "qwen 4", "phi 5", "zorgmes 70b", "medical llama 8b", "llama guard 5 8b", "gemma 5 27b", "chat 3.1 80",
]  # fmt: skip

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
    "4070 Ti SUPER": "rtx-4070-ti-super",
    "4090 48G": "rtx-4090-48gb",
    "RTX 6000 Ada Generation": "rtx-6000-ada",
    "M4 Pro 48GB": "apple-m4-pro-48gb",
    "DGX Spark": "gb10-dgx-spark",
    "Strix Halo": "ryzen-ai-max-395-128gb",
    "HGX B300": "b300-sxm",
    "mac studio m3 ultra": "apple-m3-ultra",
    "M4 Max 128GB": "apple-m4-max",
    "Radeon AI PRO R9700": "radeon-ai-pro-r9700",
    "9070 XT": "rx-9070-xt",
    "H100 80GB HBM3 700W": "h100-sxm",
    "DGX A100 640GB": "a100-sxm-80gb",
}
ACCELERATORS_RENTED = {
    "p5.48xlarge": ("h100-sxm", "8 x"),
    "a3-ultragpu": ("h200-sxm", "8 x"),
    "ND H200 v5": ("h200-sxm", "8 x"),
    "trn1.32xlarge": ("trainium1", "16 x"),
    "v5p-256": ("tpu-v5p", "128 x"),
    "v6e-8": ("tpu-v6e", "8 x"),
}
ACCELERATORS_UNPLANNED = ["Ascend 910C", "Ascend 910B", "MI430X", "TPU 8t", "MI308X", "Tesla P40"]
ACCELERATORS_SAID = {
    "h100": "h100-sxm",
    "H1OO": "h100-sxm",
    "a100 80g": "a100-sxm-80gb",
    "mi300": "mi300x",
    "b200": "b200-sxm",
    "gaudy 3": "gaudi3",
    "a100": "a100-sxm-80gb",
    "nvl72": "gb200",
    "MacBook Pro M4 Max": "apple-m4-max",
    "rtx 4060 ti": "rtx-4060-ti-16gb",
    "gh200": "gh200-96gb",
    "gaudi": "gaudi3",
    "a100 80": "a100-sxm-80gb",
    "m5 max 128": "apple-m5-max",
}
ACCELERATORS_AMBIGUOUS = ["v100", "trainium", "v100 sxm", "xeon", "rtx 6000", "super"]
ACCELERATORS_UNKNOWN = [
    "4065", "5095", "4070 ultra", "2075 super", "a100z", "h100 40gb", "h300", "a1100", "8xh100", "80gb", "gpu", "",
    "??",
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


@pytest.mark.parametrize(("name", "expected"), HELD.items())
def test_a_name_says_what_the_weights_are_held_in(name: str, expected: tuple[str, str]) -> None:
    facts = find_model(name).value
    assert (facts.id, facts.weight_format) == expected
    built = find_architecture(name)[0]
    assert (built.id, built.weight_format) == expected


@pytest.mark.parametrize("name", OTHER_MODELS)
def test_what_is_no_language_model_is_refused_by_what_it_is(name: str) -> None:
    with pytest.raises(PlanError, match="only language models"):
        find_model(name)


def test_a_match_says_how_sure_it_is() -> None:
    exact, said, vague = (find_model(name) for name in ("Qwen/Qwen3-32B", "qwen3 32b fp8", "qwen 32b"))
    assert exact.score == 1 > said.score > vague.score > 0
    assert vague.runner_up in {row.id for row in models()}


def test_checkpoints_share_an_architecture_and_nothing_else() -> None:
    rows = {row.id: row for row in models()}
    everything = [facts.id for facts in (*rows.values(), *checkpoints())]
    names = {name.casefold() for id in everything for name in (id, id.rpartition("/")[2])}
    for facts in checkpoints():
        built, base = architecture(facts.id), architecture(facts.shares)
        assert facts.shares in rows
        assert facts.id not in rows
        assert (built.id, built.blocks, built.parameters) == (facts.id, base.blocks, base.parameters)
        assert facts.source
        assert re.fullmatch(r"2026-\d\d-\d\d", facts.as_of)
    for row in rows.values():
        own = {row.id.casefold(), row.id.rpartition("/")[2].casefold()}
        assert not names & {alias.casefold() for alias in row.aliases} - own, row.id


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from([facts.id for facts in checkpoints()]))
def test_the_last_part_of_a_checkpoint_with_spaces_is_that_checkpoint(id: str) -> None:
    """Never its base: what tuning or format was said is not dropped while a checkpoint has it."""
    found = find_model(id.rpartition("/")[2].replace("-", " ")).value
    meant = find_model(id).value
    same_name = found.id.rpartition("/")[2].casefold() == id.rpartition("/")[2].casefold()
    assert same_name or (found.shares or found.id) == meant.shares


@pytest.mark.parametrize("name", MODELS_AMBIGUOUS)
def test_an_ambiguous_model_name_lists_the_candidates(name: str) -> None:
    with pytest.raises(PlanError, match="is ambiguous") as caught:
        find_model(name)
    assert caught.value.field == "model"
    assert len(caught.value.valid) > 1
    assert all(find_model(id).value.id == id for id in caught.value.valid)


@pytest.mark.parametrize("name", MODELS_UNKNOWN)
def test_an_unknown_model_name_lists_near_ones_or_says_how_to(name: str) -> None:
    with pytest.raises(PlanError) as caught:
        find_model(name)
    assert caught.value.field == "model"
    if "there is no model" in caught.value.problem:
        assert bool(caught.value.valid) != ("none like it: `shardwise models WORD`" in caught.value.problem)


@pytest.mark.parametrize("name", ["nothere", "zzqx/nothere", "xyzzy-70b", "foobar-9b"])
def test_names_with_a_size_alone_in_common_are_not_near(name: str) -> None:
    with pytest.raises(PlanError, match="none like it") as caught:
        find_model(name)
    assert not caught.value.valid


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


@pytest.mark.parametrize(("name", "expected"), ACCELERATORS_RENTED.items())
def test_what_clouds_rent_names_its_accelerator(name: str, expected: tuple[str, str]) -> None:
    match = find_accelerator(name)
    assert match.value.id == expected[0]
    assert match.note is not None
    assert expected[1] in match.note


@pytest.mark.parametrize("name", ACCELERATORS_UNPLANNED)
def test_a_device_of_which_too_little_is_known_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(PlanError, match="cannot be planned for: "):
        find_accelerator(name)


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
    assert bool(caught.value.valid) != ("none like it: `shardwise hardware WORD`" in caught.value.problem)


def test_every_id_and_alias_finds_its_own_row() -> None:
    for row in models():
        for name in (row.id, row.id.upper(), *row.aliases):
            found = find_model(name)
            assert (found.value.id, found.note) == (row.id, None)
    for device in accelerators():
        assert find_accelerator(device.id).note is None
        for name in (device.id, device.name, *aliases(device.id)):
            assert find_accelerator(name).value.id == device.id


@settings(max_examples=examples(80), deadline=None)
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


@settings(max_examples=examples(80), deadline=None)
@given(st.sampled_from([row.id for row in models()]), st.data())
def test_a_changed_number_is_never_forgiven(id: str, data: st.DataObject) -> None:
    """Whatever digit is changed in a name: it is unknown, ambiguous or another row that has that very number."""
    tail = id.rpartition("/")[2]
    places = [i for i, letter in enumerate(tail) if letter.isdigit()]
    if not places:
        return
    at = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([d for d in "123456789" if d != tail[at]]))
    assert not is_found_by(tail[:at] + digit + tail[at + 1 :], id)


def test_a_number_that_is_changed_to_one_beside_it_is_never_forgiven() -> None:
    """Llama-3.1-Nemotron-Nano-4B-v3.1 is no Llama-3.1-Nemotron-Nano-4B-v1.1, though it says no other number."""
    tails = {row.id: row.id.rpartition("/")[2] for row in models()}
    numbers = {
        id: list(re.finditer(r"(?<![a-z0-9.])v?(\d+(?:\.\d+)?)(?![\w.])", tail, re.I)) for id, tail in tails.items()
    }
    changed = [
        (tails[id][: one.start(1)] + other[1] + tails[id][one.end(1) :], id)
        for id, found in numbers.items()
        for one, other in permutations(found, 2)
        if one[1] != other[1]
    ]
    assert len(changed) > 20
    assert [(name, id) for name, id in changed if is_found_by(name, id)] == []


def is_found_by(name: str, id: str) -> bool:
    try:
        return find_model(name).value.id == id
    except PlanError:
        return False


@pytest.mark.parametrize("maker", ["Cerebras", "AMD", "Apple"])
def test_a_makers_name_alone_is_answered_with_its_own_devices(maker: str) -> None:
    with pytest.raises(PlanError) as refused:
        find_accelerator(maker)
    assert refused.value.valid
    assert {find_accelerator(str(id)).value.vendor for id in refused.value.valid} == {maker}


def test_a_copy_of_unknown_name_is_taken_for_the_model_that_its_name_holds_and_it_is_said() -> None:
    match = find_model("amd/Qwen3.8-27B-Quark-AWQ-INT4-W4A16")
    assert (match.value.id, match.value.weight_format, match.score) == ("Qwen/Qwen3.8-27B", "awq", 0.5)
    assert str(match.note).endswith(
        "read as Qwen/Qwen3.8-27B, whose name it holds: what was made of it is not in the catalogue"
    )
    for other in ("x/Qwen3-8B-draft-a", "x/Qwen3-8B-2612", "x/Qwen3-8B-expand-12B", "qwen3-8b our own tune"):
        with pytest.raises(PlanError, match="there is no model"):
            find_model(other)


def test_tags_of_checkpoints_in_8_bits_load_4() -> None:
    """deepseek-r1:671b is 404 GB (ollama.com/library); what is published in 4 bits is loaded as it is."""
    names = ("deepseek-r1:671b", "gpt-oss:20b", "mistral-large-3:675b-cloud", "deepseek-r1:671b-q8_0", "deepseek-r1")
    held = [architecture(name).weight_format for name in names]
    assert held == ["q4_k_m", "mxfp4", "fp8_block", "q8_0", "fp8_block"]
