"""AReaL's YAML of reinforcement learning, whose words mean what verl's do. Words: fields.yaml."""

from __future__ import annotations

import re
from dataclasses import replace

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.formats import Format
from launchers.reading.mapped import resolve
from launchers.tables import table
from launchers.verl.read import read_as

_PROGRAM = "areal"
_ACTOR, _MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.model"


def score(keys: Keys) -> int:
    backend = "actor.backend" in keys or "allocation_mode" in keys
    return 6 * sum(
        (backend, "actor.path" in keys, "gconfig.n_samples" in keys, "actor.mb_spec.max_tokens_per_mb" in keys)
    )


def read(keys: Keys, findings: Findings) -> None:
    resolve(keys)
    _placed(keys, findings)
    _batches(keys, findings)
    rank = keys.take("actor.lora_rank")
    if is_set(keys.take("actor.use_lora")) and rank is not None:
        keys.adopt(rank, f"{_MODEL}.lora_rank")
    if any(keys.below("critic")):
        first = keys.items[next(keys.below("critic"))]
        keys.adopt(replace(first, value="gae"), "algorithm.adv_estimator")
    read_as(_PROGRAM, keys, findings)


def _placed(keys: Keys, findings: Findings) -> None:
    """The training's own devices and layout: engines have devices of their own."""
    rows = table(f"{_PROGRAM}/fields")
    item = keys.take("actor.backend") or keys.take("allocation_mode")
    if item is None:
        return
    mode = str(item.value).rpartition("+")[2]
    match = re.fullmatch(r"(?:(\w+):)?((?:[a-z]\d+)+)", mode)
    engine = rows["trains"].get(match[1] or "fsdp") if match else None
    if match is None or engine is None:
        for field in ("cluster.count", "layout.tp", "layout.pp", "layout.ep"):
            findings.block(field, item, "gives devices in a way that is not read")
        return
    sizes = {letter: int(size) for letter, size in re.findall(r"([a-z])(\d+)", match[2])}
    if match[1] is None and sizes.get("p", 1) > 1:
        engine = "megatron"
    devices = sizes.get("d", 1) * sizes.get("t", 1) * sizes.get("p", 1) * sizes.get("c", 1)
    per_node = min(devices, int(as_number(keys.look("cluster.n_gpus_per_node")) or 8))
    keys.adopt(replace(item, value=per_node), "trainer.n_gpus_per_node")
    keys.adopt(replace(item, value=max(1, devices // per_node)), "trainer.nnodes")
    keys.adopt(replace(item, value=engine), f"{_ACTOR}.strategy")
    findings.put("workload.rollout", "separate", replace(item, value="engines on devices of their own"))
    if engine == "megatron":
        for letter, name in rows["letters"].items():
            if letter in sizes:
                keys.adopt(replace(item, value=sizes[letter]), f"{_ACTOR}.megatron.{name}")
        return
    if sizes.get("t", 1) > 1:
        findings.block("layout.tp", item, "splits tensors under FSDP, which the program that stands for it does not")
    keys.adopt(replace(item, value=sizes.get("c", 1)), f"{_ACTOR}.ulysses_sequence_parallel_size")
    tokens = keys.items.get("actor.mb_spec.max_tokens_per_mb")
    if tokens is not None and (room := as_number(tokens.value)):
        # Micro-steps are filled before rows are split among devices.
        keys.adopt(replace(tokens, value=room / sizes.get("c", 1)))


def _batches(keys: Keys, findings: Findings) -> None:
    """A batch of prompts makes several steps; rows are packed up to a number of tokens."""
    prompts, parts = keys.items.get("train_dataset.batch_size"), as_number(keys.look("actor.ppo_n_minibatches"))
    parts = parts or table(f"{_PROGRAM}/fields")["minibatches"]
    if prompts is not None and (count := as_number(prompts.value)):
        keys.adopt(replace(prompts, value=max(1, int(count // parts))), f"{_ACTOR}.ppo_mini_batch_size")
    tokens = keys.items.get("actor.mb_spec.max_tokens_per_mb")
    if tokens is not None:
        keys.adopt(replace(tokens, value=True), f"{_ACTOR}.use_dynamic_bsz")
    else:
        whole = Item(keys.file, "actor.mb_spec", "max_tokens_per_mb is not given")
        findings.block("workload.micro_batch", whole, "takes a batch whole; give rows a device and micro-step")


FORMATS = (Format("AReaL YAML", score, read),)
