"""The result of estimate_cost. Every number has its unit in its name."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.plots import Plot
from planner.result import Assumption, Evidence, ProviderCost, Result, Warned


class CostPart(Result):
    part: str = Field(
        description="devices and interruptions where rented; hardware, power, colocation, maintenance and staff where "
        "owned; checkpoint_storage, data_storage and data_transfer."
    )
    usd: float
    what: str


class OwnedCost(Result):
    """What the same devices cost their owner."""

    machine: str
    by_kin: bool = Field(
        default=False, description="Whether nobody is known to sell it, and what similar machines cost is taken."
    )
    capex_usd: float = Field(description="Of all devices with their part of hosts and network.")
    years: float
    utilisation: float
    kw: float = Field(description="Of all devices with hosts and network, before the PUE of the building.")
    usd_per_device_hour: float = Field(description="Per hour of use.")
    usd_per_hour: float
    usd: float = Field(description="For the hours of the run.")
    low_usd: float
    high_usd: float
    usd_per_year: float = Field(description="At this utilisation.")
    fixed_usd_per_year: float = Field(description="Of usd_per_year what is paid whether they work or not.")
    power_usd_per_hour: float = Field(description="Of usd_per_hour what is paid for each hour of use.")
    parts: dict[str, float] = Field(description="USD for the hours of the run; they add up to usd.")
    hourly_parts: list[CostPart] = Field(description="Of an hour of use; they add up to usd_per_hour.")
    source: str
    assumptions: list[Assumption]


class BreakEven(Result):
    """From how many hours of use a year a way to pay, that costs the same for every year, costs less than another."""

    what: str
    than: str
    usd_per_year: float = Field(description="Paid whether the machines work or not.")
    hours_per_year: float | None = Field(description="Null where no year has as many.")
    share: float | None = Field(description="Of the hours of a year.")


class HardwareBill(Result):
    """What devices cost by themselves, whatever runs on them."""

    count: int
    hours: float
    hours_per_year: float = Field(description="Of use, as long as they are needed.")
    kept_hours: float | None = Field(description="Until bought machines are sold; null where it is not said.")
    rented: list[ProviderCost] = Field(description="Offers for so many of them, the cheapest on demand first.")
    owned: OwnedCost | None = Field(description="The same bought; null where their price or power is not known.")
    break_even: list[BreakEven] = Field(description="Of owning, against each offer in their order.")
    kw: float | None = Field(description="At the meter under full load, with hosts and cooling.")
    kwh: float | None
    co2_kg: float | None = Field(description="Of the region's mean grid, the world's where none is named.")
    grid_place: str | None = Field(description="Whose grid that is; null where no region is named.")
    usd_per_kwh: float
    power_usd: float | None
    assumptions: list[Assumption]


class CreditUse(Result):
    """What a person's credits pay of a bill, all parts of it."""

    credits_usd: float
    end: str | None = Field(description="Day on which they end; they are counted to its beginning.")
    hours_left: float | None = Field(description="Until then, from tomorrow on, in which machines are free.")
    paid_usd: float = Field(description="Of usd_total what they pay.")
    left_usd: float = Field(description="Of usd_total what is left to pay.")
    high_left_usd: float = Field(description="The same at the upper end of the interval.")
    lost_usd: float = Field(description="Of the credits what is not used by this run.")


class OwnMoney(Result):
    """A cost in a person's own currency, at the rate that was given."""

    currency: str
    usd_each: float = Field(description="What one of it is worth.")
    amount: float = Field(description="Of usd.")
    low_amount: float
    high_amount: float
    per_hour: float | None


class CarbonHours(Result):
    """What a run weighs that works at these hours of the local day alone, for as many days as it then takes."""

    from_hour: int
    before_hour: int
    kg_per_kwh: float
    co2_kg: float
    takes_days: float | None = Field(description="Of a run that ends.")
    source: str


class CarbonElsewhere(Result):
    """The same energy from another grid."""

    region: str
    kg_per_kwh: float
    co2_kg: float
    source: str


class Saving(Result):
    """A way to pay less for a run, to have it sooner, or to spend more on it."""

    way: str = Field(
        description="spot, flex_start, reserved, reserved_3y, community, framework, compile, attention, precision, "
        "method, devices, device, model or data."
    )
    what: str
    gives_up: str
    patch: dict[str, Any] = Field(description="What changes in the plan; empty for another kind of price.")
    usd: float
    hours: float
    within_budget: bool | None = Field(default=None, description="Null without a budget.")
    within_deadline: bool | None = Field(default=None, description="Null without a deadline.")


class ApiOffer(Result):
    """A model over a provider's API, for requests of the plan's shape."""

    provider: str
    name: str
    usd_per_million_input_tokens: float = Field(description="With the plan's part of prompts found in the cache.")
    usd_per_million_output_tokens: float = Field(description="All of a request, prompt included, by its output tokens.")
    price_date: str = Field(description="Of the list; entries can be older.")
    source: str


class ApiComparison(Result):
    """What the same model costs over an API."""

    offers: list[ApiOffer] = Field(description="Cheapest first.")
    provider_count: int
    usd_per_month: float | None = Field(description="What this deployment costs, whatever it serves.")
    owned: bool = Field(description="Whether that is on hardware that is bought.")
    other_usd_per_month: float | None = Field(
        default=None, description="The same machines rented where they are bought, and bought where they are rented."
    )
    asked_output_tokens_per_month: float | None = Field(
        default=None, description="Those that the plan's rate of requests comes to; null without one."
    )
    api_usd_per_month: float | None = Field(default=None, description="What these cost over the median API.")
    run_usd: float | None = Field(default=None, description="What this deployment costs for all requests of a run.")
    run_output_tokens: float | None = Field(default=None, description="Of all requests of a run; null without an end.")
    api_run_usd: float | None = Field(default=None, description="What these cost over the median API.")
    named_usd_per_million_tokens: float | None = Field(
        default=None,
        description="An API's price that was named, of outputs, and of prompts too unless that is another.",
    )
    named_usd_per_million_input_tokens: float | None = Field(default=None, description="That of prompts, if another.")
    median_usd_per_million_output_tokens: float = Field(
        description="Of the offers, prompts included; of the price that was named, where one was."
    )
    break_even_output_tokens_per_month: float | None = Field(
        description="From there on this deployment costs less than the API of the median offer; null without a price."
    )
    break_even_load: float | None = Field(
        description="Those tokens as a part of what the deployment can generate; above 1 an API is cheaper at any load."
    )


class CostEstimate(Warned):
    """Of a whole training run; of serving for a month of 730 hours, or until all `requests` of the plan are served."""

    plan: dict[str, Any]
    assumptions: list[Assumption]
    tokens: float = Field(description="Of serving: prompt and output tokens in these hours.")
    steps: int | None = Field(description="Null for serving.")
    epochs: float | None = Field(default=None, description="Null for serving, and where the data is not known.")
    hours: float = Field(description="At spot prices with the interruptions that are to be expected.")
    low_hours: float
    high_hours: float
    elapsed_hours: float | None = Field(
        default=None, description="Where machines are free a part of the week: until it is done, from its start."
    )
    low_elapsed_hours: float | None = None
    high_elapsed_hours: float | None = None
    device_hours: float
    price: str = Field(
        description="What usd is at: on_demand, spot, flex_start, reserved, reserved_3y, community, owned or own "
        "(yours)."
    )
    provider: str | None = Field(default=None, description="Of the chosen offer; null at your own price.")
    instance: str | None = None
    price_date: str | None = Field(default=None, description="Of that offer's price of this kind.")
    stale: bool | None = Field(default=None, description="Over 90 days old or undated; null at your own price.")
    usd: float | None = Field(description="Of the devices: usd_per_hour times hours.")
    low_usd: float | None
    high_usd: float | None
    usd_total: float | None = Field(default=None, description="With all parts.")
    own_money: OwnMoney | None = Field(default=None, description="The same in the currency that was asked for.")
    kin_low_usd: float | None = Field(
        default=None,
        description="These hours, unpriced, at the least that similar devices cost, or one alone.",
    )
    kin_high_usd: float | None = Field(default=None, description="At the most. An assumption, no offer.")
    parts: list[CostPart] = Field(default_factory=list, description="They add up to usd_total.")
    usd_per_hour: float | None = None
    usd_per_device_hour: float | None = Field(default=None, description="Of the devices that the run uses.")
    usd_per_step: float | None = Field(default=None, description="Of training.")
    usd_per_epoch: float | None = Field(default=None, description="Of training, where the data is known.")
    usd_per_million_tokens: float | None = Field(description="Of serving: prompt and output tokens alike.")
    usd_per_million_output_tokens: float | None = Field(default=None, description="Of serving.")
    usd_per_million_requests: float | None = Field(default=None, description="Of serving.")
    usd_per_month: float | None = Field(
        default=None, description="730 hours, or those of use; of runs longer than that."
    )
    region: str | None = Field(default=None, description="Whose electricity the energy figures are of.")
    kwh: float | None
    co2_kg: float | None
    co2_by_hours: list[CarbonHours] = Field(
        default_factory=list, description="By the hours of the day; empty where the region's are not known."
    )
    co2_elsewhere: list[CarbonElsewhere] = Field(
        default_factory=list, description="In the other regions where several were asked for."
    )
    by_provider: list[ProviderCost]
    owned: OwnedCost | None = Field(
        default=None, description="The same devices bought; null where their price or power is not known."
    )
    break_even: list[BreakEven] = Field(
        default_factory=list, description="Terms and owning against paying by the hour, by the hours of use."
    )
    plots: list[Plot] = Field(default_factory=list, description="The same as pictures.")
    api: ApiComparison | None = Field(
        default=None, description="Of serving: the model over an API; null where nobody is known to offer it."
    )
    savings: list[Saving] = Field(
        default_factory=list,
        description="Ways to pay less, what gives up least first: of training, where asked for or over the budget.",
    )
    faster: list[Saving] = Field(
        default_factory=list,
        description="Ways to be done sooner with what they cost: of training, where asked for or past the deadline.",
    )
    bought: list[Saving] = Field(default_factory=list, description="What more_usd more would buy, each alone.")
    within_budget: bool | None = Field(description="Of usd.")
    within_deadline: bool | None
    within_device_hours: bool | None = Field(default=None, description="Of device_hours.")
    credits: CreditUse | None = Field(default=None, description="What credits pay; null where the plan has none.")
    not_included: list[str] = Field(default_factory=list, description="What the figures leave out.")
    warnings: list[str]
    evidence: list[Evidence]
