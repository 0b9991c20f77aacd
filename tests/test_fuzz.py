"""Odd input over all tools, files and sentences: no traceback, no figure that is none, soon, and in little memory.

`make fuzz` asks for 20,000 cases, the tests for 1,000: those are always the same, more are drawn anew each time.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pace import timely
from samples import THOROUGH, part
from schema_values import fields_of

from agent.session import ask
from estimator.errors import PlanError
from estimator.plan.schema import Plan
from tools.registry import registry

CASES = part(1_000, 20_000)
MOST_S = 2.0
MOST_BYTES = 500 * 10**6
# Two changes of shape of a value, so that what is right of a call is reached as well as what is wrong.
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=40),
    st.sampled_from(["", "0", "-1", "1e999", "nan", "1B", "8x", "auto", "\x1b[31m", "../x", "a" * 300, "٣", "½"]),
    st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)  # fmt: skip
# What is usual of a run, so that most calls come as far as an answer.
WHAT: dict[str, list[Any]] = {
    "model": ["llama-3.1-8b", "gpt2", "mixtral-8x7b", "deepseek-v3", "qwen2.5-7b"],
    "accelerator": ["h100", "a100", "mi300x", "rtx 4090", "l4", "b200"], "count": [1, 2, 7, 8, 12, 16, 64],
}  # fmt: skip
TRAINING: dict[str, list[Any]] = {
    "seq_len": [1, 512, 4096, 131072], "micro_batch": [1, 2, 64], "global_batch": [64, 128, 4096],
    "method": ["full", "lora", "qlora"], "precision": ["bf16", "fp8", "fp16"], "dataset_tokens": [1, "1B", 1e12],
    "zero_stage": [0, 1, 2, 3],
}  # fmt: skip
SERVING: dict[str, list[Any]] = {
    "concurrency": [1, 64, 10_000], "request_rate": [0.1, 50], "input_len": [1, 2000, 10**6], "output_len": [1, 500],
    "ttft_slo_ms": [1, 200, 5000],
}  # fmt: skip
SAID = """fine-tune train serve fit llama-3.1-8b llama 70b on 8 h100 h100s a100 x and or not without with lora qlora 4k
tokens 1B by friday how long cost cheapest half twice of the no 0 -1 1e9 ½ $500 ttft 200ms 3 % GiB / ( ) ? ! , .
Wie viele GPUs 多少 メモリ cuánto coûte сколько \x00 \x1b[2J 🚀 ../etc/passwd {} [] SELECT <b> $(id)"""
FIELDS = """model_name_or_path per_device_train_batch_size gradient_accumulation_steps deepspeed bf16 cutoff_len
lora_rank zero_optimization stage tensor_parallel_size model loss step_time tokens_per_second
mfu #SBATCH --nodes=4 vllm serve torchrun train.py"""
TRAINS = "stage: sft\nfinetuning_type: full\nmodel_name_or_path: meta-llama/Llama-3.1-8B\n"
SERVES = "vllm serve meta-llama/Llama-3.1-8B "
SIZES = "hidden_size num_hidden_layers num_attention_heads vocab_size intermediate_size head_dim"
WORDS, KEYS = st.sampled_from(SAID.split()), st.sampled_from(FIELDS.split())
LINES = st.lists(st.tuples(KEYS, ODD), max_size=8)
STEPS = st.lists(st.dictionaries(KEYS, st.one_of(st.floats(0, 1e4), ODD), max_size=4), max_size=8)
FILES = st.one_of(
    st.text(max_size=300),
    LINES.map(lambda rows: "\n".join(f"{key}: {value}" for key, value in rows)),
    LINES.map(lambda rows: TRAINS + "\n".join(f"{key}: {value}" for key, value in rows)),
    LINES.map(lambda rows: json.dumps(dict(rows), default=str)),
    LINES.map(lambda rows: " ".join(f"{key} {value}" for key, value in rows)),
    LINES.map(lambda rows: SERVES + " ".join(f"--{key.replace('_', '-')} {value}" for key, value in rows)),
    STEPS.map(lambda rows: "\n".join(json.dumps({"step": at + 1, **row}) for at, row in enumerate(rows))),
    STEPS.map(lambda rows: "\n".join(f"step {at + 1}: {row}" for at, row in enumerate(rows))),
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
    # What is let go of is collected as in a process of ours, which the other tests do more seldom.
    seldom = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    with pytest.MonkeyPatch.context() as patch:
        for place in ("SHARDWISE_HOME", "SHARDWISE_CONFIG"):
            patch.setenv(place, str(tmp_path_factory.mktemp("home")))
        patch.chdir(tmp_path_factory.mktemp("work"))
        for name, more in (("estimate_training", {}), ("estimate_inference", {}), ("estimate_cost", {"steps": 10})):
            registry()[name]({"model": "gpt2", "accelerator": "h100", "count": 1, **more})
        ask("does gpt2 fit on an h100?", approve=False, model="offline")
        before = held_bytes()
        # What other tests left is looked through at every collection, which is no part of a call's time.
        gc.freeze()
        yield
        assert list(Path.cwd().iterdir()) == []
        # Alone in its process, as with `make fuzz`, the whole counts; among other tests, what was added.
        held = held_bytes()
        assert held < MOST_BYTES or held - before < MOST_BYTES / 5
    gc.set_threshold(*seldom)


def held_bytes() -> int:
    """Resident memory, but for what is free and the allocator keeps for what comes next."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
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
    def refusal() -> str:
        try:
            answer = registry()[name](arguments)
            assert finite(answer), answer
        except PlanError as error:
            return str(error)
        return ""

    error = timely(MOST_S, refusal)
    assert len(error) < 20_000
    assert "\x1b" not in error


# Names that the catalogue has, places that must not be read, and what a field's own words are too short for.
NAMED: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from([*WHAT["model"], *WHAT["model"], "/dev/zero", "../config.json"]),
    "accelerator": st.sampled_from(WHAT["accelerator"]),
    "accelerators": st.lists(st.sampled_from(WHAT["accelerator"]), min_size=1, max_size=3),
    "text": FILES,
    "files": st.dictionaries(st.sampled_from(["train.yaml", "job.sh", "ds.json"]), FILES, max_size=3),
    "path": st.sampled_from(["/dev/zero", "/dev/stdin", ".", "no.log", "../../etc/shadow"]),
    "folder": st.sampled_from(["runs", "a/b", "..", "/etc", "x" * 300]),
    "name": st.sampled_from(["mixtral-8x7b-ep8", "mine", "a/b", "x" * 300]),
    "field": st.sampled_from(["count", "seq_len", "layout.tp", "accelerator", "concurrency"]),
    "values": st.lists(st.sampled_from([1, 2, 8, 4096, "h100", 10**12]), max_size=4),
    "over": st.dictionaries(
        st.sampled_from(["count", "method", "accelerator", "tp"]),
        st.lists(st.sampled_from([1, 2, 8, "lora", "h100"]), max_size=3), max_size=2,
    ),
    "like": st.sampled_from(WHAT["accelerator"]),
    "figure": st.sampled_from(["memory", "activations", "usd", "time.step_s", "mfu", "ttft"]),
    "config": st.dictionaries(
        st.sampled_from(SIZES.split()),
        st.sampled_from([0, 1, 2, 64, 4096, 10**9, 0.5, "8"]), min_size=4,
    ),
}  # fmt: skip
PLANS = st.fixed_dictionaries(
    {"model": NAMED["model"]},
    optional={k: v for k, v in fields_of(Plan.model_json_schema(), NAMED).items() if k != "model"},
)
NAMED |= dict.fromkeys(["plan", "a", "b"], PLANS)
# What a tool cannot do without, where its schema leaves more than one way to say it.
NEEDS = {
    "import_config": ["text"], "read_run": ["text"], "rate_run": ["tokens_per_s"], "compare": ["over"],
    "save_scenario": ["name"], "render_scenario": ["name"], "preview_hardware": ["like"], "add_hardware": ["like"],
    "preview_price": ["usd_per_hour"], "add_price": ["usd_per_hour"], "size_serving": ["request_rate"],
    "estimate_cost": ["steps"], "auto_configure": ["steps"],
}  # fmt: skip


def asked_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a tool: what it needs and what is usual, changed in up to three fields as its schema allows, and in
    one as it does not."""
    schema = registry()[name].request.model_json_schema()
    fields = fields_of(schema, NAMED)
    always = {key: fields[key] for key in [*schema.get("required", ()), *NEEDS.get(name, ())]}
    always |= {key: st.sampled_from(values) for key, values in WHAT.items() if key in fields}

    def usual(values: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
        optional = {key: st.sampled_from(each) for key, each in values.items() if key in fields and key not in always}
        return st.fixed_dictionaries(always, optional=optional)

    right = st.lists(
        st.sampled_from(sorted(fields)).flatmap(lambda key: st.tuples(st.just(key), fields[key])), max_size=3
    )
    wrong = st.lists(st.tuples(st.sampled_from(sorted(fields)), ODD), max_size=1)
    return st.builds(lambda *parts: {key: value for part in parts for key, value in dict(part).items()},
                     usual(TRAINING) | usual(SERVING), right, wrong)  # fmt: skip


@pytest.mark.parametrize("name", registry())
def test_odd_arguments_of_tools(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not registry()[name].read_only:
        # What it writes is below the working folder and the person's own, and is read by the calls after it.
        (tmp_path / "work").mkdir()
        monkeypatch.chdir(tmp_path / "work")
        for place in ("SHARDWISE_HOME", "SHARDWISE_CONFIG"):
            monkeypatch.setenv(place, str(tmp_path / "home"))

    @settings(FUZZ, max_examples=CASES // 2 // len(registry()))
    @given(asked_of(name))
    def run(arguments: dict[str, Any]) -> None:
        called(name, arguments)

    run()
    assert {path.name for path in tmp_path.iterdir()} <= {"work", "home"}


@drawn(
    CASES // 4,
    name=st.sampled_from(["import_config", "read_run", "save_scenario"]),
    text=FILES,
    run=st.sampled_from([{}, {"accelerator": "h100", "count": 8}]),
)
def test_odd_files(piece: int, name: str, text: str, run: dict[str, Any]) -> None:
    called(name, {"text": text, **run})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A matrix as its tool wrote it, in whose folder the tools work meanwhile."""
    before, folder = Path.cwd(), tmp_path_factory.mktemp("results")
    os.chdir(folder)
    registry()["benchmark_matrix"]({"model": "gpt2", "accelerator": "h100", "count": 2, "folder": "runs"})
    yield folder / "runs" / "matrix.json"
    os.chdir(before)


@drawn(CASES // 20, draw=st.data())
def test_odd_results(piece: int, draw: st.DataObject, results: Path) -> None:
    before = results.read_text()
    document = part_of = json.loads(before)
    holder: Any = document
    key: Any = "cells"
    while isinstance(part_of, dict | list) and part_of:
        keys = sorted(part_of) if isinstance(part_of, dict) else range(len(part_of))
        holder, key = part_of, draw.draw(st.sampled_from(keys))
        part_of = holder[key] if draw.draw(st.integers(0, 9)) else None
    holder[key] = draw.draw(ODD)
    results.write_text(json.dumps(document))
    called("matrix_results", {"folder": "runs"})
    results.write_text(before)


@pytest.fixture(scope="module")
def searched() -> None:
    """A search over the whole catalogue once before, which reads all tables: that is no part of a sentence's time."""
    ask("which cluster is best for lora of llama 70b", approve=False, model="offline")


@pytest.mark.usefixtures("searched")
@drawn(CASES // 5, words=st.lists(st.one_of(WORDS, st.text(max_size=12)), min_size=1, max_size=14))
def test_odd_sentences(piece: int, words: list[str]) -> None:
    try:
        answer = timely(MOST_S, lambda: ask(" ".join(words), approve=False, model="offline"))
    except PlanError:
        return
    assert answer["answer"]
    assert finite(answer["plan"])
    assert "defect of Shardwise" not in json.dumps(answer)
    assert "\x1b" not in answer["answer"]
