"""Commands of vLLM and SGLang, vLLM's YAML, and the loads of their benchmarks. Words: data/reading/serving.yaml."""

from __future__ import annotations

import re

from launchers.hf import read as hf
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.reading.leftovers import leave_rest
from launchers.tables import table

_LOAD = {
    "random_input_len": "workload.input_len",
    "random_output_len": "workload.output_len",
    "max_concurrency": "workload.concurrency",
    "num_prompts": "workload.requests",
}


def score(keys: Keys) -> int:
    own = ("tensor-parallel-size", "max-model-len", "gpu-memory-utilization", "max-num-seqs", "tensor_parallel_size")
    own += ("max_model_len", "gpu_memory_utilization", "kv-cache-dtype", "enforce-eager")
    return 4 * sum(name in keys for name in own) if "base_model" not in keys else 0


def read_vllm(keys: Keys, found: Findings, model: Item | None = None) -> None:
    words = start_engine(keys, found, "vllm")
    hf.model(found, keys.take("model") or keys.take("model_tag") or model)
    _options(keys, found, words["vllm"])
    for field in ("layout.tp", "layout.pp", "layout.dp"):
        found.default(field, 1, "one unless given")
    spread = keys.take("enable_expert_parallel")
    if is_set(spread) and spread:
        found.put("layout.ep", _together(found), spread)
    _weights(keys, found, words, "vllm")
    found.number("workload.memory_share", keys.take("gpu_memory_utilization"))
    chunked, eager = keys.take("enable_chunked_prefill"), keys.take("enforce_eager")
    found.truth("workload.chunked_prefill", chunked)
    if eager is not None and (on := as_truth(eager.value)) is not None:
        found.put("workload.cuda_graph", not on, eager)
    for name in ("no_enable_chunked_prefill", "no_enforce_eager"):
        if is_set(item := keys.take(name)) and item:
            found.put("workload.chunked_prefill" if "chunked" in name else "workload.cuda_graph", "eager" in name, item)
    caching = keys.take("enable_prefix_caching")
    if caching is not None:
        found.leave(caching, "how much of a prompt is found in the cache depends on the load (prefix_hit)")
    drafted = keys.take("speculative_config.num_speculative_tokens")
    whole = keys.take("speculative_config")
    if whole is not None and isinstance(whole.value, dict) and "num_speculative_tokens" in whole.value:
        drafted = Item(whole.file, whole.key, whole.value["num_speculative_tokens"], whole.line)
    found.whole("workload.speculative_tokens", drafted)
    leave_rest(keys, found, "serving")


def read_sglang(keys: Keys, found: Findings, model: Item | None = None) -> None:
    """tp_size counts all devices of a stage, and the limits all lanes where attention is repeated."""
    words = start_engine(keys, found, "sglang")
    hf.model(found, keys.take("model_path") or keys.take("model") or model)
    lanes = keys.take("attn_dp_size")
    if lanes is None and is_set(keys.items.get("enable_dp_attention")):
        lanes = keys.take("dp_size") or keys.take("data_parallel_size") or keys.take("dp")
        keys.take("enable_dp_attention")
    count = int(as_number(lanes.value) or 1) if lanes is not None else 1
    if lanes is not None and count > 1:
        found.put("layout.dp", count, lanes)
        for name in ("tp_size", "tensor_parallel_size", "tp", "max_running_requests", "chunked_prefill_size"):
            item = keys.items.get(name)
            if item is not None and (number := as_number(item.value)):
                keys.put(name, number / count if number % count else int(number) // count, item.line)
    copies = next((keys.items[name] for name in ("dp_size", "data_parallel_size", "dp") if name in keys), None)
    if lanes is None and copies is not None and (as_number(copies.value) or 1) > 1:
        for name in ("max_running_requests", "chunked_prefill_size"):
            if (item := keys.take(name)) is not None:
                found.leave(item, "of each copy or of all together, which depends on the version")
    _options(keys, found, words["sglang"])
    for field in ("layout.tp", "layout.pp", "layout.dp"):
        found.default(field, 1, "one unless given")
    _weights(keys, found, words, "sglang")
    found.number("workload.memory_share", keys.take("mem_fraction_static"))
    found.whole("workload.admission_steps", keys.take("scheduler_recv_interval"))
    mixed = keys.take("enable_mixed_chunk")
    if is_set(mixed) and mixed:
        found.put("workload.chunked_prefill", True, mixed)
    off = keys.take("disable_cuda_graph") or keys.take("cuda_graph_backend_decode")
    if off is not None and (is_set(off) or off.value == "disabled"):
        found.put("workload.cuda_graph", False, off)
    found.whole("workload.speculative_tokens", keys.take("speculative_num_steps"))
    leave_rest(keys, found, "serving")


def read_load(keys: Keys, found: Findings) -> None:
    """What a benchmark of a server sends."""
    for name, field in _LOAD.items():
        found.whole(field, keys.take(name))
    rate = keys.take("request_rate")
    if rate is not None and str(rate.value) != "inf":
        found.number("workload.request_rate", rate)
    leave_rest(keys, found, "serving")


def start_engine(keys: Keys, found: Findings, engine: str) -> dict:
    for name in [name for name in keys.items if "-" in name]:
        item = keys.items.pop(name)
        keys.put(name.replace("-", "_"), item.value, item.line)
    found.programs.append(engine)
    origin = Item(keys.file, engine, engine)
    found.put("workload.kind", "inference", origin)
    found.put("workload.engine", engine, origin)
    return table("reading/serving")


def _options(keys: Keys, found: Findings, fields: dict[str, str]) -> None:
    for name, field in fields.items():
        item = keys.take(name)
        if item is not None and field == "workload.max_context" and item.value in ("auto", -1):
            found.leave(item, "as long as memory allows")
        else:
            found.whole(field, item)


def _weights(keys: Keys, found: Findings, words: dict, engine: str) -> None:
    """Formats of weights and cache; `auto` says nothing of a checkpoint."""
    kind, packed = keys.take("dtype"), keys.take("quantization")
    online = inverted(table(engine)["online"])
    if packed is not None:
        found.word("workload.weight_dtype", packed, words["formats"] | online)
    elif kind is not None and kind.value != "auto":
        found.word("workload.weight_dtype", kind, words["types"])
    else:
        if kind is not None:
            found.leave(kind, "the checkpoint says it")
        _packed_by_name(found)
    found.word("workload.kv_dtype", keys.take("kv_cache_dtype"), words["caches"] | inverted(table(engine)["kv"]))


# How a checkpoint is packed, as the end of its name says.
_NAMED = ((r"awq", "awq"), (r"gptq", "gptq"), (r"nvfp4|[-_]fp4", "nvfp4"), (r"mxfp4", "mxfp4"), (r"[-_]fp8", "fp8"),
          (r"w8a8|[-_]int8", "int8"))  # fmt: skip


def _packed_by_name(found: Findings) -> None:
    name = found.values.get("model")
    row = next((row for row in found.read if row.field == "model"), None)
    if not isinstance(name, str) or row is None:
        return
    for pattern, kind in _NAMED:
        if re.search(pattern, name.lower()):
            found.imply("workload.weight_dtype", kind, Item(row.origin, "name of the checkpoint", name))
            return


def _together(found: Findings) -> int:
    """Devices that experts are spread over: those of all lanes of a stage."""
    return (found.values.get("layout.tp") or 1) * (found.values.get("layout.dp") or 1)
