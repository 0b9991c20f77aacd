"""Factors that are shared as far as they can be: sums along a lineage, priors, and steps towards measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.plan.layouts import Floats
from measure.fit.hierarchy import DEFAULT, KIN_SIGMA, Design, Factor, Node, Values, nearest, step

SPEED = Factor("speed", 0.1, 10.0, 1.0, 0.3)
SHARE = Factor("share", 0.2, 1.0, 0.8, 0.5, logit=True)
KIN = {"child": ["child", "parent"], "sibling": ["sibling", "parent"], "parent": ["parent"], "alone": ["alone"]}


def lineage(node: Node) -> list[Node]:
    return [(node[0], name) for name in KIN[node[1]]]


def design(*names: str) -> Design:
    return Design({("device", name): (SPEED, SHARE) for name in names}, lineage)


def fitted(made: Design, targets: dict[str, float], rows: dict[str, int], steps: int = 12) -> Values:
    """The values after steps towards observed logarithms of `speed`, of which each name has so many rows."""
    parts = np.zeros(len(made.columns))
    observed = [(name, math.log(target)) for name, target in targets.items() for _ in range(rows[name])]
    for _ in range(steps):
        values = made.values(parts)
        misses = np.array([math.log(values["device", name]["speed"]) - target for name, target in observed])
        jacobian = np.zeros((len(observed), len(made.columns)))
        for row, (name, _) in enumerate(observed):
            jacobian[row, made.columns_of(("device", name), SPEED)] = 1.0
        parts = step(made, parts, misses, jacobian, np.ones(len(observed)), 0.05, 1e9)
    return made.values(parts)


@given(st.floats(0.11, 9.9), st.floats(0.201, 0.999))
def test_scales_are_turned_back(speed: float, share: float) -> None:
    assert SPEED.from_free(SPEED.to_free(speed)) == pytest.approx(speed)
    assert SHARE.from_free(SHARE.to_free(share)) == pytest.approx(share)


@given(st.floats(-50, 50))
def test_values_stay_within_their_bounds(free: float) -> None:
    assert 0.1 <= SPEED.from_free(free) <= 10.0
    assert 0.2 <= SHARE.from_free(free) <= 1.0
    inside = SHARE.inside(SHARE.from_free(free))
    assert 0.2 < inside < 1.0
    assert math.isfinite(SHARE.to_free(inside))
    assert SPEED.inside(SPEED.from_free(free)) == SPEED.from_free(free)


def test_a_nudge_is_a_step_in_the_fitted_scale_beyond_bounds_too() -> None:
    assert SPEED.nudged(2.0, 0.1) == pytest.approx(2.0 * math.exp(0.1))
    assert SPEED.nudged(10.0, 0.1) > 10.0
    assert SHARE.to_free(SHARE.nudged(0.5, 0.1)) == pytest.approx(SHARE.to_free(0.5) + 0.1)


def test_a_factor_has_a_part_for_each_of_its_line_and_kin_differ_less() -> None:
    made = design("child", "alone")
    assert [node[1] for node in made.line(("device", "child"))] == ["child", "parent", DEFAULT]
    assert made.line(("device", DEFAULT)) == [("device", DEFAULT)]
    # Two factors of child, parent, alone and what all share.
    assert len(made.columns) == len(made.index) == 8
    assert len(made.columns_of(("device", "child"), SPEED)) == 3
    sigma = {node[1]: made.sigma[made.index[node, "speed"]] for node, factor in made.columns if factor is SPEED}
    assert sigma[DEFAULT] == 0.3
    assert sigma["child"] == sigma["parent"] == pytest.approx(0.3 * KIN_SIGMA)


def test_no_parts_are_what_is_expected() -> None:
    made = design("child", "alone")
    values = made.values(np.zeros(len(made.columns)))
    assert all(value == pytest.approx({"speed": 1.0, "share": 0.8}) for value in values.values())
    assert set(values) == {("device", name) for name in ("child", "parent", "alone", DEFAULT)}


@given(st.lists(st.floats(-0.4, 0.4), min_size=10, max_size=10))
def test_parts_and_values_are_turned_into_each_other(drawn: Sequence[float]) -> None:
    made = design("child", "sibling", "alone")
    parts = np.array(drawn[: len(made.columns)])
    values = made.values(parts)
    np.testing.assert_allclose(made.parts(values), parts, atol=1e-9)
    again = made.values(made.parts(values))
    assert all(again[node] == pytest.approx(values[node]) for node in values)


def test_nodes_without_values_add_nothing() -> None:
    made = design("child", "alone")
    known: Values = {("device", DEFAULT): {"speed": 2.0, "share": 0.5}}
    values = made.values(made.parts(known))
    assert all(value == pytest.approx(known["device", DEFAULT]) for value in values.values())


def test_the_nearest_of_a_line_stands_in() -> None:
    values: Values = {("device", "parent"): {"speed": 3.0}, ("device", DEFAULT): {"speed": 1.0}}
    made = design("child", "alone")
    assert nearest(values, made.line(("device", "child"))) == {"speed": 3.0}
    assert nearest(values, made.line(("device", "alone"))) == {"speed": 1.0}
    assert nearest({}, made.line(("device", "alone"))) == {}


def test_many_measurements_are_followed_and_few_are_not_trusted() -> None:
    made = design("child", "alone")
    targets = {"child": 2.0, "alone": 1.0}
    many = fitted(made, targets, {"child": 100, "alone": 100})
    assert many["device", "child"]["speed"] == pytest.approx(2.0, rel=0.01)
    assert many["device", "alone"]["speed"] == pytest.approx(1.0, rel=0.01)
    few = fitted(made, targets, {"child": 1, "alone": 100})
    assert 1.0 < few["device", "child"]["speed"] < many["device", "child"]["speed"]
    # Nothing was seen of shares.
    assert many["device", "child"]["share"] == pytest.approx(0.8)


def test_what_was_never_measured_has_what_its_kin_have() -> None:
    made = design("child", "sibling", "alone")
    found = fitted(made, {"child": 2.0, "alone": 1.0}, {"child": 50, "alone": 50})
    sibling, child = (found["device", name]["speed"] for name in ("sibling", "child"))
    assert found["device", DEFAULT]["speed"] < sibling < child
    assert sibling == pytest.approx(found["device", "parent"]["speed"])


def test_what_all_have_in_common_moves_what_all_share() -> None:
    made = design("child", "sibling", "alone")
    found = fitted(made, dict.fromkeys(("child", "sibling", "alone"), 1.5), dict.fromkeys(KIN, 30))
    assert found["device", DEFAULT]["speed"] > 1.2
    assert found["device", "child"]["speed"] == pytest.approx(1.5, rel=0.01)


def one_step(misses: Floats, huber: float) -> float:
    """How far the common part moves in a step from zero."""
    made = Design({("device", "alone"): (SPEED,)}, lineage)
    jacobian = np.ones((len(misses), len(made.columns)))
    moved = step(made, np.zeros(len(made.columns)), misses, jacobian, np.ones(len(misses)), 1.0, huber)
    return float(moved[made.index[("device", DEFAULT), "speed"]])


def test_wild_misses_pull_no_harder_than_the_limit() -> None:
    calm = np.full(50, 0.1)
    wild = np.append(calm, 1000.0)
    assert one_step(wild, 2.5) == pytest.approx(one_step(np.append(calm, 2.5), 2.5), rel=0.05)
    assert one_step(wild, 1e9) < 3.0 * one_step(wild, 2.5) < 0.0


def test_a_step_is_bounded_and_goes_against_the_misses() -> None:
    assert -0.7 < one_step(np.full(1000, 1e6), 1e9) < -0.1
    assert one_step(np.full(10, 0.2), 2.5) < 0.0 < one_step(np.full(10, -0.2), 2.5)
    assert one_step(np.zeros(10), 2.5) == 0.0


def test_a_factor_that_is_not_shared_has_no_part_of_all() -> None:
    own = replace(SPEED, shared=False)
    made = Design({("device", "child"): (own,), ("device", "alone"): (SPEED,)}, lineage)
    assert len(made.columns_of(("device", "child"), own)) == 2
    values = fitted(made, {"alone": 4.0}, {"alone": 20})
    assert values["device", "alone"]["speed"] > 2.0
    assert values["device", "child"]["speed"] == pytest.approx(own.expected)
