"""accelerate and TRL read what the plans say: both files of a set, and accelerate's alone."""

from __future__ import annotations

import re

import pytest
import yaml
from hf_plans import accumulation, plans, written

FRAMEWORKS = [("hf-trainer", (0, 2, 3)), ("fsdp1", (2, 3)), ("fsdp2", (0, 2, 3))]
KINDS = {0: "MULTI_GPU", 2: "DEEPSPEED", 3: "DEEPSPEED"}


@pytest.mark.parametrize(("framework", "stages"), FRAMEWORKS)
def test_trl_reads_the_plan(ask, tmp_path, framework, stages):
    done = written(plans(framework, stages), "trl", tmp_path)
    assert len(done) > 100
    questions = []
    for _, rendered, place in done:
        script = re.search(r" trl_resume\.py (\w+) --config trl\.yaml$", rendered.launch_command)
        assert script, rendered.launch_command
        questions.append({"path": str(place / "trl.yaml"), "script": script[1]})
    for (plan, _, _), read in zip(done, ask("train", "trl", questions), strict=True):
        training, layout = plan.training, plan.layout
        assert read["error"] is None, (read["error"], training, layout)
        assert (read["micro_batch"], read["accumulation"]) == (training.micro_batch, accumulation(plan))
        if training.stage == "grpo":
            assert read["answer"] == (training.response_len or (training.seq_len or 0) // 2)
            assert read["generated"] == training.global_batch
            assert read["group"] == training.group_size
            assert read["vllm"] == (training.rollout != "trainer")
            assert read["share"] == (training.engine_share if training.rollout == "colocated" else 0.3)
        else:
            assert read["length"] == training.seq_len
        if training.stage in ("sft", "pretrain"):
            assert read["packing"] == training.packing
        assert read["peft"] == (training.method != "full")
        if read["peft"]:
            assert (read["rank"], read["alpha"]) == (training.lora.rank, training.lora.alpha)
        assert read["dora"] == (training.method == "dora")
        assert read["four_bits"] == (training.method == "qlora" and training.lora.quantisation != "gptq")
        assert read["epochs"] == training.epochs
        assert read["steps"] == (training.steps or -1)
        fsdp = framework.startswith("fsdp") and layout.zero_stage
        assert read["checkpointing"] == (layout.recompute == "full" and not fsdp)
        assert read["fp16"] == (training.precision == "fp16")
        assert read["bf16"] == (training.precision == "bf16" and training.weights != "bf16")


@pytest.mark.parametrize(("framework", "stages"), [*FRAMEWORKS, ("pytorch", (0, 2, 3))])
def test_accelerate_reads_the_plan(ask, tmp_path, framework, stages):
    done = written(plans(framework, stages), "accelerate", tmp_path)
    assert len(done) > 50
    questions = []
    for plan, _, place in done:
        several = (plan.cluster.count or 1) > (plan.cluster.per_node or 1)
        words = ["--machine_rank", "1", "--main_process_ip", "10.0.0.1", "--main_process_port", "29500"]
        questions.append({"path": str(place / "accelerate.yaml"), "words": words if several else []})
    for (plan, _, place), read in zip(done, ask("train", "accelerate", questions), strict=True):
        training, layout, count = plan.training, plan.layout, plan.cluster.count or 1
        assert read["error"] is None, (read["error"], training, layout)
        nodes = -(-count // (plan.cluster.per_node or 1))
        assert (read["devices"], read["nodes"], read["per_node"]) == (count, nodes, count // nodes)
        zero = layout.zero_stage or 0
        if framework == "hf-trainer":
            assert read["kind"] == ("NO" if count == 1 and not zero else KINDS[zero])
        elif not zero:
            assert read["kind"] == ("NO" if count == 1 else "MULTI_GPU")
        else:
            assert read["kind"] == "FSDP"
            assert read["version"] == (1 if framework == "fsdp1" else 2)
            assert read["reshard"] == (zero == 3) or framework == "fsdp1"
            assert read["offload"] == (layout.offload == "params")
            assert read["checkpointing"] == (layout.recompute == "full")
        tp, cp, dp = layout.tp or 1, layout.cp or 1, layout.dp or 1
        if "sizes" in read:
            replicate, shard = read["sizes"][:2]
            assert read["sizes"][2:] == [tp, cp]
            assert replicate * shard == dp
            assert shard == (1 if not zero else layout.shard_group or dp)
        else:
            assert tp == cp == 1
            assert framework in ("fsdp1", "hf-trainer") or layout.shard_group in (None, dp)
        if read["kind"] == "DEEPSPEED":
            assert read["deepspeed_file"] == "deepspeed.json"
            assert (place / "deepspeed.json").is_file()
        else:
            precision = {"bf16": "bf16", "fp16": "fp16"}.get(training.precision, "no")
            assert read["precision"] == ("no" if training.weights == "bf16" else precision)


BROKEN_ACCELERATE = {
    "an unknown key": {"num_process": 8},
    "an unknown key of FSDP": {"fsdp_config": {"fsdp_offload_parameters": True}},
    "no such precision": {"mixed_precision": "bf17"},
}
BROKEN_TRL = {"an unknown key": {"max_len": 4096}, "text for a number": {"lora_r": "many"}}


@pytest.mark.parametrize(("program", "broken"), [("accelerate", BROKEN_ACCELERATE), ("trl", BROKEN_TRL)])
def test_broken_files_are_refused(ask, tmp_path, program, broken):
    ((_, _, place),) = written(plans("fsdp2", (3,))[6:7], "trl", tmp_path)
    good = yaml.safe_load((place / f"{program}.yaml").read_text())
    questions = []
    for number, change in enumerate([{}, *broken.values()]):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(good | change))
        questions.append({"path": str(file), "script": "sft"})
    errors = [read["error"] for read in ask("train", program, questions)]
    assert errors[0] is None
    assert all(errors[1:]), dict(zip(broken, errors[1:], strict=True))
