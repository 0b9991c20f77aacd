"""mlx-lm trains a tiny model as our files say, on a processor, and its server reads our arguments."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest
from conftest import Ask

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "launchers"))

from launch_plans import complete  # pyright: ignore[reportMissingImports]

from estimator.plan.schema import Plan
from launchers.render import render
from launchers.site import Site

MAC = {"accelerator": "apple-m4-max", "count": 1, "per_node": 1}


@pytest.mark.parametrize("method", ["lora", "dora"])
def test_a_tiny_model_is_trained(ask: Ask, tmp_path: Path, method: str):
    assert ask("train", "tiny", [{"folder": str(tmp_path)}])[0]["error"] is None
    shutil.copy(tmp_path / "data" / "train.jsonl", tmp_path / "data" / "valid.jsonl")
    workload = {"framework": "mlx", "method": method, "packing": False, "seq_len": 64, "micro_batch": 2,
                "global_batch": 4, "steps": 3}  # fmt: skip
    plan = complete({"workload": workload, "cluster": MAC, "layout": {"dp": 1, "zero_stage": 0, "recompute": "full"}})
    made = render(plan, ["mlx"], model_id="./model", site=Site(dataset="./data"))
    (tmp_path / "mlx.yaml").write_text(made.files[0].text)
    (good,) = ask("mlx", "mlx", [{"folder": str(tmp_path)}])
    assert good["error"] is None
    assert good["saved"][-1] == "adapters.safetensors"
    assert "0000006_adapters.safetensors" in good["saved"]
    (tmp_path / "mlx.yaml").write_text(made.files[0].text.replace("iters:", "iterations:"))
    (broken,) = ask("mlx", "mlx", [{"folder": str(tmp_path)}])
    assert broken["error"]


def test_the_server_reads_its_arguments(ask: Ask):
    workload = {"kind": "inference", "engine": "mlx", "max_batch": 8}
    plan = Plan.parse(
        {"model": "meta-llama/Llama-3.1-8B", "workload": workload, "cluster": MAC, "layout": {"tp": 1, "pp": 1}}
    )
    script = next(file.text for file in render(plan, ["mlx-server"]).files if file.path == "serve.sh")
    line = script.replace("\\\n", " ").splitlines()[-1].replace('"$PORT"', "8000").replace('"$HOST"', "127.0.0.1")
    program, *words = shlex.split(line)[1:]
    assert program == "mlx_lm.server"
    good, broken = ask("mlx", "mlx", [{"server": words}, {"server": [*words, "--decode-concurency", "9"]}])
    assert good["error"] is None
    assert (good["model"], good["concurrency"], good["port"]) == ("meta-llama/Llama-3.1-8B", 8, 8000)
    assert broken["error"]
