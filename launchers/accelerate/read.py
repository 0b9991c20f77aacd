"""accelerate's config YAML, and the same words on its command line."""

from __future__ import annotations

from launchers.hf import read as hf
from launchers.reading.documents import Keys
from launchers.reading.findings import Findings, as_number, inverted
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.tables import table

_SIZES = {
    "tp": "layout.tp",
    "cp": "layout.cp",
    "sp": "layout.cp",
    "dp_replicate": "dp_replicate",
    "dp_shard": "dp_shard",
}


def score(keys: Keys) -> int:
    markers = ("distributed_type", "compute_environment", "num_machines", "num_processes")
    return 4 * sum(name in keys for name in markers)


def read(keys: Keys, findings: Findings) -> None:
    """Counts of the command line were read before and win, as accelerate has it."""
    for name, field in (("num_processes", "devices"), ("num_machines", "nodes")):
        item = keys.take(name)
        if item is not None and (number := as_number(item.value)) is not None and number >= 1:
            findings.note(field, int(number), item)
        elif item is not None:
            findings.block(field, item, "is not a number of devices")
    kind = keys.take("distributed_type")
    words = table("accelerate/fields")
    kinds = [inverted(names) for names in (*words["backends_of"].values(), words["backends"])]
    backend = next((names[kind.value] for names in kinds if kind is not None and kind.value in names), None)
    if backend == "deepspeed" and kind is not None:
        findings.backend = findings.backend or ("deepspeed", kind)
        _deepspeed(keys, findings)
    elif kind is not None and kind.value == "FSDP":
        hf.fsdp(keys, findings, version=1)
    elif backend is None and kind is not None:
        findings.block("workload.framework", kind, "is not read here")
    precision = keys.take("mixed_precision")
    if precision is not None and precision.value in ("bf16", "fp16", "fp8"):
        findings.imply("workload.precision", precision.value, precision)
    elif precision is not None:
        findings.leave(precision, "says only that nothing is mixed, not what weights are in")
    sizes = "parallelism_config.parallelism_config_"
    for name, field in _SIZES.items():
        findings.whole(field, keys.take(f"{sizes}{name}_size"), least=-1 if name == "dp_shard" else 1)
    compiler = keys.take("dynamo_config.dynamo_backend") or keys.take("dynamo_backend")
    if compiler is not None and str(compiler.value).upper() in ("INDUCTOR", "NO"):
        findings.put("workload.compile", str(compiler.value).upper() == "INDUCTOR", compiler)
    if "accelerate" not in findings.programs:
        findings.programs.append("accelerate")
    leave_rest(keys, findings, "accelerate")


def _deepspeed(keys: Keys, findings: Findings) -> None:
    """The DeepSpeed section, which says less than the file that it may name."""
    config = keys.take("deepspeed_config.deepspeed_config_file")
    if config is not None:
        findings.refer(config, str(config.value), "DeepSpeed's ZeRO stage and offload")
    findings.whole("layout.zero_stage", keys.take("deepspeed_config.zero_stage"), least=0)
    if config is None:
        findings.default("layout.zero_stage", 2, "accelerate's DeepSpeed stage is 2 unless given")
    item = keys.take("deepspeed_config.gradient_accumulation_steps")
    if item is not None and item.value != "auto":
        findings.whole("accumulation", item)
    states = keys.take("deepspeed_config.offload_optimizer_device")
    weights = keys.take("deepspeed_config.offload_param_device")
    if weights is not None and weights.value == "cpu":
        findings.put("layout.offload", "params", weights)
    elif states is not None and states.value == "cpu":
        findings.put("layout.offload", "optimizer", states)
    elif next((item for item in (states, weights) if item is not None and item.value == "nvme"), None) is not None:
        findings.block("layout.offload", states or weights, "disks have no place in a Plan")  # type: ignore[arg-type]


FORMATS = (Format("accelerate YAML", score, read, ("yaml", "json"), order=1),)
