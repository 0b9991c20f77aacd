"""Sizes, bounds and orders of clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.fleet import balance, front, least_bytes, least_step_s, quickest, sizes
from estimator.plan import Plan
from estimator.search import search
from knowledge.jobs import job

MODELS = ("meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1")


@given(node=st.integers(1, 72), least=st.integers(1, 64), most=st.integers(1, 4096))
def test_sizes_are_parts_of_a_node_or_whole_nodes(node, least, most):
    found = sizes(node, least, most)
    assert found == sorted(set(found))
    for size in found:
        assert least <= size <= most
        assert size % node == 0 or size & (size - 1) == 0 or size == most < node
    if least <= most // node * node:
        assert most // node * node in found or most < node


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["full", "lora", "qlora", "freeze"])
@pytest.mark.parametrize(("accelerator", "count"), [("h100-sxm", 8), ("b200-sxm", 16), ("tpu-v5p", 16)])
def test_nothing_is_below_its_bounds(model, method, accelerator, count):
    plan = {"model": model, "workload": {"method": method}, "cluster": {"accelerator": accelerator, "count": count}}
    one = job(Plan.parse(plan))
    estimates, order = search(one)
    assert (estimates.memory.total * count >= least_bytes(one)).all()
    assert (estimates.step.seconds >= least_step_s(one)).all()
    quick = quickest(one)
    if estimates.fits.any():
        best = int(order[0])
        assert quick is not None
        assert quick.step_s == pytest.approx(float(estimates.step.seconds[best]), rel=1e-9)
        assert quick.layout == estimates.layouts.row(best)
    else:
        assert quick is None


_AMOUNTS = st.lists(
    st.tuples(st.floats(0.01, 1e6) | st.just(np.inf), st.floats(0.01, 1e6) | st.just(np.nan)), min_size=1, max_size=30
)


@given(_AMOUNTS)
def test_the_front_has_what_nothing_beats(rows):
    money, took = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    flags = front(money, took)
    for i in range(len(rows)):
        known = np.isfinite(money[i]) and np.isfinite(took[i])
        if not known:
            assert not flags[i]
            continue
        beaten = (money <= money[i]) & (took <= took[i]) & ((money < money[i]) | (took < took[i]))
        assert flags[i] <= (not beaten.any())
        if not flags[i]:
            assert ((money <= money[i]) & (took <= took[i]) & (np.arange(len(rows)) != i)).any()


@given(_AMOUNTS)
def test_the_balance_is_at_least_one(rows):
    money, took = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = balance(money, took)
    assert (found[np.isfinite(found)] >= 1.0 - 1e-12).all()
