"""slime's trainer: Megatron-LM's arguments, with words of its own for samples and engines. Words: fields.yaml."""

from __future__ import annotations

from launchers.megatron import read as megatron
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.packed import longest_rows
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table


def read_command(start: Program, setting: ScriptSetting) -> str:
    words, findings = table("slime/fields"), setting.findings
    keys, _ = options(setting.file, start.words)
    _stage(keys, findings)
    for name, field in words["whole"].items():
        findings.whole(field, keys.take(name))
    for name, field in words["number"].items():
        findings.number(field, keys.take(name))
    _batch(keys, findings)
    # What it sets whatever it is told (_set_default_megatron_args).
    keys.put("use_distributed_optimizer", True)
    if "fp16" not in keys:
        keys.put("bf16", True)
    names = [item for name in ("hf_checkpoint",) if (item := keys.items.get(name)) is not None]
    if names and "num_layers" not in keys:
        findings.put("model", names[0].value, names[0])
    findings.put("workload.framework", "slime", start.name)
    megatron.read(keys, findings, None, "slime", names, ("slime", "megatron"))
    return words["title"]


def _stage(keys: Keys, findings: Findings) -> None:
    loss, kind = keys.items.get("loss_type"), keys.take("advantage_estimator")
    if loss is not None and loss.value == "sft_loss":
        findings.put("workload.stage", "sft", loss)
        return
    findings.word("workload.stage", kind, table("slime/fields")["estimators"])
    findings.default("workload.stage", "grpo", "advantage_estimator is grpo unless given")
    shared = keys.take("colocate")
    if is_set(shared) and shared is not None:
        findings.put("workload.rollout", "colocated", shared)
    else:
        findings.put("workload.rollout", "separate", Item(keys.file, "rollout_num_gpus", "devices of their own"))


def _batch(keys: Keys, findings: Findings) -> None:
    """A rollout's samples in one step or several; rows are packed by tokens, or come by micro-batches."""
    prompts, size = as_number(keys.look("rollout_batch_size")), findings.values.get("workload.group_size") or 1
    steps = as_number(keys.look("num_steps_per_rollout")) or 1
    if "global_batch_size" not in keys and prompts:
        keys.put("global_batch_size", int(prompts * size // steps), keys.items["rollout_batch_size"].line)
    batch, rollouts = as_number(keys.look("global_batch_size")), keys.take("num_rollout")
    if rollouts is not None and batch and prompts and (number := as_number(rollouts.value)):
        keys.put("train_iters", int(number * max(1, prompts * size // batch)), rollouts.line)
    keys.take("rollout_batch_size")
    packed, tokens = keys.take("use_dynamic_batch_size"), keys.take("max_tokens_per_gpu")
    if packed is None or tokens is None:
        if "micro_batch_size" not in keys:
            keys.put("micro_batch_size", 1)
        return
    findings.put("workload.packing", True, packed)
    keys.take("micro_batch_size")
    length, split = findings.values.get("workload.seq_len"), as_number(keys.look("context_parallel_size")) or 1
    room = as_number(tokens.value)
    answer = findings.values.get("workload.response_len")
    if length is None and room and room * split > (answer or 0):
        length = int(room * split)
        longest = "rows of as many tokens as go into a micro-step: time is no more than said"
        findings.default("workload.seq_len", length, f"{tokens.origin}: {longest}")
    if length is None or room is None:
        findings.block("workload.micro_batch", tokens, "packs rows by tokens; give rows per device and micro-step")
        return
    rows = longest_rows(room * split, length, None)
    findings.default(
        "workload.micro_batch", rows, f"{tokens.origin}: so many of the longest rows in {int(room)} tokens"
    )


COMMANDS = {"slime": read_command}
