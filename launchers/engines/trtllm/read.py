"""TensorRT-LLM's YAML and commands."""

from __future__ import annotations

from launchers.engines.reading import begin, draft_method, one_unless_given, read_load_command
from launchers.hf import read as hf
from launchers.reading.commands import merged, model_word
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_OPTIONS = {
    "pipeline_parallel_size": "layout.pp",
    "pp_size": "layout.pp",
    "max_seq_len": "workload.max_context",
    "max_batch_size": "workload.max_batch",
    "max_num_tokens": "workload.max_batched_tokens",
    "num_nextn_predict_layers": "workload.speculative_tokens",
    "speculative_config.num_nextn_predict_layers": "workload.speculative_tokens",
    "speculative_config.max_draft_len": "workload.speculative_tokens",
}


def score(keys: Keys) -> int:
    markers = ("kv_cache_config", "max_num_tokens", "cuda_graph_config", "enable_attention_dp",
             "moe_expert_parallel_size", "build_config")  # fmt: skip
    return 5 * sum(any(True for _ in keys.below(name)) for name in markers)


def read(keys: Keys, findings: Findings, model: Item | None = None) -> None:
    """tensor_parallel_size counts the lanes of attention data parallelism, each of which is one device."""
    begin(keys, findings, "trtllm")
    hf.model(findings, model)
    lanes = keys.take("enable_attention_dp")
    group = keys.take("tensor_parallel_size") or keys.take("tp_size")
    if is_set(lanes) and lanes is not None and group is not None:
        findings.whole("layout.dp", group)
        findings.put("layout.tp", 1, lanes)
    else:
        findings.whole("layout.tp", group)
    for name, field in _OPTIONS.items():
        findings.whole(field, keys.take(name))
    draft_method(findings, keys.take("speculative_config.decoding_type"))
    findings.whole("layout.ep", keys.take("moe_expert_parallel_size") or keys.take("ep_size"))
    one_unless_given(findings)
    keys.take("gpus_per_node")  # of one server; how many there are is the scheduler's
    kind = keys.take("dtype")
    if kind is not None and kind.value != "auto":
        findings.word("workload.weight_dtype", kind, table("engines/words")["types"])
    share = keys.take("kv_cache_config.free_gpu_memory_fraction") or keys.take("kv_cache_free_gpu_memory_fraction")
    findings.number("workload.memory_share", share)
    findings.word("workload.kv_dtype", keys.take("kv_cache_config.dtype"), table("engines/words")["caches"])
    findings.truth("workload.chunked_prefill", keys.take("enable_chunked_prefill"))
    if (graphs := keys.items.get("cuda_graph_config")) is not None and not graphs.value:
        findings.put("workload.cuda_graph", False, graphs)
    leave_rest(keys, findings, "engines")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """trtllm-serve [serve] MODEL …"""
    rest = words[2:] if len(words) > 1 and words[1].text == "serve" else words[1:]
    return [Program("trtllm", rest, Item(setting.file, "command", "trtllm-serve", words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    names = ("extra_llm_api_options", "config")
    keys, rest, _ = merged(start, setting, ("trust_remote_code",), config=names)
    read(keys, setting.findings, model_word(rest, setting))
    return "TensorRT-LLM command"


FORMATS = (Format("TensorRT-LLM YAML", score, read),)
COMMANDS = {"trtllm": read_command, "load": read_load_command}
CONSOLES = {"trtllm-serve": _console}
MODULES = {"tensorrt_llm.serve.scripts.benchmark_serving": "load"}
