"""The fit of decode attention and experts: what it misses rows by that it has not seen, and the file it wrote."""

import numpy as np
import pytest

from estimator.machine.decode import CachedHeads, decode_attention_seconds
from knowledge.data_files import rows
from knowledge.fitted.decode import decode_evidence, decode_kernel, expert_kernel
from knowledge.machines.catalogue import accelerators, find_accelerator
from measure.fit.decode import (
    FILE,
    attention_timings,
    expert_timings,
    fitted_attention,
    fitted_experts,
    held_out_errors,
    written,
)


@pytest.mark.parametrize(
    ("family", "kernel", "kv_dtype", "median", "most"),
    [
        ("Hopper", "attention", "bf16", 0.13, 0.30),
        ("Blackwell", "attention", "bf16", 0.10, 0.30),
        ("Hopper", "mla", "bf16", 0.07, 0.15),
        ("Ada", "attention", "fp8", 0.11, 0.35),
    ],
)
def test_attention_of_rows_that_were_held_out(family, kernel, kv_dtype, median, most):
    missed = held_out_errors(attention_timings()[family, kernel, kv_dtype], fitted_attention)
    assert len(missed) >= 25
    assert np.median(missed) < median
    assert np.quantile(missed, 0.9) < most


@pytest.mark.parametrize(
    ("family", "kind", "median"),
    [("Hopper", "fp8_block", 0.13), ("Hopper", "bf16", 0.18), ("Blackwell", "nvfp4", 0.17), ("Ada", "fp8", 0.11)],
)
def test_experts_of_rows_that_were_held_out(family, kind, median):
    missed = held_out_errors(expert_timings()[family, kind], fitted_experts)
    assert len(missed) >= 15
    assert np.median(missed) < median
    assert np.quantile(missed, 0.9) < 0.55


def test_a_fit_finds_the_numbers_that_made_its_timings():
    """Timings computed from known numbers give these back."""
    timings = attention_timings()["Hopper", "mla", "bf16"]
    numbers = {
        "memory": 0.8,
        "compute": 0.5,
        "launch_s": 9e-6,
        "ramp_s": 5e-6,
        "block_s": 1e-8,
        "key_s": 2e-10,
        "tile_rows": 64.0,
    }
    made = type(timings)(timings.engines, timings.estimated(numbers, timings.every), timings.estimated)
    found = fitted_attention(made, made.every)
    assert found["tile_rows"] == 64.0
    for name, rel in (("memory", 0.03), ("compute", 0.03), ("launch_s", 0.05), ("ramp_s", 0.3)):
        assert found[name] == pytest.approx(numbers[name], rel=rel), name


def test_the_fit_is_deterministic_and_what_the_file_says():
    timings = attention_timings()["Ada", "mla", "bf16"]
    once, again = (fitted_attention(timings, timings.every) for _ in range(2))
    assert once == again
    kernel = decode_kernel("Ada", "mla", "bf16")
    for name, value in once.items():
        assert getattr(kernel, name) == pytest.approx(value, rel=0.006), name
    assert "# What decode attention" in FILE.read_text(encoding="utf-8")[:40]
    assert written({"attention": {}}).startswith("# What decode attention")


def test_every_accelerator_has_every_kernel():
    for device in accelerators():
        for kernel in ("attention", "mla"):
            for kv_dtype in ("bf16", "fp16", "fp8", "int8"):
                found = decode_kernel(device.family, kernel, kv_dtype, "vllm", device.id)
                assert 0.3 < found.memory <= 1.2
                assert found.launch_s > 0.0
        for kind in ("bf16", "fp8", "fp8_block", "nvfp4", "int8", "int8_weights", "int4_weights"):
            assert expert_kernel(device.family, kind, device.id).memory > 0.3


def test_what_is_borrowed_says_so():
    assert decode_evidence("Hopper", "attention", "bf16")[0] > 100
    points, why = decode_evidence("CDNA3", "attention", "bf16")
    assert points == 0
    assert "middle" in why
    assert "Blackwell Ultra" in decode_evidence("Rubin", "mla", "fp8")[1]


def test_chips_with_gddr_have_their_own_entry():
    own = decode_kernel("Blackwell", "attention", "bf16", accelerator="rtx-5090")
    assert own != decode_kernel("Blackwell", "attention", "bf16", accelerator="b200-sxm")


def test_files_of_timings_name_catalogue_devices_and_sane_rates():
    for row in rows("../measurements/decode_attention.csv"):
        device = find_accelerator(row["accelerator"]).value
        keys = min(float(row["context"]), float(row["window"] or np.inf))
        width = 576.0 if row["kernel"] == "mla" else 2.0 * float(row["head_dim"])
        size = float(row["batch"]) * float(row["kv_heads"]) * keys * width * (1.0 if row["kv_dtype"] == "fp8" else 2.0)
        assert size / device.memory_bandwidth < 1e-6 * float(row["time_us"])


def test_a_decode_step_of_a_known_model_is_near_the_bandwidth():
    """Llama-3-8B on an H100, 64 sequences of 8,192 tokens: 32 layers read 68.7 GB of cache."""
    kernel = decode_kernel("Hopper", "attention", "bf16", "vllm", "h100-sxm")
    layer = decode_attention_seconds(
        kernel,
        3350000000000.0,
        989000000000000.0,
        np.array([64.0]),
        np.array([8192.0]),
        CachedHeads(32.0, 8.0, 128.0, 128.0, 2.0),
    )[0]
    assert 32 * layer == pytest.approx(68.7e9 / 3.35e12 / 0.9, rel=0.08)
