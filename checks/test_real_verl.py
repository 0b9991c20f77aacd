"""Hydra composes verl's own configuration with the words of our scripts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from hf_plans import plans, written

from estimator.plan.schema import Plan


def words_of(script: Path) -> tuple[str, list[str]]:
    """The trainer that a script starts, and the words after it, which stand there without variables."""
    text = script.read_text().partition("export HYDRA_FULL_ERROR=1")[2].rpartition("PY\n")[2]
    words = shlex.split(text.replace("\\\n", " "))
    at = next(place for place, word in enumerate(words) if word.startswith("verl.trainer."))
    return words[at].rpartition(".")[2], words[at + 1 :]


def asked(place: Path) -> dict[str, Any]:
    trainer, words = words_of(place / "verl.sh")
    return {"trainer": trainer, "words": words, "keys": [word.partition("=")[0] for word in words]}


def variants() -> list[Plan]:
    made = []
    for plan in plans("verl", (3,)):
        colocated = plan.training.stage in ("ppo", "grpo")
        made.append(plan.patch({"workload.rollout": "colocated", "workload.group_size": 4}) if colocated else plan)
    return made


def test_verl_reads_the_plan(ask, tmp_path):
    done = written(variants(), "verl", tmp_path)
    assert len(done) > 20
    answers = ask("rl", "verl", [asked(place) for _, _, place in done])
    for (plan, _, _), answer in zip(done, answers, strict=True):
        training, layout = plan.training, plan.layout
        assert answer["error"] is None, (answer["error"], training)
        read = answer["read"]
        assert read["trainer.n_gpus_per_node"] * read["trainer.nnodes"] == plan.cluster.count
        assert read["trainer.resume_mode"] == "auto"
        model = "model" if training.stage == "sft" else "actor_rollout_ref.model"
        assert read[f"{model}.path"] == plan.model
        assert read[f"{model}.enable_gradient_checkpointing"] == (layout.recompute == "full")
        assert read.get(f"{model}.lora_rank") == (training.lora.rank if training.method == "lora" else None)
        if training.stage == "sft":
            assert read["data.train_batch_size"] == training.global_batch
            assert (read["data.micro_batch_size_per_gpu"], read["data.max_length"]) == (
                training.micro_batch,
                training.seq_len,
            )
            continue
        group = read["actor_rollout_ref.rollout.n"]
        assert read["data.train_batch_size"] * group == training.global_batch
        assert group == (training.group_size if training.stage == "grpo" else 1)
        assert read["data.max_prompt_length"] + read["data.max_response_length"] == training.seq_len
        tokens = read["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"] * (layout.cp or 1)
        assert tokens == (training.micro_batch or 1) * (training.seq_len or 1)
        assert read["actor_rollout_ref.rollout.gpu_memory_utilization"] == training.engine_share


BROKEN = ("actor_rollout_ref.actor.ppo_minibatch_size=4", "trainer.nodes=2", "data.max_prompt_len=8", "engine=fsdp")


def test_broken_words_are_refused(ask, tmp_path):
    grpo = [plan for plan in variants() if plan.training.stage == "grpo"][:1]
    ((_, _, place),) = written(grpo, "verl", tmp_path)
    good = asked(place)
    questions = [good, *({**good, "words": [*good["words"], word]} for word in BROKEN)]
    errors = [answer["error"] for answer in ask("rl", "verl", questions)]
    assert errors[0] is None
    assert all(errors[1:]), dict(zip(BROKEN, errors[1:], strict=True))
