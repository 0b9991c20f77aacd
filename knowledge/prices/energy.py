"""Energy by place: what a kWh weighs and costs, and the assumptions behind energy figures, each with its source."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache

from estimator.errors import PlanError, nearest
from knowledge.data_files import document, rows

WORLD = "World"
_SOURCES = {
    "ember": "Ember, life cycle of the country's generation",
    "google": "Google's figure for the local grid",
    "eia": "EIA, industrial average of the state",
    "eurostat-2024": "Eurostat, non-household, first half",
    "eurostat-2025": "Eurostat, non-household, mean of the EU, first half",
    "prometheus": "industrial price, prometheusgroup.xyz",
    "gpp": "GlobalPetrolPrices.com, businesses",
}
_HOURS_OF = {
    "eia": "hourly generation of the grid, EIA-930",
    "electricity-maps": "hourly intensities of Electricity Maps, life cycle",
}
# A zone within a region: us-east-1a (AWS), us-central1-a (Google).
_ZONE = re.compile(r"(.*[0-9])-?[a-f]")


@dataclass(frozen=True)
class Fact:
    value: float
    source: str


@dataclass(frozen=True)
class GridHours:
    """Hours of the local day, `before_hour` not among them, and what a kWh weighs then over its mean of the year."""

    from_hour: int
    before_hour: int
    share: float
    source: str


@dataclass(frozen=True)
class Place:
    """Electricity of a country or a part of one; `usd_per_kwh` is what a business pays there."""

    name: str
    country: str
    kg_co2_per_kwh: Fact
    usd_per_kwh: Fact
    has_parts: bool
    """Whether it is a continent or a union, of which it is not known here what lies in it."""
    hours: tuple[GridHours, ...] = ()
    """Empty where no hourly figures of its grid are known."""


@lru_cache(maxsize=512)
def energy_assumptions(region: str | None = None) -> dict[str, Fact]:
    """`host_share` (power besides the devices, as a share of theirs), `pue` and, of the region or the world,
    `kg_co2_per_kwh`. Raises PlanError for an unknown region."""
    facts = {name: Fact(**row) for name, row in document("energy.yaml").items()}
    return facts | {"kg_co2_per_kwh": find_place(region).kg_co2_per_kwh}


@lru_cache(maxsize=512)
def find_place(region: str | None) -> Place:
    """The place that a country, a state or a cloud region means; the world for None.

    Raises PlanError with the names that look most like an unknown one.
    """
    names, places = _names(), _places()
    wanted = _key(WORLD if region is None else region)
    zone = _ZONE.fullmatch(wanted)
    name = names.get(wanted) or (names.get(zone[1]) if zone else None)
    if name is None:
        raise PlanError("region", f"{region!r} is no country or cloud region that is known", nearest(wanted, _shown()))
    return places[name]


@cache
def place_names() -> tuple[str, ...]:
    """Every name of a place whose electricity is known."""
    return tuple(_names())


def is_within(region: str, place: Place) -> bool | None:
    """Whether a cloud region lies in the place; None where it is not known (or anywhere)."""
    name = _names().get(_key(region))
    if name is None or (place.has_parts and place.name != WORLD):
        return None
    known = _places()[name]
    return place.name in (known.name, known.country, WORLD)


@cache
def _places() -> dict[str, Place]:
    table = list(rows("grids.csv"))
    priced = {row["place"]: row for row in table if row["usd_per_kwh"]}
    hours: dict[str, list[GridHours]] = defaultdict(list)
    for row in rows("grid_hours.csv"):
        source = f"{_HOURS_OF[row['source']]}, {row['year']}"
        part = GridHours(int(row["from_hour"]), int(row["to_hour"]), float(row["share"]), source)
        hours[row["place"]].append(part)
    places = {}
    for row in table:
        name, country = row["place"], row["country"] or row["place"]
        price = next(priced[place] for place in (name, country, WORLD) if place in priced)
        of = "" if price["place"] in (name, country) else "; no figure for it is known, so this is the world's mean"
        places[name] = Place(
            name,
            country,
            Fact(float(row["kg_co2_per_kwh"]), f"{_SOURCES[row['source']]}, {row['year']}"),
            Fact(float(price["usd_per_kwh"]), f"{_SOURCES[price['price_source']]}, {price['price_year']}{of}"),
            has_parts=not (row["code"] or row["country"]),
            hours=tuple(hours[name]),
        )
    return places


@cache
def _names() -> dict[str, str]:
    """Place names by every name, code and cloud region, in lower case."""
    names = {}
    for row in rows("cloud_regions.csv"):
        names |= {_key(name): row["place"] for name in (row["region"], *row["city"].split("|")) if name}
    for row in rows("grids.csv"):
        for name in (row["place"], row["code"], *row["also"].split("|")):
            if name:
                names[_key(name)] = row["place"]
    return names


@cache
def _shown() -> list[str]:
    """Names of places and cloud regions as they are written."""
    return [row["place"] for row in rows("grids.csv")] + [row["region"] for row in rows("cloud_regions.csv")]


def _key(name: str) -> str:
    return " ".join(name.casefold().split())
