"""torchtune has every component that our files name, with the arguments they give, and `tune run` takes the launch."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from conftest import python_of
from hf_plans import BASE, accumulation, plans, written

from estimator.plan.schema import Plan
from launchers.reading.sets import read
from launchers.tables import table

# One of every row of models that has a builder of its own.
MODELS = (
    "Llama-3.1-70B", "Llama-3.1-405B", "Llama-3.2-1B", "Llama-3.2-3B", "Llama-3.3-70B-Instruct", "Meta-Llama-3-8B",
    "Meta-Llama-3-70B", "Llama-2-7b-hf", "Llama-2-13b-hf", "Llama-2-70b-chat-hf", "Mistral-7B-v0.1", "gemma-2b",
    "gemma-7b", "gemma-2-2b", "gemma-2-9b", "gemma-2-27b", "Phi-3-mini-4k-instruct", "phi-4", "Qwen2-0.5B",
    "Qwen2-1.5B", "Qwen2-7B", "Qwen2.5-0.5B", "Qwen2.5-3B", "Qwen2.5-1.5B-Instruct", "Qwen2.5-1.5B",
    "Qwen2.5-7B-Instruct", "Qwen2.5-7B", "Qwen2.5-14B", "Qwen2.5-14B-Instruct", "Qwen2.5-32B", "Qwen2.5-32B-Instruct",
    "Qwen2.5-72B", "Qwen2.5-72B-Instruct",
)  # fmt: skip


def tune_run(place: Path) -> str:
    """What the script starts, on a first run."""
    line = (place / "torchtune.sh").read_text().splitlines()[-1].removeprefix("exec ")
    line = re.sub(r'"\$\{NODE_RANK[^"]*"', '"$NODE_RANK"', line)
    return line.removesuffix(' resume_from_checkpoint="$resume"')


def test_torchtune_reads_the_plan(ask, tmp_path):
    base = Plan.parse(BASE).patch({"workload.framework": "torchtune", "layout.zero_stage": 3})
    of_models = [
        base.patch({"model": f"own/{model}", "workload.method": method})
        for model in MODELS
        for method in ("full", "lora", "qlora", "dora")
    ]
    done = written([*plans("torchtune", (0, 2, 3)), *of_models], "torchtune", tmp_path)
    assert len(done) > 150
    questions = [{"path": str(place / "torchtune.yaml"), "command": tune_run(place)} for _, _, place in done]
    for (plan, _, _), answer in zip(done, ask("torchtune", "torchtune", questions), strict=True):
        training, layout, count = plan.training, plan.layout, plan.cluster.count or 1
        assert answer["error"] is None, (answer["error"], plan.model, training, layout)
        assert answer["nodes"] * answer["per_node"] == count
        assert answer["recipe"].endswith("single_device") == (count == 1)
        assert (answer["micro_batch"], answer["accumulation"]) == (training.micro_batch, accumulation(plan))
        assert answer["length"] == training.seq_len
        assert answer["packing"] == (None if training.stage == "dpo" else training.packing)
        assert (answer["epochs"], answer["steps"]) == (
            (1, training.steps) if training.steps else (training.epochs, None)
        )
        assert answer["rank"] == (None if training.method == "full" else training.lora.rank)
        assert answer["four_bits"] == (training.method == "qlora")
        assert answer["checkpointing"] == (layout.recompute == "full")
        assert answer["tp"] == layout.tp
        if count > 1:
            assert (answer["reshard"], answer["offload"]) == (layout.zero_stage == 3, layout.offload == "params")


def test_broken_files_are_refused(ask, tmp_path):
    ((_, _, place),) = written(plans("torchtune", (3,))[6:7], "torchtune", tmp_path)
    good = yaml.safe_load((place / "torchtune.yaml").read_text())
    optimizer = good["optimizer"]
    broken = [{"model": {"_component_": "torchtune.models.llama9"}}, {"optimizer": optimizer | {"learning_rate": 1}}]
    questions = []
    for number, change in enumerate([{}, *broken]):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(good | change))
        questions.append({"path": str(file), "command": tune_run(place)})
    errors = [answer["error"] for answer in ask("torchtune", "torchtune", questions)]
    assert errors[0] is None
    assert all(errors[1:]), errors


def test_published_configs_are_as_they_were_noted():
    (recipes,) = python_of("torchtune").parents[1].glob("lib/python3*/site-packages/recipes/configs")
    command = "tune run --nproc_per_node 4 full_finetune_distributed --config"
    for name in table("torchtune/configs")["configs"]:
        files = {"job": f"{command} own.yaml", "own.yaml": (recipes / f"{name}.yaml").read_text()}
        noted, real = read({"job": f"{command} {name}"}), read(files)
        told = [{row.field: row.value for row in [*found.assumed, *found.read]} for found in (noted, real)]
        assert told[0] == told[1], name
        assert set(noted.blocked) == set(real.blocked), name
