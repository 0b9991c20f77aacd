"""The fit of attention kernels: it finds numbers that made the timings, and its file is what it writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml

from estimator.kernels.attention import MOST, AttentionKernel, ScanKernel
from measure.fit.attention import (
    BORROWED,
    FACTORS,
    NUMBERS,
    AttentionTimings,
    errors,
    estimated,
    fit,
    fitted,
    gathered,
    keys_of,
    timings,
)

TRUE = {
    "forward": 0.85, "backward": 0.9, "half_dim": 55.0, "half_dim_backward": 45.0, "half_keys": 250.0,
    "half_keys_backward": 350.0, "half_window": 500.0, "half_rows": 9000.0,
}  # fmt: skip


def row(**changes: object) -> dict[str, str]:
    base = {
        "accelerator": "h100-sxm", "kernel": "flash", "direction": "fwd", "head_dim": 128, "v_head_dim": 128,
        "causal": 1, "window": "", "seq": 4096, "batch": 4, "heads": 32, "kv_heads": 8, "time_us": 1000, "source": "s1",
    }  # fmt: skip
    return {name: str(value) for name, value in (base | changes).items()}


def made_up() -> AttentionTimings:
    """Calls whose times are exactly those of TRUE."""
    data = gathered(
        [
            row(direction=direction, head_dim=width, v_head_dim=width, seq=seq, batch=batch, window=window)
            for direction in ("fwd", "bwd", "fwd+bwd")
            for width in (64, 128, 256)
            for seq, batch in ((512, 32), (1024, 2), (4096, 1), (4096, 8), (16384, 1))
            for window in ("", "256")
        ]
    )
    return replace(data, seconds=estimated(data, TRUE))


def test_it_finds_what_made_the_timings() -> None:
    data = made_up()
    found = fitted(data)
    assert float(np.max(errors(data, found))) < 0.03
    assert found["forward"] == pytest.approx(TRUE["forward"], rel=0.08)
    assert found["half_dim"] == pytest.approx(TRUE["half_dim"], rel=0.2)
    assert found["half_window"] == pytest.approx(TRUE["half_window"], rel=0.2)


def test_medians_decide() -> None:
    data = made_up()
    spoilt = data.seconds.copy()
    spoilt[::12] *= 3.0
    found = fitted(replace(data, seconds=spoilt))
    assert float(np.median(errors(data, found))) < 0.05


def test_keys_are_counted_by_mask_and_window() -> None:
    assert keys_of(row()) == 2048
    assert keys_of(row(causal=0)) == 4096
    assert keys_of(row(window=1024)) == pytest.approx(1024 * (1 - 1024 / 8192))


def test_short_calls_are_left_out() -> None:
    assert len(gathered([row(time_us=10), row(time_us=100)])) == 1


def test_without_backward_timings_the_shape_is_that_of_forward() -> None:
    data = made_up()
    forward = data.backward == 0
    only = gathered([row(seq=seq, head_dim=width, v_head_dim=width) for seq in (1024, 8192) for width in (64, 128)])
    only = replace(only, seconds=estimated(only, TRUE))
    found = fitted(only)
    assert forward.any()
    assert found["half_dim_backward"] == found["half_dim"]


def test_the_timings_are_real_calls() -> None:
    groups, sources = timings()
    for (_, kernel), rows in groups.items():
        assert all(timing["source"] in sources for timing in rows)
        if kernel in ("gated_delta", "ssd_scan"):
            continue
        data = gathered(rows)
        work = data.flop * data.forward + data.backward_flop * data.backward
        assert float(np.max(work / data.seconds / data.peak)) < MOST
        assert float(np.min(work / data.seconds / data.peak)) > 0.003


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, dict[str, object]]]:
    return fit()


def test_the_shipped_factors_are_what_the_fit_writes(found: dict[str, dict[str, dict[str, object]]]) -> None:
    shipped = yaml.safe_load(FACTORS.read_text(encoding="utf-8"))
    assert {key: shipped[key] for key in found} == found


def test_every_kernel_is_fitted_well_and_says_what_it_is(found: dict[str, dict[str, dict[str, object]]]) -> None:
    for family, kernels in found["kernels"].items():
        for name, numbers in kernels.items():
            kernel = AttentionKernel(name=name, family=family, **numbers)  # type: ignore[arg-type]
            assert kernel.error < 0.1
            assert kernel.borrowed == ((family, name) in BORROWED) == (kernel.points == 0)
            assert 0.1 < kernel.forward < 2.0
            assert 0.1 < kernel.backward < 2.0
    for name, numbers in found["scans"].items():
        assert ScanKernel(name=name, **numbers).passes > 0  # type: ignore[arg-type]


def test_every_chosen_kernel_is_there(found: dict[str, dict[str, dict[str, object]]]) -> None:
    choice = yaml.safe_load(FACTORS.read_text(encoding="utf-8"))["choice"]
    for by_family in choice.values():
        for family, by_framework in by_family.items():
            owner = "default" if family == "any" else family
            assert all(kernel in found["kernels"][owner] for kernel in by_framework.values())


def test_numbers_are_the_fields_of_a_kernel() -> None:
    assert set(NUMBERS) <= set(AttentionKernel.__dataclass_fields__)
