"""What providers ask for models over an API: data/api_prices.csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from knowledge.data_files import number, rows
from knowledge.models.catalogue import find_model
from knowledge.models.known import architecture_row

_SOURCES = {
    "genai-prices": "genai-prices 0.2.3, data.py",
    "litellm": "litellm 1.109.1, model_prices_and_context_window_backup.json",
}


@dataclass(frozen=True)
class ApiPrice:
    """USD per 1e6 tokens. `name` is the provider's own; `model` the row or checkpoint of the catalogue that it
    means ('' where there is none), `open` whether its weights are published (None where that is not known),
    `price_date` that of the list, whose entries can be older."""

    provider: str
    name: str
    model: str
    open: bool | None
    input_usd: float | None
    cached_input_usd: float | None
    output_usd: float | None
    context: int | None
    price_date: str
    source: str
    notes: str


def api_prices(model: str | None = None) -> list[ApiPrice]:
    """The offers of a model and of checkpoints with its architecture, cheapest output first; all where it is None.
    Raises PlanError for a model that is not known."""
    if model is None:
        return list(_table())
    row = architecture_row(find_model(model).value.id)
    offers = [price for price in _table() if price.model and architecture_row(price.model) == row]
    return sorted(offers, key=lambda price: (price.output_usd is None, price.output_usd or 0.0, price.input_usd or 0.0))


@cache
def offers_by_model() -> Mapping[str, list[ApiPrice]]:
    """The offers of every row of the model catalogue and of checkpoints with its architecture."""
    offers: dict[str, list[ApiPrice]] = {}
    for price in _table():
        if price.model:
            offers.setdefault(architecture_row(price.model), []).append(price)
    return offers


def gemini_usd(model: str, input_tokens: int, output_tokens: int) -> float:
    """USD of one request to Google's API at the first tier. A model without a price costs the most that any of its
    kind does, so that a budget is not passed."""
    table = {price.name: price for price in _table() if price.provider == "Google" and price.name.startswith("gemini")}
    own = table.get(model.rpartition("/")[2])
    return max(
        (input_tokens * price.input_usd + output_tokens * price.output_usd) / 1e6
        for price in ([own] if own else table.values())
        if price.input_usd is not None and price.output_usd is not None
    )


def most_usd(model: str, input_tokens: int, output_tokens: int) -> float:
    """USD of one request to a model of that name at the dearest of those who offer it; 0 where nobody does, as of a
    model on a machine of one's own."""
    name = model.rpartition("/")[2].casefold()
    offers = [price for price in _table() if price.name.rpartition("/")[2].casefold() == name]
    return max(
        (
            (input_tokens * price.input_usd + output_tokens * price.output_usd) / 1e6
            for price in offers
            if price.input_usd is not None and price.output_usd is not None
        ),
        default=0.0,
    )


@cache
def _table() -> tuple[ApiPrice, ...]:
    return tuple(
        ApiPrice(
            provider=row["provider"],
            name=row["name"],
            model=row["model"],
            open={"yes": True, "no": False}.get(row["open"]),
            input_usd=number(row["input_usd"]),
            cached_input_usd=number(row["cached_input_usd"]),
            output_usd=number(row["output_usd"]),
            context=int(row["context"]) if row["context"] else None,
            price_date=row["price_date"],
            source=_SOURCES[row["source"]],
            notes=row["notes"],
        )
        for row in rows("api_prices.csv")
    )
