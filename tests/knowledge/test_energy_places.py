"""Regions: countries, states and cloud regions by any of their names, each with sourced electricity."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from knowledge.data_files import rows
from knowledge.prices.book import prices
from knowledge.prices.energy import GridHours, energy_assumptions, find_place, is_within
from knowledge.prices.ownership import (
    interruption_assumptions,
    ownership_assumptions,
    storage_price,
    transfer_price,
)


@pytest.mark.parametrize(("said", "name"), [
    ("us-east-1", "Northern Virginia"), ("US-East-1a", "Northern Virginia"), ("us-central1-b", "Iowa"),
    ("europe-west4", "Netherlands"), ("eastus", "Northern Virginia"), ("France", "France"), (" france ", "France"),
    ("FR", "France"), ("FRA", "France"), ("usa", "United States"), ("UK", "United Kingdom"), ("Georgia", "Georgia"),
    ("EU", "EU"), (None, "World"), ("Turkey", "Turkey"), ("eu-north1", "Finland"),
])  # fmt: skip
def test_places_by_any_name(said: str | None, name: str) -> None:
    place = find_place(said)
    assert place.name == name
    assert place.kg_co2_per_kwh.source
    assert place.usd_per_kwh.source


@pytest.mark.parametrize("said", ["us-est-1", "Frence", "", "x" * 300, "\x00", "us-east-1z", "-a"])
def test_unknown_places_are_refused_with_the_nearest(said: str) -> None:
    with pytest.raises(PlanError) as caught:
        find_place(said)
    assert caught.value.field == "region"
    assert caught.value.valid
    for name in caught.value.valid:
        assert find_place(name)


def test_every_place_has_sane_electricity() -> None:
    table = list(rows("grids.csv"))
    assert len(table) > 200
    for row in table:
        place = find_place(row["place"])
        assert 0.0 <= place.kg_co2_per_kwh.value < 1.4, place
        assert 0.02 < place.usd_per_kwh.value < 0.5, place
        assert int(row["year"]) >= 2020
    for row in rows("cloud_regions.csv"):
        assert find_place(row["region"]).name == row["place"]
    assert find_place("France").kg_co2_per_kwh.value < find_place("Germany").kg_co2_per_kwh.value
    assert "world's mean" in find_place("Japan").usd_per_kwh.source
    assert "world's mean" not in find_place("us-east-1").usd_per_kwh.source


def test_regions_of_the_price_book_are_known() -> None:
    regions = {price.region for price in prices() if price.region} - {"all"}
    for region in regions:
        assert find_place(region), region


def test_what_lies_where() -> None:
    assert is_within("us-east-1", find_place("United States"))
    assert is_within("us-east-1", find_place("us-east4"))
    assert is_within("us-central1", find_place("us-east-1")) is False
    assert is_within("us-central1", find_place("France")) is False
    assert is_within("all", find_place("France")) is None
    assert is_within("europe-west4", find_place("Europe")) is None


def test_assumptions_have_sources_and_sane_values() -> None:
    for facts in (
        energy_assumptions(),
        energy_assumptions("Norway"),
        ownership_assumptions(),
        interruption_assumptions(),
    ):
        assert all(fact.source and fact.value > 0 for fact in facts.values())
    assert 0 < ownership_assumptions()["utilisation"].value <= 1
    assert 0 < interruption_assumptions()["monthly_share"].value < 1
    sold = [price for price in prices(provider="owned") if price.capex_usd]
    assert {price.capex_of for price in sold} == {"machine", "accelerators"}
    price = storage_price("AWS")
    assert price is not None
    assert 0.01 < price.value < 0.1
    assert storage_price("Vast") is transfer_price("Vast") is None
    out = transfer_price("OCI")
    assert out is not None
    assert 0.0 < out.usd_per_gb < out.free_gb
    assert out.source


def test_the_hours_of_a_day_add_up_to_it() -> None:
    """They cover the day once, and their mean is that of the year."""
    known = {row["place"] for row in rows("grid_hours.csv")}
    assert {"California", "Northern Virginia", "Germany", "United Kingdom", "Ontario"} <= known
    for name in known:
        parts = find_place(name).hours
        assert sorted(
            hour % 24 for part in parts for hour in range(part.from_hour, part.from_hour + _length(part))
        ) == [*range(24)]
        assert sum(part.share * _length(part) for part in parts) / 24 == pytest.approx(1.0, abs=0.01)
    assert min(find_place("us-west-1").hours, key=lambda part: part.share).from_hour == 10  # the sun


def _length(part: GridHours) -> int:
    return (part.before_hour - part.from_hour) % 24
