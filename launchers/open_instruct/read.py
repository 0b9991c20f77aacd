"""open-instruct's trainers by their command lines. Words: fields.yaml."""

from __future__ import annotations

from dataclasses import replace

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, is_set
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table
from launchers.trl import read as trl


def read_command(start: Program, setting: ScriptSetting) -> str:
    """The script's name says the stage."""
    words, findings = table("open_instruct/fields"), setting.findings
    keys, _ = options(setting.file, start.words)
    stage = words["stages"].get(start.name.value)
    if stage in ("grpo", "ppo"):
        findings.put("workload.stage", stage, start.name)
        _reinforced(keys, findings)
    elif stage is None and not any(name in keys for name in ("learning_rate", "per_device_train_batch_size")):
        findings.idle.append(f"{start.name.origin}: {start.name.value} trains nothing, by its words")
    elif stage is None and "do_train" in keys:
        # Its first trainer, which was the Trainer's.
        return trl.read_trainer(start, setting)
    elif stage is None:
        findings.block("workload.stage", start.name, "is no trainer of open-instruct that is known here")
        leave_rest(keys, findings, "open_instruct", "trl", "hf")
    else:
        _supervised(keys, findings, stage, start.name)
    return words["title"]


def _supervised(keys: Keys, findings: Findings, stage: str, name: Item) -> None:
    """Loops of its own on accelerate, with the Trainer's words for most."""
    words = table("open_instruct/fields")
    for own, theirs in words["renamed"].items():
        if (item := keys.take(own)) is not None:
            keys.put(theirs, item.value, item.line)
    if (loss := keys.take("loss_type")) is not None:
        keys.put("loss_type", words["losses"].get(loss.value, loss.value), loss.line)
    kind = {"rm": "reward"}.get(stage, stage)
    findings.default("workload.attention", "flash", "it uses FlashAttention unless given")
    for field, value in (("rank", 64), ("alpha", 16.0), ("dropout", 0.1)):
        findings.default(f"workload.lora.{field}", value, "as open-instruct has it unless given")
    keys.put("with_tracking", True)
    trl.read(keys, findings, replace(name, value=kind))


def _reinforced(keys: Keys, findings: Findings) -> None:
    words = table("open_instruct/fields")
    if (model := keys.take("model_name_or_path")) is not None:
        findings.put("model", model.value, model)
    prompts = keys.take("num_unique_prompts_rollout")
    size = as_number(keys.look("num_samples_per_prompt_rollout"))
    parts = keys.take("num_mini_batches")
    steps = 1.0 if parts is None else as_number(parts.value)
    if prompts is not None and (count := as_number(prompts.value)) and size and steps:
        findings.put("workload.global_batch", int(count * size / steps), prompts)
    _rows(keys, findings)
    _learners(keys, findings)
    _of_each_learner(keys, findings)
    for name, field in words["whole"].items():
        findings.whole(field, keys.take(name))
    for name, row in words["words"].items():
        item = keys.take(name)
        if item is not None and not (row["field"] == "layout.offload" and as_truth(item.value) is False):
            findings.word(
                row["field"], item, row["values"] | {str(key).lower(): value for key, value in row["values"].items()}
            )
    keys.take("gradient_checkpointing")
    keys.take("per_device_train_batch_size")
    for field, (value, why) in words["defaults"].items():
        findings.default(field, value, why)
    findings.put("workload.framework", "deepspeed", Item(keys.file, "grpo_fast", "DeepSpeed"))
    leave_rest(keys, findings, "open_instruct")


def _rows(keys: Keys, findings: Findings) -> None:
    """Answers are packed into rows of pack_length: as many as there is room for at their longest."""
    prompt, answer, pack = keys.take("max_prompt_token_length"), keys.look("response_length"), keys.take("pack_length")
    lengths = [
        as_number(prompt.value) if prompt is not None else 256.0,
        as_number(answer) if answer is not None else 256.0,
    ]
    if None in lengths:
        return
    longest = int(sum(length or 0 for length in lengths))
    findings.default("workload.seq_len", longest, "a prompt and its answer at their longest: time is no more than said")
    room = as_number(pack.value) if pack is not None else None
    rows = max(1, int(room) // longest) if room else 1
    findings.default(
        "workload.micro_batch", rows, f"so many of the longest fit into rows of {int(room or longest)} tokens"
    )


def _learners(keys: Keys, findings: Findings) -> None:
    """The devices that train, node by node; the engines have others."""
    item = keys.take("num_learners_per_node") or keys.take("actor_num_gpus_per_node")
    shared = keys.take("single_gpu_mode")
    if is_set(shared) and shared is not None:
        findings.block("workload.rollout", shared, "keeps an engine awake on the device that trains")
    else:
        findings.put("workload.rollout", "separate", Item(keys.file, "vllm_num_engines", "devices of their own"))
    if item is None:
        return
    values = item.value if isinstance(item.value, list) else [item.value]
    numbers = [as_number(value) for value in values]
    if None in numbers:
        findings.block("cluster.count", item, "is known only where it runs")
        return
    total = int(sum(number or 0 for number in numbers))
    for fact in ("nodes", "per_node"):
        findings.withdraw(fact, "counts the engines' devices too")
    findings.put("devices", total, replace(item, value=total))


def _of_each_learner(keys: Keys, findings: Findings) -> None:
    """What its older trainers count of each device that trains (ppo_vllm_thread_ray_gtrl.py); they pack no rows."""
    rows, reward = keys.take("local_mini_batch_size"), keys.take("reward_model_path")
    if rows is not None:
        devices, number = findings.values.get("devices"), as_number(rows.value)
        if devices is None or number is None:
            findings.block("workload.global_batch", rows, "is of each device that trains; give the rows of all")
        else:
            findings.put("workload.global_batch", int(number) * devices, rows)
        findings.whole("workload.micro_batch", keys.take("per_device_train_batch_size"))
        findings.whole("workload.group_size", keys.take("number_samples_per_prompt"))
        findings.default("workload.group_size", 1, "number_samples_per_prompt is 1 unless given")
    if reward is not None and findings.values.get("workload.stage") == "ppo":
        findings.leave(reward, "is among the models that PPO is estimated with")
    elif reward is not None:
        why = "puts a reward model beside the trained one, which is not counted; give what else is on the devices"
        findings.block("overrides.extra_models_gib", reward, why)


COMMANDS = {"open-instruct": read_command}
