"""vLLM's YAML and commands, and the load of its benchmark. Words: fields.yaml."""

from __future__ import annotations

from launchers.engines.reading import (
    begin,
    draft_method,
    one_unless_given,
    read_load_command,
    take_options,
    take_weights,
)
from launchers.hf import read as hf
from launchers.reading.commands import merged, model_word
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_truth, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table


def score(keys: Keys) -> int:
    markers = (
        "tensor-parallel-size",
        "max-model-len",
        "gpu-memory-utilization",
        "max-num-seqs",
        "tensor_parallel_size",
    )
    markers += ("max_model_len", "gpu_memory_utilization", "kv-cache-dtype", "enforce-eager")
    return 4 * sum(name in keys for name in markers) if "base_model" not in keys else 0


def _section(keys: Keys) -> Keys:
    """What a config of somebody's own has for the engine, below vllm."""
    section = Keys(keys.file)
    for name, item in keys.items.items():
        if name.startswith("vllm."):
            section.put(name.removeprefix("vllm."), item.value, item.line)
    return section


def section_score(keys: Keys) -> int:
    """Less than any program's own: it is taken where nothing else knows the file."""
    return int("vllm.model" in keys and score(_section(keys)) > 0)


def read_section(keys: Keys, findings: Findings) -> None:
    if (split := keys.items.get("deployment.type")) is not None and split.value == "disaggregated":
        findings.block("workload", split, "reads prompts on other devices than it answers on, which is not read")
    for name, item in keys.items.items():
        if not name.startswith("vllm."):
            findings.leave(item, "is of another part than the engine")
    findings.warn(f"{keys.file}: a layout of its own, of which the engine's section is read")
    read(_section(keys), findings)


def read(keys: Keys, findings: Findings, model: Item | None = None) -> None:
    begin(keys, findings, "vllm")
    hf.model(findings, keys.take("model") or keys.take("model_tag") or model)
    take_options(keys, findings, "vllm")
    one_unless_given(findings)
    spread = keys.take("enable_expert_parallel")
    if is_set(spread) and spread:
        findings.put("layout.ep", _together(findings), spread)
    take_weights(keys, findings, "vllm")
    findings.number("workload.memory_share", keys.take("gpu_memory_utilization"))
    chunked, eager = keys.take("enable_chunked_prefill"), keys.take("enforce_eager")
    findings.truth("workload.chunked_prefill", chunked)
    if eager is not None and (on := as_truth(eager.value)) is not None:
        findings.put("workload.cuda_graph", not on, eager)
    for name in ("no_enable_chunked_prefill", "no_enforce_eager"):
        if is_set(item := keys.take(name)) and item:
            findings.put(
                "workload.chunked_prefill" if "chunked" in name else "workload.cuda_graph", "eager" in name, item
            )
    findings.whole("layout.cp", keys.take("decode_context_parallel_size"))
    findings.word("workload.expert_exchange", keys.take("all2all_backend"), table("engines/words")["exchanges"])
    findings.truth("workload.two_batch_overlap", keys.take("enable_dbo"))
    for name in ("enable_eplb", "eplb_config", "eplb_config.num_redundant_experts"):
        keys.take(name)  # follows from experts and devices
    for name in _SPLIT:
        if (item := keys.take(name)) is not None and item.value not in (False, "agg", "none"):
            findings.block("workload", item, "reads prompts on other devices than it answers on, which is not read")
    caching = keys.take("enable_prefix_caching")
    if caching is not None:
        findings.leave(caching, "how much of a prompt is found in the cache depends on the load (prefix_hit)")
    drafted = keys.take("speculative_config.num_speculative_tokens")
    method = keys.take("speculative_config.method")
    whole = keys.take("speculative_config")
    if whole is not None and isinstance(whole.value, dict) and "num_speculative_tokens" in whole.value:
        drafted = Item(whole.file, whole.key, whole.value["num_speculative_tokens"], whole.line)
        method = Item(whole.file, whole.key, whole.value.get("method", ""), whole.line)
    draft_method(findings, method)
    findings.whole("workload.speculative_tokens", drafted)
    leave_rest(keys, findings, "engines")


# A server that hands a prompt's cache on, or is handed it; the first two are Dynamo's.
_SPLIT = ("disaggregation_mode", "is_prefill_worker", "kv_transfer_config")


def _together(findings: Findings) -> int:
    """Devices that experts are spread over: those of all lanes of a stage."""
    return (findings.values.get("layout.tp") or 1) * (findings.values.get("layout.dp") or 1)


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    item = Item(setting.file, "command", "vllm", words[0].line)
    if len(words) > 2 and words[1].text == "bench" and words[2].text == "serve":
        return [Program("load", words[3:], item, environment)]
    return [Program("vllm", words[2:], item, environment)] if len(words) > 1 and words[1].text == "serve" else []


def read_command(start: Program, setting: ScriptSetting) -> str | None:
    flags = ("enable_expert_parallel", "enforce_eager", "trust_remote_code", "enable_prefix_caching", "headless",
             "enable_dbo", "enable_eplb",
             "enable_chunked_prefill", "no_enable_chunked_prefill", "enable_auto_tool_choice", "ep")  # fmt: skip
    keys, rest, missing = merged(start, setting, flags, table("engines/vllm/fields")["short"])
    model = model_word(rest, setting) if keys.file == setting.file else None
    if missing is not None and model is None and "model" not in keys:
        return None
    read(keys, setting.findings, model)
    return "vLLM command"


FORMATS = (
    Format("vLLM YAML", score, read),
    Format("vLLM's arguments in a section", section_score, read_section, ("yaml", "toml"), order=1),
)
COMMANDS = {"vllm": read_command, "load": read_load_command}
CONSOLES = {"vllm": _console}
MODULES = {"vllm.entrypoints": "vllm", "dynamo.vllm": "vllm"}
