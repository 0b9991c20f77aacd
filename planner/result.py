"""What results of every kind hold. Every number has its unit in its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class Result(BaseModel):
    """Base of all results; the validator of each is built when it is first needed, as most runs need few."""

    model_config = ConfigDict(defer_build=True)
    shown: ClassVar[Callable[[Result], str] | None] = None
    """Makes a notebook's page of a result; set by the room that knows pages."""

    def _repr_html_(self) -> str | None:
        page = type(self).shown
        return page(self) if page else None


class Dated(Result):
    """A row with a price."""

    price_date: str | None = Field(default=None, description="Of the offer in these USD; null at your own price.")
    stale: bool | None = Field(default=None, description="Whether that is over 90 days ago, or not known.")


class Warned(Result):
    """A result of which some warnings are told by its figures, too: who tells the figure leaves the warning out."""

    warning_kinds: dict[str, str] = Field(
        default_factory=dict,
        description="Of such warnings by their text: fit, rate, room, latency, host memory or files (none start it).",
    )


class Assumption(Result):
    field: str
    value: Any
    why: str


class Evidence(Result):
    """What a figure rests on, part by part of the model: what its numbers were fitted on, and how far off they are."""

    figure: str = Field(description="time (with throughput, latency and MFU) or memory.")
    part: str = Field(
        description="own, framework, engine, device, matmul, cache, attention, scan, scaleup, network, memory or "
        "cache_room."
    )
    basis: str = Field(description="The rest of this row in words.")
    measured: str = Field(description="What was measured; default where nothing like it was.")
    stands_for: str | None = Field(description="What that stands in for; null where the very thing was measured.")
    runs: int = Field(description="Measured runs behind it; 0 means none.")
    points: int = Field(description="Timings of single operators behind it.")
    error: float | None = Field(description="Median miss on these timings, as a fraction; null where not known.")
    borrowed: str | None = Field(description="From where numbers were taken over, where nothing was measured.")
    versions: list[str] = Field(description="Software versions that the runs name, those of most runs first.")
    sources: list[str]
    spread: float | None = Field(
        description="How far the 80 % interval goes below the figure, as a factor on it, e.g. 0.15; null without one."
    )
    spread_above: float | None = Field(default=None, description="The same above it.")


class NeighbourFigures(Result):
    """Of one plan; those of time are of training, those of latency of serving."""

    per_device_bytes: float
    tokens_per_s: float | None = None
    hours: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    output_tokens_per_s: float | None = None


class Decisive(Result):
    """An assumption, and what another value of it would do with all else held: measured by an estimate of its own."""

    field: str = Field(description="Dotted path in the Plan.")
    value: Any
    other: Any = Field(description="The value that was tried.")
    before: NeighbourFigures
    after: NeighbourFigures = Field(description="With the other value.")
    figure: str = Field(description="The key of the figure that it is told by: the one that moves most.")
    fits: bool = Field(description="With the other value.")
    relaid: bool = Field(default=False, description="Whether the layout was chosen anew for it.")
    started: bool = Field(default=True, description="Whether launch files have it with the other value.")

    def change(self, figure: str) -> float:
        """After over before, less one: 0.1 is 10 % more."""
        return getattr(self.after, figure) / getattr(self.before, figure) - 1.0


class TimeLimit(Result):
    """A part of the step by what it waits for."""

    limit: str
    seconds: float
    share: float = Field(description="Of the step.")


class ProviderCost(Result):
    provider: str
    instance: str
    instances: int
    devices_per_instance: int = 1
    usd_per_hour: float | None
    usd_per_device_hour: float | None = Field(default=None, description="Each of those in the instances.")
    spot_usd_per_device_hour: float | None = None
    usd: float | None
    spot_usd: float | None = Field(description="At the spot price, were the run never interrupted.")
    price_date: str | None
    note: str
    source: str
    seller: str = Field(
        default="", description="Whose machines: hyperscaler, cloud, marketplace, community; '' for your own."
    )
    region: str | None = Field(default=None, description="Where the price holds; null where the source names none.")
    in_region: bool | None = Field(
        default=None, description="Whether that is in the region asked for; null where it is not known."
    )
    joined: bool | None = Field(
        default=None,
        description="Whether its machines work as one in runs that need several: false where single devices are rented "
        "from anywhere or the provider has fewer, null where no network is stated.",
    )
    most_devices: int | None = Field(default=None, description="The largest cluster to count on.")
    most_known_by: Literal["provider", "network", "machine"] | None = Field(
        default=None,
        description="Whether the provider states it, or it is taken from the offer: 64 nodes, the most that anybody "
        "sells without being asked, where a network between them is named, else one machine.",
    )
    size_open: bool = Field(
        default=False,
        description="Whether the run needs more nodes than anybody sells without being asked, and the provider states "
        "no largest cluster.",
    )
    price_age_days: int | None = Field(default=None, description="Of the on-demand price; null where it is undated.")
    stale: bool | None = Field(default=None, description="Older than 90 days or undated; null without a price.")
    spot_usd_per_hour: float | None = None
    spot_price_date: str | None = None
    spot_stale: bool | None = None
    spot_hours: float | None = Field(
        default=None, description="Expected, with interruptions; null where it would not end."
    )
    spot_checkpoint_minutes: float | None = Field(
        default=None, description="Of work between two checkpoints; null where the run is too short to need any."
    )
    spot_usd_with_interruptions: float | None = Field(default=None, description="At the spot price for these hours.")
    reserved_usd_per_hour: float | None = Field(
        default=None, description="Published, or by the discount that was given."
    )
    reserved_usd: float | None = None
    reserved_term: str | None = None
    reserved_whole_usd: float | None = Field(
        default=None, description="Of the shortest term, which is paid for as a whole; null where the run is longer."
    )
    reserved_price_date: str | None = None
    reserved_stale: bool | None = None
    flex_start_usd_per_hour: float | None = Field(
        default=None, description="Queued until capacity is free; null where the run is longer than that is lent."
    )
    flex_start_usd: float | None = None
    flex_start_most_hours: float | None = Field(default=None, description="For which it is lent.")
    flex_start_price_date: str | None = None
    flex_start_stale: bool | None = None
    reserved_3y_usd_per_hour: float | None = Field(default=None, description="Reserved for three years.")
    reserved_3y_usd: float | None = None
    reserved_3y_price_date: str | None = None
    reserved_3y_stale: bool | None = None
