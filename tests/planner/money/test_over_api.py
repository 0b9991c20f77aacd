"""A model over an API beside machines of one's own."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import usd
from knowledge.prices.apis import api_prices
from pages.results.money import beside_api
from planner.asked.money import CostRequest, CostTerms
from planner.money.apis import NamedApi
from planner.money.cost import bill_of, estimate_cost
from planner.money.results import CostEstimate
from planner.money.training import Wanted


def _cost(model: str, **workload: float) -> CostEstimate:
    shape = {"kind": "inference", "input_len": 2000, "output_len": 500, "concurrency": 128} | workload
    cluster = {"accelerator": "h100-sxm", "count": 8}
    return bill_of(Plan.parse({"model": model, "cluster": cluster, "workload": shape}), CostTerms.model_validate({}))


@pytest.mark.parametrize("model", ["llama-3.3-70b", "gpt-oss-120b", "llama-3.1-8b"])
def test_a_request_costs_its_prompt_and_its_output(model: str) -> None:
    cost = _cost(model)
    assert cost.api
    assert cost.usd_per_month
    listed = {(price.provider, price.name): price for price in api_prices(model)}
    for offer in cost.api.offers:
        price = listed[offer.provider, offer.name]
        assert price.input_usd is not None
        assert price.output_usd is not None
        assert offer.usd_per_million_output_tokens == pytest.approx(price.output_usd + 4 * price.input_usd)
    paid = [offer.usd_per_million_output_tokens for offer in cost.api.offers]
    assert paid == sorted(paid)
    tokens, load = cost.api.break_even_output_tokens_per_month, cost.api.break_even_load
    assert tokens
    assert load
    # At the break-even both cost the same; at full load this deployment costs what it says.
    assert tokens / 1e6 * cost.api.median_usd_per_million_output_tokens == pytest.approx(cost.usd_per_month)
    assert cost.usd_per_month / (tokens / load) * 1e6 == pytest.approx(cost.usd_per_million_output_tokens)


def test_a_load_is_weighed_at_its_own_volume_and_by_the_cheaper_of_buying_and_renting() -> None:
    """What a deployment that is not kept busy could generate is no reason to call an API cheaper at any load."""
    month_s = 730.0 * 3600.0
    sides = set()
    for rate in (0.1, 3.0):
        shape = {"kind": "inference", "input_len": 2000, "output_len": 500, "request_rate": rate}
        cluster = {"accelerator": "h100-sxm", "count": 8}
        plan = Plan.parse(
            {"model": "llama-3.3-70b", "cluster": cluster, "workload": shape, "layout": {"tp": 4, "dp": 2}}
        )
        bill = bill_of(plan, CostTerms.model_validate({"price": "owned"}))
        assert bill.api
        assert bill.api.asked_output_tokens_per_month == pytest.approx(rate * 500 * month_s)
        assert bill.api.api_usd_per_month
        assert bill.api.usd_per_month
        assert bill.api.other_usd_per_month is None or bill.api.usd_per_month <= bill.api.other_usd_per_month
        assert bill.api.break_even_load
        tokens = bill.api.break_even_output_tokens_per_month
        assert tokens
        # The most that it generates is the same at any load.
        sides.add((round(tokens / bill.api.break_even_load / 1e6), tokens < rate * 500 * month_s))
        assert (bill.api.api_usd_per_month > bill.api.usd_per_month) == (tokens < rate * 500 * month_s)
    assert len({most for most, _ in sides}) == 1
    assert {cheaper for _, cheaper in sides} == {False, True}


def test_all_requests_of_a_run_are_weighed_against_the_same_over_an_api() -> None:
    """Twice as many cost twice as much either way, so that the same side stays the cheaper one."""
    sides = set()
    for requests in (1e6, 2e6):
        api = _cost("llama-3.3-70b", requests=requests).api
        assert api
        assert api.run_usd
        assert api.asked_output_tokens_per_month is None
        assert api.run_output_tokens == requests * 500
        assert api.api_run_usd == pytest.approx(requests * 500 / 1e6 * api.median_usd_per_million_output_tokens)
        assert api.api_run_usd
        told = beside_api(api)
        assert told.startswith("An API is cheaper") == (api.api_run_usd < api.run_usd)
        assert usd(api.run_usd) in told
        sides.add(api.api_run_usd < api.run_usd)
    assert len(sides) == 1
    assert _cost("llama-3.3-70b").api.run_usd is None  # pyright: ignore[reportOptionalMemberAccess]


def test_cached_prompts_cost_no_more() -> None:
    plain, cached = _cost("deepseek-v3").api, _cost("deepseek-v3", prefix_hit=0.8).api
    assert plain
    assert cached
    assert cached.median_usd_per_million_output_tokens <= plain.median_usd_per_million_output_tokens


def test_what_nobody_offers_has_no_comparison() -> None:
    assert _cost("pythia-1b").api is None
    training = Plan.parse(
        {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "count": 8},
            "workload": {"kind": "training", "dataset_tokens": 1e8},
        }
    )
    assert bill_of(training, CostTerms.model_validate({})).api is None


def test_a_price_that_is_named_is_of_prompts_and_outputs_alike() -> None:
    plan = Plan.parse({"model": "pythia-1b", "cluster": {"accelerator": "h100-sxm", "count": 1},
                       "workload": {"kind": "inference", "input_len": 2000, "output_len": 500}})  # fmt: skip
    bill = bill_of(plan, CostTerms.model_validate({}), Wanted(api=NamedApi(0.6)))
    assert bill.api
    assert not bill.api.offers
    assert bill.api.break_even_load == pytest.approx((bill.usd_per_million_tokens or 0.0) / 0.6)


def test_prices_of_prompts_outputs_and_the_cache_are_apart() -> None:
    workload = {"kind": "inference", "input_len": 1500, "output_len": 500, "prefix_hit": 0.5}
    cluster = {"accelerator": "h100-sxm", "count": 1}
    plan = Plan.parse({"model": "pythia-1b", "cluster": cluster, "workload": workload})
    named = ((NamedApi(0.8, 0.6), 2.6), (NamedApi(0.8, 0.6, 0.2), 2.0), (NamedApi(0.8), 3.2), (NamedApi(0.8, 0.0), 0.8))
    for api, together_usd in named:
        bill = bill_of(plan, CostTerms.model_validate({}), Wanted(api=api))
        assert bill.api
        assert bill.api.median_usd_per_million_output_tokens == pytest.approx(together_usd)
    with pytest.raises(PlanError, match="output tokens"):
        estimate_cost(CostRequest.model_validate({"plan": plan.model_dump(), "api_input_usd": 0.6}))
