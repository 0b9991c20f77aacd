"""ROLL's YAML, whose words mean what verl's do. Words: fields.yaml."""

from __future__ import annotations

import re
from dataclasses import replace

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth
from launchers.reading.formats import Format
from launchers.reading.mapped import resolve
from launchers.tables import table
from launchers.verl.read import read_as

_PROGRAM = "roll"
_TRAIN, _ENGINE = "actor_train", "actor_infer"
_CONFIG = f"{_TRAIN}.strategy_args.strategy_config"
_ACTOR, _MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.model"


def score(keys: Keys) -> int:
    marks = (
        f"{_TRAIN}.strategy_args.strategy_name",
        f"{_TRAIN}.device_mapping",
        f"{_ENGINE}.device_mapping",
        "pretrain",
    )
    return 6 * sum(name in keys for name in marks)


def read(keys: Keys, findings: Findings) -> None:
    rows = table(f"{_PROGRAM}/fields")
    resolve(keys)
    kind = keys.take("adv_estimator")
    if kind is not None:
        keys.adopt(replace(kind, value=rows["estimators"].get(str(kind.value), kind.value)), "algorithm.adv_estimator")
    engine = keys.take(f"{_TRAIN}.strategy_args.strategy_name")
    if engine is not None:
        keys.adopt(replace(engine, value=rows["trains"].get(str(engine.value), engine.value)), f"{_ACTOR}.strategy")
    _recompute(keys)
    _lengths(keys)
    _batch(keys, findings, _placed(keys, findings))
    read_as(_PROGRAM, keys, findings)


def _recompute(keys: Keys) -> None:
    off = keys.items.get(f"{_TRAIN}.model_args.disable_gradient_checkpointing")
    if off is not None:
        keys.adopt(replace(off, value=as_truth(off.value) is not True), f"{_MODEL}.enable_gradient_checkpointing")


def _lengths(keys: Keys) -> None:
    """sequence_length is a whole row, in agents of several turns and their observations."""
    whole, answer = keys.items.get("sequence_length"), keys.look(f"{_ENGINE}.generating_args.max_new_tokens")
    if whole is None or "response_length" in keys or not (length := as_number(whole.value)):
        return
    tokens = as_number(answer) or length
    keys.adopt(replace(whole, value=int(min(tokens, length))), "response_length")
    keys.adopt(replace(whole, value=max(0, int(length - tokens))), "prompt_length")


def _devices(keys: Keys, role: str) -> tuple[Item | None, set[int]]:
    """The numbers of a role's devices: list(range(0, 8)) or [0, 1]."""
    item = keys.items.get(f"{role}.device_mapping")
    text = str(item.value) if item is not None else ""
    if match := re.fullmatch(r"list\(range\((\d+), *(\d+)\)\)", text):
        return item, set(range(int(match[1]), int(match[2])))
    return item, {int(number) for number in re.findall(r"\d+", text)} if re.fullmatch(r"[\[\]\d, ]+", text) else set()


def _placed(keys: Keys, findings: Findings) -> int:
    """The training's own devices; engines are on the same, on others, or on some of both."""
    item, train = _devices(keys, _TRAIN)
    other, engines = _devices(keys, _ENGINE)
    if item is None or not train:
        place = item or Item(keys.file, _TRAIN, "device_mapping")
        findings.block("cluster.count", place, "names the training's devices in a way that is not read")
        return 0
    most = int(as_number(keys.look("num_gpus_per_node")) or 8)
    per_node = min(len(train), most)
    keys.adopt(replace(item, value=per_node), "trainer.n_gpus_per_node")
    keys.adopt(replace(item, value=max(1, len(train) // per_node)), "trainer.nnodes")
    if other is not None and engines and not engines & train:
        findings.put("workload.rollout", "separate", replace(other, value="engines on devices of their own"))
    return len(train)


def _batch(keys: Keys, findings: Findings, devices: int) -> None:
    """A step takes a device's rows as often as they accumulate, from every replica."""
    below = f"{_TRAIN}.training_args"
    rows, times = (
        keys.items.get(f"{below}.{name}") for name in ("per_device_train_batch_size", "gradient_accumulation_steps")
    )
    splits = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
    split = as_number(keys.look(f"{_TRAIN}.model_args.ulysses_size")) or 1
    for name in splits:
        split *= as_number(keys.look(f"{_CONFIG}.{name}")) or 1
    if rows is None or not devices or not (each := as_number(rows.value)):
        return
    samples = int(each * (as_number(times.value) or 1 if times is not None else 1) * max(1, devices // split))
    findings.put("workload.global_batch", samples, replace(rows, value=f"{samples} of all replicas"))


FORMATS = (Format("ROLL YAML", score, read),)
