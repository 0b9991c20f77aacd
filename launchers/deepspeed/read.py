"""DeepSpeed JSON. What says "auto" is taken from the program's own arguments, so nothing is read from it."""

from __future__ import annotations

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest

_OPTIMIZERS = {"adam": "adamw", "adamw": "adamw", "lion": "lion", "sgd": "sgd", "muon": "muon"}

_BATCH = ("train_batch_size", "gradient_accumulation_steps")
# Words of which one stands in every config of DeepSpeed that says more than a batch.
_BESIDE = ("optimizer.type", "scheduler.type", "fp16.enabled", "bf16.enabled", "steps_per_print", "gradient_clipping",
           "wall_clock_breakdown")  # fmt: skip


def score(keys: Keys) -> int:
    markers = (
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "train_batch_size",
        "zero_allow_untested_optimizer",
    )
    marks = [name for name in markers if any(True for _ in keys.below(name))]
    if marks == ["train_batch_size"] and not any(name in keys for name in _BESIDE) and len(keys.items) > len(_BATCH):
        # Anybody's word.
        return 0
    return 5 * len(marks)


def read(keys: Keys, findings: Findings) -> None:
    def take(name: str) -> Item | None:
        item = keys.take(name)
        return None if item is None or item.value == "auto" else item

    findings.whole("workload.micro_batch", take("train_micro_batch_size_per_gpu"))
    findings.whole("accumulation", take("gradient_accumulation_steps"))
    findings.whole("workload.global_batch", take("train_batch_size"))
    stage = take("zero_optimization.stage")
    findings.whole("layout.zero_stage", stage, least=0)
    if not findings.has("layout.zero_stage"):
        findings.default("layout.zero_stage", 0, "DeepSpeed shards nothing unless told to")
    findings.backend = ("deepspeed", stage or Item(keys.file, "zero_optimization", None))
    _offload(keys, findings)
    group = take("zero_optimization.zero_hpz_partition_size")
    if group is not None and (as_number(group.value) or 0) > 1:
        findings.whole("layout.shard_group", group)
    mics = take("zero_optimization.mics_shard_size")
    if mics is not None and (as_number(mics.value) or 0) > 1:
        findings.whole("layout.shard_group", mics)
    for name, precision in (("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16")):
        switch = take(f"{name}.enabled")
        if is_set(switch) and switch:
            # The program's own fp8 computes beside bf16, so what it says wins.
            findings.imply("workload.precision", precision, switch)
    split = take("tensor_parallel.autotp_size")
    if split is not None and (as_number(split.value) or 0) > 1:
        findings.block("layout.tp", split, "AutoTP splits only some of the layers")
    kind = take("optimizer.type")
    if kind is not None:
        findings.word("workload.optimizer", Item(kind.file, kind.key, str(kind.value).lower(), kind.line), _OPTIMIZERS)
    leave_rest(keys, findings, "deepspeed")


_SWITCHES = {"cpu_offload": "offload_optimizer", "cpu_offload_params": "offload_param"}


def _offload(keys: Keys, findings: Findings) -> None:
    """Parameters on the host take the optimizer's states along; alone they do not, which no Plan has."""
    for name, section in _SWITCHES.items():
        # Before 0.5 (deepspeed/runtime/zero/config.py new_param).
        switch = keys.take(f"zero_optimization.{name}")
        if is_set(switch) and switch:
            keys.put(f"zero_optimization.{section}.device", "cpu", switch.line)

    def take(name: str) -> Item | None:
        item = keys.take(f"zero_optimization.{name}.device")
        return None if item is None or item.value == "auto" else item

    states, weights = take("offload_optimizer"), take("offload_param")
    devices = {item.value for item in (states, weights) if item is not None}
    if "nvme" in devices:
        item = states if states is not None and states.value == "nvme" else weights
        assert item is not None
        findings.block("layout.offload", item, "disks have no place in a Plan")
    elif weights is not None and weights.value == "cpu":
        if states is None or states.value != "cpu":
            findings.block("layout.offload", weights, "a Plan's offload of parameters takes the optimizer states along")
        else:
            findings.put("layout.offload", "params", weights)
    elif states is not None and states.value == "cpu":
        findings.put("layout.offload", "optimizer", states)
    else:
        findings.default("layout.offload", "none", "DeepSpeed offloads nothing unless told to")


FORMATS = (Format("DeepSpeed JSON", score, read, ("json", "yaml"), order=2),)
