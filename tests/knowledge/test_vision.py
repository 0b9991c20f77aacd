"""Images: tokens by the processors' own rules, towers to the last weight, and what both do to estimates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.model.vision import image, images, video
from knowledge.data_files import document
from knowledge.models.catalogue import find_architecture
from knowledge.models.vision import tower_in
from tools import call


def _tower(model: str) -> Any:
    tower = find_architecture(model)[0].vision
    assert tower is not None
    return tower


# Weights in the published checkpoints without their language model (safetensors headers; transformers' classes on
# torch's meta device), and those of the language model in the catalogue.
@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", 8_291_375_616 - 7_615_616_512),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 8_292_166_656 - 7_615_616_512),
        ("Qwen/Qwen3-VL-2B-Instruct", 406_957_056),
        ("Qwen/Qwen3-VL-4B-Instruct", 415_347_712),
        ("Qwen/Qwen3-VL-8B-Instruct", 576_388_336),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", 538_631_408),
        ("Qwen/Qwen3-VL-32B-Instruct", 595_266_800),
        ("mistralai/Mistral-Large-4-1T-A52B", 1_704_218_624),
        ("google/gemma-3-4b-pt", 4_300_079_472 - 3_880_263_168),
        ("google/gemma-3-27b-pt", 27_432_406_640 - 27_009_346_304),
        ("meta-llama/Llama-3.2-11B-Vision", 10_670_220_835 - 9_775_192_080),
        ("llava-hf/llava-1.5-13b-hf", 13_351_494_656 - 13_016_519_680),
        ("llava-hf/llava-v1.6-34b-hf", 34_752_083_968 - 34_389_834_752),
        ("llava-hf/llava-onevision-qwen2-72b-ov-hf", 73_181_570_592 - 72_707_252_224),
        ("openbmb/MiniCPM-V-4_5", 8_695_895_280 - 8_189_195_264),
        ("openbmb/MiniCPM-V-4.6", 1_300_428_016 - 752_161_600),
        ("moonshotai/Kimi-VL-A3B-Instruct", 16_407_657_776 - 15_960_110_208 - 1_728),
        ("LiquidAI/LFM2.5-VL-1.6B", 1_596_625_904 - 1_170_340_608),
        ("stepfun-ai/step3", 320_969_912_832 - 316_294_538_240),
        ("stepfun-ai/Step-3.7-Flash", 201_365_316_160 - 199_384_301_376),  # layers of prediction are in both
        ("LGAI-EXAONE/EXAONE-4.5-33B", 34_350_097_664 - 32_527_504_384 - 536_110_336),  # its layer of prediction
    ],
)
def test_towers_have_the_weights_that_checkpoints_hold(model: str, parameters: int) -> None:
    assert _tower(model).parameters == parameters


# By the image processors of transformers 5.20 to 5.24 and vLLM 0.33 on images of these sizes (width, height).
# Published: 757, 1,921 and 9,585 in vLLM's tests of Phi-V, 640 for 1344x1344 in MiniCPM-V's README.
@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", (768, 768), 27 * 27 + 2),
        ("Qwen/Qwen2.5-VL-7B-Instruct", (1920, 1080), 69 * 39 + 2),
        ("Qwen/Qwen3-VL-8B-Instruct", (768, 768), 24 * 24 + 2),
        ("Qwen/Qwen3-VL-8B-Instruct", (64, 64), 8 * 8 + 2),
        ("google/gemma-3-27b-it", (4000, 100), 256 + 2),
        ("google/gemma-4-31B-it", (768, 768), 16 * 16 + 2),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", (768, 768), 28 * 28 + 28),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", (3080, 1540), 55 * 28 + 28),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", (336, 336), 144 + 3),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", (672, 336), 3 * 144 + 2 + 3),
        ("moonshotai/Kimi-K2.6", (768, 768), 28 * 28 + 4),
        ("moonshotai/Kimi-VL-A3B-Instruct", (768, 768), 28 * 28 + 4),
        ("moonshotai/Kimi-VL-A3B-Instruct", (1920, 1080), 1032 + 4),
        ("microsoft/Phi-3.5-vision-instruct", (1300, 876), 757),
        ("microsoft/Phi-3-vision-128k-instruct", (1300, 876), 1921),
        ("microsoft/Phi-3-vision-128k-instruct", (500, 3000), 2557),
        ("microsoft/Phi-4-multimodal-instruct", (7 * 448, 7 * 448), 9585),
        ("microsoft/Phi-4-multimodal-instruct", (500, 3000), 2513),
        ("openbmb/MiniCPM-V-2_6", (448, 448), 64 + 5),
        ("openbmb/MiniCPM-V-2_6", (1344, 1344), 640 + 5 + 9 * 2 + 2),
        ("openbmb/MiniCPM-V-2_6", (1920, 1080), 9 * 64 + 5 + 8 * 2 + 1),
        ("openbmb/MiniCPM-V-4.6", (1920, 1080), 578 + 5 + 8 * 2 + 1),
        ("openbmb/MiniCPM-V-4.6", (3000, 500), 501 + 5 + 7 * 2),
        ("llava-hf/llava-1.5-7b-hf", (1920, 1080), 576),
        ("llava-hf/llava-v1.6-mistral-7b-hf", (1920, 1080), 1948),
        ("llava-hf/llava-v1.6-34b-hf", (336, 336), 1176),
        ("llava-hf/llava-onevision-qwen2-7b-ov-hf", (1920, 1080), 7269),
        ("llava-hf/llava-onevision-qwen2-0.5b-ov-hf", (640, 480), 2929),
        ("meta-llama/Llama-3.2-11B-Vision", (768, 768), 1),
        ("LGAI-EXAONE/EXAONE-4.5-33B", (1920, 1080), 1224),
        ("zai-org/GLM-5.3-Flash", (1920, 1080), 69 * 39 + 2),
        ("zai-org/GLM-5.3-Flash", (4096, 3072), 7933),
        ("meta-models/Muse-Glimmer-30B", (200, 200), 66),
        ("meta-models/Muse-Spark-Open-816B-A42B", (4096, 3072), 4017),
        ("nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16", (336, 336), 258),
        ("nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16", (4096, 3072), 3302),
        ("LiquidAI/LFM2.5-VL-1.6B", (512, 512), 256 + 2),
        ("LiquidAI/LFM2.5-VL-450M", (1920, 1080), 2311),
        ("deepseek-ai/DeepSeek-OCR", (640, 640), 16 * 17 + 1),
        ("deepseek-ai/DeepSeek-OCR", (1024, 1024), 16 * 17 + 1 + 20 * 21),
        ("thinkingmachines/Inkling-NVFP4", (800, 600), 15 * 21 + 1),
        ("thinkingmachines/Inkling-2-Small-MXFP8", (800, 600), 15 * 20 + 1),
        ("google/gemma-3n-E4B", (4000, 100), 256 + 2),
        ("stepfun-ai/step3", (728, 728), 169 + 2),
        ("stepfun-ai/step3", (700, 300), 171 + 3 * 83),
        ("stepfun-ai/step3", (768, 768), 171 + 4 * 83 + 1),
        ("stepfun-ai/step3", (1920, 1080), 171 + 8 * 83 + 1),
        ("stepfun-ai/step3", (4096, 3072), 2665),
        ("stepfun-ai/step3", (400, 20), 169 + 2),
        ("stepfun-ai/Step-3.7-Flash", (500, 3000), 674),
    ],
)
def test_images_are_as_many_tokens_as_the_processor_makes(model: str, size: tuple[int, int], tokens: int) -> None:
    assert image(_tower(model).rule, *size).tokens == tokens


# transformers' LlavaOnevisionProcessor: 27 x 27 and a newline each of several images, 14 x 14 a frame and one newline;
# vLLM's MiniCPMVProcessingInfo: a frame is one slice of 64 between two marks.
@pytest.mark.parametrize(
    ("model", "three", "clip"),
    [
        ("llava-hf/llava-onevision-qwen2-7b-ov-hf", 3 * 730, 32 * 196 + 1),
        ("openbmb/MiniCPM-V-2_6", 3 * 334, 32 * 66),
        ("llava-hf/llava-v1.6-mistral-7b-hf", 3 * 2928, None),
    ],
)
def test_several_images_and_frames_are_as_the_processor_makes_them(model: str, three: int, clip: int | None) -> None:
    rule = _tower(model).rule
    assert images(rule, 3, 768, 768).tokens == three
    assert rule.sees_video == (clip is not None)
    if clip is not None:
        assert video(rule, 32, 768, 768).tokens == clip


_SEEING = sorted(document("vision.yaml")["towers"])


@given(st.sampled_from(_SEEING), st.integers(16, 6000), st.integers(16, 6000))
def test_an_image_is_never_more_tokens_than_the_limits_allow(model: str, width: int, height: int) -> None:
    if max(width, height) > 100 * min(width, height):
        return
    rule = _tower(model).rule
    seen = image(rule, width, height)
    assert seen.tokens >= 1
    assert seen.patches >= 1
    if rule.kind == "area":
        assert seen.patches * rule.patch**2 <= max(rule.most_pixels, rule.cell * max(width, height))
    if rule.kind == "budget":
        assert seen.patches * rule.patch**2 <= rule.most_pixels
    if rule.sees_video:
        long, short = video(rule, 64, width, height), video(rule, 8, width, height)
        assert long.tokens >= short.tokens / 2 if rule.by_frame else long.tokens > 0


def test_every_tower_names_a_kind_and_every_kind_its_source() -> None:
    table = document("vision.yaml")
    assert {row["kind"] for row in table["towers"].values()} <= set(table["kinds"])
    assert all(row["source"] for row in table["kinds"].values())
    for model in table["towers"]:
        facts = find_architecture(model)[0]
        assert facts.id == model
        assert facts.multimodal


def test_raw_configs_bring_their_own_tower() -> None:
    vision = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16, "spatial_merge_size": 2}
    tower = tower_in({"model_type": "qwen3_vl", "vision_config": vision}, 4096)
    assert tower == _tower("Qwen/Qwen3-VL-8B-Instruct")
    assert tower_in({"model_type": "qwen3_vl", "vision_config": {"depth": "many"}}, 4096) is None
    assert tower_in({"model_type": "nobody_knows", "vision_config": vision}, 4096) is None
    tiles = {"model_type": "mllama_vision_model", "hidden_size": 1280, "intermediate_size": 5120, "patch_size": 14}
    tower = tower_in({"vision_config": tiles | {"num_hidden_layers": 32, "num_global_layers": 8}}, 4096)
    assert tower == _tower("meta-llama/Llama-3.2-11B-Vision")


# 1,601 keys a tile: (560 / 14)^2 patches and one vector (vllm-project/vllm, mllama.py, calc_token_per_chunk).
@pytest.mark.parametrize(("size", "tiles"), [((560, 560), 1), ((1120, 500), 2), ((768, 768), 4), ((3000, 700), 4)])
def test_tiles_are_keys_of_cross_attention(size: tuple[int, int], tiles: int) -> None:
    seen = image(_tower("meta-llama/Llama-3.2-11B-Vision").rule, *size)
    assert (seen.keys, seen.patches) == (tiles * 1601, tiles * 1600)


def test_layers_of_cross_attention_keep_images_and_no_text() -> None:
    def served(model: str, **workload: Any) -> dict[str, Any]:
        request = _plan("inference", input_len=512, output_len=256, **workload)
        request["plan"] |= {"model": model, "cluster": {"accelerator": "h100-sxm", "count": 1}}
        return call("estimate_inference", request)

    name = "meta-llama/Llama-3.2-11B-Vision"
    text, plain = served(name), served("meta-llama/Llama-3.1-8B")
    assert text["latency"] == plain["latency"]
    assert text["memory"]["kv_bytes_per_token"] == plain["memory"]["kv_bytes_per_token"]
    seen = served(name, images=1, image_size="768x768")
    assert seen["plan"]["workload"]["visual_tokens"] == 1
    assert seen["latency"]["ttft_s"] > text["latency"]["ttft_s"]
    # Eight layers with eight heads of 128 for keys and values each, in two bytes.
    kept = 4 * 1601 * 8 * 2 * 8 * 128 * 2
    each = text["memory"]["kv_bytes_per_token"] * 784
    assert seen["memory"]["max_concurrency"] == pytest.approx(
        text["memory"]["max_concurrency"] * each / (each + kept), rel=0.03
    )


def _plan(kind: str, **workload: Any) -> dict[str, Any]:
    cluster = {"accelerator": "h100-sxm", "count": 8}
    return {"plan": {"model": "Qwen/Qwen3-VL-8B-Instruct", "cluster": cluster, "workload": {"kind": kind} | workload}}


def test_a_tower_costs_memory_and_time_in_training_most_where_it_is_trained() -> None:
    layout = {"tp": 1, "pp": 1, "cp": 1, "dp": 8, "zero_stage": 3, "recompute": "full"}

    def estimated(**workload: Any) -> tuple[float, float]:
        request = _plan("training", framework="deepspeed", micro_batch=1, global_batch=8, **workload)
        request["plan"]["layout"] = layout
        result = call("estimate_training", request)
        return result["memory"]["per_device_bytes"], result["time"]["step_s"]

    text, frozen = estimated(), estimated(images=5, image_size="768x768")
    trained = estimated(images=5, image_size="768x768", vision="trained")
    assert text[0] < frozen[0] < trained[0]
    assert text[1] < frozen[1] < trained[1]


def test_images_are_part_of_the_prompt_in_serving() -> None:
    seen = call("estimate_inference", _plan("inference", images=5, image_size="768x768"))
    plain = call("estimate_inference", _plan("inference", input_len=1024 + 5 * 578))
    assert seen["plan"]["workload"]["visual_tokens"] == 5 * 578
    assert seen["memory"]["max_concurrency"] == plain["memory"]["max_concurrency"]
    assert seen["latency"]["ttft_s"] > plain["latency"]["ttft_s"]
    again = call("estimate_inference", {"plan": seen["plan"]})
    assert again["latency"] == seen["latency"]


@pytest.mark.parametrize(
    ("model", "workload", "field"),
    [
        ("meta-llama/Llama-3.1-8B", {"images": 1}, "workload.images"),
        ("google/gemma-3-27b-it", {"video_frames": 8}, "workload.video_frames"),
        ("Qwen/Qwen3-VL-8B-Instruct", {"images": 1, "image_size": "large"}, "image_size"),
        ("Qwen/Qwen3-VL-8B-Instruct", {"images": 1, "image_size": "9000x20"}, "workload.image_size"),
        ("Qwen/Qwen3-VL-8B-Instruct", {"images": 4, "seq_len": 2048}, "workload.seq_len"),
        ("Qwen/Qwen3-VL-8B-Instruct", {"visual_tokens": 100}, "workload.visual_tokens"),
    ],
)
def test_what_cannot_be_seen_is_refused(model: str, workload: dict[str, Any], field: str) -> None:
    request = _plan("training", **workload)
    request["plan"]["model"] = model
    with pytest.raises(PlanError) as refused:
        call("estimate_training", request)
    assert field in refused.value.field


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        # 23 x 17 cells of 28 pixels in each of eight pairs of frames, one pair of marks around all.
        ("Qwen/Qwen2.5-VL-7B-Instruct", 8 * 23 * 17 + 2),
        # 20 x 15 cells of 32 pixels, and marks around each pair, which stands behind its time.
        ("Qwen/Qwen3-VL-8B-Instruct", 8 * (20 * 15 + 2)),
    ],
)
def test_sixteen_frames_by_hand(model: str, tokens: int) -> None:
    tower = find_architecture(model)[0].vision
    assert tower
    assert video(tower.rule, 16, 640, 480).tokens == tokens
