"""TensorRT-LLM's YAML and commands, llama.cpp's commands, and MLPerf's run of its vLLM reference."""

from __future__ import annotations

import re

from estimator.errors import PlanError
from estimator.plan.schema import Inference
from knowledge.mlperf import benchmark
from knowledge.models.catalogue import find_model
from launchers.engines.commands import start_engine
from launchers.hf import read as hf
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.reading.leftovers import leave_rest
from launchers.tables import table

_TRTLLM = {
    "pipeline_parallel_size": "layout.pp",
    "pp_size": "layout.pp",
    "max_seq_len": "workload.max_context",
    "max_batch_size": "workload.max_batch",
    "max_num_tokens": "workload.max_batched_tokens",
    "num_nextn_predict_layers": "workload.speculative_tokens",
    "speculative_config.num_nextn_predict_layers": "workload.speculative_tokens",
    "speculative_config.max_draft_len": "workload.speculative_tokens",
}
# llama.cpp's short options (common/arg.cpp).
LLAMA_SHORT = {"-m": "model", "-hf": "hf-repo", "-hfr": "hf-repo", "-c": "ctx-size", "-np": "parallel",
               "-ctk": "cache-type-k", "-ctv": "cache-type-v", "-ngl": "n-gpu-layers", "-sm": "split-mode",
               "-b": "batch-size", "-ub": "ubatch-size", "-ts": "tensor-split", "-fa": "flash-attn", "-t": "threads",
               "-dev": "device"}  # fmt: skip
LLAMA_FLAGS = ("no_kv_unified", "kv_unified", "jinja", "no_mmap", "mlock", "cont_batching", "metrics", "no_warmup",
               "embedding", "verbose", "no_webui")  # fmt: skip
_GGUF = re.compile(r"(?:^|[-._:])((?:i?q[0-9]\w*|bf16|f16|f32|mxfp4)(?:_k)?(?:_[smxl]+)?)(?:[-.]|$)", re.IGNORECASE)


def score_trtllm(keys: Keys) -> int:
    own = ("kv_cache_config", "max_num_tokens", "cuda_graph_config", "enable_attention_dp", "moe_expert_parallel_size",
           "build_config")  # fmt: skip
    return 5 * sum(any(True for _ in keys.below(name)) for name in own)


def read_trtllm(keys: Keys, found: Findings, model: Item | None = None) -> None:
    """tensor_parallel_size counts the lanes of attention data parallelism, each of which is one device."""
    words = start_engine(keys, found, "trtllm")
    hf.model(found, model)
    lanes = keys.take("enable_attention_dp")
    group = keys.take("tensor_parallel_size") or keys.take("tp_size")
    if is_set(lanes) and lanes is not None and group is not None:
        found.whole("layout.dp", group)
        found.put("layout.tp", 1, lanes)
    else:
        found.whole("layout.tp", group)
    for name, field in _TRTLLM.items():
        found.whole(field, keys.take(name))
    found.whole("layout.ep", keys.take("moe_expert_parallel_size") or keys.take("ep_size"))
    for field in ("layout.tp", "layout.pp", "layout.dp"):
        found.default(field, 1, "one unless given")
    keys.take("gpus_per_node")  # of one server; how many there are is the scheduler's
    kind = keys.take("dtype")
    if kind is not None and kind.value != "auto":
        found.word("workload.weight_dtype", kind, words["types"])
    share = keys.take("kv_cache_config.free_gpu_memory_fraction") or keys.take("kv_cache_free_gpu_memory_fraction")
    found.number("workload.memory_share", share)
    found.word("workload.kv_dtype", keys.take("kv_cache_config.dtype"), words["caches"])
    found.truth("workload.chunked_prefill", keys.take("enable_chunked_prefill"))
    if (graphs := keys.items.get("cuda_graph_config")) is not None and not graphs.value:
        found.put("workload.cuda_graph", False, graphs)
    leave_rest(keys, found, "serving")


def read_llama(keys: Keys, found: Findings, load: bool = False) -> None:
    """llama-server; `load`: llama-batched-bench. Layers are split over the devices that there are."""
    if load:
        for name, field in (("npp", "input_len"), ("ntg", "output_len"), ("npl", "concurrency")):
            item = keys.take(name)
            if item is not None and isinstance(item.value, int):
                found.whole(f"workload.{field}", item)
            elif item is not None:
                found.leave(item, "several loads, one after the other")
        leave_rest(keys, found, "serving")
        return
    words = table("llamacpp")
    start_engine(keys, found, "llamacpp")
    _gguf(keys, found)
    context, slots = keys.take("ctx_size"), keys.take("parallel")
    number = found.whole("workload.max_batch", slots) if slots is not None and slots.value != -1 else None
    length = as_number(context.value) if context is not None else None
    whole = keys.take("kv_unified")
    keys.take("no_kv_unified")
    if context is not None and length and not is_set(whole):
        found.put("workload.max_context", int(length) // (number or 1), context)
    elif context is not None and length == 0:
        found.leave(context, "as long as the model was trained for")
    elif context is not None and length:
        found.put("workload.max_context", int(length), context)
    keys.take("cache_type_v")
    found.word("workload.kv_dtype", keys.take("cache_type_k"), inverted(words["kv"]))
    layers, split, device = keys.take("n_gpu_layers"), keys.take("split_mode"), keys.take("device")
    if layers is not None and str(layers.value) not in ("all", "auto") and (as_number(layers.value) or 0) < 99:
        found.block("workload.engine", layers, "a part of the layers on the host has no place in a Plan")
    if split is not None and split.value == "row":
        found.block("layout.tp", split, "splits rows of matrices, which no Plan of this engine has")
    elif split is not None and split.value == "none":
        found.put("layout.pp", 1, split)
    if device is not None and device.value == "none":
        found.leave(device, "runs on the host's processors")
    found.default("layout.tp", 1, "layers are split, not matrices")
    found.default("layout.dp", 1, "one server")
    step, batch = keys.take("ubatch_size"), keys.take("batch_size")
    found.whole("workload.max_batched_tokens", step or batch)
    found.whole("workload.speculative_tokens", keys.take("spec_draft_n_max") or keys.take("draft_max"))
    leave_rest(keys, found, "serving")


def _gguf(keys: Keys, found: Findings) -> None:
    """Model and format from the name of the file, or from the repository on the hub."""

    item = keys.take("model") or keys.take("hf_repo")
    file = keys.take("hf_file")
    if item is None:
        return
    text = str(item.value)
    name = re.split(r"[/\\]", text)[-1]
    match = _GGUF.search(str(file.value) if file is not None else name)
    kinds = {"f16": "fp16", "f32": "fp32"}
    formats = Inference.model_fields["weight_dtype"].annotation
    kind = kinds.get(match[1].lower(), match[1].lower()) if match else ""
    if kind in getattr(formats, "__args__", ()):
        found.put("workload.weight_dtype", kind, item)
    elif match:
        found.block("workload.weight_dtype", item, f"{match[1]} is no format of a Plan")
    else:
        found.block("workload.weight_dtype", item, "the name does not say how the weights are packed")
    stem = re.sub(r"[-.]gguf$|-\d{5}-of-\d{5}", "", name.split(":")[0], flags=re.IGNORECASE)
    stem = _GGUF.sub("", stem).rstrip("-._")
    if "SET_ME" in text:
        found.leave(item, "a placeholder, not a model")
        return
    try:
        found.put("model", find_model(stem).value.id, item)
    except PlanError:
        found.block("model", item, "the name is that of no model in the catalogue")


def read_mlperf(keys: Keys, found: Findings) -> None:
    """main.py of MLPerf's Llama-3.1-8B reference; lengths are those of its data set."""
    if not is_set(keys.take("vllm")):
        found.block("workload.engine", Item(keys.file, "--vllm", None), "only the reference on vLLM is read")
        return
    words = start_engine(keys, found, "vllm")
    hf.model(found, keys.take("model_path"))
    scenario = keys.take("scenario")
    found.word("workload.scenario", scenario, {"Offline": "offline", "Server": "server",
                                               "SingleStream": "single-stream"})  # fmt: skip
    found.whole("layout.tp", keys.take("tensor_parallel_size"))
    for field in ("layout.tp", "layout.pp", "layout.dp"):
        found.default(field, 1, "one unless given")
    found.word("workload.weight_dtype", keys.take("dtype"), words["types"])
    benchmark = keys.take("lg_model_name")
    if benchmark is not None and as_truth(benchmark.value) is None:
        _samples(found, benchmark)
    leave_rest(keys, found, "serving")


def _samples(found: Findings, item: Item) -> None:
    """Mean lengths of the benchmark's samples."""

    known = benchmark("llama3.1-8b")
    if str(item.value).startswith(("llama3_1-8b", "llama3.1-8b")):
        found.imply("workload.input_len", round(known.input.mean), item)
        found.imply("workload.output_len", round(known.output.mean), item)
