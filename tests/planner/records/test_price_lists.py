"""Published price lists in the formats of those who publish them, written small here."""

from __future__ import annotations

import json
import os
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.machine.hardware import Price
from knowledge.prices.book import prices
from planner import clock
from planner.records.price_lists import price_ages, update_prices
from planner.rejected_rows import rejected_prices_of

SKY = """\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
p5.48xlarge,192,2048,H100,8,,us-east-1,us-east-1a,50.0,20.0
p5.48xlarge,192,2048,H100,8,,us-east-1,us-east-1b,50.0,40.0
p5.48xlarge,192,2048,H100,8,,eu-north-1,eu-north-1a,60.0,
m5.large,2,8,,,,us-east-1,us-east-1a,0.096,0.03
x9.huge,2,8,Nobodys-GPU,8,,us-east-1,us-east-1a,9.0,
"""
GOOGLE_SKY = """\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
a3-highgpu-8g,208.0,1872.0,,,,us-central1,us-central1-a,9.0,3.0
,,,H100,1.0,,us-central1,us-central1-a,10.0,4.0
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path / "config"))


def _saved(tmp_path: Path, name: str, content: object) -> str:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def _price(provider: str, instance: str, region: str | None) -> Price:
    (row,) = [each for each in prices(provider=provider) if each.instance == instance and each.region == region]
    return row


def test_skypilot_takes_the_zones_of_a_region_together(tmp_path: Path) -> None:
    before = _price("AWS", "p5.48xlarge", "us-east-1")
    saved = _saved(tmp_path, "aws/vms.csv", SKY)
    written = datetime(2026, 12, 1, 12).timestamp()
    os.utime(saved, (written, written))
    with clock.on(date(2027, 6, 1)):  # a list that has no day is as old as its file
        updated = update_prices(saved)
    row = _price("AWS", "p5.48xlarge", "us-east-1")
    assert (row.usd_per_hour, row.spot_usd_per_hour, row.price_date) == (50.0, 30.0, "2026-12-01")
    assert (row.network, row.max_devices, row.seller) == (before.network, before.max_devices, "hyperscaler")
    assert updated.regions == ["us-east-1"]  # the one that the price book has
    assert sum(updated.left_out.values()) == 2
    assert updated.changes[0].before_usd_per_hour == before.usd_per_hour
    update_prices(_saved(tmp_path, "aws/vms.csv", SKY), regions=["eu-north-1"])
    assert _price("AWS", "p5.48xlarge", "eu-north-1").usd_per_hour == 60.0
    assert _price("AWS", "p5.48xlarge", "us-east-1").usd_per_hour == before.usd_per_hour


def test_lists_that_have_the_same_instance_leave_one_price_of_it(tmp_path: Path) -> None:
    """That of the latest day; and what a provider's next list says stands in place of what its last one did."""
    _saved(tmp_path, "aws/vms.csv", SKY)  # undated: of the day on which it is read
    book = "provider,instance,accelerator,count_per_node,on_demand_usd_hour,region,price_date\n{}"
    old = "AWS,p5.48xlarge,h100-sxm,8,55.5,us-east-1,2026-09-01\nZenith,z8,h100-sxm,8,9,,2026-09-01\n"
    _saved(tmp_path, "mine.csv", book.format(old))
    update_prices(str(tmp_path))
    assert not rejected_prices_of("h100-sxm")
    assert _price("Zenith", "z8", None).usd_per_hour == 9.0
    update_prices(_saved(tmp_path, "other.csv", book.format(old.replace(",9,,", ",8,,"))))
    assert not rejected_prices_of("h100-sxm")
    assert _price("Zenith", "z8", None).usd_per_hour == 8.0


def test_a_folder_of_any_name_is_no_provider(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="whose prices"):
        update_prices(_saved(tmp_path, "Downloads/vms.csv", SKY))


def test_a_machine_listed_without_its_accelerators_costs_both(tmp_path: Path) -> None:
    update_prices(_saved(tmp_path, "gcp/vms.csv", GOOGLE_SKY))
    row = _price("GCP", "a3-highgpu-8g", "us-central1")
    assert (row.usd_per_hour, row.spot_usd_per_hour) == (89.0, 35.0)


def test_skypilot_rows_are_told_apart_by_the_memory_of_the_device_and_are_of_the_provider_that_is_known(
    tmp_path: Path,
) -> None:
    """Rows of catalogs/v7 of skypilot-org/skypilot-catalog: Lambda's @11580132, and Nebius's @22fd1fea, whose device
    memory is the host's."""
    head = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"
    info = "\"{{'Gpus': [{{'Name': 'X', 'Count': 8, 'MemoryInfo': {{'SizeInMiB': {0}}}}}]}}\""
    first = [
        "cpu_4x_general,,,4.0,16.0,0.2,us-east-1,,",
        f"gpu_8x_v100,V100,8.0,92.0,448.0,4.4,us-east-1,{info.format(16384)},",
        f"gpu_8x_a100,A100,8.0,124.0,1800.0,10.32,us-east-1,{info.format(40960)},",
    ]
    other = f"gpu-h100-sxm_8gpu-128vcpu-1600gb,H100,8,128,1600,23.60,eu-north1,{info.format(204800)},10.00"
    _saved(tmp_path, "all/lambda/vms.csv", "\n".join([head, *first]))
    _saved(tmp_path, "all/nebius/vms.csv", "\n".join([head, other]))
    updated = update_prices(str(tmp_path / "all"))
    assert updated.left_out == {"without an accelerator": 1}
    devices = {name: _price("Lambda", name, "us-east-1").accelerator for name in ("gpu_8x_v100", "gpu_8x_a100")}
    assert devices == {"gpu_8x_v100": "v100-sxm-16gb", "gpu_8x_a100": "a100-sxm-40gb"}
    assert _price("Nebius", "gpu-h100-sxm_8gpu-128vcpu-1600gb", "eu-north1").spot_usd_per_hour == 10.0


_AWS_HEAD = """\
"FormatVersion","v1.0"
"Disclaimer","This pricing list is for informational purposes only."
"Publication Date","2026-11-20T18:01:00Z"
"Version","20261120180100"
"OfferCode","AmazonEC2"
"""
_AWS_CSV_COLUMNS = [
    "SKU", "TermType", "Unit", "PricePerUnit", "Currency", "LeaseContractLength", "PurchaseOption", "OfferingClass",
    "Product Family", "Instance Type", "Tenancy", "Operating System", "CapacityStatus", "Pre Installed S/W",
    "Region Code",
]  # fmt: skip


def _aws_csv(*rows: dict[str, str]) -> str:
    plain = {
        "Unit": "Hrs", "Currency": "USD", "Tenancy": "Shared", "Operating System": "Linux", "CapacityStatus": "Used",
        "Pre Installed S/W": "NA", "Region Code": "us-east-1", "Instance Type": "p4d.24xlarge", "TermType": "OnDemand",
    }  # fmt: skip
    lines = [_AWS_CSV_COLUMNS, *([(plain | row).get(name, "") for name in _AWS_CSV_COLUMNS] for row in rows)]
    return _AWS_HEAD + "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)


@pytest.mark.parametrize("largest", [64_000_000, 100])
def test_aws_offer_file_as_csv_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr("planner.records.price_lists.LARGEST_LIST_BYTES", largest)
    year = {"TermType": "Reserved", "PurchaseOption": "No Upfront", "OfferingClass": "standard"}
    text = _aws_csv(
        {"PricePerUnit": "21.5"}, {"PricePerUnit": "99.0", "Operating System": "Windows"},
        {"PricePerUnit": "13.5", "LeaseContractLength": "1yr"} | year,
        {"PricePerUnit": "9.25", "LeaseContractLength": "3yr"} | year,
        *[{"PricePerUnit": "0.1", "Instance Type": "m5.large"}] * 50,
    )  # fmt: skip
    update_prices(_saved(tmp_path, "index.csv", text))
    row = _price("AWS", "p4d.24xlarge", "us-east-1")
    assert (row.usd_per_hour, row.reserved_usd_per_hour, row.long_usd_per_hour) == (21.5, 13.5, 9.25)
    assert row.price_date == "2026-11-20"


def _aws_term(amount: str, **attributes: str) -> dict[str, Any]:
    hour = {"unit": "Hrs", "pricePerUnit": {"USD": amount}}
    return {"priceDimensions": {"a.b": hour}, "termAttributes": attributes}


def _aws_product(**more: str) -> dict[str, Any]:
    plain = {"operatingSystem": "Linux", "tenancy": "Shared", "capacitystatus": "Used", "preInstalledSw": "NA"}
    return {"attributes": {"instanceType": "p4d.24xlarge", "regionCode": "us-east-1"} | plain | more}


AWS_TERMS = {
    "OnDemand": {"s.o": _aws_term("21.5")},
    "Reserved": {
        "s.r1": _aws_term("13.5", LeaseContractLength="1yr", PurchaseOption="No Upfront", OfferingClass="standard"),
        "s.r3": _aws_term("9.25", LeaseContractLength="3yr", PurchaseOption="No Upfront", OfferingClass="standard"),
        "s.ra": _aws_term("0.0", LeaseContractLength="1yr", PurchaseOption="All Upfront", OfferingClass="standard"),
    },
}


@pytest.mark.parametrize("whole", [True, False])
def test_aws_price_list_as_an_offer_file_and_as_products(tmp_path: Path, whole: bool) -> None:
    windows = _aws_product(operatingSystem="Windows")
    if whole:
        terms = {kind: {"s": of} for kind, of in AWS_TERMS.items()}
        content: object = {
            "publicationDate": "2026-11-20T00:00:00Z",
            "products": {"s": _aws_product(), "w": windows},
            "terms": terms,
        }
    else:
        each = {"product": _aws_product(), "terms": AWS_TERMS, "publicationDate": "2026-11-20T00:00:00Z"}
        content = {"PriceList": [json.dumps(each), json.dumps({"product": windows, "terms": AWS_TERMS})]}
    updated = update_prices(_saved(tmp_path, "aws.json", content))
    row = _price("AWS", "p4d.24xlarge", "us-east-1")
    assert (row.usd_per_hour, row.reserved_usd_per_hour, row.long_usd_per_hour) == (21.5, 13.5, 9.25)
    assert row.price_date == "2026-11-20"
    assert sum(updated.left_out.values()) == 1


def _meter(**more: object) -> dict[str, object]:
    return {
        "currencyCode": "USD", "retailPrice": 90.0, "armRegionName": "eastus", "meterName": "ND96isr H100 v5",
        "productName": "Virtual Machines NDsr H100 v5 Series", "skuName": "ND96isr H100 v5", "unitOfMeasure": "1 Hour",
        "type": "Consumption", "armSkuName": "Standard_ND96isr_H100_v5",
    } | more  # fmt: skip


def test_azure_reservations_are_of_the_whole_term(tmp_path: Path) -> None:
    items = [
        _meter(), _meter(meterName="ND96isr H100 v5 Spot", retailPrice=18.0),
        _meter(type="Reservation", reservationTerm="1 Year", retailPrice=8760 * 60.0),
        _meter(type="Reservation", reservationTerm="3 Years", retailPrice=3 * 8760 * 40.0),
        _meter(productName="Virtual Machines NDsr H100 v5 Series Windows", retailPrice=99.0),
    ]  # fmt: skip
    update_prices(_saved(tmp_path, "azure.json", {"Items": items}))
    row = _price("Azure", "Standard_ND96isr_H100_v5", "eastus")
    assert (row.usd_per_hour, row.spot_usd_per_hour) == (90.0, 18.0)
    assert (row.reserved_usd_per_hour, row.long_usd_per_hour) == (pytest.approx(60.0), pytest.approx(40.0))


def _google_sku(usage: str, units: str, nanos: int, text: str = "Nvidia H100 80GB GPU running in Americas") -> object:
    price = {"currencyCode": "USD", "units": units, "nanos": nanos}
    return {
        "description": text,
        "category": {"resourceFamily": "Compute", "resourceGroup": "GPU", "usageType": usage},
        "serviceRegions": ["us-central1"],
        "pricingInfo": [{"pricingExpression": {"tieredRates": [{"unitPrice": price}]}}],
    }


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("Nvidia Tesla A100 GPU running in Americas", "a100-sxm-40gb"),
        ("Nvidia Tesla A100 80GB GPU running in Americas", "a100-sxm-80gb"),
        ("Nvidia H100 80GB Mega GPU running in Iowa", "h100-sxm"),
        ("A3 Plus Nvidia H100 80GB GPU running in Iowa", "h100-sxm"),
        ("Reserved Nvidia H100 80GB Mega GPU in Iowa", "h100-sxm"),
        ("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "b200-sxm"),
        ("RTX 6000 96GB running in Americas", "rtx-pro-6000-blackwell-server"),
    ],
)
def test_what_google_says_around_a_device_is_no_part_of_it(tmp_path: Path, text: str, device: str) -> None:
    update_prices(_saved(tmp_path, "google.json", {"skus": [_google_sku("OnDemand", "9", 0, text)]}))
    (row,) = [each for each in prices(provider="GCP") if each.notes.startswith("the accelerator alone")]
    assert row.accelerator == device


def test_google_skus_are_of_the_accelerator_alone_and_say_so(tmp_path: Path) -> None:
    skus = [
        _google_sku("OnDemand", "9", 796000000),
        _google_sku("Preemptible", "3", 0),
        _google_sku("OnDemand", "1", 0, "N1 Core running in X"),
    ]
    updated = update_prices(_saved(tmp_path, "google.json", {"skus": skus}))
    (row,) = [each for each in prices(provider="GCP") if each.notes.startswith("the accelerator alone")]
    assert (row.accelerator, row.usd_per_hour, row.spot_usd_per_hour) == ("h100-sxm", pytest.approx(9.796), 3.0)
    assert sum(updated.left_out.values()) == 1


def test_the_price_books_own_format_and_a_folder(tmp_path: Path) -> None:
    head = "# remark\nprovider,instance,accelerator,count_per_node,on_demand_usd_hour,region,price_date\n"
    _saved(tmp_path, "lists/a.csv", f"{head}Acme,big,h100,8,20.0,Oslo,2026-11-25\n")
    _saved(tmp_path, "lists/b.csv", f"{head}AWS,p5.48xlarge,h100,8,51.0,us-east-1,2026-11-25\n")
    updated = update_prices(str(tmp_path / "lists"))
    assert (updated.rows, updated.replaced) == (2, 1)
    assert _price("Acme", "big", "Oslo").usd_per_hour == 20.0
    assert _price("AWS", "p5.48xlarge", "us-east-1").usd_per_hour == 51.0


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "[1, 2]", "a,b\n1,2\n", '{"Items": [1, null]}', '{"skus": [{"pricingInfo": 3}]}',
        '{"products": {"s": 1}, "terms": {"OnDemand": 3}}', '{"PriceList": ["{", 4]}', "[" * 100_000,
        "InstanceType,AcceleratorName,Price\np5.48xlarge,H100,-1\n", 'InstanceType,AcceleratorName,Price\n"a,b\n',
        "provider,instance,accelerator,count_per_node\nA,b,h100,nan\n",
        "provider,instance,accelerator,count_per_node,on_demand_usd_hour\nA,b,h100,8,1e99\n",
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_and_nothing_is_written(tmp_path: Path, content: str) -> None:
    path = _saved(tmp_path, "aws/list.csv", content)
    with pytest.raises(PlanError):
        update_prices(path)
    assert not list((tmp_path / "config").rglob("*.yaml"))


def test_a_dry_run_writes_nothing_and_plain_http_is_refused(tmp_path: Path) -> None:
    updated = update_prices(_saved(tmp_path, "aws/vms.csv", SKY), write=False)
    assert not Path(updated.path).exists()
    with pytest.raises(PlanError, match="https"):
        update_prices("http://example.org/vms.csv")
    with pytest.raises(PlanError):
        update_prices(str(tmp_path / "none.csv"))


def test_ages_name_who_is_oldest_first() -> None:
    with clock.on(date(2026, 11, 26)):
        ages = price_ages()
    days = [row.newest_age_days for row in ages.providers if row.newest_age_days is not None]
    assert days == sorted(days, reverse=True)
    assert 0 < ages.stale < ages.prices == sum(row.prices for row in ages.providers)


def test_every_price_has_a_source_and_its_day_beside_it() -> None:
    for row in price_ages().providers:
        assert sum(each.prices for each in row.sources) == row.prices
        assert row.newest in {each.newest for each in row.sources}
        assert all(each.source for each in row.sources)


def test_regions_that_a_list_has_not_are_refused_with_those_that_it_has(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no price in mars") as caught:
        update_prices(_saved(tmp_path, "aws/vms.csv", SKY), regions=["mars"])
    assert (caught.value.field, caught.value.valid) == ("regions", ["eu-north-1", "us-east-1"])


def test_what_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"broken\.json is not readable JSON"):
        update_prices(_saved(tmp_path, "broken.json", "{"))


def test_a_price_of_a_month_is_of_its_first_day(tmp_path: Path) -> None:
    head = "provider,instance,accelerator,count_per_node,on_demand_usd_hour,region,price_date,source"
    update_prices(_saved(tmp_path, "own.csv", f"{head}\nZenith,z8,h100-sxm,8,19.2,eu-north,2026-09,a page\n"))
    assert _price("Zenith", "z8", "eu-north").price_date == "2026-09-01"


def test_a_folder_of_too_much_is_refused_before_it_is_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.records.price_lists._MOST_ENTRIES", 5)
    for number in range(6):
        _saved(tmp_path, f"much/{number}.txt", "")
    with pytest.raises(PlanError, match="more than 5 files: name the folder of the lists"):
        update_prices(str(tmp_path / "much"))
