"""Arguments of the transformers Trainer, which LlamaFactory, TRL, Axolotl and scripts of one's own share."""

from __future__ import annotations

from typing import Any

from launchers.deepspeed import read as deepspeed_file
from launchers.launch.placeholders import MARK
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.tables import table

_ZERO = {"FULL_SHARD": 3, "SHARD_GRAD_OP": 2, "HYBRID_SHARD": 3, "HYBRID_SHARD_ZERO2": 2, "NO_SHARD": 0}
_ZERO |= {str(number): name for number, name in ((1, 3), (2, 2), (3, 0), (4, 3), (5, 2))}
ADAPTERS = ("lora", "qlora", "dora", "pissa")

# FlashAttention with attention sinks, as transformers names it.
OF_SINKS = "kernels-community/vllm-flash-attn3"


def optimizers() -> dict[str, Any]:
    return inverted(table("hf/fields")["optimizers"], table("hf/fields")["other_optimizers"])


def batch(keys: Keys, findings: Findings) -> None:
    findings.whole("workload.micro_batch", keys.take("per_device_train_batch_size"))
    findings.default("workload.micro_batch", 8, "per_device_train_batch_size is 8 unless given")
    findings.whole("accumulation", keys.take("gradient_accumulation_steps"))
    findings.default("accumulation", 1, "gradient_accumulation_steps is 1 unless given")


def length(keys: Keys, findings: Findings, epochs: str = "num_train_epochs", usual: float = 3.0) -> None:
    steps = keys.take("max_steps")
    if steps is not None and (as_number(steps.value) or 0) > 0:
        findings.whole("workload.steps", steps)
    item = keys.take(epochs)
    if item is not None and as_number(item.value) != 0:
        findings.number("workload.epochs", item)
    if not findings.has("workload.steps"):
        findings.default("workload.epochs", usual, f"{epochs} is {usual:g} unless given")


def precision(keys: Keys, findings: Findings, usual: str) -> None:
    """bf16, fp16 and tf32 as one precision; `usual` is the program's where it is told none."""
    bf16, fp16, tf32 = keys.take("bf16"), keys.take("fp16"), keys.take("tf32")
    on = [(item, name) for item, name in ((bf16, "bf16"), (fp16, "fp16")) if is_set(item)]
    for item, name in on:
        assert item is not None
        findings.put("workload.precision", name, item)
    if on or findings.has("workload.precision"):
        return
    switch = bf16 or fp16
    if is_set(tf32) and switch is not None:
        assert tf32 is not None
        findings.put("workload.precision", "tf32", tf32)
    elif switch is not None and usual == "fp32":
        findings.put("workload.precision", "fp32", switch)
    elif bf16 is not None and as_truth(bf16.value) is False:
        findings.put("workload.precision", "fp32", bf16)
    else:
        findings.default("workload.precision", usual, "what the program computes in unless told otherwise")


def optimizer(keys: Keys, findings: Findings, name: str = "optim") -> None:
    findings.word("workload.optimizer", keys.take(name), optimizers())
    findings.default("workload.optimizer", "adamw", f"{name} is AdamW unless given")


def checkpointing(keys: Keys, findings: Findings, usual: bool) -> None:
    item = keys.take("gradient_checkpointing")
    if item is not None and (on := as_truth(item.value)) is not None:
        findings.recomputes.append((on, item))
    elif item is not None:
        findings.block("layout.recompute", item, "is neither true nor false")
    findings.default("layout.recompute", "full" if usual else "none", "gradient_checkpointing unless given")


def compiled(keys: Keys, findings: Findings) -> None:
    findings.truth("workload.compile", keys.take("torch_compile"))


def adapters(keys: Keys, findings: Findings, *, rank: int, alpha: float | None, dropout: float, renamed: bool) -> None:
    """Rank, scale, dropout, targets and modules that are trained in full; `renamed`: LlamaFactory's own names."""
    keys_of = ("lora_rank", "lora_target", "additional_target")
    names = keys_of if renamed else ("lora_r", "lora_target_modules", "lora_modules_to_save")
    rank_read = findings.whole("workload.lora.rank", keys.take(names[0]))
    findings.default("workload.lora.rank", rank, f"{names[0]} is {rank} unless given")
    findings.number("workload.lora.alpha", keys.take("lora_alpha"))
    findings.default("workload.lora.alpha", alpha or 2 * (rank_read or rank), "lora_alpha unless given")
    findings.number("workload.lora.dropout", keys.take("lora_dropout"))
    findings.default("workload.lora.dropout", dropout, f"lora_dropout is {dropout:g} unless given")
    targets(findings, keys.take(names[1]))
    embeddings(findings, keys.take(names[2]))


def targets(findings: Findings, item: Item | None) -> None:
    """Names of modules as a list or joined by commas; patterns are not read."""
    if item is None:
        return
    values = item.value if isinstance(item.value, list) else str(item.value).split(",")
    words = [str(word).strip().removeprefix("*.") for word in values]
    if any(word in ("all", "all-linear") for word in words):
        findings.put("workload.lora.targets", "all-linear", item)
    elif words and all(word.replace("_", "").replace(".", "").isalnum() for word in words):
        findings.put("workload.lora.targets", ",".join(words), item)
    else:
        findings.leave(item, "a pattern, not names of modules")
        findings.warn(
            f"{item.origin}: a pattern of module names is not read; adapters on all linear layers are assumed"
        )


def embeddings(findings: Findings, item: Item | None) -> None:
    """Embedding and head that are trained in full beside the adapters."""
    if item is None:
        return
    values = item.value if isinstance(item.value, list) else str(item.value).split(",")
    pairs = [set(row[1].split(",")) for row in table("data/families")["embeddings"]]
    words = {str(word).strip() for word in values if str(word).strip()}
    if any(words == pair for pair in pairs):
        findings.put("workload.lora.train_embeddings", True, item)
    elif words and words <= {word for pair in pairs for word in pair}:
        why = "only embedding and head together have a place in a Plan, and what both take is the most"
        findings.at_most("workload.lora.train_embeddings", True, item, why)
    elif words:
        findings.block("workload.lora.train_embeddings", item, "names modules that have no place in a Plan")


def quantised_checkpoint(findings: Findings, item: Item | None) -> str | None:
    """How the weights of a checkpoint are packed, as its name says: gptq, another name, or None."""
    name = str(item.value).lower() if item is not None else ""
    for word in ("gptq", "awq", "aqlm", "bnb-4bit", "bnb-nf4", "int8", "int4", "-fp8", "mxfp4"):
        if word in name:
            return "other" if word != "gptq" or "int8" in name or "8bit" in name else "gptq"
    return None


def deepspeed(keys: Keys, findings: Findings) -> None:
    """The DeepSpeed file that is named, or the config that stands in its place."""
    inner = [name for name in keys.below("deepspeed") if name != "deepspeed"]
    if inner:
        part = Keys(keys.file)
        for name in inner:
            item = keys.items.pop(name)
            part.put(name.removeprefix("deepspeed."), item.value, item.line)
        deepspeed_file.read(part, findings)
        return
    item = keys.take("deepspeed")
    if item is not None and isinstance(item.value, str) and item.value:
        findings.refer(item, item.value, "DeepSpeed's ZeRO stage and offload")
        findings.backend = findings.backend or ("deepspeed", item)


def fsdp(keys: Keys, findings: Findings, version: int | None = None) -> None:
    """`fsdp: full_shard auto_wrap` with `fsdp_config.…` (keys with and without fsdp_ before them), FSDP 1 and 2."""
    words = _fsdp_files(keys, findings)
    version_item = (
        keys.take("fsdp_version") or keys.take("fsdp_config.fsdp_version") or keys.take("fsdp_config.version")
    )
    number = as_number(version_item.value) if version_item else version

    def take(name: str) -> Item | None:
        long = keys.take(f"fsdp_config.fsdp_{name}")
        return keys.take(f"fsdp_config.{name}") or long

    reshard, strategy = take("reshard_after_forward"), take("sharding_strategy")
    offload, checkpoints = take("offload_params"), take("activation_checkpointing")
    config = any(True for _ in keys.below("fsdp_config")) or any((reshard, strategy, offload, checkpoints))
    parts = words.value if words and isinstance(words.value, list) else str(words.value).split() if words else []
    if not parts and (words is not None or (not config and version_item is None)):
        # Where `fsdp` itself is there and empty, its settings change nothing (transformers training_args.py).
        return
    origin = version_item or words or reshard or strategy or offload or checkpoints
    if origin is None:
        origin = next(keys.items[name] for name in keys.below("fsdp_config"))
    findings.backend = ("fsdp2" if number == 2 else "fsdp1", origin)
    if number == 2 and reshard is not None and as_truth(reshard.value) is not None:
        findings.put("layout.zero_stage", 3 if as_truth(reshard.value) else 2, reshard)
        if strategy is not None:
            findings.leave(strategy, "FSDP2 has reshard_after_forward in its place")
    elif number == 2:
        findings.default("layout.zero_stage", 3, "FSDP2 reshards after the forward pass unless told otherwise")
    elif strategy is not None:
        findings.word("layout.zero_stage", strategy, _ZERO)
        if "HYBRID" in str(strategy.value):
            findings.warn(f"{strategy.origin}: shard groups are the devices of a node; give shard_group")
    elif words is not None:
        named = next((name for name in map(str, parts) if name.upper() in _ZERO), None)
        if named is None:
            findings.block("layout.zero_stage", words, "names no way of sharding that is known")
        else:
            findings.put("layout.zero_stage", _ZERO[named.upper()], words)
    else:
        findings.default("layout.zero_stage", 3, "FSDP shards fully unless told otherwise")
    if is_set(offload) or "offload" in parts:
        findings.put("layout.offload", "params", offload or words or origin)
    elif offload is not None:
        findings.imply("layout.offload", "none", offload)
    if checkpoints is not None and (on := as_truth(checkpoints.value)) is not None:
        findings.recomputes.append((on, checkpoints))


def _fsdp_files(keys: Keys, findings: Findings) -> Item | None:
    """The words of `fsdp`, where it names no file; files of settings are noted (`launchers.fsdp`)."""
    words, config = keys.take("fsdp"), keys.take("fsdp_config")
    if config is not None and str(config.value).endswith(".json"):
        findings.refer(config, str(config.value), "FSDP's settings")
    if words is not None and str(words.value).endswith(".json"):
        findings.refer(words, str(words.value), "devices and sharding")
        return None
    return words


def eight_bits(findings: Findings, item: Item) -> None:
    """Adapters over frozen weights of 8 bits, which a Plan has no word for: those of 16 bits take more."""
    why = "only frozen weights of 4 and 16 bits have a place in a Plan, and what those of 16 bits take is the most"
    findings.at_most("workload.method", "lora", item, why)


def model(findings: Findings, item: Item | None) -> None:
    """The checkpoint; a placeholder is none."""
    if item is None:
        return
    if isinstance(item.value, list) and len(item.value) > 1:
        findings.block("model", item, "names several; give one")
    elif not isinstance(item.value, str) or MARK in item.value or "<" in item.value:
        findings.leave(item, "a placeholder, not a model")
    else:
        findings.put("model", item.value, item)
