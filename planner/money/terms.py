"""The arguments that say on what terms devices are paid for, and what they mean for a run."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, Field

from estimator.errors import PlanError
from estimator.money.cost import checkpoint_interval_h, hourly_interruptions, interrupted_hours
from knowledge.prices.energy import Place, find_place
from knowledge.prices.ownership import interruption_assumptions
from planner.money.offers import OfferTerms, PriceKind, SpotRun
from planner.result import Assumption

OWNED = "owned"
_HOURS_PER_DAY = 24.0


class CostTerms(BaseModel):
    price: PriceKind | None = Field(
        None,
        description="What to pay: on_demand, spot (with its interruptions), reserved, owned (hardware you buy) or own "
        "(your usd_per_device_hour).",
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
    restart_minutes: float | None = Field(None, ge=0, le=1e5, description="From an interruption to training again.")
    checkpoint_interval_minutes: float | None = Field(
        None, gt=0, le=1e6, description="On spot instances; the best one unless given."
    )
    checkpoints_kept: int | None = Field(None, ge=0, le=100_000, description="Checkpoints in storage during the run.")
    usd_per_gb_month: float | None = Field(None, ge=0, le=1e3, description="Price of storage.")
    capex_usd_per_device: float | None = Field(
        None, gt=0, le=1e9, description="What a device costs you to buy, with its part of server and network."
    )
    years: float | None = Field(None, gt=0, le=50, description="In which owned hardware is written off.")
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
        if has_price and self.price not in (None, "own"):
            raise PlanError("price", f"{self.price} contradicts usd_per_device_hour, a price of your own", ["own"])
        if self.price is not None:
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
        return OfferTerms(interruptions.run_on, per_node, self.reserved_discount, place)


@dataclass(frozen=True)
class Interruptions:
    """Of a run of `run_h` hours on spot instances: of training all stop with any of them (`together`), and go on from
    the last checkpoint; of serving each goes on without the others, and there is nothing to save."""

    run_h: float
    per_instance_hour: float
    restart_h: float
    save_h: float
    interval_h: float | None
    together: bool = True

    def run_on(self, machines: int) -> SpotRun | None:
        """The run as it is to be expected; None where it would hardly ever end."""
        if not self.together:
            return SpotRun(self.run_h * (1.0 + self.per_instance_hour * self.restart_h), None)
        rate = self.per_instance_hour * machines
        interval = self.interval_h
        if interval is None and rate > 0.0:
            interval = checkpoint_interval_h(self.save_h, 1.0 / rate, self.run_h)
        hours = interrupted_hours(self.run_h, rate, self.restart_h, self.save_h, interval)
        saves = interval is not None and interval < self.run_h
        return None if hours is None else SpotRun(hours, interval if saves else None)


def interruptions_of(
    terms: CostTerms, run_h: float, nodes: int, save_bytes: float, together: bool = True
) -> tuple[Interruptions, list[Assumption]]:
    """What spot instances do to the run, and what is assumed for it."""
    facts = interruption_assumptions()
    assumptions: list[Assumption] = []
    if terms.interruptions_per_day is None:
        per_hour = hourly_interruptions(facts["monthly_share"].value)
        per_day, why = per_hour * _HOURS_PER_DAY, facts["monthly_share"].source
        assumptions.append(Assumption(field="interruptions_per_day", value=per_day, why=f"of one spot instance: {why}"))
    else:
        per_hour = terms.interruptions_per_day / _HOURS_PER_DAY
    minutes = terms.restart_minutes
    if minutes is None:
        minutes = facts["restart_minutes"].value
        assumptions.append(Assumption(field="restart_minutes", value=minutes, why=facts["restart_minutes"].source))
    save_h = 0.0
    if together:
        speed = facts["save_gb_per_s_per_node"]
        save_h = save_bytes / (speed.value * 1e9 * nodes) / 3600.0
        why = f"{save_bytes / 1e9:,.0f} GB at {speed.value:g} GB/s a node: {speed.source}"
        assumptions.append(Assumption(field="checkpoint_save_s", value=save_h * 3600.0, why=why))
    interval = None if terms.checkpoint_interval_minutes is None else terms.checkpoint_interval_minutes / 60.0
    return Interruptions(run_h, per_hour, minutes / 60.0, save_h, interval, together), assumptions
