"""LlamaFactory's own parsers read what the plans say, and DeepSpeed reads the files beside it."""

from __future__ import annotations

import pytest
import yaml
from hf_plans import accumulation, plans, written

STAGES = {"pretrain": "pt", "ipo": "dpo", "orpo": "dpo", "simpo": "dpo"}
METHODS = {"qlora": "lora", "dora": "lora", "pissa": "lora"}
ADAPTERS = ("lora", "qlora", "dora", "pissa")


@pytest.mark.parametrize(("framework", "stages"), [("hf-trainer", (0, 2, 3)), ("fsdp2", (2, 3))])
def test_llamafactory_reads_the_plan(ask, tmp_path, framework, stages):
    done = written(plans(framework, stages), "llamafactory", tmp_path)
    assert len(done) > 100
    questions = [{"path": str(place / "llamafactory.yaml")} for _, _, place in done]
    for (plan, rendered, _), read in zip(
        done, ask("train", "llamafactory", questions, FORCE_TORCHRUN="1"), strict=True
    ):
        training, layout = plan.training, plan.layout
        assert read["error"] is None, (read["error"], training, layout)
        assert read["micro_batch"] == training.micro_batch
        assert read["accumulation"] == accumulation(plan)
        assert read["stage"] == STAGES.get(training.stage, training.stage)
        assert read["method"] == METHODS.get(training.method, training.method)
        if training.method in ADAPTERS:
            assert (read["rank"], read["alpha"]) == (training.lora.rank, training.lora.alpha)
        packs = training.method == "qlora" and training.lora.quantisation != "gptq"
        assert read["quantization"] == (4 if packs else None)
        # With packing the parser keeps a token back, which is added to each row again.
        shorter = training.packing and training.stage == "sft"
        if training.stage != "ppo":
            assert read["cutoff"] == (training.seq_len or 0) - shorter
        assert read["epochs"] == training.epochs
        assert read["steps"] == (training.steps or -1)
        assert read["checkpointing"] == (layout.recompute == "full")
        assert read["deepspeed"] == (layout.zero_stage != 0 and framework != "fsdp2")
        assert read["by_block"] == ("layer" if training.optimizer == "badam" else None)
        assert ("accelerate launch" in rendered.launch_command) == (framework == "fsdp2")


ALONE = {"cluster": {"count": 1, "per_node": 1}, "layout": {"dp": 1}, "workload.global_batch": 8}


def test_badam_on_one_device_is_a_process_without_torchrun(ask, tmp_path):
    one = plans("hf-trainer", (0,))[6].patch(ALONE).patch({"workload.optimizer": "badam"})
    ((_, rendered, place),) = written([one], "llamafactory", tmp_path)
    assert "FORCE_TORCHRUN" not in rendered.launch_command
    questions = [{"path": str(place / "llamafactory.yaml")}]
    (read,) = ask("train", "llamafactory", questions)
    assert (read["error"], read["by_block"], read["method"]) == (None, "layer", "full")
    (read,) = ask("train", "llamafactory", questions, FORCE_TORCHRUN="1")
    assert "ZeRO-3" in read["error"]


def test_deepspeed_reads_the_plan(ask, tmp_path):
    done = written(plans("deepspeed", (1, 2, 3)), "llamafactory", tmp_path)
    questions = [{"path": str(place / "deepspeed.json"), "world": plan.layout.dp} for plan, _, place in done]
    assert len(done) > 100
    for (plan, _, _), read in zip(done, ask("train", "deepspeed", questions), strict=True):
        training, layout = plan.training, plan.layout
        assert read["error"] is None, (read["error"], training, layout)
        assert read["world"] == layout.dp
        assert (read["micro_batch"], read["accumulation"]) == (training.micro_batch, accumulation(plan))
        assert read["global_batch"] == training.global_batch
        assert read["stage"] == layout.zero_stage
        assert read["offload_optimizer"] == ("cpu" if layout.offload in ("optimizer", "params") else None)
        assert read["offload_params"] == ("cpu" if layout.offload == "params" else None)
        assert (read["bf16"], read["fp16"]) == (training.precision in ("bf16", "fp8"), training.precision == "fp16")
        group = layout.shard_group if layout.shard_group not in (None, layout.dp) else 1
        assert read["shard_group"] == group


BROKEN = {
    "a stage that is none": {"stage": "orpo"},
    "an unknown key": {"per_device_train_batchsize": 2},
    "text for a number": {"per_device_train_batch_size": "two"},
    "full training of packed weights": {"quantization_bit": 4},
    "two optimizers": {"use_galore": True, "use_apollo": True},
}


def test_broken_files_are_refused(ask, tmp_path):
    ((_, _, place),) = written(plans("hf-trainer", (0,))[6:7], "llamafactory", tmp_path)
    good = yaml.safe_load((place / "llamafactory.yaml").read_text())
    questions = []
    for number, change in enumerate([{}, *BROKEN.values()]):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(good | change))
        questions.append({"path": str(file)})
    errors = [read["error"] for read in ask("train", "llamafactory", questions, FORCE_TORCHRUN="1")]
    assert errors[0] is None
    assert all(errors[1:]), dict(zip(BROKEN, errors[1:], strict=True))


def test_broken_deepspeed_files_are_refused(ask, tmp_path):
    text = '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4%s}'
    rests = ("", ', "zero_optimisation": {}', ', "zero_optimization": {"stages": 3}', "", "")
    questions = []
    for number, rest in enumerate(rests):
        path = tmp_path / f"{number}.json"
        path.write_text(text % rest)
        questions.append({"path": str(path), "world": 16 if number == 3 else 8})
    errors = [read["error"] for read in ask("train", "deepspeed", questions)]
    assert [error is None for error in errors] == [True, False, False, False, True], errors
