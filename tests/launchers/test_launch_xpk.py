"""xpk: slices of TPUs by their names, and the command that their hosts run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_plans import complete

from estimator.errors import PlanError
from launchers.reading.sets import read
from launchers.render import render
from launchers.tables import table

_PLAN: dict[str, Any] = {
    "workload": {"framework": "maxtext", "stage": "pretrain", "packing": True, "steps": 1000},
    "layout": {"tp": 1, "zero_stage": 3, "recompute": "full"},
}
_SLICES = {name: row for name, row in table("data/devices")["xpk"].items() if row.get("jax_devices", 1) == 1}


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(_SLICES)), st.sampled_from([8, 16, 64, 256]))
def test_slices_are_read_back(device: str, count: int):
    changes = {"cluster": {"accelerator": device, "count": count, "per_node": 4}, "layout.dp": count}
    plan = complete(_PLAN | {}).patch(changes | {"workload.global_batch": count})
    files = {file.path: file.text for file in render(plan, ["maxtext", "xpk"]).files}
    assert f"--device-type={_SLICES[device]['prefix']}-" in files["xpk.sh"]
    found = read(files)
    assert found.plan["cluster"] == {"accelerator": device, "count": count}
    assert not found.blocked


def test_slices_that_there_are_not():
    changes = {"cluster": {"accelerator": "tpu-v6e", "count": 12, "per_node": 4}, "layout.dp": 12}
    plan = complete(_PLAN).patch(changes | {"workload.global_batch": 12})
    with pytest.raises(PlanError, match="no slice of 12"):
        render(plan, ["maxtext", "xpk"])


@pytest.mark.parametrize(
    ("kind", "count", "device"),
    [("v5p-256", 128, "tpu-v5p"), ("v6e-16", 16, "tpu-v6e"), ("h200-141gb-8", 16, "h200-sxm")],
)
def test_commands_of_others(kind: str, count: int, device: str):
    nodes = "--num-nodes=2" if "h200" in kind else "--num-slices=1"
    text = (
        'ARGS="model_name=llama3.1-8b per_device_batch_size=2 ici_fsdp_parallelism=-1 steps=10"\n'
        f"xpk workload create --cluster=$C --device-type={kind} {nodes} --workload=w \\\n"
        '  --command="export A=1 && python3 -m MaxText.train MaxText/configs/base.yml ${ARGS}"\n'
    )
    found = read({"run.sh": text})
    assert found.plan["model"] == "meta-llama/Llama-3.1-8B"
    assert found.plan["cluster"]["count"] == count
    assert found.plan["cluster"]["accelerator"] == device


def test_sizes_that_count_more_devices_than_chips_are_asked_about():
    command = "python3 -m MaxText.train base.yml model_name=gpt-oss-20b"
    text = f'xpk workload create --device-type=tpu7x-4x4x4 --command="{command}"'
    assert "workload.micro_batch" in read({"run.sh": text}).blocked
