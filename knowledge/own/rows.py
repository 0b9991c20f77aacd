"""The user's own rows of the catalogue as files: what a file may say, and what was read of all of them.

One file holds a row or a list of rows. A row that cannot be used is left out with the reason, and the others stay.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from estimator.errors import PlanError
from estimator.plan.schema import check_bools, plan_error
from knowledge.own.files import parsed, read_text, row_folders, trusted, yaml_files

Row = TypeVar("Row", bound="UserRow")


def _one_line(text: str) -> str:
    if any(not (letter.isprintable()) for letter in text):
        raise ValueError("has letters that cannot be printed")
    if not text.strip():
        raise ValueError("is empty")
    return text.strip()


def _device_id(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        raise ValueError(f"{text[:80]!r} cannot be an id: letters, digits, . _ and -, 64 at most")
    return text.lower()


def _model_id(text: str) -> str:
    ok = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?", text)
    if not ok or ".." in text or text.endswith(".json"):
        raise ValueError(f"{text[:80]!r} cannot be an id: letters, digits, . _ and -, as NAME or MAKER/NAME")
    return text


def _alias(text: str) -> str:
    if ";" in text:
        raise ValueError("has a semicolon; give every name as an entry of its own")
    return _one_line(text)


Text = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]
Alias = Annotated[str, Field(max_length=200), AfterValidator(_alias)]
_Rate = Annotated[float, Field(gt=0, le=1e7)]
_Usd = Annotated[float, Field(gt=0, le=1e7)]


class UserRow(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    replaces: bool = Field(False, description="It stands in place of the catalogue's row of that name.")
    notes: Text | None = Field(None, description="Anything to remember.")

    @property
    def key(self) -> str:
        """What tells rows apart, whatever the case."""
        raise NotImplementedError


class HardwareRow(UserRow):
    id: Annotated[str, AfterValidator(_device_id)] = Field(description="What to call it in plans, e.g. my-h100.")
    like: Text | None = Field(
        None, description="An accelerator of the catalogue: what is left out here is taken from it, timings too."
    )
    name: Text | None = Field(None, description="Its full name.")
    aliases: list[Alias] | None = Field(None, max_length=20, description="Other names of it.")
    vendor: Text | None = Field(None, description="Maker: NVIDIA, AMD, Intel, Google, AWS, Apple or another.")
    family: Text | None = Field(
        None, description="Family whose measured behaviour is taken, e.g. Hopper; its own, unmeasured, unless given."
    )
    memory_gib: Annotated[float, Field(gt=0, le=1e5)] | None = Field(None, description="Device memory, GiB.")
    usable_gib: Annotated[float, Field(gt=0, le=1e5)] | None = Field(None, description="GiB that the driver shows.")
    memory_bandwidth_gb_per_s: _Rate | None = Field(None, description="Of device memory, GB/s.")
    bf16_tflops: _Rate | None = Field(None, description="Dense bf16 matrix rate, TFLOP/s.")
    fp16_tflops: _Rate | None = Field(None, description="Dense fp16 matrix rate, TFLOP/s.")
    fp32_tflops: _Rate | None = Field(None, description="fp32 vector rate, TFLOP/s.")
    tf32_tflops: _Rate | None = Field(None, description="Dense tf32 matrix rate, TFLOP/s.")
    fp8_tflops: _Rate | None = Field(None, description="Dense fp8 matrix rate, TFLOP/s.")
    fp4_tflops: _Rate | None = Field(None, description="Dense fp4 matrix rate, TFLOP/s.")
    int8_tops: _Rate | None = Field(None, description="Dense int8 matrix rate, TOP/s.")
    int4_tops: _Rate | None = Field(None, description="Dense int4 matrix rate, TOP/s.")
    scaleup_link: Text | None = Field(None, description="Link inside a node, e.g. NVLink 4, PCIe.")
    scaleup_gb_per_s: _Rate | None = Field(None, description="All links of one device, GB/s one way.")
    peer_gb_per_s: _Rate | None = Field(None, description="What one pair of devices gets, GB/s one way.")
    scaleup_domain: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Devices that these links join."
    )
    topology: Literal["switch", "mesh", "torus", "pcie", "none"] | None = Field(None, description="How they join them.")
    per_node: Annotated[int, Field(ge=1, le=4096)] | None = Field(None, description="Devices in a usual node.")
    interconnect: Text | None = Field(None, description="Usual network between nodes, e.g. ib-ndr-400x8.")
    host_gb_per_s: _Rate | None = Field(None, description="Link to the host, GB/s one way.")
    tdp_w: Annotated[float, Field(gt=0, le=1e6)] | None = Field(None, description="Power limit, W.")
    usd_per_hour: _Usd | None = Field(None, description="What one device costs you an hour, USD.")
    price_date: datetime.date | None = Field(None, description="When that price was had, e.g. 2026-11-01.")

    @property
    def key(self) -> str:
        return self.id.casefold()


class ModelRow(UserRow):
    id: Annotated[str, AfterValidator(_model_id)] = Field(description="What to call it in plans, e.g. my-org/my-8b.")
    config: dict[str, Any] | Annotated[str, Field(max_length=4096)] = Field(
        description="The fields of its Hugging Face config, or the path of its config.json."
    )
    family: Text | None = Field(None, description="Family; its model_type unless given.")
    aliases: list[Alias] | None = Field(None, max_length=20, description="Other names of it.")
    license: Text | None = Field(None, description="Its licence.")

    @property
    def key(self) -> str:
        return self.id.casefold()


class PriceRow(UserRow):
    provider: Text = Field(description="Who rents it out, e.g. AWS, or a name of your own.")
    instance: Text = Field(description="What the whole machine is called.")
    accelerator: Text = Field(description="Accelerator in it.")
    count: int = Field(ge=1, le=4096, description="Accelerators in it.")
    usd_per_hour: _Usd | None = Field(None, description="On demand or as agreed, USD an hour for the whole machine.")
    spot_usd_per_hour: _Usd | None = Field(None, description="Interruptible, USD an hour for the whole machine.")
    reserved_usd_per_hour: _Usd | None = Field(None, description="Reserved for a year, USD an hour.")
    reserved_3y_usd_per_hour: _Usd | None = Field(None, description="Reserved for three years, USD an hour.")
    price_date: datetime.date | None = Field(None, description="When the price was had, e.g. 2026-11-01.")
    region: Text | None = Field(None, description="Where it stands, e.g. us-east-1.")
    currency: Literal["USD"] = Field("USD", description="Prices are in USD.")
    ram_gib: Annotated[float, Field(gt=0, le=1e6)] | None = Field(None, description="Host memory, GiB.")

    @property
    def key(self) -> str:
        return "/".join((self.provider, self.instance, self.region or "")).casefold()


@dataclass(frozen=True)
class Own(Generic[Row]):
    """A row with the file that it is from."""

    row: Row
    path: Path

    @property
    def source(self) -> str:
        return f"yours ({self.path})"


@dataclass(frozen=True)
class LeftOut:
    """A row that cannot be used: its file, the names that it would have answered to (lower case), and why not."""

    path: Path
    names: tuple[str, ...]
    problem: PlanError

    def __str__(self) -> str:
        return str(self.problem)


def validated(row: type[Row], data: object, place: str = "") -> Row:
    """`data` as a row. Raises PlanError that begins with `place`."""
    prefix = f"{place}: " if place else ""
    if not isinstance(data, Mapping):
        raise PlanError(place or "file", f"must hold fields like {', '.join(list(row.model_fields)[:5])}")
    try:
        check_bools(row, data)
        return row.model_validate(dict(data))
    except ValidationError as error:
        raise plan_error(error, row, prefix) from None
    except PlanError as error:
        raise PlanError(prefix + error.field, error.problem, error.valid) from None


def read_rows(kind: str, row: type[Row]) -> tuple[list[Own[Row]], list[LeftOut]]:
    """All rows of a kind, of two with the same key the nearer; and those that cannot be used."""
    entries: dict[str, Own[Row]] = {}
    left_out: list[LeftOut] = []
    for folder in row_folders(kind):
        foreign = not trusted(folder.parent)
        here: dict[str, Path] = {}
        for path in yaml_files(folder):
            try:
                pieces = list(_pieces(path))
            except PlanError as error:
                left_out.append(LeftOut(path, (path.stem.casefold(),), error))
                continue
            if foreign:
                problem = "is in a folder that you have not trusted, or that has changed since: shardwise trust"
                names = tuple(name for _, data in pieces for name in _names(data, path))
                left_out.append(LeftOut(path, names, PlanError(str(path), problem)))
                continue
            for place, data in pieces:
                try:
                    entry = validated(row, data, place)
                    if entry.key in here:
                        raise PlanError(place, f"{entry.key} is in {here[entry.key]} too")
                except PlanError as error:
                    left_out.append(LeftOut(path, _names(data, path), error))
                    continue
                here[entry.key] = path
                entries[entry.key] = Own(entry, path)
    return list(entries.values()), left_out


def _pieces(path: Path) -> Iterator[tuple[str, Any]]:
    """(Where it is, data) of each row of a file."""
    value = parsed(read_text(path), str(path))
    if not isinstance(value, list):
        yield str(path), value
        return
    for place, data in enumerate(value):
        yield f"{path}[{place}]", data


def _names(data: Any, path: Path) -> tuple[str, ...]:
    """What a row that is not valid would have been asked for by."""
    names = [data.get("id"), *_list(data.get("aliases")), data.get("accelerator")] if isinstance(data, dict) else []
    return tuple(name.casefold() for name in (*names, path.stem) if isinstance(name, str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def refuse_lost(name: str, left_out: list[LeftOut], field: str) -> None:
    """Raises PlanError where `name` is of a row that was left out."""
    wanted = name.strip().casefold()
    if lost := next((each for each in left_out if wanted in each.names), None):
        raise PlanError(field, f"{name!r} is in a file of yours that cannot be used: {lost}")
