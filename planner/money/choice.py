"""Of all ways to pay for a run the one that is asked for, and what it comes to part by part."""

from __future__ import annotations

from dataclasses import dataclass, field

from knowledge.figures import percent, shown, usd
from planner.clock import today
from planner.money.offers import PriceKind, age_days, cheapest, dated, is_stale
from planner.money.results import CostPart, OwnedCost
from planner.money.terms import CostTerms
from planner.result import Assumption, ProviderCost

# What a kind of price is called, and what it leaves out.
_CALLED = {"on_demand": "on-demand", "spot": "spot", "reserved": "reserved"}
_RENTED = (
    "data transfer out of the cloud", "runs that fail or are repeated", "people, taxes and support contracts",
)  # fmt: skip
_LEFT_OUT: dict[PriceKind, tuple[str, ...]] = {
    "on_demand": _RENTED,
    "spot": (*_RENTED, "waiting for spot capacity", "changes of the spot price during the run"),
    "reserved": (*_RENTED, "hours of the reservation beyond the run"),
    "own": ("whatever your price does not cover", *_RENTED[:2]),
    "owned": (
        "interest on the capital, and what the hardware sells for in the end", "power of devices that stand idle",
        "storage and software licences", "runs that fail or are repeated",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Chosen:
    """`usd_per_hour` is None where there is no such price; hours are those of the run with its interruptions."""

    kind: PriceKind
    usd_per_hour: float | None
    hours: float
    low_hours: float
    high_hours: float
    row: ProviderCost | None = None
    parts: list[CostPart] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def usd(self) -> float | None:
        return self._times(self.hours)

    @property
    def low_usd(self) -> float | None:
        return self._times(self.low_hours)

    @property
    def high_usd(self) -> float | None:
        return self._times(self.high_hours)

    def _times(self, hours: float) -> float | None:
        return None if self.usd_per_hour is None else self.usd_per_hour * hours


def choose(
    kind: PriceKind,
    terms: CostTerms,
    rows: list[ProviderCost],
    owned: OwnedCost | None,
    hours: tuple[float, float, float],
    devices: int,
    named: bool,
) -> Chosen:
    """`hours` are (hours, low, high) of the run undisturbed; `named` says that the plan names a provider."""
    if kind == "own" and terms.usd_per_device_hour is not None:
        rate = terms.usd_per_device_hour * devices
        what = f"{devices} devices at your {terms.usd_per_device_hour:g} USD an hour"
        return Chosen(kind, rate, *hours, parts=[CostPart(part="devices", usd=rate * hours[0], what=what)])
    if kind == "owned":
        return _owned(owned, hours)
    best = cheapest(rows, kind)
    if best is None:
        return Chosen(kind, None, *hours, warnings=[_none(kind, rows)])
    rate = _rate(best, kind)
    parts = [CostPart(part="devices", usd=rate * hours[0], what=f"{best.instances} x {best.instance}")]
    longer = hours
    if kind == "spot" and best.spot_hours and hours[0]:
        run, low, high = (duration * (best.spot_hours / hours[0]) for duration in hours)
        longer = (run, low, high)
    if longer[0] > hours[0]:
        every = best.spot_checkpoint_minutes
        saved = f", a checkpoint every {every:.3g} minutes" if every else ""
        more = f"lost work, restarts and checkpoints: {shown('hours', longer[0] - hours[0])} more{saved}"
        parts.append(CostPart(part="interruptions", usd=rate * (longer[0] - hours[0]), what=more))
    price_date = {"spot": best.spot_price_date, "reserved": best.reserved_price_date}.get(kind, best.price_date)
    why = f"the cheapest {_CALLED[kind]} offer in the price book ({dated(price_date, today())})"
    chosen = Assumption(
        field="instance" if named else "goal.provider", value=f"{best.provider} {best.instance}", why=why
    )
    return Chosen(kind, rate, *longer, row=best, parts=parts, assumptions=[chosen], warnings=_doubts(best, price_date))


def not_included(chosen: Chosen, stored: bool) -> list[str]:
    """What the figures leave out."""
    checkpoints = [] if stored else ["storage of checkpoints and weights"]
    return [*checkpoints, *_LEFT_OUT[chosen.kind]]


def _owned(owned: OwnedCost | None, hours: tuple[float, float, float]) -> Chosen:
    if owned is None:
        missing = "what these devices cost to buy is not known, or their power: give capex_usd_per_device"
        return Chosen("owned", None, *hours, warnings=[missing])
    what = {
        "hardware": f"{usd(owned.capex_usd)} over {owned.years:g} years at {percent(owned.utilisation)} use",
        "power": "electricity at the meter, cooling included",
        "colocation": f"room for {owned.kw:,.1f} kW, without electricity",
        "maintenance": "spare parts and support",
        "staff": "people who run it",
    }
    parts = [CostPart(part=name, usd=usd, what=what[name]) for name, usd in owned.parts.items()]
    return Chosen("owned", owned.usd_per_hour, *hours, parts=parts, assumptions=list(owned.assumptions))


def _rate(row: ProviderCost, kind: PriceKind) -> float:
    rates = {"spot": row.spot_usd_per_hour, "reserved": row.reserved_usd_per_hour}
    return rates.get(kind, row.usd_per_hour) or 0.0


def _none(kind: PriceKind, rows: list[ProviderCost]) -> str:
    if kind == "spot" and any(row.spot_usd_per_hour is not None for row in rows):
        return "on spot instances that are interrupted so often the run would not end: save more often, or rent others"
    tail = "; reserved_discount gives yours" if kind == "reserved" else ""
    return f"the price book has no price of these devices for this choice ({_CALLED[kind]}){tail}"


def _doubts(row: ProviderCost, price_date: str | None) -> list[str]:
    """What to beware of in the chosen price."""
    doubts = []
    day = today()
    if is_stale(price_date, day):
        age = age_days(price_date, day)
        words = "is undated" if age is None else f"is {age} days old (of {price_date})"
        doubts.append(f"the price of {row.provider} {row.instance} {words}: look it up before you rely on it")
    if row.in_region is False:
        doubts.append(f"no price is known in the region asked for: that of {row.provider} is of {row.region}")
    return doubts
