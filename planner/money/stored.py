"""What a run keeps in storage and takes out of a cloud: its checkpoints, its data, and the weights that it was for."""

from __future__ import annotations

from dataclasses import dataclass, field

from estimator.money.cost import storage_usd
from estimator.units import BYTES_PER_GB
from knowledge.prices.ownership import storage_price, transfer_price
from planner.asked.money import CostTerms
from planner.money.choice import Chosen
from planner.money.results import CostPart
from planner.result import Assumption
from planner.training.planned import Planned

# The last checkpoint, and the one before it in case the last is broken.
_KEPT = 2
# Ids of vocabularies above 65,536; text of most languages takes about as much.
_BYTES_PER_TOKEN = 4


@dataclass
class StoredParts:
    """Parts of a bill beside the devices; empty where no price is known."""

    parts: list[CostPart] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)


def kept(planned: Planned, terms: CostTerms, chosen: Chosen) -> StoredParts:
    """During the hours of what was chosen, at its provider's prices or the person's own."""
    stored = StoredParts()
    provider = chosen.row.provider if chosen.row else None
    _store(stored, planned, terms, chosen.hours, provider)
    _take_out(stored, planned, provider)
    return stored


def _store(stored: StoredParts, planned: Planned, terms: CostTerms, hours: float, provider: str | None) -> None:
    usd, count = terms.usd_per_gb_month, terms.checkpoints_kept
    if usd is None:
        fact = storage_price(provider) if provider else None
        if fact is None:
            return
        usd = fact.value
        stored.assumptions.append(Assumption(field="usd_per_gb_month", value=usd, why=fact.source))
    if count is None:
        count = _KEPT
        stored.assumptions.append(
            Assumption(field="checkpoints_kept", value=count, why="the last one and the one before it")
        )
    size = planned.host_needs.save.resumable_bytes
    what = f"{count} checkpoints of {size / BYTES_PER_GB:,.1f} GB during the run"
    stored.parts.append(CostPart(part="checkpoint_storage", usd=storage_usd(size * count, usd, hours), what=what))
    training = planned.job.training
    tokens = training.dataset_tokens or 0.0
    if tokens > 0.0:
        data = tokens * _BYTES_PER_TOKEN
        what = f"{data / BYTES_PER_GB:,.1f} GB of data during the run, {_BYTES_PER_TOKEN} bytes a token"
        stored.parts.append(CostPart(part="data_storage", usd=storage_usd(data, usd, hours), what=what))


def _take_out(stored: StoredParts, planned: Planned, provider: str | None) -> None:
    """The trained weights leave once, in a month with nothing else that does."""
    price = transfer_price(provider) if provider else None
    if price is None:
        return
    size = planned.host_needs.save.checkpoint_bytes / BYTES_PER_GB
    free = f", of which {price.free_gb:,.0f} are free in a month" if price.free_gb else ""
    stored.parts.append(
        CostPart(
            part="data_transfer",
            usd=max(0.0, size - price.free_gb) * price.usd_per_gb,
            what=f"the trained weights out of {provider} once: {size:,.1f} GB{free}",
        )
    )
    stored.assumptions.append(Assumption(field="usd_per_gb_out", value=price.usd_per_gb, why=price.source))
