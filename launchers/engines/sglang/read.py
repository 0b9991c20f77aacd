"""SGLang's commands. Words: fields.yaml."""

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
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table


def read(keys: Keys, findings: Findings, model: Item | None = None) -> None:
    """tp_size counts all devices of a stage, and the limits all lanes where attention is repeated."""
    begin(keys, findings, "sglang")
    hf.model(findings, keys.take("model_path") or keys.take("model") or model)
    lanes = keys.take("attn_dp_size")
    if lanes is None and is_set(keys.items.get("enable_dp_attention")):
        lanes = keys.take("dp_size") or keys.take("data_parallel_size") or keys.take("dp")
        keys.take("enable_dp_attention")
    count = int(as_number(lanes.value) or 1) if lanes is not None else 1
    if lanes is not None and count > 1:
        findings.put("layout.dp", count, lanes)
        for name in ("tp_size", "tensor_parallel_size", "tp", "max_running_requests", "chunked_prefill_size"):
            item = keys.items.get(name)
            if item is not None and (number := as_number(item.value)):
                keys.put(name, number / count if number % count else int(number) // count, item.line)
    copies = next((keys.items[name] for name in ("dp_size", "data_parallel_size", "dp") if name in keys), None)
    if lanes is None and copies is not None and (as_number(copies.value) or 1) > 1:
        for name in ("max_running_requests", "chunked_prefill_size"):
            if (item := keys.take(name)) is not None:
                findings.leave(item, "of each copy or of all together, which depends on the version")
    take_options(keys, findings, "sglang")
    if table("engines/words")["exchanges"].get(str(keys.look("moe_a2a_backend"))) == "all_to_all":
        # server_args.py sets ep_size to tp_size, which counts all lanes.
        findings.default(
            "layout.ep", (findings.values.get("layout.tp") or 1) * count, "experts on all devices of a stage"
        )
    one_unless_given(findings)
    take_weights(keys, findings, "sglang")
    findings.number("workload.memory_share", keys.take("mem_fraction_static"))
    findings.whole("workload.admission_steps", keys.take("scheduler_recv_interval"))
    mixed = keys.take("enable_mixed_chunk")
    if is_set(mixed) and mixed:
        findings.put("workload.chunked_prefill", True, mixed)
    findings.word("workload.expert_exchange", keys.take("moe_a2a_backend"), table("engines/words")["exchanges"])
    halves = keys.take("enable_two_batch_overlap")
    if is_set(halves) and halves:
        findings.put("workload.two_batch_overlap", True, halves)
    for name in ("enable_eplb", "ep_num_redundant_experts"):
        keys.take(name)  # follows from experts and devices
    off = keys.take("disable_cuda_graph") or keys.take("cuda_graph_backend_decode")
    if off is not None and (is_set(off) or off.value == "disabled"):
        findings.put("workload.cuda_graph", False, off)
    findings.whole("workload.speculative_tokens", keys.take("speculative_num_steps"))
    if draft_method(findings, keys.take("speculative_algorithm")) == "ngram":
        drafted = keys.take("speculative_num_draft_tokens")
        if drafted is not None and (count := as_number(drafted.value)):
            findings.put("workload.speculative_tokens", int(count) - 1, drafted)
    leave_rest(keys, findings, "engines")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    if len(words) < 2 or words[1].text != "serve":
        return []
    return [Program("sglang", words[2:], Item(setting.file, "command", "sglang", words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    flags = ("trust_remote_code", "enable_dp_attention", "enable_mixed_chunk", "disable_cuda_graph",
             "enable_two_batch_overlap", "enable_eplb")  # fmt: skip
    keys, _ = options(setting.file, start.words, flags, {"-tp": "tp", "-dp": "dp"})
    read(keys, setting.findings)
    return "SGLang command"


COMMANDS = {"sglang": read_command, "load": read_load_command}
CONSOLES = {"sglang": _console}
MODULES = {"sglang.launch_server": "sglang", "dynamo.sglang": "sglang", "sglang.bench_serving": "load"}
