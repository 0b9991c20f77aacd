"""Axolotl's own config model reads what the plans say."""

from __future__ import annotations

import yaml
from hf_plans import accumulation, plans, written

STAGES = {"ipo": "dpo", "sft": None, "pretrain": None, "rm": None}


def test_axolotl_reads_the_plan(ask, tmp_path):
    done = written([*plans("axolotl", (0, 2, 3)), *plans("deepspeed", (1,))], "axolotl", tmp_path)
    assert len(done) > 200
    questions = [{"path": str(place / "axolotl.yaml")} for _, _, place in done]
    for (plan, _, _), read in zip(done, ask("train", "axolotl", questions), strict=True):
        training, layout = plan.training, plan.layout
        assert read["error"] is None, (read["error"], training, layout)
        assert (read["micro_batch"], read["accumulation"]) == (training.micro_batch, accumulation(plan))
        assert read["length"] == training.seq_len
        assert read["stage"] == STAGES.get(training.stage, training.stage)
        if training.stage in ("sft", "pretrain"):
            assert read["packing"] == training.packing
        adapters = training.method in ("lora", "qlora", "dora", "pissa")
        assert (read["adapter"] is not None) == adapters
        assert read["rank"] == (training.lora.rank if adapters else None)
        assert bool(read["four_bits"]) == (training.method == "qlora" and training.lora.quantisation != "gptq")
        assert read["epochs"] == training.epochs
        assert read["steps"] == training.steps
        zero, dp = layout.zero_stage or 0, layout.dp or 1
        assert read["fsdp"] == (2 if zero >= 2 else None)
        assert read["deepspeed"] == ("deepspeed.json" if zero == 1 else None)
        assert read["reshard"] == (zero == 3 if zero >= 2 else None)
        assert bool(read["offload"]) == (layout.offload == "params")
        assert read["checkpointing"] == (layout.recompute == "full")
        replicate, shard, tp, cp = read["sizes"]
        assert (tp or 1, cp or 1) == (layout.tp, layout.cp)
        group = layout.shard_group or dp
        if zero >= 2 and (group != dp or shard):
            assert ((replicate or 1), shard) == (dp // group, group)


BROKEN = {
    "an unknown key": {"micro_batchsize": 2},
    "no such optimizer": {"optimizer": "adamx"},
    "packed preferences": {"rl": "dpo", "sample_packing": True},
    "packed samples of KTO": {"rl": "kto", "sample_packing": True, "remove_unused_columns": False},
    "text for a number": {"sequence_len": "long"},
}


def test_broken_files_are_refused(ask, tmp_path):
    ((_, _, place),) = written(plans("axolotl", (3,))[6:7], "axolotl", tmp_path)
    good = yaml.safe_load((place / "axolotl.yaml").read_text())
    questions = []
    for number, change in enumerate([{}, *BROKEN.values()]):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(good | change))
        questions.append({"path": str(file)})
    errors = [read["error"] for read in ask("train", "axolotl", questions)]
    assert errors[0] is None
    assert all(errors[1:]), dict(zip(BROKEN, errors[1:], strict=True))
