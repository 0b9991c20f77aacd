"""OpenRLHF's own parsers, with the checks behind them, read the commands of our scripts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from hf_plans import plans, written

from estimator.plan.schema import Plan


def _words(script: Path) -> dict[str, Any]:
    """The trainer that a script starts, and the words after it, which stand there without variables."""
    before, _, after = script.read_text().rpartition("-m openrlhf.cli.")
    assert before
    trainer, *words = shlex.split(after.replace("\\\n", " "))
    return {"trainer": trainer, "words": words}


def _variants() -> list[Plan]:
    made = []
    for plan in plans("openrlhf", (2, 3)):
        plan = plan.patch({"workload.attention": "flash", "workload.precision": "bf16"})
        if plan.training.stage in ("ppo", "grpo"):
            plan = plan.patch({"workload.rollout": "colocated", "workload.group_size": 4})
        made.append(plan)
    return made


def test_openrlhf_reads_the_plan(ask, tmp_path):
    done = written(_variants(), "openrlhf", tmp_path)
    assert len(done) > 60
    assert {plan.training.stage for plan, _, _ in done} == {"sft", "dpo", "ipo", "rm", "ppo", "grpo"}
    answers = ask("rl", "openrlhf", [_words(place / "openrlhf.sh") for _, _, place in done])
    for (plan, _, _), answer in zip(done, answers, strict=True):
        training, layout = plan.training, plan.layout
        assert answer["error"] is None, (answer["error"], training)
        read = answer["read"]
        assert read["ds.zero_stage"] == layout.zero_stage
        assert read["ds.ring_attn_size"] == (layout.cp or 1)
        assert read["ds.adam_offload"] == (layout.offload == "optimizer")
        assert read["ds.lora.rank"] == (training.lora.rank if training.method in ("lora", "qlora") else 0)
        assert read["ds.load_in_4bit"] == (training.method == "qlora")
        assert (read["train.batch_size"], read["train.micro_batch_size"]) == (
            training.global_batch,
            training.micro_batch,
        )
        assert read["data.max_len"] == training.seq_len
        assert read["ckpt.load_enable"]
        model = "actor" if training.stage in ("ppo", "grpo") else "model"
        assert read[f"{model}.model_name_or_path"] == plan.model
        assert read[f"{model}.gradient_checkpointing_enable"] == (layout.recompute == "full")
        if training.stage not in ("ppo", "grpo"):
            continue
        assert read["actor.num_nodes"] * read["actor.num_gpus_per_node"] == plan.cluster.count
        samples = read["rollout.batch_size"] * read["rollout.n_samples_per_prompt"]
        assert samples == training.global_batch
        assert (read["critic.model_name_or_path"] is not None) == (training.stage == "ppo")
        assert read["vllm.enable_sleep"]
        assert read["vllm.gpu_memory_utilization"] == training.engine_share


BROKEN = (
    ["--ds.zero_stages", "3"],
    ["--ds.param_dtype", "fp8"],
    ["--rollout.n_samples_per_prompt", "1"],
    ["--tp", "2"],
)


def test_broken_words_are_refused(ask, tmp_path):
    grpo = [plan for plan in _variants() if plan.training.stage == "grpo"][:1]
    ((_, _, place),) = written(grpo, "openrlhf", tmp_path)
    good = _words(place / "openrlhf.sh")
    questions = [good, *({**good, "words": [*good["words"], *words]} for words in BROKEN)]
    errors = [answer["error"] for answer in ask("rl", "openrlhf", questions)]
    assert errors[0] is None
    assert all(errors[1:]), errors
