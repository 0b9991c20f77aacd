"""On what terms devices are paid for, and what the tools are asked that count with it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from estimator.errors import PlanError
from planner.asked.owning import OwningTerms
from planner.explain.words import is_of_serving
from planner.requests import ONLY_TRAINING, EitherRequest

PriceKind = Literal["on_demand", "spot", "flex_start", "reserved", "reserved_3y", "community", "owned", "own"]
OWNED = "owned"
# Letters of a currency's code (ISO 4217), and what hardly any is worth less than in USD.
_CODE, _LEAST_WORTH_USD = 3, 1e-6
# What a price of one's own can be: an hour that is paid for as long as it is used, or for a term.
_RATES: tuple[PriceKind, ...] = ("own", "on_demand", "reserved", "reserved_3y")


class CostTerms(OwningTerms):
    price: PriceKind | None = Field(
        None,
        description="What to pay: on_demand, spot (with its interruptions), flex_start (queued, up to 7 days), "
        "reserved (up to a year), reserved_3y, community (marketplaces too), owned (bought) or own (your "
        "usd_per_device_hour).",
    )
    usd_per_device_hour: float | None = Field(
        None, gt=0, le=1e6, description="Your own price, instead of the price book."
    )
    providers: list[str] | None = Field(None, max_length=1_000, description="Only these providers.")
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


class CostRequest(EitherRequest, CostTerms):
    """A plan, and the terms on which its devices are paid for."""

    cheaper: bool = Field(False, description="Ways to pay less for training too; takes longer.")
    faster: bool = Field(False, description="Ways to be done sooner, with what they cost.")
    more_usd: float | None = Field(None, gt=0, le=1e12, description="What so much more money would buy, in USD.")
    api_usd: float | None = Field(None, gt=0, le=1e6, description="An API's price per million tokens.")
    api_input_usd: float | None = Field(None, ge=0, le=1e6, description="That of prompts, if another.")
    api_cached_usd: float | None = Field(None, ge=0, le=1e6, description="Of prompts in its cache.")
    currency: str | None = Field(
        None, max_length=40, description="Your money at your rate in USD, for usd in it too: EUR=1.08."
    )

    @property
    def rate(self) -> tuple[str, float] | None:
        """The currency's code, and what one of it is worth in USD. Raises PlanError."""
        if self.currency is None:
            return None
        code, _, worth = (part.strip() for part in self.currency.partition("="))
        try:
            value = float(worth)
        except ValueError:
            value = 0.0
        if not (code.isalpha() and len(code) == _CODE and _LEAST_WORTH_USD <= value <= 1.0 / _LEAST_WORTH_USD):
            raise PlanError(
                "currency", f"{self.currency!r} is no currency with what one of it is worth in USD", ["EUR=1.08"]
            )
        return code.upper(), value


class ExplainRequest(EitherRequest, CostTerms):
    figure: str = Field(
        description="The figure to explain: its dotted key in a result (memory.components.activations, time.step_s, "
        "throughput.mfu, usd, latency.ttft_s …) or plain words (activation memory, step time, MFU, cost, KV cache).",
        examples=["step time", "MFU", "activation memory", "cost", "KV cache", "throughput.mfu"],
    )
    depth: int = Field(1, ge=1, le=3, description="How far terms are explained in turn.")
    nearest: int = Field(5, ge=0, le=20, description="How many of the nearest measured runs to show.")

    def asks_serving(self) -> bool:
        """Words that training has a figure for too leave the plan as it is, and so do arguments of training alone."""
        workload = (self.plan or {}).get("workload")
        if ONLY_TRAINING & {*self.model_fields_set, *(workload if isinstance(workload, dict) else ())}:
            return False
        return is_of_serving(self.figure)
