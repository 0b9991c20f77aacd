"""Which offers a run can use."""

from __future__ import annotations

import pytest

from estimator.plan.schema import Plan
from knowledge.prices.book import prices
from planner.money.offers import offers
from planner.training.planned import plan_training


@pytest.mark.parametrize(("count", "nodes"), [(8, 1), (16, 2), (4096, 512), (16384, 2048)])
def test_a_run_over_nodes_is_priced_at_machines_that_work_as_one(count: int, nodes: int) -> None:
    plan = Plan.parse(
        {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "count": count},
            "workload": {"kind": "training", "dataset_tokens": 1e9, "global_batch": count},
        }
    )
    rows = offers(plan_training(plan), 1.0)
    priced = [row for row in rows if row.usd is not None]
    order = [{True: 0, None: 1, False: 2}[row.joined] for row in priced]
    assert order == sorted(order)
    assert {row.provider for row in priced if row.joined is False} >= ({"Vast"} if nodes > 1 else set())
    assert all(row.joined for row in priced) == (nodes == 1)
    book = {(price.provider, price.instance): price for price in prices("h100-sxm")}
    for row in priced:
        most = book[row.provider, row.instance].max_devices
        assert row.joined is not True or nodes == 1 or most is None or most >= count
    dated = {row.provider for row in priced if row.price_date}
    assert not any(row.provider in dated and not row.price_date for row in priced)
