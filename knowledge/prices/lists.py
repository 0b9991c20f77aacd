"""Price lists that providers and others publish, read into rows of the price book.

Formats: a CSV of the price book's columns, SkyPilot's catalogue (skypilot-org/skypilot-catalog, vms.csv,
README "Schema"), AWS's price list (offer files as JSON and as CSV, "Reading the service price list file" of its Billing
guide, and what `aws pricing get-products` prints), the items of Azure's Retail Prices API and the SKUs of Google's
Cloud Billing Catalog API.
"""

from __future__ import annotations

import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from estimator.errors import PlanError
from knowledge.machines.catalogue import find_accelerator
from knowledge.own.mappings import csv_records, csv_rows, json_value
from knowledge.prices.book import prices

HOURS_PER_YEAR = 8760.0
_PART_OF_A_DATE = re.compile(r"\d{4}(-\d{2})?")


@dataclass(frozen=True)
class ListedMachine:
    """What a price list calls an instance: its accelerators and how many."""

    accelerator: str
    count: int


@dataclass
class ListedPrice:
    """An instance in a region as a list has it; USD an hour for the whole machine."""

    provider: str
    instance: str
    machine: ListedMachine
    region: str | None
    usd_per_hour: float | None = None
    spot_usd_per_hour: float | None = None
    reserved_usd_per_hour: float | None = None
    reserved_3y_usd_per_hour: float | None = None
    price_date: str | None = None
    ram_gib: float | None = None
    notes: str | None = None


@dataclass
class ReadList:
    """`called` is the format; `left_out` counts the rows that were not taken, by why."""

    called: str
    rows: list[ListedPrice]
    left_out: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def read_list(text: str, provider: str | None, name: str) -> ReadList:
    """The prices in the text of a file called `name`; `provider` is whose they are where the format does not say it.

    Raises PlanError("prices") for what is none of the formats.
    """
    try:
        return _read(text, provider, name)
    except PlanError as error:
        if error.field != "prices":
            raise
        raise PlanError("prices", f"{name} {error.problem}", error.valid) from None


def _read(text: str, provider: str | None, name: str) -> ReadList:
    if text.lstrip().startswith(("{", "[")):
        return _read_json(text)
    head = next(iter(_head([line for line in text.splitlines()[:200] if not line.startswith("#")][:1])), [])
    if head[:1] == [AWS_CSV]:
        return _aws_table(text)
    if {"InstanceType", "AcceleratorName", "Price"} <= {*head}:
        return _sky(text, provider or _folder_of(name))
    if {"provider", "instance", "accelerator", "count_per_node"} <= {*head}:
        return _book(text)
    raise PlanError("prices", "is no price list that can be read", list(_FORMATS))


_FORMATS = (
    "a CSV of provider,instance,accelerator,count_per_node,on_demand_usd_hour,…", "SkyPilot's vms.csv",
    "AWS's price list (JSON, CSV)", "Azure's retail prices (JSON)", "Google's billing SKUs (JSON)",
)  # fmt: skip


def _read_json(text: str) -> ReadList:
    try:
        value = json_value(text)
    except ValueError:
        raise PlanError("prices", "is not readable JSON", list(_FORMATS)) from None
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(value, dict):
        for key, read in (("Items", _azure), ("skus", _google), ("PriceList", _aws_items)):
            if isinstance(value.get(key), list):
                return read(value[key])
        if isinstance(value.get("products"), dict) and isinstance(value.get("terms"), dict):
            return _aws_offers(value)
    if isinstance(first, dict) and "armSkuName" in first:
        return _azure(value)
    if isinstance(first, dict) and "product" in first:
        return _aws_items(value)
    if isinstance(first, dict) and "pricingInfo" in first:
        return _google(value)
    raise PlanError("prices", "is JSON of none of the formats that can be read", list(_FORMATS))


def known_machines(provider: str) -> dict[str, ListedMachine]:
    """Instances of a provider that the price book knows, by their folded names."""
    return {
        folded(price.instance): ListedMachine(price.accelerator, price.count)
        for price in prices()
        if price.provider.casefold() == provider.casefold()
    }


def folded(instance: str) -> str:
    """An instance's name without case and Azure's prefix."""
    return instance.strip().casefold().removeprefix("standard_")


def usd(value: object) -> float | None:
    """An amount above nothing; None for everything else that a list has in its place."""
    try:
        amount = float(str(value))
    except ValueError:
        return None
    return amount if math.isfinite(amount) and amount > 0.0 else None


def _table(text: str) -> Iterator[dict[str, str]]:
    lines = (line for line in io.StringIO(text, newline="") if not line.startswith("#"))
    try:
        yield from ({k: v or "" for k, v in row.items() if isinstance(k, str)} for row in csv_records(lines))
    except ValueError as error:
        raise PlanError("prices", f"is no readable CSV: {error}") from None


def _head(lines: list[str]) -> list[list[str]]:
    """The rows that a list begins with; none where they are no CSV."""
    try:
        return list(csv_rows(lines))
    except ValueError:
        return []


# What SkyPilot and the price book call one provider.
_CLOUDS = {"do": "DigitalOcean"}
# A folder of the catalogue that has one for every cloud.
_VERSION = re.compile(r"v\d+")
_MIB = re.compile(r"'SizeInMiB':\s*(\d+)")


def _spelled(provider: str) -> str:
    """A provider as the price book writes it."""
    folded_name = _CLOUDS.get(provider.casefold(), provider).casefold()
    return next((price.provider for price in prices() if price.provider.casefold() == folded_name), provider)


def _sky_machine(row: Mapping[str, str]) -> ListedMachine | None:
    """By the memory of a device too, where the row has it: A100 is said of either. Some rows have the host's there."""
    name, count = row["AcceleratorName"].strip(), row.get("AcceleratorCount")
    memory = _MIB.search(row.get("GpuInfo", ""))
    sized = _machine(f"{name} {round(int(memory[1]) / 1024)}GB", count) if memory else None
    return sized or _machine(name, count)


def _machine(name: str, count: object) -> ListedMachine | None:
    devices = usd(count)
    if not name or devices is None or devices != int(devices) or devices > 4096:
        return None
    try:
        return ListedMachine(find_accelerator(name).value.id, int(devices))
    except PlanError:
        return None


_UNKNOWN = "an instance or accelerator that the catalogue does not know"
_NO_PRICE = "without a price"
_NO_ACCELERATOR = "without an accelerator"


def _book(text: str) -> ReadList:
    listing = ReadList("a CSV of prices", [])
    for row in _table(text):
        machine = _machine(row["accelerator"], row["count_per_node"])
        if machine is None:
            listing.left_out[_UNKNOWN] += 1
            continue
        listed = ListedPrice(
            provider=row["provider"],
            instance=row["instance"],
            machine=machine,
            region=row.get("region") or None,
            usd_per_hour=usd(row.get("on_demand_usd_hour")),
            spot_usd_per_hour=usd(row.get("spot_usd_hour")),
            reserved_usd_per_hour=usd(row.get("reserved_1y_usd_hour")),
            reserved_3y_usd_per_hour=usd(row.get("reserved_3y_usd_hour")),
            price_date=_day(row.get("price_date")),
            ram_gib=usd(row.get("ram_gb")),
            notes=row.get("notes") or None,
        )
        _take(listing, listed)
    return listing


def _take(listing: ReadList, listed: ListedPrice) -> None:
    every = (listed.usd_per_hour, listed.spot_usd_per_hour, listed.reserved_usd_per_hour)
    if all(amount is None for amount in (*every, listed.reserved_3y_usd_per_hour)):
        listing.left_out[_NO_PRICE] += 1
    else:
        listing.rows.append(listed)


def _folder_of(name: str) -> str:
    """The provider of a SkyPilot file by the folder in which it lies: catalogs/v8/aws/vms.csv. Any other folder names
    none."""
    *_, version, folder, _ = ["", "", *name.replace("\\", "/").split("/")]
    known = {price.provider.casefold() for price in prices()}
    if _CLOUDS.get(folder.casefold(), folder).casefold() in known or (folder and _VERSION.fullmatch(version)):
        return folder
    problem = "SkyPilot's list does not say whose prices it has"
    raise PlanError("provider", problem, ["--provider AWS, or the file in a folder of that name"])


@dataclass
class _Zones:
    """Prices of one thing in the zones of a region."""

    usd: list[float] = field(default_factory=list)
    spot: list[float] = field(default_factory=list)
    machine: ListedMachine | None = None
    ram_gib: float | None = None

    def add(self, row: Mapping[str, str]) -> None:
        for amounts, cell in ((self.usd, row["Price"]), (self.spot, row.get("SpotPrice"))):
            if (amount := usd(cell)) is not None:
                amounts.append(amount)


def _sky(text: str, provider: str) -> ReadList:
    """Rows are zones. Google's have machines without their accelerators, and these by the device on rows of their own:
    a machine costs both."""
    listing, provider = ReadList("SkyPilot's catalogue", []), _spelled(provider)
    known = known_machines(provider)
    whole: dict[tuple[str, str], _Zones] = defaultdict(_Zones)
    alone: dict[tuple[str, str], _Zones] = defaultdict(_Zones)
    for row in _table(text):
        instance, region = row["InstanceType"].strip(), row.get("Region", "").strip()
        named = row["AcceleratorName"].strip()
        machine = known.get(folded(instance)) if instance else None
        if instance and named:
            machine = machine or _sky_machine(row)
            kind, key = whole, instance
        elif instance:
            kind, key = whole, f"{instance}\0"
        else:
            machine, kind, key = _machine(named, 1), alone, ""
        if machine is None:
            listing.left_out[_UNKNOWN if named else _NO_ACCELERATOR] += 1
            continue
        zones = kind[key or machine.accelerator, region]
        zones.add(row)
        zones.machine, zones.ram_gib = machine, usd(row.get("MemoryGiB"))
    for (name, region), zones in whole.items():
        machine = zones.machine
        assert machine is not None
        listed = ListedPrice(provider, name.rstrip("\0"), machine, region or None, ram_gib=zones.ram_gib)
        parts = [(zones, 1)]
        if name.endswith("\0"):
            parts.append((alone.get((machine.accelerator, region), _Zones()), machine.count))
        listed.usd_per_hour = _sum(parts, lambda zones: min(zones.usd, default=None))
        listed.spot_usd_per_hour = _sum(parts, lambda zones: median(zones.spot) if zones.spot else None)
        _take(listing, listed)
    return listing


def _sum(parts: Iterable[tuple[_Zones, int]], of: Callable[[_Zones], float | None]) -> float | None:
    amounts = [(of(zones), times) for zones, times in parts]
    if any(amount is None for amount, _ in amounts):
        return None
    return sum(amount * times for amount, times in amounts if amount is not None)


def _aws_offers(value: Mapping[str, Any]) -> ReadList:
    """An offer file: products by SKU, and terms by kind and SKU."""
    terms = value["terms"]
    items = [
        {
            "product": product,
            "terms": {kind: of.get(sku) for kind, of in terms.items() if isinstance(of, dict)},
            "publicationDate": value.get("publicationDate"),
        }
        for sku, product in value["products"].items()
    ]
    return _aws_items(items)


AWS_CSV = "FormatVersion"
"""What the first line of an offer file in CSV begins with."""
_AWS_HEAD_LINES = 5
_AWS_COLUMNS = {
    "instanceType": "Instance Type", "regionCode": "Region Code", "operatingSystem": "Operating System",
    "tenancy": "Tenancy", "capacitystatus": "CapacityStatus", "preInstalledSw": "Pre Installed S/W",
    "marketoption": "MarketOption",
}  # fmt: skip

_AWS_PLAIN = {
    "operatingSystem": "Linux", "tenancy": "Shared", "capacitystatus": "Used", "preInstalledSw": "NA",
    "marketoption": "OnDemand",
}  # fmt: skip


def aws_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines of an offer file in CSV that speak of instances which the price book knows, and those at its head:
    EC2's in one region is some hundred megabytes."""
    known = {*known_machines("AWS")}
    for number, line in enumerate(lines):
        if number <= _AWS_HEAD_LINES or not known.isdisjoint(line.split('","')):
            yield line


def _aws_table(text: str) -> ReadList:
    """An offer file in CSV: five lines about it, then a row for each price of a product."""
    lines = text.splitlines(keepends=True)
    about = dict(row[:2] for row in _head(lines[:_AWS_HEAD_LINES]) if len(row) > 1)
    rows = _table("".join(lines[_AWS_HEAD_LINES:]))
    return _aws_items(_aws_item(row, about.get("Publication Date")) for row in rows)


def _aws_item(row: Mapping[str, str], published: str | None) -> dict[str, Any]:
    hour = {"unit": row.get("Unit"), "pricePerUnit": {row.get("Currency"): row.get("PricePerUnit")}}
    how = {name: row.get(name, "") for name in ("LeaseContractLength", "PurchaseOption", "OfferingClass")}
    attributes = {name: row[column] for name, column in _AWS_COLUMNS.items() if row.get(column)}
    term = {"priceDimensions": {"": hour}, "termAttributes": how}
    return {
        "product": {"attributes": attributes}, "terms": {row.get("TermType", ""): {"": term}},
        "publicationDate": published,
    }  # fmt: skip


def _aws_items(items: Iterable[Any]) -> ReadList:
    """Products with their terms; `get-products` prints each as text."""
    listing = ReadList("AWS's price list", [])
    known = known_machines("AWS")
    by_place: dict[tuple[str, str], ListedPrice] = {}
    for item in items:
        data = _loaded(item)
        attributes = _at(data, "product", "attributes")
        instance = str(attributes.get("instanceType", ""))
        machine = known.get(folded(instance))
        if machine is None:
            listing.left_out[_UNKNOWN] += 1
            continue
        if any(attributes.get(name, value) != value for name, value in _AWS_PLAIN.items()):
            listing.left_out["with another system, tenancy or software than plain Linux"] += 1
            continue
        region = str(attributes.get("regionCode") or "") or None
        listed = by_place.setdefault(
            (instance, region or ""),
            ListedPrice("AWS", instance, machine, region, price_date=_day(data.get("publicationDate"))),
        )
        _aws_terms(listed, _at(data, "terms"))
    for listed in by_place.values():
        _take(listing, listed)
    return listing


def _aws_terms(listed: ListedPrice, terms: Mapping[str, Any]) -> None:
    """On demand, and reserved for one and three years with nothing paid up front."""
    for term in _at(terms, "OnDemand").values():
        listed.usd_per_hour = _aws_hour(term) or listed.usd_per_hour
    for term in _at(terms, "Reserved").values():
        how = _at(term, "termAttributes")
        if how.get("PurchaseOption") != "No Upfront" or how.get("OfferingClass", "standard") != "standard":
            continue
        if how.get("LeaseContractLength") == "1yr":
            listed.reserved_usd_per_hour = _aws_hour(term)
        elif how.get("LeaseContractLength") == "3yr":
            listed.reserved_3y_usd_per_hour = _aws_hour(term)


def _aws_hour(term: object) -> float | None:
    for dimension in _at(term, "priceDimensions").values():
        if str(_at(dimension).get("unit", "")).casefold() == "hrs":
            return usd(_at(dimension, "pricePerUnit").get("USD"))
    return None


def _azure(items: Iterable[Any]) -> ReadList:
    """A reservation's price is that of its whole term, whatever its unit says."""
    listing = ReadList("Azure's retail prices", [])
    known = known_machines("Azure")
    by_place: dict[tuple[str, str], ListedPrice] = {}
    for each in items:
        item = _at(each)
        name = str(item.get("armSkuName", ""))
        machine = known.get(folded(name))
        words = f"{item.get('productName', '')} {item.get('skuName', '')} {item.get('meterName', '')}"
        if machine is None:
            listing.left_out[_UNKNOWN] += 1
            continue
        if "Windows" in words or "Low Priority" in words or item.get("currencyCode", "USD") != "USD":
            listing.left_out["of Windows, low priority or in another currency"] += 1
            continue
        region = str(item.get("armRegionName") or "") or None
        listed = by_place.setdefault((folded(name), region or ""), ListedPrice("Azure", name, machine, region))
        amount, term = usd(item.get("retailPrice")), item.get("reservationTerm")
        if item.get("type", item.get("priceType")) == "Reservation" or term:
            if amount is not None and term == "1 Year":
                listed.reserved_usd_per_hour = amount / HOURS_PER_YEAR
            elif amount is not None and term == "3 Years":
                listed.reserved_3y_usd_per_hour = amount / (3 * HOURS_PER_YEAR)
        elif "Spot" in words:
            listed.spot_usd_per_hour = amount
        else:
            listed.usd_per_hour = amount
    for listed in by_place.values():
        _take(listing, listed)
    return listing


_GOOGLE = {
    "OnDemand": "usd_per_hour", "Preemptible": "spot_usd_per_hour", "Commit1Yr": "reserved_usd_per_hour",
    "Commit3Yr": "reserved_3y_usd_per_hour",
}  # fmt: skip
# What Google's descriptions have around a device: how it is bought, its series, how it is counted, and the network by
# which A3 Mega (called Plus as well) differs from A3 High.
_GOOGLE_AROUND = re.compile(
    r"(?i)attached to Spot Preemptible VMs|Spot Preemptible|Commitment v1:|Reserved(?= Nvidia)|\bGPUs?\b"
    r"|\b[AG]\d\w{0,2}(?: Ultra| Mega| High| Max| Edge| Plus)?(?= Nvidia)"
    r"|\(\d+ gpu slice\)|(?<=H100 80GB )(?:Mega|Plus)\b"
)
# Devices that Google calls otherwise than others do (cloud.google.com/compute/gpus-pricing): A2 Standard's and G4's.
_GOOGLE_DEVICES = {"nvidia tesla a100": "a100-sxm-40gb", "rtx 6000 96gb": "rtx-pro-6000-blackwell-server"}
_ALONE = "the accelerator alone: cores, memory and disks of its machine come on top"


def _google(skus: Iterable[Any]) -> ReadList:
    """Devices by the hour; cores and memory of their machines have SKUs of their own, which no instance is named in."""
    listing = ReadList("Google's billing SKUs", [])
    by_place: dict[tuple[str, str], ListedPrice] = {}
    for each in skus:
        sku = _at(each)
        category = _at(sku, "category")
        text = str(sku.get("description", ""))
        kind, group = _GOOGLE.get(str(category.get("usageType"))), category.get("resourceGroup")
        if group not in ("GPU", "TPU") or kind is None:
            listing.left_out[_NO_ACCELERATOR] += 1
            continue
        name = _GOOGLE_AROUND.sub(" ", re.split(r" (?:running )?in ", text)[0])
        name = " ".join(name.split())
        machine, amount = _machine(_GOOGLE_DEVICES.get(name.casefold(), name), 1), _google_hour(sku)
        if machine is None or amount is None:
            listing.left_out[_UNKNOWN if machine is None else _NO_PRICE] += 1
            continue
        for region in _list(sku.get("serviceRegions")) or [None]:
            instance = f"{name} (per {'chip' if group == 'TPU' else 'GPU'})"
            listed = by_place.setdefault(
                (instance, str(region)),
                ListedPrice("GCP", instance, machine, region, notes=_ALONE if group == "GPU" else None),
            )
            setattr(listed, kind, amount)
    for listed in by_place.values():
        _take(listing, listed)
    return listing


def _google_hour(sku: Mapping[str, Any]) -> float | None:
    for info in _list(sku.get("pricingInfo")):
        for rate in _list(_at(info, "pricingExpression").get("tieredRates")):
            price = _at(rate, "unitPrice")
            amount = (usd(price.get("units")) or 0.0) + (usd(price.get("nanos")) or 0.0) / 1e9
            if amount > 0.0:
                return amount
    return None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _loaded(item: object) -> Mapping[str, Any]:
    if isinstance(item, str):
        try:
            item = json_value(item)
        except ValueError:
            return {}
    return _at(item)


def _at(value: object, *names: str) -> Mapping[str, Any]:
    """The mapping that lies under the names; empty where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _day(text: object) -> str | None:
    """Of a month or a year its first day."""
    day = str(text)[:10] if text else None
    return f"{day}-01-01"[:10] if day and _PART_OF_A_DATE.fullmatch(day) else day
