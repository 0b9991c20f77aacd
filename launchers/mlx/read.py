"""mlx-lm YAML and commands. Words: fields.yaml."""

from __future__ import annotations

from dataclasses import replace

from launchers.hf import read as hf
from launchers.reading.commands import merged
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_OWN = ("fine_tune_type", "grad_accumulation_steps", "iters", "adapter_path", "num_layers", "max_seq_length")
_FLAGS = ("train", "test", "mask_prompt", "grad_checkpoint", "trust_remote_code")


def score(keys: Keys) -> int:
    count = sum(name in keys for name in _OWN)
    return 4 * count if count > 1 and ("iters" in keys or "fine_tune_type" in keys) else 0


def read(keys: Keys, findings: Findings) -> None:
    words = table("mlx/fields")
    for name in [name for name in keys.items if "-" in name]:
        item = keys.items.pop(name)
        keys.put(name.replace("-", "_"), item.value, item.line)
    findings.programs.append("mlx")
    findings.default("per_node", 1, "mlx-lm trains on one Mac unless mlx.launch starts it on several")
    findings.default("nodes", 1, "mlx-lm trains on one Mac unless mlx.launch starts it on several")
    _method(keys, findings)
    findings.whole("workload.seq_len", keys.take("max_seq_length"))
    findings.default("workload.seq_len", 2048, "max_seq_length is 2048 unless given")
    findings.whole("workload.micro_batch", keys.take("batch_size"))
    findings.default("workload.micro_batch", 4, "batch_size is 4 unless given")
    accumulation = findings.whole("accumulation", keys.take("grad_accumulation_steps"))
    findings.default("accumulation", 1, "grad_accumulation_steps is 1 unless given")
    iterations = keys.take("iters")
    if iterations is not None and (count := as_number(iterations.value)):
        findings.put("workload.steps", max(1, round(count / (accumulation or 1))), iterations)
    findings.word(
        "workload.optimizer", keys.take("optimizer"), {word: word for word in words["optimizers"]} | {"adam": "adamw"}
    )
    findings.default("workload.optimizer", "adamw", "optimizer is Adam unless given")
    again = keys.take("grad_checkpoint")
    if again is not None and (on := as_truth(again.value)) is not None:
        findings.put("layout.recompute", "full" if on else "none", again)
    findings.default("layout.recompute", "none", "grad_checkpoint is off unless given")
    findings.default("workload.stage", "sft", "mlx_lm.lora trains on conversations as on text")
    findings.default("workload.precision", "bf16", "the checkpoint's type")
    findings.default("workload.packing", False, "samples are padded to the longest of their batch")
    findings.default("layout.zero_stage", 0, "mlx-lm shards nothing")
    findings.default("layout.offload", "none", "host and device share their memory")
    for field in ("layout.tp", "layout.pp", "layout.cp"):
        findings.default(field, 1, "mlx-lm does not split the model this way")
    leave_rest(keys, findings, "mlx")


def _method(keys: Keys, findings: Findings) -> None:
    """Adapters on a checkpoint whose name says 4 bits are QLoRA's."""
    packed = table("mlx/fields")["packed"]
    model, kind = keys.take("model"), keys.take("fine_tune_type")
    is_packed = model is not None and str(model.value).lower().rstrip("/").endswith(packed)
    if model is not None:
        name = str(model.value).rstrip("/")
        hf.model(findings, replace(model, value=name[: -len(packed)].removeprefix("./")) if is_packed else model)
    method = "lora" if kind is None else str(kind.value)
    if method not in ("lora", "dora", "full"):
        assert kind is not None
        findings.block("workload.method", kind, "is no method of mlx-lm")
        return
    origin = (model if is_packed and method == "lora" else kind) or Item(keys.file, "fine_tune_type", method)
    findings.put("workload.method", "qlora" if is_packed and method == "lora" else method, origin)
    findings.default("workload.lora.quantisation", "nf4-single", "a scale and a bias of 16 bits per 64 weights")
    layers = keys.take("num_layers")
    if layers is None or (as_number(layers.value) or 0) > 0:
        findings.block(
            "workload.lora.targets", layers or origin, "trains the last layers alone (num_layers, 16 unless given)"
        )
    rank, scale = keys.take("lora_parameters.rank"), keys.take("lora_parameters.scale")
    number = findings.whole("workload.lora.rank", rank)
    findings.default("workload.lora.rank", 8, "the rank is 8 unless given")
    if scale is not None and (factor := as_number(scale.value)):
        alpha = factor * (number or 8)
        findings.put("workload.lora.alpha", round(alpha, 9), scale)
    findings.number("workload.lora.dropout", keys.take("lora_parameters.dropout"))
    if (names := keys.take("lora_parameters.keys")) is not None:
        findings.put("workload.lora.targets", ",".join(str(name).rpartition(".")[2] for name in names.value), names)


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """mlx_lm.lora …, or mlx_lm lora …"""
    rest = words[1:]
    if words[0].text.rpartition("/")[2] == "mlx_lm":
        if not rest or rest[0].text != "lora":
            return []
        rest = rest[1:]
    return [Program("mlx", rest, Item(setting.file, "command", "mlx_lm.lora", words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _, _ = merged(start, setting, _FLAGS, {"-c": "config"})
    read(keys, setting.findings)
    return "mlx-lm command"


FORMATS = (Format("mlx-lm YAML", score, read),)
COMMANDS = {"mlx": read_command}
CONSOLES = {"mlx_lm.lora": _console, "mlx_lm": _console}
MODULES = {"mlx_lm.lora": "mlx"}
