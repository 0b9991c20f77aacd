"""The same tokens bought over an API: what they cost, and from what volume on machines of one's own are cheaper."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from estimator.errors import PlanError
from estimator.plan.schema import Inference
from knowledge.prices.apis import ApiPrice, api_prices
from planner.money.results import ApiComparison, ApiOffer

_MOST = 8


@dataclass(frozen=True)
class Deployment:
    """What is set beside an API: its cost a month (None: not known), bought where it is `owned`, what the other of
    buying and renting comes to, the output tokens a month that it has to generate (None: as many as it can), and the
    most that it can; of a run that ends what it costs and how many output tokens it generates."""

    usd_per_month: float | None
    owned: bool
    other_usd_per_month: float | None
    asked_output_tokens: float | None
    most_output_tokens: float
    run_usd: float | None = None
    run_output_tokens: float | None = None


def cheaper_of(rented_usd: float | None, owned_usd: float | None) -> tuple[float | None, bool, float | None]:
    """(USD, whether it is to own, USD of the other) of the two ways to have machines; renting where neither is."""
    if owned_usd is not None and (rented_usd is None or owned_usd < rented_usd):
        return owned_usd, True, rented_usd
    return rented_usd, False, owned_usd


@dataclass(frozen=True)
class NamedApi:
    """An API of the person's own: USD of a million output tokens, of prompts (None: as much) and of what of these its
    cache holds (None: as much as prompts)."""

    output_usd: float
    input_usd: float | None = None
    cached_usd: float | None = None

    def of_a_request(self, inference: Inference) -> float:
        """USD of a million output tokens, with the prompts that they need."""
        prompt_usd = self.output_usd if self.input_usd is None else self.input_usd
        cached_usd = prompt_usd if self.cached_usd is None else self.cached_usd
        return (
            self.output_usd
            + _with_cache(inference, prompt_usd, cached_usd) * inference.prompt_len / inference.output_len
        )


def _with_cache(inference: Inference, input_usd: float, cached_usd: float) -> float:
    """USD of a million tokens of prompts, of which the cache holds a part."""
    return (1.0 - inference.prefix_hit) * input_usd + inference.prefix_hit * cached_usd


def compared(
    model: str, inference: Inference, deployment: Deployment, named: NamedApi | None = None
) -> ApiComparison | None:
    """Offers of the model's own checkpoints for requests of this shape, cheapest first; None where nobody has any.

    An API of the person's own goes before the offers.
    """
    try:
        listed = api_prices(model)
    except PlanError:  # A model of the user's own.
        listed = []
    offers = sorted((offer for price in listed if (offer := _offer(price, inference))), key=lambda offer: _key(offer))
    if named is not None:
        middle = named.of_a_request(inference)
    elif offers:
        middle = statistics.median(offer.usd_per_million_output_tokens for offer in offers)
    else:
        return None
    usd_per_month, asked = deployment.usd_per_month, deployment.asked_output_tokens
    breaks_even = None if usd_per_month is None else usd_per_month / middle * 1e6
    return ApiComparison(
        offers=offers[:_MOST],
        provider_count=len({offer.provider for offer in offers}),
        usd_per_month=usd_per_month,
        owned=deployment.owned,
        other_usd_per_month=deployment.other_usd_per_month,
        asked_output_tokens_per_month=asked,
        api_usd_per_month=None if asked is None else asked * middle / 1e6,
        run_usd=deployment.run_usd,
        run_output_tokens=deployment.run_output_tokens,
        api_run_usd=None if deployment.run_output_tokens is None else deployment.run_output_tokens * middle / 1e6,
        named_usd_per_million_tokens=named and named.output_usd,
        named_usd_per_million_input_tokens=named and named.input_usd,
        median_usd_per_million_output_tokens=middle,
        break_even_output_tokens_per_month=breaks_even,
        break_even_load=None if breaks_even is None else breaks_even / deployment.most_output_tokens,
    )


def _key(offer: ApiOffer) -> tuple[float, str]:
    return (offer.usd_per_million_output_tokens, offer.provider)


def _offer(price: ApiPrice, inference: Inference) -> ApiOffer | None:
    """None where the list has no price of both kinds of tokens, or the context is too short."""
    if price.input_usd is None or price.output_usd is None:
        return None
    prompt, output = inference.prompt_len, float(inference.output_len)
    if price.context is not None and prompt + output > price.context:
        return None
    cached = price.input_usd if price.cached_input_usd is None else price.cached_input_usd
    input_usd = _with_cache(inference, price.input_usd, cached)
    return ApiOffer(
        provider=price.provider,
        name=price.name,
        usd_per_million_input_tokens=input_usd,
        usd_per_million_output_tokens=price.output_usd + input_usd * prompt / output,
        price_date=price.price_date,
        source=price.source,
    )
