"""verl: its PPO and GRPO trainer by key=value words or YAML. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_MODEL, _ACTOR, _ROLLOUT = "actor_rollout_ref.model", "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


def score(keys: Keys) -> int:
    marks = (f"{_MODEL}.path", f"{_ACTOR}.ppo_mini_batch_size", f"{_ROLLOUT}.n", "algorithm.adv_estimator")
    return 6 * sum(name in keys for name in marks)


def read(keys: Keys, findings: Findings) -> None:
    words = table("verl/fields")
    findings.word("workload.stage", keys.take("algorithm.adv_estimator"), words["stages"])
    findings.default("workload.stage", "ppo", "adv_estimator is gae unless given")
    if (model := keys.take(f"{_MODEL}.path")) is not None:
        findings.put("model", model.value, model)
    _lengths(keys, findings)
    _batches(keys, findings)
    _method(keys, findings)
    findings.whole("per_node", keys.take("trainer.n_gpus_per_node"))
    findings.whole("nodes", keys.take("trainer.nnodes"))
    findings.number("workload.epochs", keys.take("trainer.total_epochs"))
    findings.whole("workload.steps", keys.take("trainer.total_training_steps"))
    findings.truth("workload.packing", keys.take(f"{_MODEL}.use_remove_padding"))
    findings.word(
        "layout.recompute", keys.take(f"{_MODEL}.enable_gradient_checkpointing"), {"true": "full", "false": "none"}
    )
    findings.default("layout.recompute", "full", "enable_gradient_checkpointing is on unless given")
    findings.word("workload.precision", keys.take(f"{_ACTOR}.fsdp_config.dtype"), words["precisions"])
    findings.whole("layout.cp", keys.take(f"{_ACTOR}.ulysses_sequence_parallel_size"))
    if (engine := keys.take(f"{_ACTOR}.strategy")) is not None and engine.value not in ("fsdp", "fsdp2"):
        findings.block("layout.zero_stage", engine, "is another backend than FSDP, whose layout is not read")
    rows = [name for name in keys.items if name.startswith((f"{_ACTOR}.megatron.", f"{_ACTOR}.veomni."))]
    for name in rows:
        findings.block("layout.tp", keys.items.pop(name), "is of verl's Megatron backend, which is not read")
    findings.put("workload.framework", "verl", Item(keys.file, "verl", "verl"))
    for field, (value, why) in words["defaults"].items():
        findings.default(field, value, why)
    leave_rest(keys, findings, "verl")


def _lengths(keys: Keys, findings: Findings) -> None:
    """A row is a prompt and its answer."""
    prompt, answer = keys.take("data.max_prompt_length"), keys.take("data.max_response_length")
    response = findings.whole("workload.response_len", answer)
    length = as_number(prompt.value) if prompt is not None else None
    if prompt is not None and length is not None and response is not None:
        most = int(length) + response
        findings.block(
            "workload.seq_len", prompt, f"is the longest prompt; rows are at most {most} tokens, give their mean"
        )


def _batches(keys: Keys, findings: Findings) -> None:
    """A step takes ppo_mini_batch_size prompts with rollout.n answers each. With use_dynamic_bsz rows are packed by
    tokens, of which a Plan has no word."""
    answers = findings.whole("workload.group_size", keys.take(f"{_ROLLOUT}.n")) or 1
    prompts = keys.take(f"{_ACTOR}.ppo_mini_batch_size")
    count = as_number(prompts.value) if prompts is not None else None
    if prompts is not None and count is not None:
        findings.put("workload.global_batch", int(count) * answers, prompts)
    micro = keys.take(f"{_ACTOR}.ppo_micro_batch_size_per_gpu")
    dynamic = keys.look(f"{_ACTOR}.use_dynamic_bsz")
    if dynamic is True:
        item = keys.take(f"{_ACTOR}.use_dynamic_bsz")
        assert item is not None
        findings.block("workload.micro_batch", item, "packs rows by tokens; give rows a device and micro-step")
    else:
        findings.whole("workload.micro_batch", micro)
    keys.take("data.train_batch_size")
    findings.put("workload.rollout", "colocated", Item(keys.file, _ROLLOUT, "an engine on the same devices"))
    findings.number("workload.engine_share", keys.take(f"{_ROLLOUT}.gpu_memory_utilization"))


def _method(keys: Keys, findings: Findings) -> None:
    rank = keys.take(f"{_MODEL}.lora_rank")
    if rank is not None and (as_number(rank.value) or 0) > 0:
        findings.put("workload.method", "lora", rank)
        findings.whole("workload.lora.rank", rank)
        findings.number("workload.lora.alpha", keys.take(f"{_MODEL}.lora_alpha"))
    findings.default("workload.method", "full", "lora_rank is 0 unless given")
    moved = {name: keys.take(f"{_ACTOR}.fsdp_config.{name}_offload") for name in ("param", "optimizer")}
    if (item := moved["param"]) is not None and item.value is True:
        findings.put("layout.offload", "params", item)
    elif (item := moved["optimizer"]) is not None and item.value is True:
        findings.put("layout.offload", "optimizer", item)


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys = Keys(setting.file)
    arguments, _ = options(setting.file, overrides(keys, start.words))
    for item in arguments.items.values():
        setting.findings.leave(item, "is an option of Hydra's own")
    read(keys, setting.findings)
    return "verl command line"


FORMATS = (Format("verl YAML", score, read),)
COMMANDS = {"verl": read_command}
MODULES = {"verl.trainer.main_ppo": "verl"}
