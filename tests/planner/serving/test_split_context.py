"""A cache split by its tokens over devices that would hold the same keys: room grows as the parts, and engines that do
not split it refuse to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import serving_calls  # noqa: F401 (its tools are called by name)

from estimator.errors import PlanError
from tools import call

# (Model, parts that eight devices can hold): of MLA's cache each has the whole, of Qwen3-235B's four keys two have one.
MODELS = [("deepseek-ai/DeepSeek-R1", (1, 2, 4, 8)), ("Qwen/Qwen3-235B-A22B", (1, 2))]


def served(model: str, parts: int | None, engine: str = "vllm", **workload: Any) -> dict[str, Any]:
    load = {"kind": "inference", "engine": engine, "weight_dtype": "fp8", "input_len": 16000, "output_len": 500}
    plan = {
        "model": model,
        "workload": load | {"concurrency": 32} | workload,
        "cluster": {"accelerator": "h200-sxm", "count": 8},
        "layout": {"tp": 8, "cp": parts},
    }
    return call("estimate_inference", {"plan": plan})


@pytest.mark.parametrize(("model", "sizes"), MODELS)
def test_room_grows_as_the_parts_and_attention_takes_no_longer(model: str, sizes: tuple[int, ...]) -> None:
    whole = served(model, None)
    for parts in sizes:
        found = served(model, parts)
        assert found["memory"]["kv_tokens"] == pytest.approx(parts * whole["memory"]["kv_tokens"], rel=1e-5)
        assert found["time"]["generating"]["attention_s"] <= whole["time"]["generating"]["attention_s"]
        more = found["time"]["generating"]["collective_s"] - whole["time"]["generating"]["collective_s"]
        assert (more > 0.0) == (parts > 1)
        assert found["plan"]["layout"]["cp"] == (parts if parts > 1 else found["plan"]["layout"]["cp"])


def test_a_context_that_many_wait_with_is_served_sooner() -> None:
    apart, alike = (served("deepseek-ai/DeepSeek-R1", parts, concurrency=128, input_len=60000) for parts in (8, 1))
    assert apart["throughput"]["output_tokens_per_s"] > alike["throughput"]["output_tokens_per_s"]


WRONG = [
    ("meta-llama/Llama-3.1-70B", 2, "vllm", "holds the same keys"),
    ("Qwen/Qwen3-235B-A22B", 4, "vllm", "holds the same keys"),
    ("openai/gpt-oss-120b", 2, "vllm", "holds the same keys"),
    ("deepseek-ai/DeepSeek-R1", 2, "sglang", "does not split"),
]


@pytest.mark.parametrize(("model", "parts", "engine", "says"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_split_says_why(model: str, parts: int, engine: str, says: str) -> None:
    with pytest.raises(PlanError, match=says) as caught:
        served(model, parts, engine, **({"weight_dtype": "mxfp4"} if "gpt-oss" in model else {}))
    assert caught.value.field == "layout.cp"


def test_files_say_the_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = served("deepseek-ai/DeepSeek-R1", 4)["plan"]
    call("write_configs", {"plan": plan, "targets": ["vllm"], "folder": "files"})
    text = "\n".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.yaml"))
    assert "decode-context-parallel-size: 4" in text
