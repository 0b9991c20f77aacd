"""What a machine reaches becomes a row of one's own, of which estimates come out as they were measured."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from estimator.errors import PlanError
from estimator.machine.matmul import MatmulRates, matmul_seconds
from knowledge.fitted.training import surfaces
from knowledge.machines.catalogue import find_accelerator
from measure.machine.inventory import Inventory
from pages.rendering.markdown import render
from pages.results.of_results import blocks_of
from planner.history.listing import HistoryRequest
from planner.measuring import here
from planner.measuring.hardware import HardwareTiming, measure_hardware, result_of
from planner.measuring.here import MachineDescription, description_of
from planner.measuring.profile import peak_of
from planner.requests import PlanRequest, parsed

SHAPES = ((8192, 8192, 8192), (4096, 14336, 4096), (512, 512, 512))


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path / "config"))
    return tmp_path


def machine(**changes: Any) -> MachineDescription:
    host = {
        "system": "Linux", "processor": "AMD EPYC", "sockets": 1, "cores": 8, "threads": 8.0, "features": [],
        "memory_bytes": 2.0**34, "free_memory_bytes": 2.0**33, "disk_bytes": None, "free_disk_bytes": None,
        "load": 0.1, "temperature_c": None, "contained": False,
    }  # fmt: skip
    whole = {
        "devices": [], "accelerator": None, "count": 0, "plan_cluster": {}, "driver": None, "runtime": None,
        "links": {}, "ports": [], "interconnect": None, "torch": None, "torch_device": None, "torch_backends": [],
        "told_by": [], "warnings": [],
    }  # fmt: skip
    return MachineDescription.model_validate({**whole, "host": {**host, **changes}})


def measured(folder: Path, flops: float = 1e11, bandwidth: float = 1e10) -> None:
    rates = [
        {"part": "matmul", "what": "fp32", "amount": 2.0 * side**3, "seconds": 2.0 * side**3 / flops,
         "shape": [side] * 3} for side in (256, 1024, 2048)
    ]  # fmt: skip
    rates += [{"part": "memory", "what": "copy", "amount": 2.0**29, "seconds": 2.0**29 / bandwidth, "size": 2**28}]
    about = {"kind": "cpu", "threads": 8, "versions": {"torch": "2.9.0"}}
    (folder / "measured.json").write_text(json.dumps({"about": about, "rates": rates, "skipped": []}))


@pytest.mark.parametrize("name", ["h100-sxm", "mi300x"])
def test_a_measured_peak_is_the_one_that_gives_back_the_times(name: str):
    device = find_accelerator(name).value
    surface = surfaces(device.timed_as)["bf16"]
    for peak in (0.7 * device.peak_flops["bf16"], device.peak_flops["bf16"]):
        rates = MatmulRates(surface, peak, float("inf"))
        products = [
            (shape, float(matmul_seconds(rates, np.array([float(shape[0])]), shape[1], shape[2])[0]))
            for shape in SHAPES
        ]
        assert peak_of(products, device, "bf16") == pytest.approx(peak, rel=1e-6)


def test_products_that_are_small_say_no_peak():
    assert peak_of([((16, 4096, 4096), 1e-3)], None, "bf16") is None


def test_a_processor_that_nobody_knows_becomes_a_device_that_plans_have(own_folder: Path):
    measured(own_folder)
    result = result_of(own_folder, machine(), keep=None)
    assert result.profile is not None
    assert result.profile.file is not None
    device = find_accelerator("my-amd-epyc").value
    assert device.family == "CPU"
    assert device.memory_bytes == pytest.approx(2.0**34, rel=1e-3)
    # Peaks are above what products and copies reached.
    assert 1e11 < device.peak_flops["fp32"] < 2e11
    assert 1e10 < device.memory_bandwidth < 2e10
    page = render(blocks_of(result))
    assert "my-amd-epyc" in page
    assert "0.1 TFLOP/s" in page


def test_a_busy_machine_is_not_kept_unless_one_says_so(own_folder: Path):
    measured(own_folder)
    result = result_of(own_folder, machine(load=7.0), keep=None)
    assert result.profile is not None
    assert result.profile.file is None
    assert any("busy" in line for line in result.warnings)
    assert result_of(own_folder, machine(load=7.0), keep=True).profile.file  # type: ignore[union-attr]


def test_here_is_what_was_measured(own_folder: Path, monkeypatch: pytest.MonkeyPatch):
    measured(own_folder)
    result_of(own_folder, machine(), keep=True)
    monkeypatch.setattr(here, "processor_as", lambda host: None)
    inventory = Inventory(accelerators=(), host=_host(), torch=None)
    assert description_of(inventory).plan_cluster == {"accelerator": "my-amd-epyc", "count": 1}


@pytest.mark.parametrize(
    ("arguments", "cluster"),
    [
        ({"accelerator": "here"}, ("h100-sxm", 4)),
        ({"accelerator": "here", "count": 2}, ("h100-sxm", 2)),
        ({"plan": {"cluster": {"accelerator": "here"}}}, ("h100-sxm", 4)),
    ],
)
def test_every_request_for_here_is_one_for_this_machine(
    arguments: dict[str, Any], cluster: tuple[str, int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("planner.measuring.here.here", lambda: ("h100-sxm", 4))
    plan = parsed(PlanRequest, {"model": "llama-3.1-8b", **arguments}).to_plan()
    assert (plan.cluster.accelerator, plan.cluster.count) == cluster
    assert parsed(HistoryRequest, {"accelerator": "here"}).accelerator == "h100-sxm"


def _host() -> Any:
    facts = machine().host.model_dump()
    return SimpleNamespace(**{**facts, "ports": (), "unclaimed": {}})


def test_without_pytorch_it_says_what_is_missing(own_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    with pytest.raises(PlanError, match="PyTorch: is needed"):
        measure_hardware(HardwareTiming.model_validate({}), "run")


def test_what_takes_longer_than_its_time_is_ended_and_what_it_measured_stands(
    own_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A machine so busy that the program never comes to its end: a Python that only waits stands for it."""
    monkeypatch.chdir(tmp_path)
    measured(own_folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("torchrun", "python"):
        program = programs / name
        program.write_text(f"#!/bin/bash\ncp {own_folder / 'measured.json'} .\nsleep 600\n")
        program.chmod(0o755)
    monkeypatch.setattr("planner.measuring.hardware._GRACE_S", 0.0)
    started = time.monotonic()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    told = measure_hardware(
        HardwareTiming.model_validate({"seconds": 1.0, "keep": False}), "cut", environment=environment
    )
    assert time.monotonic() - started < 20.0
    assert any("ended after 1 s" in line for line in told.warnings)
    assert {row.part for row in told.rates} == {"matmul", "memory"}
