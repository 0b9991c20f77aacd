"""NVIDIA's srt-slurm recipes (docs/config-reference.md, 2026-09): an engine's options, and the nodes that it has."""

from __future__ import annotations

from launchers.engines.sglang import read as sglang
from launchers.engines.trtllm import read as trtllm
from launchers.engines.vllm import read as vllm
from launchers.reading.devices import accelerator
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number
from launchers.reading.formats import Format

_ENGINES = {"sglang": sglang.read, "trtllm": trtllm.read, "vllm": vllm.read}
_LOAD = {"isl": "workload.input_len", "osl": "workload.output_len"}


def score(keys: Keys) -> int:
    marks = ("resources.gpu_type", "resources.gpus_per_node", "model.container", "model.precision")
    return 6 * sum(name in keys for name in marks) if "backend.type" in keys else 0


def read(keys: Keys, findings: Findings) -> None:
    engine = keys.items["backend.type"]
    reader = _ENGINES.get(str(engine.value))
    apart = next((keys.items[name] for name in keys.below("resources") if "prefill" in name), None)
    _devices(keys, findings, apart is not None)
    if apart is not None:
        why = "prompts are read on other devices than answers are made on: give one pool's options as its own config"
        findings.block("workload", apart, why)
    elif reader is None:
        findings.block("workload.engine", engine, "is no engine that is read here")
    else:
        section = f"backend.{engine.value}_config.aggregated"
        options = Keys(keys.file)
        for name in list(keys.below(section)):
            item = keys.items.pop(name)
            options.put(name.removeprefix(f"{section}."), item.value, item.line)
        # Of the container, where what model.path names is.
        path, served = (options.take(name) for name in ("model-path", "served-model-name"))
        reader(options, findings, served or keys.take("model.path") or path)
    for name, field in _LOAD.items():
        findings.whole(field, keys.take(f"benchmark.{name}"))


def _devices(keys: Keys, findings: Findings, are_apart: bool) -> None:
    if (kind := keys.take("resources.gpu_type")) is not None:
        accelerator(findings, kind, str(kind.value))
    each, nodes, copies, own = (
        keys.take(f"resources.{name}") for name in ("gpus_per_node", "agg_nodes", "agg_workers", "gpus_per_agg")
    )
    findings.whole("per_node", each)
    if are_apart:
        return
    count = as_number(copies.value) if copies is not None else 1
    sizes = [as_number(item.value) for item in (each, nodes) if item is not None]
    if own is not None:
        findings.whole("devices", own)
    elif len(sizes) == 2 and None not in sizes and count and nodes is not None:
        of_one = int(sizes[0] or 0) * int(sizes[1] or 0) // int(count)
        findings.put("devices", of_one, Item(keys.file, nodes.key, of_one, nodes.line))
    findings.whole("copies", copies)


FORMATS = (Format("srt-slurm recipe", score, read),)
