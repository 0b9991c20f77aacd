"""The interval of a ratio: what two estimates share cancels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from estimator.pairs import ALIKE, ratio_spread

SPREAD = math.log(1.2)
BASE = {"compute": 6.0, "network": 2.0, "host": 1.0}


def test_alike_runs_are_known_far_better_than_each() -> None:
    assert ratio_spread(BASE, BASE, SPREAD) == pytest.approx(ALIKE * SPREAD)
    twice = {name: 2.0 * seconds for name, seconds in BASE.items()}
    assert ratio_spread(BASE, twice, SPREAD) < math.sqrt(2.0) * SPREAD


def test_what_only_one_has_counts_for_itself() -> None:
    widths = [ratio_spread(BASE, BASE | {"network": 2.0 + more}, SPREAD) for more in (0.0, 1.0, 4.0, 16.0)]
    assert widths == sorted(widths)
    assert widths[1] < SPREAD
    assert ratio_spread(BASE, {"memory": 9.0}, SPREAD) == pytest.approx(math.sqrt(2.0) * SPREAD)
    assert ratio_spread({}, BASE, SPREAD) == pytest.approx(math.sqrt(2.0) * SPREAD)


def test_either_may_be_first() -> None:
    other = {"compute": 4.0, "network": 5.0}
    assert ratio_spread(BASE, other, SPREAD) == pytest.approx(ratio_spread(other, BASE, SPREAD))


def test_it_is_what_errors_of_the_parts_come_to() -> None:
    random = np.random.default_rng(0)
    other = {"compute": 6.0, "network": 3.5, "host": 1.0}
    small = 0.02
    root = math.sqrt(sum((s / 9.0) ** 2 for s in BASE.values()) / 2 + sum((s / 10.5) ** 2 for s in other.values()) / 2)
    shared = {name: np.exp(small / root * random.standard_normal(40_000)) for name in BASE}
    own = np.exp(small / root * random.standard_normal(40_000))
    one = sum(BASE[name] * shared[name] for name in BASE)
    ratio = np.log((one + 1.5 * own) / one)
    assert ratio_spread(BASE, other, small) == pytest.approx(math.hypot(ALIKE * small, ratio.std()), rel=0.03)
