"""How many devices a name stands for, whatever face it came through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.jobs.serving import serving_job
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import accelerators
from knowledge.machines.counted import find_devices

COUNTED = {
    "8xh100": ("h100-sxm", 8, None),
    "2x 3090": ("rtx-3090", 2, None),
    "H100 x8": ("h100-sxm", 8, None),
    "64 H100s": ("h100-sxm", 64, None),
    "dual 3090": ("rtx-3090", 2, None),
    "p5.48xlarge": ("h100-sxm", 8, 8),
    "2xp5.48xlarge": ("h100-sxm", 16, 8),
    "a2-ultragpu-4g": ("a100-sxm-80gb", 4, 4),
    "gcp a3 ultra": ("h200-sxm", 8, 8),
    "a3 mega": ("h100-sxm", 8, 8),
    "aws p6 b300": ("b300-sxm", 8, 8),
    "a4x": ("gb200", 4, 4),
    "azure nd gb200": ("gb200", 4, 4),
    "oci bm.gpu.h100.8": ("h100-sxm", 8, 8),
    "gpu_8x_a100": ("a100-sxm-40gb", 8, 8),
    "gpu_8x_a100_80gb_sxm4": ("a100-sxm-80gb", 8, 8),
    "gpu-mi300x8-1536gb": ("mi300x", 8, 8),
    "H100-SXM-2-80G": ("h100-sxm", 2, None),
    "L40S-4-48G": ("l40s", 4, None),
    "ecs.gn7e-c16g1.16xlarge": ("a100-sxm-80gb", 4, 4),
    "Machine.H200_X_8": ("h200-sxm", 8, None),
    "8A100.40S.176V": ("a100-sxm-40gb", 8, None),
    "4x8 H200": ("h200-sxm", 32, 8),
    "4 nodes of 8xH200": ("h200-sxm", 32, 8),
    "two H100 boxes": ("h100-sxm", 16, None),
    "DGX H100": ("h100-sxm", 8, None),
    "2 DGX H100": ("h100-sxm", 16, None),
    "8x HGX H100": ("h100-sxm", 8, None),
    "DGX A100 640GB": ("a100-sxm-80gb", 8, None),
    "NVL72": ("gb200", 72, None),
    "half an NVL72": ("gb200", 36, None),
    "two racks of GB300 NVL72": ("gb300", 144, None),
    "GB200 NVL4": ("gb200", 4, None),
    "v5p-256": ("tpu-v5p", 128, None),
    "tpu7x-128": ("tpu-v7", 64, None),
    "tpu7x-4x4x4": ("tpu-v7", 64, None),
    "h100": ("h100-sxm", None, None),
    "H100 NVL 94GB": ("h100-nvl", None, None),
    "M4 Pro 48GB": ("apple-m4-pro-48gb", None, None),
    "DGX Spark": ("gb10-dgx-spark", None, None),
    "RTX 3090 at 250W": ("rtx-3090", None, None),
}


@pytest.mark.parametrize(("name", "expected"), COUNTED.items())
def test_a_name_says_how_many_devices_it_stands_for(name: str, expected: tuple[str, int | None, int | None]) -> None:
    devices = find_devices(name)
    assert (devices.match.value.id, devices.count, devices.per_node) == expected


@pytest.mark.parametrize(
    "name", ["0xh100", "a third of an H100", "half an H100", "9999999 h100", "8x", "4 nodes", "5x nothing"]
)
def test_what_is_no_number_of_devices_is_refused(name: str) -> None:
    with pytest.raises(PlanError):
        find_devices(name)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from([device.id for device in accelerators()]), st.integers(1, 4096))
def test_a_count_multiplies_what_a_name_stands_for(id: str, count: int) -> None:
    one = find_devices(id).count or 1
    assert find_devices(f"{count} x {id}").count == count * one
    assert find_devices(f"{id} x {count}").count == count * one


def test_a_limit_of_power_is_said_to_be_left_out() -> None:
    assert "250 W" in (find_devices("RTX 3090 at 250W").match.note or "")
    assert find_devices("H100 80GB HBM3 700W").match.note is None


@pytest.mark.parametrize("kind", ["training", "inference"])
def test_a_plan_on_a_named_machine_has_all_of_its_devices(kind: str) -> None:
    """Whatever face: the instance stands in the plan and no count beside it."""
    job = job_of if kind == "training" else serving_job
    plan = {"model": "llama-3.1-8b", "workload": {"kind": kind}, "cluster": {"accelerator": "2xp4d.24xlarge"}}
    machine = job(Plan.parse(plan)).machine
    assert (machine.accelerator.id, machine.count, machine.per_node) == ("a100-sxm-40gb", 16, 8)
    stated = job(Plan.parse(plan).patch({"cluster.count": 4})).machine
    assert stated.count == 4
