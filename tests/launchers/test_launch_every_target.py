"""Random plans for every target: each file reads back by the rules of its format and says what it is, or the plan is
refused and nothing is written."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st
from launch_plans import PREDICTION, complete
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from launchers.pieces import File, Rendered
from launchers.predictions import ServingPrediction
from launchers.render import render
from launchers.site import Site
from launchers.targets import TARGETS
from launchers.writing import write

SERVED = ServingPrediction(2**34, 2**36, True, 0.1, 0.05, 0.2, 0.01, 0.008, 0.012, 2560.0, 100)
# By target the changes that make the base plan one for it.
BASES: dict[str, dict[str, Any]] = {
    target: yaml.safe_load((Path(__file__).parent / "refused" / f"{target}.yaml").read_text())["base"]
    for target in TARGETS
}
STARTED = [name for name, target in TARGETS.items() if target.role in ("config", "program")]
SCHEDULERS = [name for name, target in TARGETS.items() if target.role == "scheduler"]


def some(**fields: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Up to three of the fields with one of their values: more would only meet the first rule."""
    one = st.sampled_from([(name, value) for name, values in fields.items() for value in values])
    return st.lists(one, max_size=3).map(dict)


TRAINING = some(
    model=["Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-70B", "mistralai/Mixtral-8x7B-v0.1", "no/such-model", ""],
    stage=["pretrain", "sft", "dpo", "ppo", "kto", "grpo", "rm"],
    method=["full", "lora", "qlora", "dora", "pissa", "freeze"],
    optimizer=["adamw", "adamw_8bit", "galore", "badam", "muon", "soap", "lomo"],
    precision=["fp16", "fp32", "tf32", "fp8", "mxfp8", "mxfp4", "nvfp4"],
    attention=["sdpa", "eager", "flash3"],
    packing=[False],
    steps=[7],
    seq_len=[1, 333, 2**20],
    micro_batch=[2, 3],
    accumulation=[1, 5],
    zero_stage=[0, 1, 2, 3],
    recompute=["none", "selective", "block:2"],
    offload=["optimizer", "params", "activations"],
    tp=[2, 4],
    pp=[2],
    cp=[2],
    ep=[4],
    dp=[1, 2, 16, 24],
    wrong=[{"cluster.count": 7}, {"workload.global_batch": 13}, {"layout.dp": None}],
)
SERVING = some(
    model=["Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.1-70B", "no/such-model"],
    weight_dtype=["fp8", "awq", "q4_k_m"],
    kv_dtype=["fp8"],
    scenario=["offline", "server", "single-stream", "interactive"],
    request_rate=[2.5],
    concurrency=[1, 300],
    max_batch=[64],
    prefix_hit=[0.5],
    speculative_tokens=[2],
    draft_method=["ngram"],
    tp=[2, 4, 8, 16],
    pp=[2],
    dp=[2],
    ep=[4],
    count=[1, 2, 16, 24],
    wrong=[{"layout.tp": 3}, {"cluster.count": None}],
)
OWNED = "$(touch owned)`touch owned`'\"; touch owned; #\n- x: &y [1\n#SBATCH --nodes=99\n../../x ${HOME} \u202e"
NAMES = st.sampled_from([None, "a run", OWNED, "--help", "\n\n---\n", "é" * 80, "%s{0}\\"])


def planned(target: str, fields: dict[str, Any], name: str | None) -> Plan:
    """The target's base plan with the fields, device count and global batch made to agree unless they are `wrong`."""
    serving = TARGETS[target].kinds == ("inference",)
    fields = dict(fields)
    changes: dict[str, Any] = {"name": name, **fields.pop("wrong", {})}
    if "model" in fields:
        changes["model"] = fields.pop("model")
    accumulation = fields.pop("accumulation", 4)
    for key in ("tp", "pp", "cp", "ep", "dp", "zero_stage", "recompute", "offload"):
        if key in fields:
            changes[f"layout.{key}"] = fields.pop(key)
    if serving:
        changes = {"cluster.count": fields.pop("count", 8)} | changes
    plan = complete(BASES[target]).patch({f"workload.{key}": value for key, value in fields.items()}).patch(changes)
    if serving or "wrong" in fields:
        return plan
    split, dp = plan.layout, plan.layout.dp or 1
    count = (split.tp or 1) * (split.pp or 1) * (split.cp or 1) * dp
    agreeing = {
        "cluster": {"count": count, "per_node": min(count, plan.cluster.per_node or 8)},
        "workload.global_batch": (plan.training.micro_batch or 1) * accumulation * dp,
    }
    return plan.patch({key: value for key, value in agreeing.items() if key not in changes})


class OneOfEachKey(yaml.SafeLoader):
    """Refuses what YAML readers take silently: the same key twice in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"twice: {keys}"
        return super().construct_mapping(node, deep)


def reads(file: File) -> None:
    """Asserts that a file is what its name says."""
    lines = file.text.splitlines()
    kind = "sh" if lines[0].startswith(("#!/bin/sh", "#!/bin/bash")) else Path(file.path).suffix.lstrip(".")
    if kind in ("yaml", "yml"):
        found = list(yaml.load_all(file.text, OneOfEachKey))
        assert found
        assert all(isinstance(document, dict) for document in found if document is not None)
    elif kind == "json":
        assert isinstance(json.loads(file.text), dict)
    elif kind == "toml":
        assert tomllib.loads(file.text)
    elif kind == "py":
        ast.parse(file.text)
    elif kind == "sh":
        shell = "bash" if "bash" in lines[0] else "sh"
        done = subprocess.run([shell, "-n"], input=file.text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    elif kind == "conf":
        assert all(re.fullmatch(r"\S+ = \S+", line) for line in lines if line and not line.startswith("#"))
    else:
        assert file.path == "hosts"


def heading_of(file: File) -> str:
    return "\n".join(line for line in file.text.splitlines()[:12] if line.startswith(("#", '"""')) or "plan:" in line)


def content(file: File) -> str:
    return "\n".join(line for line in file.text.splitlines() if not line.lstrip().startswith("#"))


def is_sound(rendered: Rendered, name: str | None) -> None:
    for file in rendered.files:
        reads(file)
        assert not Path(file.path).is_absolute()
        assert ".." not in Path(file.path).parts
        if not file.path.endswith(".json"):
            assert all(word in heading_of(file) for word in ("plan:", "predicted", "run, ")), file.path
        if name is not None and len(name) > 10:
            assert name not in content(file)
            assert "touch owned" not in content(file)
        for placeholder in re.findall(r"SET_ME\w*(?!\*)", content(file)):
            assert any(file.path in need or placeholder in need for need in rendered.needs_from_user), file.path


def tried(plan: Plan, targets: list[str], dataset: str | None, folder: Path) -> Rendered | PlanError:
    """The files of the plan, written into `folder`, or why not."""
    try:
        prediction = SERVED if isinstance(plan.workload, Inference) else PREDICTION
        rendered = render(plan, targets, prediction, site=Site(dataset=dataset))
        written = write(rendered, folder)
    except PlanError as error:
        return error
    assert [Path(row.path).read_text() for row in written] == [file.text for file in rendered.files]
    return rendered


@pytest.mark.skipif(not shutil.which("bash"), reason="needs a shell")
@pytest.mark.parametrize("target", STARTED)
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_files_read_back_or_the_plan_is_refused_and_nothing_written(target: str, data: st.DataObject) -> None:
    kind = TARGETS[target].kinds[0]
    fields = data.draw(TRAINING if kind == "training" else SERVING)
    scheduler = data.draw(st.sampled_from([None, *(one for one in SCHEDULERS if kind in TARGETS[one].kinds)]))
    name = data.draw(NAMES)
    dataset = data.draw(st.sampled_from([None, "org/data", 'it\'s $(touch it) "b"', "a: [b", "\n"]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "set"
        try:
            plan = planned(target, fields, name)
        except PlanError:
            # Not a Plan at all, as the model is no text.
            return
        found = tried(plan, [target, *([scheduler] if scheduler else [])], dataset, folder)
        assert folder.exists() == isinstance(found, Rendered)
    event("written" if isinstance(found, Rendered) else "refused")
    if isinstance(found, Rendered):
        is_sound(found, name)
    else:
        assert found.field.split(".")[0] in ("model", "workload", "cluster", "layout", "targets", "dataset")


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_a_base_plan_that_it_takes(target: str) -> None:
    plan = complete(BASES[target])
    if TARGETS[target].kinds == ("inference",) and not isinstance(plan.workload, Inference):
        plan = complete(BASES["vllm"])
    prediction = SERVED if isinstance(plan.workload, Inference) else PREDICTION
    is_sound(render(plan.patch({"name": OWNED}), [target], prediction), OWNED)
