"""A run goes on from where its program saves, and a model is the one that it is called."""

from __future__ import annotations

import pytest
import yaml
from launch_plans import complete
from scheduler_starts import serving
from test_launch_every_target import BASES, SERVED

from estimator.errors import PlanError
from launchers.render import render
from launchers.targets import TARGETS

# MaxText saves in a bucket of the person's choice.
TRAINERS = [
    name for name, row in TARGETS.items() if row.role == "program" and "training" in row.kinds and name != "maxtext"
]


@pytest.mark.parametrize("program", TRAINERS)
def test_slurm_looks_for_what_was_saved_where_the_program_saves(program: str) -> None:
    targets = [program, "slurm"] if program != "trl" else ["accelerate", program, "slurm"]
    try:
        rendered = render(complete(BASES[program]), targets)
    except PlanError as error:
        pytest.skip(str(error))
    job = next(file.text for file in rendered.files if file.target == "slurm")
    written = "".join(file.text for file in rendered.files if file.target == program)
    if "find saves" in job:
        assert "saves" in written, f"{program} saves elsewhere"
    else:
        assert "requeue" not in job


def text_of(model: str, target: str) -> str:
    changes = {"model": model, "workload.framework": target, "workload.stage": "pretrain", "layout.zero_stage": 1}
    return render(complete(changes), [target]).files[0].text


def test_layers_without_positions_are_in_the_file() -> None:
    assert "--no-rope-freq 4" in text_of("HuggingFaceTB/SmolLM3-3B", "megatron-lm")
    dimensions = yaml.safe_load(text_of("HuggingFaceTB/SmolLM3-3B", "nanotron"))["model"]["model_config"]
    assert dimensions["no_rope_layer"] == 4
    assert dimensions["is_qwen2_config"] is True
    assert "no_rope" not in text_of("meta-llama/Llama-3.1-8B", "nanotron")


def test_norms_after_the_layers_are_no_model_of_megatron() -> None:
    with pytest.raises(PlanError, match="norms after attention and MLP alone"):
        text_of("LGAI-EXAONE/EXAONE-4.0-1.2B", "megatron-lm")


_KUBERNETES = [name for name in TARGETS if name.startswith("kubernetes-")] + ["dynamo", "llm-d"]


@pytest.mark.parametrize("target", _KUBERNETES)
def test_who_starts_runs_in_a_namespace_may_make_all_that_is_written_for_it(target: str) -> None:
    serves = "training" not in TARGETS[target].kinds
    program = "vllm" if serves else "verl" if target == "kubernetes-rayjob" else "llamafactory"
    rayjob = {"workload.framework": "verl", "workload.stage": "sft", "layout.zero_stage": 3}
    plan = serving(8) if serves else complete(rayjob if program == "verl" else {})
    rendered = render(plan, [program, target, "namespace"], prediction=SERVED if serves else None)
    written = {file.target: list(yaml.safe_load_all(file.text)) for file in rendered.files if file.target != program}
    rules = next(part["rules"] for part in written["namespace"] if part["kind"] == "Role")
    allowed = {(group, kind) for rule in rules for group in rule["apiGroups"] for kind in rule["resources"]}
    for part in written[target]:
        group = part["apiVersion"].rpartition("/")[0]
        assert (group, f"{part['kind'].lower()}s") in allowed
