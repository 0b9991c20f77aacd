"""NeMo 1 and its launcher, YAML: Megatron's arguments under names of its own. Words: fields.yaml."""

from __future__ import annotations

from typing import Any

from launchers.hf import read as hf
from launchers.megatron import read as megatron
from launchers.reading.documents import Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.tables import table

_SPLITS = ("train", "validation", "test")


def score(keys: Keys) -> int:
    markers = ("model.micro_batch_size", "model.tensor_model_parallel_size", "trainer.devices", "trainer.num_nodes",
           "model.global_batch_size")  # fmt: skip
    marks = sum(name in keys for name in markers)
    # One may be of Lightning alone.
    return 3 * marks if marks > 1 else marks


def read(keys: Keys, findings: Findings) -> None:
    """NeMo 1 and its launcher: trainer.* and model.*"""
    words = table("nemo/fields")
    inner = Keys(keys.file)
    for name, argument in words["arguments"].items():
        item = keys.take(name)
        if item is not None and argument not in inner:
            inner.put(argument, item.value, item.line)
    for name in [name for name in keys.below("model") if name.count(".") == 1]:
        item = keys.items.pop(name)
        if item.key.removeprefix("model.") not in inner:
            inner.put(item.key.removeprefix("model."), item.value, item.line)
    for name, fact in (("trainer.num_nodes", "nodes"), ("trainer.devices", "per_node")):
        findings.whole(fact, keys.take(name))
    _switches(inner, words)
    _optimizer(keys, inner, findings, words)
    kind = keys.take("trainer.precision")
    if not any(name in inner for name in ("fp8_format", "fp4_format")):
        findings.word("workload.precision", kind, words["precisions"])
    _data(keys, findings)
    scheme = keys.take("model.peft.peft_scheme")
    tuned = any(True for _ in keys.below("model.data.train_ds")) or scheme is not None
    if scheme is not None and scheme.value == "lora":
        findings.put("workload.method", "lora", scheme)
        findings.whole("workload.lora.rank", keys.take("model.peft.lora_tuning.adapter_dim"))
    elif scheme is not None and scheme.value not in (None, "none"):
        findings.block("workload.method", scheme, "is no method of a Plan")
    if tuned:
        findings.default("workload.stage", "sft", "the data are of instructions")
    name = keys.take("run.name") or keys.take("name")
    megatron.read(inner, findings, program="nemo", names=[name] if name is not None else [])
    hf.compiled(keys, findings)
    leave_rest(keys, findings, "nemo", "megatron")


def _data(keys: Keys, findings: Findings) -> None:
    """Another program's own data stand where NeMo's are a list of paths, one of each split or left to the command."""
    below = [name for name in keys.below("model.data.data_prefix") if name.count(".") > 2]
    other = next((name for name in below if name.rpartition(".")[2] not in _SPLITS), None)
    if other is not None:
        why = "gives NeMo no data: another program does, and trains what it is for (--stage)"
        findings.block("workload.stage", keys.items[other], why)


def _switches(inner: Keys, words: dict[str, Any]) -> None:
    """What NeMo says the other way round, or in one word for several."""
    if (bias := inner.take("bias")) is not None and bias.value is False:
        inner.put("disable_bias_linear", True, bias.line)
    if (act := inner.take("activation")) is not None and "swiglu" in str(act.value):
        inner.put("swiglu", True, act.line)
    if (tied := inner.take("share_embeddings_and_output_weights")) is not None and tied.value is False:
        inner.put("untie_embeddings_and_output_weights", True, tied.line)
    if as_number(inner.look("num_query_groups")):
        inner.put("group_query_attention", True)
    if str(inner.look("normalization") or "").lower() == "rmsnorm":
        inner.put("normalization", "RMSNorm", inner.items["normalization"].line)
    for name, fmt in (("fp8_hybrid", "hybrid"), ("fp8_e4m3", "e4m3"), ("fp8", "hybrid")):
        if is_set(item := inner.take(name)) and item is not None and "fp8_format" not in inner:
            inner.put("fp8_format", fmt, item.line)
    # Its own way of saying none.
    if inner.look("recompute_granularity") is None:
        for name in ("recompute_method", "recompute_num_layers"):
            inner.take(name)


def _optimizer(keys: Keys, inner: Keys, findings: Findings, words: dict[str, Any]) -> None:
    item = keys.take("model.optim.name")
    if item is None:
        return
    known = words["optimizers"].get(str(item.value))
    if known is None:
        findings.block("workload.optimizer", item, "has no counterpart in a Plan")
        return
    inner.put("optimizer", known["optimizer"], item.line)
    if known.get("sharded"):
        inner.put("use_distributed_optimizer", True, item.line)


FORMATS = (Format("NeMo YAML", score, read),)
