"""The arguments that say on what terms devices are paid for, and what they mean for a run."""

from __future__ import annotations

from dataclasses import dataclass

from estimator.errors import PlanError
from estimator.machine.hardware import Price
from estimator.money.cost import hourly_interruptions
from estimator.money.goodput import Disturbance, goodput
from knowledge.machines.failures import spot_share
from knowledge.prices.energy import Place, find_place
from knowledge.prices.ownership import interruption_assumptions
from planner.asked.money import CostTerms
from planner.money.offers import OfferTerms, SpotRun
from planner.result import Assumption
from planner.training.run import FailureTerms, restart_of

_HOURS_PER_DAY = 24.0


def places_of(terms: CostTerms) -> list[Place]:
    """The region asked for, or each of several between commas; the world where none is. Raises PlanError for an unknown
    one."""
    if terms.region is None or "," not in terms.region:
        return [find_place(terms.region)]
    try:
        return [find_place(terms.region)]
    except PlanError:
        places = [find_place(name.strip()) for name in terms.region.split(",") if name.strip()]
        return list({place.name: place for place in places}.values()) or [find_place(terms.region)]


def place_of(terms: CostTerms) -> Place:
    """The first of them, of whose electricity the figures are. Raises PlanError for an unknown region."""
    return places_of(terms)[0]


def failures_of(terms: CostTerms) -> FailureTerms:
    """What is known of the machines' own failures, whoever they are rented from."""
    minutes = (terms.restart_minutes, terms.checkpoint_interval_minutes)
    restart_h, interval_h = (None if each is None else each / 60.0 for each in minutes)
    return FailureTerms(terms.device_hours_between_failures, restart_h, interval_h)


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
    restart_h, assumed = restart_of(failures_of(terms))
    interruptions = Interruptions(run_h, _asked_rate(terms), restart_h, 0.0, None, together=False)
    return interruptions, [*_assumed_rate(terms), *assumed]


def training_interruptions(
    terms: CostTerms, run_h: float, save_h: float, failures_per_hour: float
) -> tuple[Interruptions, list[Assumption]]:
    """What spot instances do to a run, and what is assumed for it."""
    restart_h, assumed = restart_of(failures_of(terms))
    speed = interruption_assumptions()["save_gb_per_s_per_node"]
    why = f"at {speed.value:g} GB/s a node: {speed.source}"
    saving = Assumption(field="checkpoint_save_s", value=save_h * 3600.0, why=why)
    interruptions = Interruptions(
        run_h, _asked_rate(terms), restart_h, save_h, failures_of(terms).interval_h, failures_per_hour
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


def offer_terms(terms: CostTerms, interruptions: Interruptions, per_node: int) -> OfferTerms:
    place = None if terms.region is None else place_of(terms)
    return OfferTerms(interruptions.on_spot, per_node, terms.reserved_discount, place)
