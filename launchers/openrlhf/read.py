"""OpenRLHF's trainers by their command lines. Words: fields.yaml."""

from __future__ import annotations

import re
from dataclasses import replace

from launchers.hf.read import targets
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.mapped import read_mapped
from launchers.reading.packed import longest_rows
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_STAGES = {"train_sft": "sft", "train_dpo": "dpo", "train_rm": "rm", "train_kto": "kto"}


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words)
    findings, trainer = setting.findings, _trainer(str(start.name.value))
    if trainer in _STAGES:
        pairs = keys.take("model.ipo_enable") or keys.take("ipo")
        findings.put("workload.stage", "ipo" if is_set(pairs) else _STAGES[trainer], start.name)
    elif trainer == "train_ppo_ray":
        findings.default("workload.stage", "ppo", "the advantage estimator is gae unless given")
        _generation(keys, findings)
    elif trainer.startswith("train"):
        findings.block("workload.stage", start.name, "is no trainer that is known here")
    else:
        findings.idle.append(f"{start.name.origin}: {trainer} trains nothing")
        return table("openrlhf/fields")["title"]
    _method(keys, findings)
    _attention(keys, start.name, findings)
    _packed(keys, findings)
    _passes(keys, findings, trainer)
    read_mapped("openrlhf", keys, findings, _stand_in(trainer, start.name, findings))
    return table("openrlhf/fields")["title"]


def _trainer(name: str) -> str:
    """Of openrlhf.cli.train_sft, and before 0.3 of examples/train_sft.py."""
    return re.split(r"[./]", name.removesuffix(".py"))[-1]


def _attention(keys: Keys, name: Item, findings: Findings) -> None:
    """Before 0.9 attention was eager without flash_attn or packed rows; a command without sections may be of either."""
    is_old = any(word in keys for word in ("pretrain", "train_batch_size", "micro_train_batch_size"))
    says = any(is_set(keys.items.get(word)) for word in ("flash_attn", "packing_samples"))
    if is_old and not says and "attn_implementation" not in keys:
        why = "FlashAttention-2 since OpenRLHF 0.9; before, eager without flash_attn"
        findings.one_of("workload.attention", ("flash", "eager"), name, why)


def _stand_in(trainer: str, name: Item, findings: Findings) -> str | None:
    """Its KTO, which it had until 0.9, is estimated on the same engine."""
    if trainer != "train_kto":
        return None
    findings.warn(f"{name.origin}: DeepSpeed stands for OpenRLHF's KTO: memory and time are less certain")
    return "deepspeed"


def _packed(keys: Keys, findings: Findings) -> None:
    """Rows are packed by tokens: as many of the longest as go in."""
    item, tokens = keys.items.get("train.dynamic_batch_enable"), keys.take("train.max_tokens_per_gpu")
    longest, room = as_number(keys.look("data.max_len")), as_number(tokens.value) if tokens is not None else 16192.0
    if item is None or not is_set(item) or not longest or room is None:
        return
    keys.take("train.dynamic_batch_enable")
    keys.take("train.micro_batch_size")
    split = as_number(keys.look("ds.ring_attn_size")) or 1
    counts = [as_number(keys.look(name)) for name in ("train.batch_size", "actor.num_nodes", "actor.num_gpus_per_node")]
    batch, nodes, per_node = (int(count or 0) for count in counts)
    replicas = nodes * per_node // int(split)
    rows = longest_rows(room * split, longest, batch // replicas if batch and replicas else None)
    findings.default("workload.micro_batch", rows, f"{item.origin}: so many of the longest rows in {int(room)} tokens")


def _passes(keys: Keys, findings: Findings, trainer: str) -> None:
    """Passes over the data; PPO's max_epochs are those over each batch of samples."""
    own, episodes = keys.take("train.max_epochs") or keys.take("max_epochs"), keys.take("train.num_episodes")
    if trainer != "train_ppo_ray":
        findings.number("workload.epochs", own)
        return
    findings.number("workload.epochs", episodes or keys.take("num_episodes"))
    if own is not None and (as_number(own.value) or 1) > 1:
        findings.block("workload.steps", own, "trains on each batch of samples several times; give the steps")


def _method(keys: Keys, findings: Findings) -> None:
    four = keys.take("ds.load_in_4bit") or keys.take("load_in_4bit")
    rank = keys.items.get("ds.lora.rank") or keys.items.get("lora_rank")
    if rank is not None and (as_number(rank.value) or 0) > 0:
        findings.put("workload.method", "qlora" if is_set(four) else "lora", four if four and is_set(four) else rank)
        findings.default("workload.lora.quantisation", "nf4", "its 4-bit weights are NF4 with double quantisation")
        findings.default("workload.lora.alpha", 16.0, "lora.alpha is 16 unless given")
        targets(findings, keys.take("ds.lora.target_modules") or keys.take("target_modules"))


def _generation(keys: Keys, findings: Findings) -> None:
    """Engines on the training's devices where all share them, which sleep while it trains; else on devices of their
    own."""
    shared = keys.take("train.colocate_all") or keys.take("colocate_all_models")
    sleeps = keys.take("vllm.enable_sleep") or keys.take("vllm_enable_sleep")
    prompt = keys.take("prompt_max_len")
    answer, start = keys.items.get("generate_max_len"), as_number(prompt.value) if prompt is not None else None
    if prompt is not None and answer is not None and start and (tokens := as_number(answer.value)):
        longest = f"{prompt.origin} and the answer at their longest: time is no more than said"
        findings.default("workload.seq_len", int(start) + int(tokens), longest)
    if not is_set(shared) or shared is None:
        trainer = keys.items.get("actor.num_gpus_per_node") or keys.items.get("actor_num_gpus_per_node")
        if trainer is not None:
            findings.put("workload.rollout", "separate", replace(trainer, value="devices of their own"))
            for fact in ("nodes", "per_node"):
                findings.withdraw(fact, "counts the engines' devices too")
        _roles(keys, findings)
        return
    findings.put("workload.rollout", "colocated", shared)
    reward = keys.items.get("reward.model_name_or_path") or keys.items.get("reward_pretrain")
    if reward is not None and _estimator(keys) != "gae":
        why = "puts a reward model beside the trained one, which is not counted; give what else is on the devices"
        findings.block("overrides.extra_models_gib", reward, why)
    if not is_set(sleeps):
        findings.block("workload.rollout", shared, "keeps engines awake while it trains (vllm.enable_sleep is off)")


def _estimator(keys: Keys) -> str:
    return str(keys.look("algo.advantage.estimator") or keys.look("advantage_estimator") or "gae")


def _roles(keys: Keys, findings: Findings) -> None:
    """A critic or a reference with devices of its own: a Plan has them beside the trained weights."""
    critic = keys.items.get("critic.num_gpus_per_node") or keys.items.get("critic_num_gpus_per_node")
    beside = keys.take("train.colocate_actor_ref") or keys.take("colocate_actor_ref")
    reference = keys.items.get("ref.num_gpus_per_node") or keys.items.get("ref_num_gpus_per_node")
    if critic is not None and _estimator(keys) == "gae":
        why = "gives the critic devices of its own, which is not modelled; the actor's alone are those of stage grpo"
        findings.block("workload.stage", critic, why)
    elif reference is not None and not is_set(beside):
        findings.warn(f"{reference.origin}: the reference has devices of its own, and is counted beside the actor")


COMMANDS = {"openrlhf": read_command}
MODULES = {"openrlhf.cli.": "openrlhf"}
