"""Megatron-LM's logs name no model: it is read from the arguments that they list."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.plan.schema import Plan
from knowledge.models.catalogue import architecture
from launchers.launch.training import training_launch
from launchers.megatron.model import model_arguments
from launchers.site import Site
from measure.logs.reading import is_log, read_text

STEP = (
    " [2026-11-10 10:0{0}:00] iteration {0:8}/ 100 | consumed samples: {1} | elapsed time per iteration (ms): 1900.0 | "
    "learning rate: 3.0E-04 | global batch size: 32 | lm loss: 9.1E+00 | number of nan iterations: 0 |"
)


def printed(model: str, **changes: str) -> str:
    """The list of arguments of a run of that model, which has none of its name, as Megatron-LM prints it."""
    workload = {"framework": "megatron-lm", "seq_len": 1024, "micro_batch": 1, "global_batch": 32}
    layout = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 8, "zero_stage": 1, "recompute": "none", "offload": "none"}
    cluster = {"accelerator": "h100-sxm", "count": 8, "per_node": 8}
    plan = Plan.parse({"model": model, "workload": workload, "cluster": cluster, "layout": layout})
    given: dict[str, Any] = dict(model_arguments(training_launch(plan, ["megatron"], None, None, Site()), [], ""))
    # Of a switch its destination is printed, and what was left out as None or False.
    usual = {"swiglu": False, "num_experts": None, "window_size": None, "multi_latent_attention": False,
             "hybrid_override_pattern": None, "vocab_size": None, "tokenizer_model": None,
             "add_bias_linear": not given.pop("disable_bias_linear", False)}  # fmt: skip
    every = usual | given | {"padded_vocab_size": architecture(model).vocab} | changes
    body = "".join(f"  {name} {'.' * max(3, 48 - len(name))} {value}\n" for name, value in sorted(every.items()))
    return f"{'-' * 24} arguments {'-' * 24}\n{body}{'-' * 20} end of arguments {'-' * 20}\n"


STEPS = "\n".join(STEP.format(step, 32 * step) for step in range(1, 8))


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "gpt2-xl", "qwen2.5-0.5b"])
def test_the_model_of_a_list_of_arguments_has_as_many_parameters(name: str) -> None:
    run = read_text(printed(name) + STEPS)
    assert isinstance(run.plan["model"], dict)
    assert architecture(run.plan["model"]).parameters == architecture(name).parameters


def test_the_model_of_the_tokenizer_is_that_where_its_dimensions_agree() -> None:
    tokenizer = {"tokenizer_model": "meta-llama/Llama-3.1-8B"}
    assert read_text(printed("llama-3.1-8b", **tokenizer) + STEPS).plan["model"] == "meta-llama/Llama-3.1-8B"
    assert isinstance(read_text(printed("qwen3-8b", **tokenizer) + STEPS).plan["model"], dict)


@pytest.mark.parametrize("changes", [
    {"num_layers": "None"}, {"padded_vocab_size": "None"}, {"hybrid_override_pattern": "M-M*"}, {"hidden_size": "x"},
    {"ffn_hidden_size": "None"}, {"window_size": "wide"},
])  # fmt: skip
def test_a_list_that_leaves_the_model_open_tells_none(changes: dict[str, str]) -> None:
    assert "model" not in read_text(printed("llama-3.1-8b", **changes) + STEPS).plan


def test_every_line_that_lists_a_setting_is_of_a_log() -> None:
    """What is pasted is told from what is said line by line."""
    body = [line for line in printed("llama-3.1-8b").splitlines() if "arguments" not in line]
    assert all(map(is_log, body))
    assert is_log("[2026-11-01 10:00:00,1] [INFO] [config.py:1000:print]   train_batch_size ............. 32")
    assert not any(map(is_log, ("make it fast ... please", "global_batch_size ... 32, is that good?", "........")))
    (finding,) = read_text("\n".join(body)).findings
    assert "no step is in it" in finding
