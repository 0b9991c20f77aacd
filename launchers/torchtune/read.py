"""torchtune 0.6 recipe YAML. Models are told by their builder and the folder of the checkpoint."""

from __future__ import annotations

import re

from estimator.errors import PlanError
from knowledge.models.catalogue import find_model
from launchers.hf import read as hf
from launchers.reading.commands import merged
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides
from launchers.shell.scripts import Word
from launchers.shell.setting import TORCHRUN_FLAGS, Program, ScriptSetting, counts, until_program
from launchers.tables import table

_COMPONENT = "_component_"
_ADAPTS = re.compile(r"\b(q?lora|dora)_")


def score(keys: Keys) -> int:
    return 20 if any(name.endswith(_COMPONENT) for name in keys.items) else 0


def published(file: str, config: Item) -> Keys | None:
    """A config of torchtune's own that a command names instead of a file; None for others."""
    known = table("torchtune/configs")
    row = dict(known["configs"].get(str(config.value), {}))
    if not row:
        return None
    keys = Keys(file)
    builder = row.pop("model")
    values = known["usual"] | (known["adapters"] if _ADAPTS.search(builder) else {})
    values |= {known["keys"][name]: value for name, value in row.items() if name != "folder"}
    values |= {f"model.{_COMPONENT}": f"torchtune.models.{builder}", "checkpointer.checkpoint_dir": row["folder"]}
    for name, value in values.items():
        keys.items[name] = Item(f"torchtune's {config.value}", name, value)
    return keys


def read(keys: Keys, findings: Findings, recipe: Item | None = None) -> None:
    words = table("torchtune/fields")
    findings.programs.append("torchtune")
    if "single_device" in keys.file:
        findings.default("per_node", 1, "the recipe of its name runs on one device")
        findings.default("nodes", 1, "the recipe of its name runs on one device")
    _resolve(keys)
    builder = keys.take(f"model.{_COMPONENT}")
    _model(keys, findings, builder)
    _stage(keys, findings, recipe)
    _method(keys, findings, builder)
    # Before torchtune 0.3 the data set cut its rows itself.
    for key in ("tokenizer.max_seq_len", "dataset.max_seq_len"):
        findings.whole("workload.seq_len", keys.take(key))
    findings.whole("workload.micro_batch", keys.take("batch_size"))
    findings.whole("accumulation", keys.take("gradient_accumulation_steps"))
    findings.default("accumulation", 1, "gradient_accumulation_steps is 1 unless given")
    epochs, steps = keys.take("epochs"), keys.take("max_steps_per_epoch")
    count = as_number(epochs.value) if epochs is not None else 1
    if steps is not None and (each := as_number(steps.value)) and count:
        findings.put("workload.steps", int(each * count), steps)
    else:
        findings.number("workload.epochs", epochs)
    findings.word("workload.precision", keys.take("dtype"), inverted(words["precisions"]))
    optimizer = keys.take(f"optimizer.{_COMPONENT}")
    findings.word(
        "workload.optimizer", optimizer, inverted(words["optimizers"], {"torchao.optim.AdamW8bit": "adamw_8bit"})
    )
    findings.truth("workload.optimizer_in_backward", keys.take("optimizer_in_bwd"))
    loss = keys.take(f"loss.{_COMPONENT}")
    if loss is not None:
        plain = loss.value == words["losses"]["plain"]
        fused = str(loss.value).rpartition(".")[2] in ("CEWithChunkedOutputLoss", "LinearCrossEntropyLoss")
        if plain or fused:
            findings.put("workload.fused_loss", fused, loss)
        elif str(loss.value).startswith(("torch.", "torchtune.")):
            findings.leave(loss, "is no loss of language modelling")
        else:
            findings.block("workload.fused_loss", loss, "is a loss of one's own, and may hold what no Plan has")
    checkpoints = keys.take("enable_activation_checkpointing")
    if checkpoints is not None and (on := as_truth(checkpoints.value)) is not None:
        findings.recomputes.append((on, checkpoints))
    findings.default("layout.recompute", "none", "enable_activation_checkpointing is off unless given")
    _host(keys, findings)
    findings.truth("workload.compile", keys.take("compile"))
    reshard = keys.take("fsdp_reshard_after_forward")
    if reshard is not None and (on := as_truth(reshard.value)) is not None:
        findings.put("layout.zero_stage", 3 if on else 2, reshard)
    findings.default("layout.zero_stage", 3, "recipes for several devices shard with FSDP2")
    findings.whole("layout.tp", keys.take("tensor_parallel_dim"))
    findings.whole("dp_shard", keys.take("data_parallel_shard_dim"), least=-1)
    findings.whole("dp_replicate", keys.take("data_parallel_replicate_dim"))
    findings.truth("workload.packing", keys.take("dataset.packed"))
    findings.default("workload.packing", False, "dataset.packed is off unless given")
    leave_rest(keys, findings, "torchtune")


def _resolve(keys: Keys) -> None:
    """${name} becomes the value of that key; other interpolations stay as they are, and are not read."""
    for _ in range(3):
        for item in list(keys.items.values()):
            if isinstance(item.value, str) and (match := re.fullmatch(r"\$\{([A-Za-z0-9_.]+)\}", item.value)):
                keys.put(item.key, keys.look(match[1]) or item.value, item.line)
            elif isinstance(item.value, str) and "${" in item.value:
                text = re.sub(
                    r"\$\{([A-Za-z0-9_.]+)\}",
                    lambda findings: str(keys.look(findings[1])) if findings[1] in keys else findings[0],
                    item.value,
                )
                keys.put(item.key, text[:2000], item.line)


def _model(keys: Keys, findings: Findings, builder: Item | None) -> None:
    """The folder's name, where the builder is the one for a model of that name."""
    folder = keys.take("checkpointer.checkpoint_dir")
    if builder is None or folder is None:
        return
    # Meta's own files lie in a folder of that name below the model's.
    name = re.sub(r"/original$", "", str(folder.value).rstrip("/")).rpartition("/")[2]
    built = _without_adapters(str(builder.value).removeprefix("torchtune.models."))
    for pattern, row in table("torchtune/fields")["models"]:
        if row["builder"] == built and re.match(pattern, name.lower()):
            findings.put("model", name, folder)
            return
    size = re.search(r"_(\d+(?:_\d+)?)b(_|$)", built)
    if size and size[1].replace("_", ".") + "b" in name.lower() and _in_catalogue(name):
        findings.put("model", name, folder)
        return
    # What a builder builds has one shape, whatever the folder of its weights is called.
    rows = table("torchtune/configs")["configs"].values()
    if usual := next((row["folder"] for row in rows if _without_adapters(row["model"]) == built), None):
        findings.put("model", usual, builder)
        findings.leave(folder, f"is no name of a model that is known; {built} builds {usual}")
        return
    findings.block("model", builder, f"no model is known that this builds and that would be called {name}")


def _without_adapters(builder: str) -> str:
    return re.sub(r"\.(q?lora|dora)_", ".", builder)


def _in_catalogue(name: str) -> bool:
    try:
        return bool(find_model(name))
    except PlanError:
        return False


def _stage(keys: Keys, findings: Findings, recipe: Item | None) -> None:
    loss, data = keys.items.get(f"loss.{_COMPONENT}"), keys.items.get(f"dataset.{_COMPONENT}")
    name = str(recipe.value) if recipe is not None else ""
    if loss is not None and "DPOLoss" in str(loss.value):
        findings.put("workload.stage", "dpo", loss)
    elif any(word in name for word in ("ppo", "grpo", "knowledge_distillation", "qat", "eval", "generate", "quantize")):
        assert recipe is not None
        findings.block("workload.stage", recipe, "recipes of this kind are not read")
    elif loss is None:
        origin = data or Item(keys.file, "loss", None)
        findings.block("workload.stage", origin, "the file has no loss, so its recipe is no fine-tuning")
    elif "teacher_model._component_" in keys:
        findings.block("workload.stage", keys.items["teacher_model._component_"], "distillation has no place in a Plan")
    elif data is not None and str(data.value).endswith("text_completion_dataset"):
        findings.put("workload.stage", "pretrain", data)
    else:
        findings.default("workload.stage", "sft", "the data set is of instructions or conversations")


def _method(keys: Keys, findings: Findings, builder: Item | None) -> None:
    if builder is None:
        findings.block("workload.method", Item(keys.file, "model", None), "no builder is named")
        return
    name = str(builder.value).rpartition(".")[2]
    packed, dora = keys.take("model.quantize_base"), keys.take("model.use_dora")
    if not re.match(r"(q?lora|dora)_", name):
        findings.put("workload.method", "full", builder)
        return
    if is_set(packed) or name.startswith("qlora_"):
        findings.put("workload.method", "qlora", packed if is_set(packed) and packed else builder)
        findings.default("workload.lora.quantisation", "nf4", "torchao's NF4 quantises its scales too")
    elif is_set(dora) and dora:
        findings.put("workload.method", "dora", dora)
    else:
        findings.put("workload.method", "lora", builder)
    findings.whole("workload.lora.rank", keys.take("model.lora_rank"))
    findings.number("workload.lora.alpha", keys.take("model.lora_alpha"))
    findings.number("workload.lora.dropout", keys.take("model.lora_dropout"))
    for name, usual in (("rank", 8), ("alpha", 16), ("dropout", 0.0)):
        findings.default(f"workload.lora.{name}", usual, f"lora_{name} is {usual:g} unless given")
    attention, mlp = keys.take("model.lora_attn_modules"), keys.take("model.apply_lora_to_mlp")
    words = table("torchtune/fields")
    if attention is None or not isinstance(attention.value, list):
        return
    names = inverted(words["attention_modules"])
    modules = [names.get(str(word), str(word)) for word in attention.value]
    if is_set(mlp):
        modules += words["mlp_modules"]
    every = {*names.values(), *words["mlp_modules"]}
    findings.put("workload.lora.targets", "all-linear" if set(modules) == every else ",".join(modules), attention)
    if is_set(head := keys.take("model.apply_lora_to_output")) and head:
        findings.leave(head, "adapters on the head have no place in a Plan")


def _host(keys: Keys, findings: Findings) -> None:
    activations, states = keys.take("enable_activation_offloading"), keys.take("fsdp_cpu_offload")
    if is_set(states) and states:
        findings.put("layout.offload", "params", states)
    elif is_set(activations) and activations:
        findings.put("layout.offload", "activations", activations)
    elif (states or activations) is not None:
        findings.put("layout.offload", "none", states or activations)  # type: ignore[arg-type]
    hf.fsdp(keys, findings, version=2)


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    if len(words) < 2 or words[1].text != "run":
        return []
    arguments, rest = until_program(words[2:], TORCHRUN_FLAGS)
    keys, _ = options(setting.file, arguments, TORCHRUN_FLAGS)
    counts(keys, setting, nodes="nnodes", per_node="nproc_per_node")
    if not rest:
        return []
    name = Item(setting.file, "recipe", rest[0].text, rest[0].line)
    if "single_device" in rest[0].text:
        # Whatever the scheduler gives it.
        for fact in ("nodes", "per_node"):
            setting.findings.withdraw(fact, "is more than this recipe takes")
            setting.findings.put(fact, 1, name)
    return [Program("torchtune", rest[1:], name, environment)]


def read_command(start: Program, setting: ScriptSetting) -> str | None:
    keys, rest, missing = merged(start, setting, published=published)
    if missing is not None or not keys.items:
        setting.findings.warn(
            f"{start.name.origin}: torchtune's own config {missing.value if missing else ''} is not given"
        )
        return None
    overrides(keys, rest)
    read(keys, setting.findings, start.name)
    return "torchtune command"


FORMATS = (Format("torchtune YAML", score, read),)
COMMANDS = {"torchtune": read_command}
CONSOLES = {"tune": _console}
