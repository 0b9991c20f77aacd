"""The arguments that say on what terms devices are paid for, and what they mean for a run."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, Field

from estimator.errors import PlanError
from estimator.machine.hardware import Price
from estimator.money.cost import hourly_interruptions
from estimator.money.goodput import Disturbance, goodput
from knowledge.machines.failures import spot_share
from knowledge.prices.energy import Place, find_place
from knowledge.prices.ownership import interruption_assumptions
from planner.money.offers import OfferTerms, PriceKind, SpotRun
from planner.money.purchase import OWNED
from planner.result import Assumption
from planner.training.run import FailureTerms, restart_of

# What a price of one's own can be: an hour that is paid for as long as it is used, or for a term.
_RATES: tuple[PriceKind, ...] = ("own", "on_demand", "reserved", "reserved_3y")
_HOURS_PER_DAY = 24.0


class CostTerms(BaseModel):
    price: PriceKind | None = Field(
        None,
        description="What to pay: on_demand, spot (with its interruptions), reserved (up to a year), reserved_3y, "
        "community (marketplaces and private machines), owned (hardware you buy) or own (your usd_per_device_hour).",
    )
    usd_per_device_hour: float | None = Field(
        None, gt=0, le=1e6, description="Your own price, instead of the price book."
    )
    providers: list[str] | None = Field(None, description="Only these providers.")
    region: str | None = Field(
        None, max_length=100, description="Country or cloud region, e.g. France or us-east-1: electricity and prices."
    )
    reserved_discount: float | None = Field(
        None, gt=0, lt=1, description="Your discount on the on-demand price for reserved devices, e.g. 0.3."
    )
    interruptions_per_day: float | None = Field(None, ge=0, le=1e4, description="Of one spot instance.")
    device_hours_between_failures: float | None = Field(
        None, gt=0, le=1e9, description="Of your cluster: devices times hours per failure of any machine."
    )
    restart_minutes: float | None = Field(None, ge=0, le=1e5, description="From an interruption to training again.")
    checkpoint_interval_minutes: float | None = Field(
        None, gt=0, le=1e6, description="Of work; the best one unless given."
    )
    checkpoints_kept: int | None = Field(None, ge=0, le=100_000, description="Checkpoints in storage during the run.")
    usd_per_gb_month: float | None = Field(None, ge=0, le=1e3, description="Price of storage.")
    capex_usd_per_device: float | None = Field(
        None, gt=0, le=1e9, description="What a device costs you to buy, with its part of server and network."
    )
    years: float | None = Field(None, gt=0, le=50, description="In which owned hardware is written off.")
    resale_share: float | None = Field(
        None, ge=0, le=1, description="Of devices' price, what they sell for after years."
    )
    utilisation: float | None = Field(None, gt=0, le=1, description="Part of all hours that owned hardware works.")
    usd_per_kwh: float | None = Field(None, ge=0, le=100, description="Electricity price of owned hardware.")
    pue: float | None = Field(None, ge=1, le=10, description="Power at the meter over that of the machines.")
    colocation_usd_per_kw_month: float | None = Field(
        None, ge=0, le=1e5, description="Room for owned hardware, without electricity."
    )
    maintenance_share: float | None = Field(None, ge=0, le=1, description="Of the purchase price, per year.")
    staff_usd_per_device_year: float | None = Field(None, ge=0, le=1e7, description="People who run owned hardware.")

    def kind(self, provider: str | None) -> PriceKind:
        """What is paid. Raises PlanError where arguments contradict each other."""
        has_price = self.usd_per_device_hour is not None
        if self.price == "own" and not has_price:
            raise PlanError("usd_per_device_hour", "is required for price own", ["2.5"])
        if has_price and self.price not in (None, *_RATES):
            problem = f"{self.price} contradicts usd_per_device_hour, a price of your own"
            raise PlanError("price", problem, [*_RATES])
        if self.price is not None and not has_price:
            return self.price
        if has_price:
            return "own"
        owned = self.capex_usd_per_device is not None or (provider or "").strip().casefold() == OWNED
        return "owned" if owned else "on_demand"

    @property
    def place(self) -> Place:
        """Raises PlanError for an unknown region."""
        return find_place(self.region)

    def offered(self, interruptions: Interruptions, per_node: int) -> OfferTerms:
        place = None if self.region is None else self.place
        return OfferTerms(interruptions.on_spot, per_node, self.reserved_discount, place)

    @property
    def failures(self) -> FailureTerms:
        """What is known of the machines' own failures, whoever they are rented from."""
        minutes = (self.restart_minutes, self.checkpoint_interval_minutes)
        restart_h, interval_h = (None if each is None else each / 60.0 for each in minutes)
        return FailureTerms(self.device_hours_between_failures, restart_h, interval_h)


@dataclass(frozen=True)
class Interruptions:
    """Of a run of `run_h` hours on spot instances, which are taken away and whose machines fail `failures_per_hour` in
    all: of training all stop with any of them (`together`), and go on from the last checkpoint; of serving each goes on
    without the others, and there is nothing to save. `per_instance_hour` is the rate asked for, None for the price
    book's."""

    run_h: float
    per_instance_hour: float | None
    restart_h: float
    save_h: float
    interval_h: float | None
    failures_per_hour: float = 0.0
    together: bool = True

    def on_spot(self, price: Price, machines: int) -> SpotRun | None:
        """The run as it is to be expected; None where it would hardly ever end."""
        if not self.together:
            return SpotRun(self.run_h * self.slowdown(price.provider, price.instance), None)
        rate = self.failures_per_hour + self._taken(price.provider, price.instance) * machines
        run = goodput(self.run_h, Disturbance(rate, self.restart_h, self.save_h, self.interval_h))
        return run and SpotRun(run.hours, run.interval_h)

    def slowdown(self, provider: str, instance: str) -> float:
        """How many times longer one instance takes that is taken away and comes back."""
        return 1.0 + self._taken(provider, instance) * self.restart_h

    def _taken(self, provider: str, instance: str) -> float:
        """Times an hour that one instance is taken away."""
        if self.per_instance_hour is not None:
            return self.per_instance_hour
        share = spot_share(provider, instance) or interruption_assumptions()["monthly_share"]
        return hourly_interruptions(share.value)


def serving_interruptions(terms: CostTerms, run_h: float) -> tuple[Interruptions, list[Assumption]]:
    """What spot instances do to serving for `run_h` hours, and what is assumed for it."""
    restart_h, assumed = restart_of(terms.failures)
    interruptions = Interruptions(run_h, _asked_rate(terms), restart_h, 0.0, None, together=False)
    return interruptions, [*_assumed_rate(terms), *assumed]


def training_interruptions(
    terms: CostTerms, run_h: float, save_h: float, failures_per_hour: float
) -> tuple[Interruptions, list[Assumption]]:
    """What spot instances do to a run, and what is assumed for it."""
    restart_h, assumed = restart_of(terms.failures)
    speed = interruption_assumptions()["save_gb_per_s_per_node"]
    why = f"at {speed.value:g} GB/s a node: {speed.source}"
    saving = Assumption(field="checkpoint_save_s", value=save_h * 3600.0, why=why)
    interruptions = Interruptions(
        run_h, _asked_rate(terms), restart_h, save_h, terms.failures.interval_h, failures_per_hour
    )
    return interruptions, [*_assumed_rate(terms), *assumed, saving]


def _asked_rate(terms: CostTerms) -> float | None:
    return None if terms.interruptions_per_day is None else terms.interruptions_per_day / _HOURS_PER_DAY


def _assumed_rate(terms: CostTerms) -> list[Assumption]:
    if terms.interruptions_per_day is not None:
        return []
    fact = interruption_assumptions()["monthly_share"]
    why = f"of one spot instance, where the price book has no rate of its kind: {fact.source}"
    per_day = hourly_interruptions(fact.value) * _HOURS_PER_DAY
    return [Assumption(field="interruptions_per_day", value=per_day, why=why)]
