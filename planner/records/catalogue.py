"""Catalogue tools: what is known by name, the user's own rows in it, and adding one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator, Price
from knowledge.fitted.training import timed_family
from knowledge.machines.catalogue import accelerators, accelerators_left_out, check_own_accelerator, own_accelerators
from knowledge.models.catalogue import architecture
from knowledge.models.config_files import read_config
from knowledge.models.known import ModelFacts, models, models_left_out, own_facts, own_models
from knowledge.own.files import file_stem, own_folder, project_folder, trust, trusted, write_file
from knowledge.own.home import expanded
from knowledge.own.rows import HardwareRow, LeftOut, ModelRow, Own, PriceRow, UserRow
from knowledge.prices import book as price_book
from knowledge.prices.age import is_stale
from knowledge.prices.apis import offers_by_model
from planner.asked.lookups import (
    CatalogueQuestion,
    HardwareToAdd,
    HardwareToShow,
    ModelToAdd,
    ModelToShow,
    PriceToAdd,
    PriceToShow,
)
from planner.clock import today
from planner.records.scenarios import ScenarioFile, StoredFile
from planner.result import Assumption, Result

_YEAR = len("2026")
_HEAD = "# A row of your own for Shardwise's catalogue."


class HardwareEntry(Result):
    id: str
    name: str
    vendor: str
    family: str
    usable_bytes: float
    memory_bandwidth_bytes_per_s: float
    bf16_tflops: float | None
    per_node: int
    year: int | None
    offers: int = Field(description="Priced rows of the price book.")
    usd_per_device_hour: float | None = Field(description="The cheapest of them, on demand.")
    own: bool
    source: str


class ModelEntry(Result):
    id: str
    family: str
    parameters: float | None
    active_parameters: float | None
    context_tokens: int | None
    released: str | None
    api_providers: int = Field(description="How many offer it over an API.")
    usd_per_million_output_tokens: float | None = Field(description="At the cheapest of them.")
    own: bool
    source: str


class PriceEntry(Result):
    provider: str
    instance: str
    accelerator: str
    count: int
    usd_per_hour: float | None
    spot_usd_per_hour: float | None
    price_date: str | None
    stale: bool = Field(default=False, description="Whether that is over 90 days ago, or not known.")
    seller: str = Field(default="", description="Whose: hyperscaler, cloud, marketplace, community; '' for your own.")
    region: str | None
    own: bool
    source: str


class LeftOutFile(Result):
    path: str
    problem: str


class CatalogueList(Result):
    hardware: list[HardwareEntry] = Field(default_factory=list)
    models: list[ModelEntry] = Field(default_factory=list)
    prices: list[PriceEntry] = Field(default_factory=list)
    total: int = Field(description="Rows that match, shown or not.")
    left_out: list[LeftOutFile] = Field(description="The user's own files that cannot be used, and why.")
    folders: list[str] = Field(description="Where the user's own rows of this kind are looked for, the nearer last.")


def list_catalogue(request: CatalogueQuestion) -> CatalogueList:
    """List the catalogue."""
    words = (request.query or "").casefold().split()
    entries, left_out = _LISTS[request.kind]()
    matching: list[Any] = [
        entry
        for entry, names in entries
        if (entry.own or not request.only_own) and all(word in names.casefold() for word in words)
    ]
    shown = {request.kind: matching[: request.limit]}
    return CatalogueList(
        total=len(matching),
        left_out=[LeftOutFile(path=str(row.path), problem=str(row)) for row in left_out],
        folders=list(dict.fromkeys(str(folder / request.kind) for folder in (own_folder(), project_folder()))),
        **shown,
    )


# Years between two generations of accelerators: an assumption (A100 2020, H100 2022, B200 2024).
_GENERATION_YEARS = 2.0


def newest_and_most_used_first(rows: Sequence[ModelFacts]) -> list[ModelFacts]:
    """The models of one's own, then by the year of release, and of a year those first that most providers serve."""
    own = own_models()

    def rank(row: ModelFacts) -> tuple[bool, str, int, str]:
        released = row.released or ""
        return row.id in own, released[:_YEAR], len(api_providers(row.id)), released

    return sorted(rows, key=rank, reverse=True)


def api_providers(model: str) -> set[str]:
    """Who offers a row of the catalogue over an API."""
    return {offer.provider for offer in offers_by_model().get(model, ())}


def api_usd(model: str) -> float | None:
    """What a million output tokens of a row of the catalogue cost at the cheapest of them, in USD."""
    asked = [offer.output_usd for offer in offers_by_model().get(model, ()) if offer.output_usd]
    return min(asked, default=None)


def most_offered_first(rows: Sequence[Accelerator]) -> list[Accelerator]:
    """The devices of one's own, then the newest and most used: by the providers that rent them out, who count half for
    each generation that a device is older than the newest."""
    own, providers = own_accelerators(), price_book.providers_by_device()
    newest = max((row.year or 0 for row in rows), default=0)

    def rank(row: Accelerator) -> tuple[bool, float, int]:
        offers, year = 1 + len(providers.get(row.id, ())), row.year or 0
        return row.id in own, offers * 0.5 ** ((newest - year) / _GENERATION_YEARS), year

    return sorted(rows, key=rank, reverse=True)


def best_known_first(offers: Sequence[Price]) -> list[Price]:
    """Prices of one's own, then by their devices as these are listed, the cheapest device-hour of each first."""
    order = {row.id: at for at, row in enumerate(most_offered_first(accelerators()))}

    def rank(offer: Price) -> tuple[bool, int, float]:
        usd = math.inf if offer.usd_per_hour is None else offer.usd_per_hour / offer.count
        return not _is_own(offer), order.get(offer.accelerator, len(order)), usd

    return sorted(offers, key=rank)


def _is_own(price: Price) -> bool:
    return price.source.startswith("yours (")


def _hardware() -> tuple[list[tuple[HardwareEntry, str]], list[LeftOut]]:
    own, hourly, rows = own_accelerators(), price_book.hourly_by_device(), list[tuple[HardwareEntry, str]]()
    for device in most_offered_first(accelerators()):
        entry = HardwareEntry(
            id=device.id,
            name=device.name,
            vendor=device.vendor,
            family=device.family,
            usable_bytes=device.torch_bytes,
            memory_bandwidth_bytes_per_s=device.memory_bandwidth,
            bf16_tflops=rate / 1e12 if (rate := device.peak_flops.get("bf16")) else None,
            per_node=device.per_node,
            year=device.year,
            offers=len(hourly.get(device.id, ())),
            usd_per_device_hour=next(iter(hourly.get(device.id, ())), None),
            own=device.id in own,
            source=device.source,
        )
        rows.append((entry, f"{device.id} {device.name} {device.vendor} {device.family}"))
    return rows, accelerators_left_out()


def _models() -> tuple[list[tuple[ModelEntry, str]], list[LeftOut]]:
    own, rows = own_models(), list[tuple[ModelEntry, str]]()
    for facts in newest_and_most_used_first(models()):
        whole, active = sizes_of(facts)
        entry = ModelEntry(
            id=facts.id,
            family=facts.family,
            parameters=whole,
            active_parameters=active,
            context_tokens=facts.context,
            released=facts.released,
            api_providers=len(api_providers(facts.id)),
            usd_per_million_output_tokens=api_usd(facts.id),
            own=facts.id in own,
            source=facts.source,
        )
        rows.append((entry, " ".join((facts.id, facts.family, *facts.aliases))))
    return rows, models_left_out()


def sizes_of(facts: ModelFacts) -> tuple[float | None, float | None]:
    """All parameters and those active for a token: counted, else published, else as the config comes to."""
    whole = facts.parameters or facts.published_parameters
    if whole is not None:
        active = facts.active_parameters or facts.published_active_parameters
        return whole, active if active != whole else None
    with suppress(PlanError):
        built = architecture(facts.id)
        active = built.active_parameters
        return float(built.parameters), float(active) if active != built.parameters else None
    return None, None


def _prices() -> tuple[list[tuple[PriceEntry, str]], list[LeftOut]]:
    rows: list[tuple[PriceEntry, str]] = []
    for price in best_known_first(price_book.prices()):
        entry = PriceEntry(
            provider=price.provider,
            instance=price.instance,
            accelerator=price.accelerator,
            count=price.count,
            usd_per_hour=price.usd_per_hour,
            spot_usd_per_hour=price.spot_usd_per_hour,
            price_date=price.price_date,
            stale=is_stale(price.price_date, today()),
            seller=price.seller,
            region=price.region,
            own=_is_own(price),
            source=price.source,
        )
        rows.append((entry, f"{price.provider} {price.instance} {price.accelerator} {price.region or ''}"))
    return rows, price_book.left_out()


_LISTS: dict[str, Callable[[], tuple[Sequence[tuple[Any, str]], list[LeftOut]]]] = {
    "hardware": _hardware,
    "models": _models,
    "prices": _prices,
}


class ShownRow(Result):
    id: str
    folder: str
    files: list[ScenarioFile]
    assumptions: list[Assumption] = Field(description="What the row leaves open, and what is taken for it.")
    warnings: list[str]


class AddedRow(Result):
    id: str
    folder: str
    files: list[StoredFile]
    assumptions: list[Assumption]
    warnings: list[str]


def _shown(path: Path, name: str, row: UserRow) -> ShownRow:
    """The file of a row that has been checked."""
    data = row.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    text = f"{_HEAD}\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}"
    return ShownRow(
        id=name, folder=str(path.parent), files=[ScenarioFile(path=path.name, text=text)], assumptions=[], warnings=[]
    )


def _added(shown: ShownRow, overwrite: bool) -> AddedRow:
    file = shown.files[0]
    project = Path(shown.folder).parent
    keeps = trusted(project)
    write_file(Path(shown.folder) / file.path, file.text, overwrite, "id")
    if keeps and project != own_folder():
        # What the person writes there themselves they trust; what stood there untrusted stays so.
        trust(project)
    stored = StoredFile(path=file.path, bytes=len(file.text.encode()))
    return AddedRow(
        id=shown.id, folder=shown.folder, files=[stored], assumptions=shown.assumptions, warnings=shown.warnings
    )


def _checked(path: Path, check: Callable[[], Any]) -> Any:
    """What `check` gives; its PlanError about the row of a file that is not there yet names the argument alone."""
    try:
        return check()
    except PlanError as error:
        raise PlanError(error.field.removeprefix(f"{path}: "), error.problem, error.valid) from None


def _refuse_twice(known: Mapping[str, Own[Any]], id: str, folder: Path, path: Path) -> None:
    if (there := known.get(id)) and there.path.parent == folder and there.path != path:
        raise PlanError("id", f"{id!r} is in {there.path} already; change it there")


def _row_of(request: UserRow, row: type[UserRow]) -> Any:
    fields = {name: getattr(request, name) for name in row.model_fields if name in request.model_fields_set}
    return row.model_validate(fields)


def _place(request: HardwareToShow | ModelToShow | PriceToShow, kind: str, name: str) -> Path:
    folder = (own_folder() if request.where == "user" else project_folder()) / kind
    return folder / f"{file_stem(name, 'id')}.yaml"


def _hardware_shown(request: HardwareToShow) -> ShownRow:
    row: HardwareRow = _row_of(request, HardwareRow)
    _refuse_future(row)
    path = _place(request, "hardware", row.id)
    _refuse_twice(own_accelerators(), row.id, path.parent, path)
    device, taken = _checked(path, lambda: check_own_accelerator(Own(row, path)))
    shown = _shown(path, row.id, row)
    shown.assumptions = [Assumption(field=field, value=value, why=why) for field, value, why in taken]
    if not timed_family(device.family)[1]:
        problem = f"no run was measured on {device.family} devices: intervals of time are wide"
        shown.warnings.append(f"{problem}; like or family can name measured ones")
    if row.usd_per_hour is not None and row.price_date is None:
        shown.warnings.append("the price has no date")
    return shown


def preview_hardware(request: HardwareToShow) -> ShownRow:
    """Show an accelerator of your own as a file."""
    return _hardware_shown(request)


def add_hardware(request: HardwareToAdd) -> AddedRow:
    """Add an accelerator of your own."""
    return _added(_hardware_shown(request), request.overwrite)


def _model_shown(request: ModelToShow) -> ShownRow:
    row: ModelRow = _row_of(request, ModelRow)
    path = _place(request, "models", row.id)
    _refuse_twice(own_models(), row.id, path.parent, path)
    if isinstance(row.config, str):
        # The fields are copied, so that the row stays what was shown.
        row = row.model_copy(update={"config": _config_of(row.config)})
    facts = _checked(path, lambda: own_facts(Own(row, path)))
    shown = _shown(path, row.id, row)
    shown.assumptions = [
        Assumption(field="parameters", value=facts.parameters, why="counted from the config"),
        Assumption(field="active_parameters", value=facts.active_parameters, why="counted from the config"),
    ]
    notes = facts.fields.get("notes")
    shown.warnings = [str(note) for note in notes] if isinstance(notes, list) else []
    return shown


def _config_of(config_path: str) -> dict[str, Any]:
    try:
        path = expanded(config_path)
        return read_config(path / "config.json" if path.is_dir() else path)
    except PlanError as error:
        raise PlanError("config", error.problem) from None
    except (OSError, RuntimeError, ValueError):
        raise PlanError("config", "is not the path of a config.json that can be read") from None


def preview_model(request: ModelToShow) -> ShownRow:
    """Show a model of your own as a file."""
    return _model_shown(request)


def add_model(request: ModelToAdd) -> AddedRow:
    """Add a model of your own."""
    return _added(_model_shown(request), request.overwrite)


def _refuse_future(row: PriceRow | HardwareRow) -> None:
    if row.price_date is not None and row.price_date > today():
        problem = f"{row.price_date} is still to come: a price is of the day on which it was had"
        raise PlanError("price_date", problem, [f"{today()} or before"])


def _price_shown(request: PriceToShow) -> ShownRow:
    row: PriceRow = _row_of(request, PriceRow)
    _refuse_future(row)
    name = "-".join(filter(None, (row.provider, row.instance, row.region)))
    path = _place(request, "prices", name)
    price = _checked(path, lambda: price_book.check_own_price(Own(row, path)))
    shown = _shown(path, name, row)
    if price.accelerator != row.accelerator:
        shown.assumptions.append(Assumption(field="accelerator", value=price.accelerator, why="as the name was read"))
    if row.price_date is None:
        shown.warnings.append("the price has no date")
    return shown


def preview_price(request: PriceToShow) -> ShownRow:
    """Show a price of your own as a file."""
    return _price_shown(request)


def add_price(request: PriceToAdd) -> AddedRow:
    """Add a price of your own."""
    return _added(_price_shown(request), request.overwrite)
