"""Arguments that are named as a plan's fields: what our torchrun script gives to a training script of one's own."""

from __future__ import annotations

from launchers.hf import read as hf
from launchers.reading.documents import Keys
from launchers.reading.findings import Findings
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting

_WORKLOAD = ("stage", "method", "seq_len", "micro_batch", "global_batch", "epochs", "steps", "precision", "weights",
             "gradients", "optimizer", "optimizer_in_backward", "tiled_mlp", "attention", "packing", "compile",
             "response_len", "group_size", "fused_loss", "dp_overlap", "tp_overlap", "moe_overlap", "moe_capacity",
             "cuda_graph", "moe_dispatcher", "framework")  # fmt: skip
_LAYOUT = ("dp", "zero_stage", "tp", "pp", "vpp", "cp", "ep", "etp", "sequence_parallel", "schedule", "shard_group",
           "recompute", "offload")  # fmt: skip
_LORA = {"lora_rank": "rank", "lora_alpha": "alpha", "lora_targets": "targets", "lora_dropout": "dropout",
         "train_embeddings": "train_embeddings", "quantisation": "quantisation"}  # fmt: skip
FLAGS = ("packing", "compile", "optimizer_in_backward", "tiled_mlp", "fused_loss", "dp_overlap", "tp_overlap",
         "moe_overlap", "moe_capacity", "sequence_parallel", "train_embeddings")  # fmt: skip


def read(keys: Keys, findings: Findings) -> None:
    hf.model(findings, keys.take("model"))
    for names, section in ((_WORKLOAD, "workload"), (_LAYOUT, "layout")):
        for name in names:
            if (item := keys.take(name)) is not None:
                findings.put(f"{section}.{name}", item.value, item)
    for name, field in _LORA.items():
        if (item := keys.take(name)) is not None:
            findings.put(f"workload.lora.{field}", item.value, item)
    findings.whole("accumulation", keys.take("accumulation"))
    for name in ("tp", "pp", "cp"):
        findings.default(f"layout.{name}", 1, "one unless given")
    for name in FLAGS[:2]:
        findings.default(f"workload.{name}", False, "a switch that is not there")
    hf.deepspeed(keys, findings)
    leave_rest(keys, findings, "hf")


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words, FLAGS)
    read(keys, setting.findings)
    return "arguments named as a plan's fields"


COMMANDS = {"plan": read_command}
