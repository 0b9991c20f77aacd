"""MLPerf's run of its vLLM reference."""

from __future__ import annotations

from knowledge.mlperf import benchmark
from launchers.engines.reading import begin, one_unless_given
from launchers.hf import read as hf
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_truth, is_set
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table


def read(keys: Keys, findings: Findings) -> None:
    """main.py of MLPerf's Llama-3.1-8B reference; lengths are those of its data set."""
    if not is_set(keys.take("vllm")):
        findings.block("workload.engine", Item(keys.file, "--vllm", None), "only the reference on vLLM is read")
        return
    begin(keys, findings, "vllm")
    hf.model(findings, keys.take("model_path"))
    scenario = keys.take("scenario")
    findings.word("workload.scenario", scenario, {"Offline": "offline", "Server": "server",
                                               "SingleStream": "single-stream"})  # fmt: skip
    findings.whole("layout.tp", keys.take("tensor_parallel_size"))
    one_unless_given(findings)
    findings.word("workload.weight_dtype", keys.take("dtype"), table("engines/words")["types"])
    benchmark = keys.take("lg_model_name")
    if benchmark is not None and as_truth(benchmark.value) is None:
        _samples(findings, benchmark)
    leave_rest(keys, findings, "engines")


def _samples(findings: Findings, item: Item) -> None:
    """Mean lengths of the benchmark's samples."""
    known = benchmark("llama3.1-8b")
    if str(item.value).startswith(("llama3_1-8b", "llama3.1-8b")):
        findings.imply("workload.input_len", round(known.input.mean), item)
        findings.imply("workload.output_len", round(known.output.mean), item)


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words, ("vllm",))
    read(keys, setting.findings)
    return "MLPerf Inference reference"


COMMANDS = {"mlperf": read_command}
