"""From how many hours of use a year one way to pay costs less than another, and the pictures of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estimator.money.ownership import HOURS_PER_YEAR, break_even_hours
from planner.money.choice import Chosen, called
from planner.money.offers import PriceKind, cheapest, in_order, usd_of
from planner.money.results import ApiComparison, BreakEven, OwnedCost
from planner.plots import Plot, Series
from planner.result import ProviderCost

# Places of a curve: all are straight, and one of them may have steps.
_POINTS = 12
_MILLION = 1e6


@dataclass(frozen=True)
class _Way:
    """A way to pay: so much a year whether the machines work or not, and so much for each hour of use."""

    name: str
    usd_per_year: float
    usd_per_hour: float


def break_evens(rows: Sequence[ProviderCost], owned: OwnedCost | None, chosen: Chosen) -> list[BreakEven]:
    """Of paying for a term, and of owning, against paying by the hour; empty where no price of an hour is known."""
    by_hour, *others = _ways(rows, owned, chosen)
    if by_hour is None:
        return []
    return [_even(way, by_hour) for way in others if way is not None]


def owned_against(rows: Sequence[ProviderCost], owned: OwnedCost | None) -> list[BreakEven]:
    """Of owning against each offer by the hour, in their order."""
    own = None if owned is None else _owned(owned)
    return [
        _even(own, _Way(f"renting on demand at {row.provider}", 0.0, row.usd_per_hour))
        for row in rows
        if own and row.usd_per_hour is not None
    ]


def _even(way: _Way, by_hour: _Way) -> BreakEven:
    hours = break_even_hours(way.usd_per_year, way.usd_per_hour, by_hour.usd_per_hour)
    return BreakEven(
        what=way.name, than=by_hour.name, usd_per_year=way.usd_per_year, hours_per_year=hours,
        share=None if hours is None else hours / HOURS_PER_YEAR,
    )  # fmt: skip


def _owned(owned: OwnedCost) -> _Way:
    return _Way("owned", owned.fixed_usd_per_year, owned.power_usd_per_hour)


def by_hours_of_use(rows: Sequence[ProviderCost], owned: OwnedCost | None, chosen: Chosen) -> list[Plot]:
    """What a year of these machines costs each way, by the hours that they are used."""
    ways = [way for way in _ways(rows, owned, chosen) if way is not None]
    if len(ways) < 2:
        return []
    hours = [HOURS_PER_YEAR * place / _POINTS for place in range(_POINTS + 1)]
    series = [
        Series(
            name=way.name.partition(" at ")[0],
            x=[*hours],
            y=[way.usd_per_year + way.usd_per_hour * hour for hour in hours],
        )
        for way in ways
    ]
    return [Plot(title="What a year costs", kind="line", x_label="hours of use a year", y_label="USD a year",
                 series=series)]  # fmt: skip


def by_volume(api: ApiComparison | None, usd_per_month: float | None, tokens_per_month: float) -> list[Plot]:
    """A month over an API and on deployments of one's own, as many as the tokens take."""
    if api is None or usd_per_month is None or tokens_per_month <= 0.0:
        return []
    even = api.break_even_output_tokens_per_month or 0.0
    most = max(2.0 * tokens_per_month, min(2.0 * even, 10.0 * tokens_per_month))
    tokens = [most * place / _POINTS for place in range(_POINTS + 1)]
    million = [amount / _MILLION for amount in tokens]
    deployments = [max(1, -int(-amount // tokens_per_month)) for amount in tokens]
    over = [amount * api.median_usd_per_million_output_tokens for amount in million]
    series = [
        Series(name="an API", x=[*million], y=[*over]),
        Series(name="deployments like this", x=[*million],
               y=[usd_per_month * count for count in deployments]),
    ]  # fmt: skip
    return [Plot(title="What a month costs", kind="line", x_label="million output tokens a month",
                 y_label="USD a month", series=series)]  # fmt: skip


def _ways(rows: Sequence[ProviderCost], owned: OwnedCost | None, chosen: Chosen) -> Iterator[_Way | None]:
    """By the hour first: at the person's own price where they named one, else on demand."""
    if chosen.kind == "own" and chosen.usd_per_hour is not None:
        yield _Way("your price", 0.0, chosen.usd_per_hour)
    else:
        yield _offered(rows, "on_demand")
    yield _offered(rows, "reserved")
    yield _offered(rows, "reserved_3y")
    if owned is not None:
        yield _owned(owned)


def _offered(rows: Sequence[ProviderCost], kind: PriceKind) -> _Way | None:
    """A term is paid for whole years."""
    row = cheapest(in_order([*rows], kind), kind)
    if row is None or row.joined is False or usd_of(row, kind) is None:
        return None
    rate = {"reserved": row.reserved_usd_per_hour, "reserved_3y": row.reserved_3y_usd_per_hour}.get(
        kind, row.usd_per_hour
    )
    if rate is None:
        return None
    name = f"{'renting on demand' if kind == 'on_demand' else called(kind)} at {row.provider}"
    return _Way(name, 0.0, rate) if kind == "on_demand" else _Way(name, rate * HOURS_PER_YEAR, 0.0)
