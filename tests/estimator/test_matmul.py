"""What every matmul surface must keep: bounds, monotony, groups, and arrays of factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.machine.matmul import KINDS, OPERAND_BYTES, MatmulRates, MatmulSurface, matmul_seconds

PEAK, BANDWIDTH = 1e15, 3e12
SURFACE = MatmulSurface(height=0.75, memory=0.85, wave_outputs=4e5, half_k=60.0, unhidden=0.15, launch_s=4e-6)

sizes = st.integers(1, 65536).map(float)
shares = st.floats(0.1, 1.0)
surfaces = st.builds(
    MatmulSurface,
    height=shares,
    memory=shares,
    wave_outputs=st.floats(1e3, 5e6),
    half_k=st.floats(0.0, 1000.0),
    unhidden=st.floats(0.0, 0.6),
    launch_s=st.floats(0.0, 1e-5),
)


def seconds(m: float, n: float, k: float, copies: float = 1.0, surface: MatmulSurface = SURFACE) -> float:
    return float(matmul_seconds(MatmulRates(surface, PEAK, BANDWIDTH), np.array([m]), n, k, copies)[0])


@given(surfaces, sizes, sizes, sizes)
def test_no_product_beats_the_roofline(surface: MatmulSurface, m: float, n: float, k: float):
    moved = 2.0 * (m * k + k * n + m * n)
    least = max(2.0 * m * n * k / (PEAK * surface.height), moved / (BANDWIDTH * surface.memory))
    assert seconds(m, n, k, surface=surface) >= least * (1.0 - 1e-12)


@given(surfaces, sizes, sizes, sizes, st.sampled_from([1.0, 8.0]), st.floats(1.0, 8.0))
def test_more_work_never_takes_less_time(
    surface: MatmulSurface, m: float, n: float, k: float, copies: float, more: float
):
    once = seconds(m, n, k, copies, surface) * (1.0 - 1e-12)
    assert seconds(more * m, n, k, copies, surface) >= once
    assert seconds(m, more * n, k, copies, surface) >= once
    assert seconds(m, n, more * k, copies, surface) >= once
    assert seconds(m, n, k, copies + more, surface) >= once


@given(st.lists(surfaces, min_size=1, max_size=4), sizes, sizes, sizes)
def test_arrays_of_factors_give_each_its_own_time(several: list[MatmulSurface], m: float, n: float, k: float):
    stacked = MatmulSurface(**{name: np.array([getattr(one, name) for one in several]) for name in vars(SURFACE)})
    together = matmul_seconds(MatmulRates(stacked, PEAK, BANDWIDTH), np.full(len(several), m), n, k)
    assert together == pytest.approx([seconds(m, n, k, surface=one) for one in several])


def test_large_products_reach_the_height_and_small_ones_do_not():
    def rate(m: float, n: float, k: float) -> float:
        return 2.0 * m * n * k / (PEAK * seconds(m, n, k))

    assert 0.95 * SURFACE.height < rate(16384.0, 16384.0, 16384.0) <= SURFACE.height
    assert rate(16384.0, 1024.0, 8192.0) > rate(2048.0, 3072.0, 768.0)
    assert rate(2048.0, 3072.0, 768.0) < 0.8 * SURFACE.height


def test_few_rows_take_the_time_of_reading_the_weights():
    weights_s = 2.0 * 8192 * 8192 / (BANDWIDTH * SURFACE.memory)
    assert seconds(1.0, 8192.0, 8192.0) == pytest.approx(weights_s + SURFACE.launch_s, rel=0.1)
    assert seconds(32.0, 8192.0, 8192.0) == pytest.approx(seconds(1.0, 8192.0, 8192.0), rel=0.1)


def test_a_narrow_product_takes_no_less_time_than_a_full_wave():
    """256 by 64 outputs keep few cores busy: twice the columns cost next to nothing."""
    surface = replace(SURFACE, unhidden=0.0)
    assert seconds(256.0, 128.0, 16384.0, surface=surface) < 1.05 * seconds(256.0, 64.0, 16384.0, surface=surface)


def test_a_group_costs_less_than_its_products_alone_and_more_than_one_of_all_their_rows():
    m, n, k, experts = 256.0, 2048.0, 7168.0, 16.0
    group = seconds(m, n, k, experts)
    assert group < experts * seconds(m + 64.0, n, k)
    assert group > seconds(experts * m, n, k)


def test_each_product_of_a_group_wastes_half_a_tile_of_128_rows():
    surface = replace(SURFACE, unhidden=0.0, launch_s=0.0)
    group = seconds(1024.0, 4096.0, 8192.0, 4.0, surface)
    assert group == pytest.approx(seconds(4.0 * (1024.0 + 64.0), 4096.0, 8192.0, surface=surface))


def test_a_group_with_many_rows_wastes_little():
    assert seconds(8192.0, 2048.0, 7168.0, 8.0) == pytest.approx(seconds(65536.0, 2048.0, 7168.0), rel=0.03)


def test_a_group_with_few_rows_reads_all_its_weights():
    weights_s = 64.0 * 2.0 * 2048 * 7168 / (BANDWIDTH * SURFACE.memory)
    assert seconds(2.0, 2048.0, 7168.0, 64.0) == pytest.approx(weights_s, rel=0.15)


def test_groups_and_single_products_can_stand_side_by_side():
    copies = np.array([1.0, 4.0])
    both = matmul_seconds(MatmulRates(SURFACE, PEAK, BANDWIDTH), np.array([512.0, 512.0]), 4096.0, 4096.0, copies)
    assert both == pytest.approx([seconds(512.0, 4096.0, 4096.0), seconds(512.0, 4096.0, 4096.0, 4.0)])


@pytest.mark.parametrize("kind", KINDS)
def test_operands_of_fewer_bytes_are_read_sooner(kind):
    m, n, k = np.array([1.0]), 8192.0, 8192.0
    narrow = matmul_seconds(MatmulRates(SURFACE, PEAK, BANDWIDTH, OPERAND_BYTES[kind]), m, n, k)[0]
    reading = OPERAND_BYTES[kind][1] * n * k / (BANDWIDTH * SURFACE.memory)
    assert narrow == pytest.approx(reading + SURFACE.launch_s, rel=0.15)
