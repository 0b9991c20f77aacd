"""The same tokens bought over an API: what they cost, and from what volume on machines of one's own are cheaper."""

from __future__ import annotations

import statistics

from estimator.errors import PlanError
from estimator.plan.schema import Inference
from knowledge.prices.apis import ApiPrice, api_prices
from planner.money.results import ApiComparison, ApiOffer

_MOST = 8


def compared(
    model: str, inference: Inference, usd_per_month: float | None, output_tokens_per_month: float,
    owned: bool, named_usd: float | None = None,
) -> ApiComparison | None:  # fmt: skip
    """Offers of the model's own checkpoints for requests of this shape, cheapest first; None where nobody has any.

    `usd_per_month` and `output_tokens_per_month` are those of the deployment, kept busy, on hardware that is bought
    where it is `owned`; `named_usd` is what a million tokens of prompts and outputs alike cost over an API of the
    person's own, which goes before the offers.
    """
    try:
        listed = api_prices(model)
    except PlanError:  # A model of the user's own.
        listed = []
    offers = sorted((offer for price in listed if (offer := _offer(price, inference))), key=lambda offer: _key(offer))
    if named_usd is not None:
        output = float(inference.output_len)
        middle = named_usd * (inference.prompt_len + output) / output
    elif offers:
        middle = statistics.median(offer.usd_per_million_output_tokens for offer in offers)
    else:
        return None
    breaks_even = None if usd_per_month is None else usd_per_month / middle * 1e6
    return ApiComparison(
        offers=offers[:_MOST],
        provider_count=len({offer.provider for offer in offers}),
        usd_per_month=usd_per_month,
        owned=owned,
        named_usd_per_million_tokens=named_usd,
        median_usd_per_million_output_tokens=middle,
        break_even_output_tokens_per_month=breaks_even,
        break_even_load=None if breaks_even is None else breaks_even / output_tokens_per_month,
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
    hit = inference.prefix_hit
    input_usd = (1.0 - hit) * price.input_usd + hit * cached
    return ApiOffer(
        provider=price.provider,
        name=price.name,
        usd_per_million_input_tokens=input_usd,
        usd_per_million_output_tokens=price.output_usd + input_usd * prompt / output,
        price_date=price.price_date,
        source=price.source,
    )
