"""Odd input over tools, files and sentences: no traceback, no figure that is none, soon, and in little memory.

`make fuzz` asks for 20,000 cases, the tests for 600: those are always the same, more are drawn anew each time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pace import within
from samples import THOROUGH, part

from agent.session import ask
from estimator.errors import PlanError
from tools.registry import registry

CASES = part(600, 20_000)
MOST_S = 2.0
MOST_BYTES = 500 * 10**6
# Two changes of shape of a value, so that what is right of a call is reached as well as what is wrong.
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=40),
    st.sampled_from(["", "0", "-1", "1e999", "nan", "1B", "8x", "auto", "\x1b[31m", "../x", "a" * 300, "٣", "½"]),
    st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)  # fmt: skip
RUN: dict[str, list[Any]] = {
    "model": ["llama-3.1-8b", "gpt2", "mixtral-8x7b", "deepseek-v3", "qwen2.5-7b"],
    "accelerator": ["h100", "a100", "mi300x", "rtx 4090", "l4", "b200"],
    "count": [1, 2, 8, 16, 64, 7], "seq_len": [1, 512, 4096, 131072], "micro_batch": [1, 2, 64],
    "global_batch": [1, 128, 4096], "method": ["full", "lora", "qlora"], "precision": ["bf16", "fp8", "fp16"],
    "dataset_tokens": [1, "1B", 1e12], "tp": [1, 2, 8, 3], "pp": [1, 2, 5], "zero_stage": [0, 1, 2, 3],
    "concurrency": [1, 64, 10_000], "request_rate": [0.1, 50], "input_len": [1, 2000, 10**6], "output_len": [1, 500],
}  # fmt: skip
# One estimate a call: what searches the whole catalogue takes longer than all of these.
TOOLS = ["estimate_training", "estimate_inference", "describe_model", "describe_hardware", "check_fit", "explain",
         "estimate_cost", "list_catalogue", "search_playbook", "diff_scenarios", "render_configs"]  # fmt: skip
SAID = """fine-tune train serve fit llama-3.1-8b llama 70b on 8 h100 h100s a100 x and or not without with lora qlora 4k
tokens 1B by friday how long cost cheapest half twice of the no 0 -1 1e9 ½ $500 ttft 200ms 3 % GiB / ( ) ? ! , .
Wie viele GPUs 多少 メモリ cuánto coûte сколько \x00 \x1b[2J 🚀 ../etc/passwd {} [] SELECT <b> $(id)"""
NAMED = """model_name_or_path per_device_train_batch_size gradient_accumulation_steps deepspeed bf16 cutoff_len
lora_rank zero_optimization stage tensor_parallel_size model #SBATCH --nodes=4 vllm serve torchrun train.py"""
WORDS, KEYS = st.sampled_from(SAID.split()), st.sampled_from(NAMED.split())
FILES = st.one_of(
    st.text(max_size=300),
    st.lists(st.tuples(KEYS, ODD), max_size=8).map(lambda rows: "\n".join(f"{key}: {value}" for key, value in rows)),
    st.lists(st.tuples(KEYS, ODD), max_size=8).map(lambda rows: json.dumps(dict(rows), default=str)),
    st.lists(st.tuples(KEYS, ODD), max_size=8).map(lambda rows: " ".join(f"{key} {value}" for key, value in rows)),
)
FUZZ = settings(
    deadline=None,
    database=None,
    derandomize=not THOROUGH,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# Hypothesis keeps all that it drew until it is through, which is no memory of ours.
PIECE = 1000


def drawn(cases: int, **strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """Runs a test on so many cases, in pieces that are each let go of."""
    count = -(-cases // PIECE)

    def decorated(test: Callable[..., None]) -> Any:
        run = settings(FUZZ, max_examples=cases // count)(given(**strategies)(test))
        return pytest.mark.parametrize("piece", range(count))(run)

    return decorated


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home and a working folder of its own, warm, and the memory that all of it took in the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARDWISE_HOME", str(tmp_path_factory.mktemp("home")))
        patch.chdir(tmp_path_factory.mktemp("work"))
        for name, more in (("estimate_training", {}), ("estimate_inference", {}), ("estimate_cost", {"steps": 10})):
            registry()[name]({"model": "gpt2", "accelerator": "h100", "count": 1, **more})
        ask("does gpt2 fit on an h100?", approve=False, model="offline")
        before = resident_bytes()
        yield
        assert list(Path.cwd().iterdir()) == []
        # Alone in its process, as with `make fuzz`, the whole counts; among other tests, what was added.
        assert resident_bytes() < MOST_BYTES or resident_bytes() - before < MOST_BYTES / 5


def resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or abs(value) < float("inf")


def called(name: str, arguments: dict[str, Any]) -> None:
    error = ""
    with within(MOST_S):
        try:
            answer = registry()[name](arguments)
            assert finite(answer), answer
        except PlanError as refusal:
            error = str(refusal)
    assert len(error) < 20_000
    assert "\x1b" not in error


@drawn(
    CASES // 2,
    name=st.sampled_from(TOOLS),
    run=st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in RUN.items()}),
    odd=st.data(),
)
def test_odd_arguments_of_tools(piece: int, name: str, run: dict[str, Any], odd: st.DataObject) -> None:
    fields = registry()[name].request.model_fields
    arguments = {key: value for key, value in run.items() if key in fields}
    for key in odd.draw(st.lists(st.sampled_from(sorted(fields)), max_size=2)):
        arguments[key] = odd.draw(ODD)
    called(name, arguments)


@drawn(CASES * 3 // 10, text=FILES, run=st.sampled_from([{}, {"accelerator": "h100", "count": 8}]))
def test_odd_files(piece: int, text: str, run: dict[str, Any]) -> None:
    called("import_config", {"text": text, **run})


@pytest.fixture(scope="module")
def searched() -> None:
    """A search over the whole catalogue once before, which reads all tables: that is no part of a sentence's time."""
    ask("which cluster is best for lora of llama 70b", approve=False, model="offline")


@pytest.mark.usefixtures("searched")
@drawn(CASES // 5, words=st.lists(st.one_of(WORDS, st.text(max_size=12)), min_size=1, max_size=14))
def test_odd_sentences(piece: int, words: list[str]) -> None:
    try:
        with within(2 * MOST_S):
            answer = ask(" ".join(words), approve=False, model="offline")
    except PlanError:
        return
    assert answer["answer"]
    assert finite(answer["plan"])
    assert "defect of Shardwise" not in json.dumps(answer)
    assert "\x1b" not in answer["answer"]
