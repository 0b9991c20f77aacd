"""Every argument in our scripts for Gaudi and Trainium is one of its class's, in the text of the packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hf_plans import SITES, rendered_with

from estimator.errors import PlanError
from estimator.plan.schema import Plan

CASES = {
    "optimum-habana": (
        "optimum-habana",
        "gaudi",
        "gaudi-3",
        "train_gaudi.py",
        ["GaudiConfig", "GaudiSFTConfig", "GaudiSFTTrainer"],
    ),
    "optimum-neuron": ("neuronx", "trainium", "trainium2", "train_neuron.py", ["NeuronSFTConfig", "NeuronSFTTrainer"]),
}
CHANGES: list[dict[str, object]] = [
    {},
    {"workload.method": "lora"},
    {"workload.packing": False},
    {"workload.stage": "pretrain"},
    {"layout.recompute": "none"},
    {"layout.tp": 2, "layout.dp": 4},
    {"layout.pp": 2, "layout.dp": 4},
    {"layout.offload": "optimizer"},
    {"layout.zero_stage": 3},
    {"workload.optimizer": "adafactor"},
    {"workload.steps": 500},
]


@pytest.mark.parametrize("target", CASES)
def test_arguments_are_those_of_the_package(ask, target: str, tmp_path: Path) -> None:
    framework, folder, device, name, looked = CASES[target]
    base = Plan.parse(
        {
            "model": "meta-llama/Llama-3.1-8B",
            "workload": {"framework": framework, "stage": "sft", "seq_len": 2048, "micro_batch": 1, "global_batch": 32},
            "cluster": {"accelerator": device, "count": 8, "per_node": 8},
            "layout": {
                "tp": 1,
                "pp": 1,
                "cp": 1,
                "ep": 1,
                "dp": 8,
                "zero_stage": 1,
                "recompute": "full",
                "offload": "none",
            },
        }
    )
    questions = []
    for number, change in enumerate(CHANGES):
        try:
            files = rendered_with(base.patch(change), target, SITES[number % 2]).files
        except PlanError:
            continue
        path = tmp_path / f"{number}-{name}"
        path.write_text(next(file.text for file in files if file.path == name))
        questions.append({"path": str(path), "folder": folder})
    assert len(questions) >= 4
    broken = tmp_path / "broken.py"
    broken.write_text(Path(questions[0]["path"]).read_text().replace("per_device_train_batch_size", "rows_of_a_device"))
    *answers, refused = ask("keywords", "keywords", [*questions, {"path": str(broken), "folder": folder}])
    assert [answer["unknown"] for answer in answers] == [[]] * len(answers)
    assert {name for answer in answers for name in answer["looked"]} == set(looked)
    assert [word.rpartition(".")[2] for word in refused["unknown"]] == ["rows_of_a_device"]
