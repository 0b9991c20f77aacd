"""ms-swift's own argument classes read the commands of our scripts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from hf_plans import plans, written

from estimator.plan.schema import Plan


def _question(place: Path, model: str) -> dict[str, Any]:
    """The command that a script starts, without what goes on from a checkpoint, and with a model that is here."""
    before, _, after = (place / "swift.sh").read_text().rpartition("exec swift ")
    assert before
    command, *words = shlex.split(after.replace("\\\n", " ").partition("${LAST")[0])
    words[words.index("--model") + 1] = model
    # A folder's name does not say what the name of a published checkpoint does.
    words += ["--model_type", "llama", "--template", "llama3"]
    return {"command": command, "words": words, "folder": str(place)}


def _variants() -> list[Plan]:
    made = []
    for framework, stages in (("ms-swift", (0,)), ("deepspeed", (2, 3))):
        for plan in plans(framework, stages):
            if plan.training.stage == "grpo" and plan.training.rollout == "auto":
                plan = plan.patch({"workload.rollout": "trainer", "workload.group_size": 4})
            made.append(plan)
    return made


def test_swift_reads_the_plan(ask, tmp_path):
    (tmp_path / "tiny").mkdir()
    assert ask("train", "tiny", [{"folder": str(tmp_path / "tiny")}])[0]["error"] is None
    model = str(tmp_path / "tiny" / "model")
    done = written(_variants(), "ms-swift", tmp_path / "files")
    stages = {plan.training.stage for plan, _, _ in done}
    assert stages == {"pretrain", "sft", "dpo", "orpo", "simpo", "kto", "rm", "grpo"}
    # bitsandbytes asks for a GPU, and engines for vLLM to be there.
    plain = [
        (plan, files, place)
        for plan, files, place in done
        if plan.training.method != "qlora"
        and plan.training.precision == "bf16"
        and (plan.training.stage != "grpo" or plan.training.rollout == "trainer")
    ]
    assert len(plain) > 60
    answers = ask("train", "swift", [_question(place, model) for _, _, place in plain])
    for (plan, _, _), answer in zip(plain, answers, strict=True):
        training = plan.training
        assert answer["error"] is None, (answer["error"], training)
        read = answer["read"]
        assert read["per_device_train_batch_size"] == training.micro_batch
        assert read["gradient_checkpointing"] == (plan.layout.recompute == "full")
        assert read["zero_stage"] == plan.layout.zero_stage
        assert read["tuner_type"] == ("full" if training.method == "full" else "lora")
        rows = read["max_length"] + (read["max_completion_length"] if training.stage == "grpo" else 0)
        assert rows == training.seq_len
        assert not read["add_version"]
        if training.method == "lora":
            assert (read["lora_rank"], read["lora_alpha"]) == (training.lora.rank, training.lora.alpha)


BROKEN = (["--tuner_types", "full"], ["--torch_dtype", "bf17"], ["--quant_bits", "5"], ["--lora_rank", "many"])


def test_broken_words_are_refused(ask, tmp_path):
    (tmp_path / "tiny").mkdir()
    ask("train", "tiny", [{"folder": str(tmp_path / "tiny")}])
    sft = [plan for plan in _variants() if plan.training.stage == "sft" and plan.training.method == "lora"][:1]
    ((_, _, place),) = written(sft, "ms-swift", tmp_path / "files")
    good = _question(place, str(tmp_path / "tiny" / "model"))
    questions = [good, *({**good, "words": [*good["words"], *words]} for words in BROKEN)]
    errors = [answer["error"] for answer in ask("train", "swift", questions)]
    assert errors[0] is None
    assert all(errors[1:]), errors
