"""A published price list taken over as prices of one's own: read, narrowed to places, checked, written at once."""

from __future__ import annotations

import datetime
import http.client
import math
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import yaml
from pydantic import ValidationError

from estimator.errors import PlanError
from knowledge.own.files import (
    LARGEST_BYTES,
    file_stem,
    open_regular,
    own_folder,
    project_folder,
    trust,
    trusted,
    write_file,
    written_at,
)
from knowledge.own.home import expanded
from knowledge.own.rows import Own, PriceRow, validated
from knowledge.prices import book
from knowledge.prices.age import age_days, is_stale
from knowledge.prices.kinds import Listed, listed
from knowledge.prices.lists import AWS_CSV, ListedPrice, ReadList, aws_lines, folded, read_list
from planner.clock import today

LARGEST_LIST_BYTES = 64_000_000
_TIMEOUT_S = 60
_SUFFIXES = (".csv", ".json")
_MOST_FILES = 50
_MOST_REGIONS = 50
_MOST_ENTRIES = 10_000
_MOST_LINES = 100_000
_LONGEST_LINE = 1_000_000
_HEAD = "# Prices read from {source} on {day}, {called}; `shardwise prices update` writes this file anew."


@dataclass(frozen=True)
class PriceSource:
    """Where prices are from, with the latest day that one of them is of (None: it has none)."""

    source: str
    prices: int
    newest: str | None


@dataclass(frozen=True)
class ProviderAge:
    """How old the price book's prices of a provider are, of every kind (on demand, spot, reserved, to buy): how many of
    each there are, and how many are `stale`, over 90 days old or undated."""

    provider: str
    prices: int
    newest: str | None
    oldest: str | None
    undated: int
    stale: int
    newest_age_days: int | None
    kinds: dict[str, int]
    stale_kinds: dict[str, int]
    sources: list[PriceSource]


@dataclass(frozen=True)
class PriceAges:
    """`providers` with the oldest newest price first."""

    providers: list[ProviderAge]

    @property
    def prices(self) -> int:
        return sum(row.prices for row in self.providers)

    @property
    def stale(self) -> int:
        return sum(row.stale for row in self.providers)

    @property
    def kinds(self) -> dict[str, tuple[int, int]]:
        """How many prices of each kind there are, and how many of them are stale."""
        names = dict.fromkeys(kind for row in self.providers for kind in row.kinds)
        return {
            kind: (
                sum(row.kinds.get(kind, 0) for row in self.providers),
                sum(row.stale_kinds.get(kind, 0) for row in self.providers),
            )
            for kind in names
        }


@dataclass(frozen=True)
class PriceChange:
    provider: str
    instance: str
    region: str | None
    before_usd_per_hour: float
    usd_per_hour: float


@dataclass(frozen=True)
class PricesUpdated:
    """The file that was written, or would be, or the folder of several; `replaced` rows stand in place of the price
    book's, `left_out` counts the rows of the list that were not taken by why, `changes` are the replaced hourly prices
    that moved, most first."""

    path: str
    written: bool
    formats: list[str]
    rows: int
    replaced: int
    regions: list[str]
    left_out: dict[str, int]
    changes: list[PriceChange]


def price_ages() -> PriceAges:
    """How old the prices are, by provider."""
    day = today()
    by_provider: dict[str, list[Listed]] = defaultdict(list)
    for price in book.prices():
        by_provider[price.provider].extend(listed(price))
    rows = []
    for provider, priced in by_provider.items():
        if not priced:
            continue
        dates = [price.day for price in priced]
        old = [price.kind for price in priced if is_stale(price.day, day)]
        dated = sorted(filter(None, dates))
        newest = dated[-1] if dated else None
        rows.append(
            ProviderAge(
                provider=provider,
                prices=len(dates),
                newest=newest,
                oldest=dated[0] if dated else None,
                undated=len(dates) - len(dated),
                stale=len(old),
                newest_age_days=age_days(newest, day),
                kinds=dict(Counter(price.kind for price in priced)),
                stale_kinds=dict(Counter(old)),
                sources=_sources(priced),
            )
        )
    rows.sort(key=lambda row: (-math.inf if row.newest_age_days is None else -row.newest_age_days, row.provider))
    return PriceAges(rows)


def _sources(priced: list[Listed]) -> list[PriceSource]:
    by_source: dict[str, list[str]] = defaultdict(list)
    for price in priced:
        by_source[price.source or "a row of yours"].append(price.day or "")
    return [PriceSource(source, len(days), max(days) or None) for source, days in sorted(by_source.items())]


def update_prices(
    source: str, provider: str | None = None, regions: Iterable[str] = (), *, project: bool = False, write: bool = True
) -> PricesUpdated:
    """Takes over a price list: a file, a folder of such, or an https address. Prices of instances in regions that the
    price book has stand in place of its rows. Nothing is written unless all of it can be used. Raises PlanError."""
    lists: list[ReadList] = []
    for name, text in _texts(source):
        lists.append(_dated(read_list(text, provider, name), name))
    if provider is not None:
        for each in lists:
            each.rows = [row for row in each.rows if row.provider.casefold() == provider.strip().casefold()]
    named = [*regions]
    wanted = {region.casefold() for region in named}
    kept = _narrowed([row for each in lists for row in each.rows], wanted)
    if not kept and wanted and any(each.rows for each in lists):
        known = sorted({row.region for each in lists for row in each.rows if row.region})
        raise PlanError("regions", f"has no price in {', '.join(named)[:200]}", known[:_MOST_REGIONS])
    if not kept:
        why = "; ".join(f"{count} {reason}" for reason, count in _left_out(lists).items())
        raise PlanError("prices", f"has no price that can be used{f' ({why})' if why else ''}")
    newest = _newest(kept)
    lists[-1].left_out["that another list has later"] += len(kept) - len(newest)
    rows = [_row(listed) for listed in newest]
    folder = project_folder() if project else own_folder()
    called = sorted({each.called for each in lists})
    head = _HEAD.format(source=source.replace("\n", " ")[:300], day=today().isoformat(), called=", ".join(called))
    texts = dict(_file_of(name, rows, folder, head) for name in sorted({row.provider for row in rows}))
    if write:
        keeps = trusted(folder)
        for path, text in texts.items():
            write_file(path, text, True, "prices")
        if keeps and folder != own_folder():
            trust(folder)
    path, *more = texts
    return PricesUpdated(
        path=str(path.parent if more else path),
        written=write,
        formats=called,
        rows=len(rows),
        replaced=sum(row.replaces for row in rows),
        regions=sorted({row.region for row in rows if row.region}),
        left_out=_left_out(lists),
        changes=_changes(rows),
    )


def _dated(read: ReadList, name: str) -> ReadList:
    """With the day on which the list was fetched, or its file written, on the rows that have none."""
    written = None if name.startswith(("http://", "https://")) else written_at(Path(name))
    day = today() if written is None else min(today(), datetime.date.fromtimestamp(written))
    for row in read.rows:
        row.price_date = row.price_date or day.isoformat()
    return read


def _file_of(provider: str, rows: list[PriceRow], folder: Path, head: str) -> tuple[Path, str]:
    """The file of a provider, which the next list of it is written over, and its text."""
    own = [row for row in rows if row.provider == provider]
    path = folder / "prices" / f"{file_stem(f'list-{provider}', 'provider')}.yaml"
    _check(own, path)
    data = [row.model_dump(mode="json", exclude_unset=True, exclude_none=True) for row in own]
    text = f"{head}\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}"
    if len(text.encode()) > LARGEST_BYTES:
        raise PlanError("prices", f"are {len(own)} rows, more than a file of one's own may hold: name regions")
    return path, text


def _left_out(lists: list[ReadList]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for each in lists:
        for why, count in each.left_out.items():
            counts[why] += count
    return {why: count for why, count in counts.items() if count}


def _texts(source: str) -> Iterator[tuple[str, str]]:
    """(Name, text) of every list that the source is, one after another."""
    if source.startswith(("http://", "https://")):
        yield source, _fetched(source)
        return
    path = expanded(source)
    if not path.is_dir():
        yield str(path.absolute()), _of_file(path)
        return
    entries = list(islice(path.rglob("*"), _MOST_ENTRIES + 1))
    if len(entries) > _MOST_ENTRIES:
        raise PlanError("prices", f"{path} has more than {_MOST_ENTRIES:,} files: name the folder of the lists")
    files = sorted(file for file in entries if file.suffix in _SUFFIXES and file.is_file())
    if not files or len(files) > _MOST_FILES:
        problem = f"{path} has {'no' if not files else 'more than ' + str(_MOST_FILES)} price lists (.csv, .json)"
        raise PlanError("prices", problem)
    for file in files:
        yield str(file.absolute()), _of_file(file)


def _of_file(path: Path) -> str:
    with open_regular(path, "prices") as file:
        return _content(file, str(path))


def _content(file: IO[bytes], name: str) -> str:
    """The text of a list; of AWS's offer file in CSV, which has no end worth waiting for in memory, what is of use."""
    first = file.readline(LARGEST_LIST_BYTES)
    try:
        if first.decode("utf-8-sig").startswith(f'"{AWS_CSV}"'):
            return "".join(islice(aws_lines(_lines(first, file)), _MOST_LINES))
        content = first + file.read(LARGEST_LIST_BYTES + 1 - len(first))
        if len(content) > LARGEST_LIST_BYTES:
            problem = f"{name[:200]} is larger than {LARGEST_LIST_BYTES // 1_000_000} MB: save what you need of it"
            raise PlanError("prices", problem)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError("prices", f"{name[:200]} is not UTF-8 text") from None


def _lines(first: bytes, file: IO[bytes]) -> Iterator[str]:
    """The lines of a file whose first was read. Of one that goes on for longer than any, the pieces."""
    while first:
        yield first.decode()
        first = file.readline(_LONGEST_LINE)


class _Https(urllib.request.HTTPRedirectHandler):
    """Goes on to another address only where nobody can read or change what comes from there."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_https(address: str) -> None:
    if not address.startswith("https://"):
        raise PlanError("prices", f"are fetched over https alone, and this is {address[:200]}", ["https://…", "a file"])


def _fetched(address: str) -> str:
    _check_https(address)
    try:
        with urllib.request.build_opener(_Https).open(address, timeout=_TIMEOUT_S) as answer:
            text = _content(answer, address)
            left = answer.length if answer.read(1) == b"" else 0
    except PlanError:
        raise
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise PlanError("prices", f"{address[:200]} cannot be fetched: {error}") from None
    if left:
        raise PlanError("prices", f"{address[:200]} broke off {left:,} bytes before its end: fetch it again")
    return text


def _narrowed(rows: list[ListedPrice], regions: set[str]) -> list[ListedPrice]:
    """Those of the regions; where none is named those in which the price book has the instance, else the cheapest."""
    if regions:
        return [row for row in rows if (row.region or "").casefold() in regions]
    here: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for price in book.prices():
        here[price.provider.casefold(), folded(price.instance)].add(price.region)
    by_instance: dict[tuple[str, str], list[ListedPrice]] = defaultdict(list)
    for row in rows:
        by_instance[row.provider.casefold(), folded(row.instance)].append(row)
    kept = []
    for key, there in by_instance.items():
        same = [row for row in there if row.region in here[key]]
        kept += same or [min(there, key=lambda row: row.usd_per_hour or math.inf)]
    return kept


def _newest(rows: list[ListedPrice]) -> list[ListedPrice]:
    """Of an instance in a region that several lists have the row of the latest day."""
    kept: dict[tuple[str, str, str | None], ListedPrice] = {}
    for row in sorted(rows, key=lambda row: row.price_date or ""):
        kept[row.provider.casefold(), folded(row.instance), row.region] = row
    return [row for row in rows if any(row is each for each in kept.values())]


def _row(listed: ListedPrice) -> PriceRow:
    """As a row of one's own, under the names that the price book has for it."""
    shipped = next((price for price in book.shipped() if _same(price.provider, price.instance, listed)), None)
    named = next(
        (price for price in book.shipped()
         if _same(price.provider, price.instance, listed) and price.region == listed.region), shipped,
    )  # fmt: skip
    data: dict[str, Any] = {
        "provider": named.provider if named else listed.provider,
        "instance": named.instance if named else listed.instance,
        "accelerator": listed.machine.accelerator,
        "count": listed.machine.count,
        "price_date": listed.price_date,
        "region": listed.region,
        "replaces": bool(named and named.region == listed.region),
        "notes": listed.notes,
        "ram_gib": listed.ram_gib,
    }
    for name in ("usd_per_hour", "spot_usd_per_hour", "reserved_usd_per_hour", "reserved_3y_usd_per_hour"):
        data[name] = getattr(listed, name)
    return validated(PriceRow, {name: value for name, value in data.items() if value is not None}, "prices")


def _same(provider: str, instance: str, listed: ListedPrice) -> bool:
    return provider.casefold() == listed.provider.casefold() and folded(instance) == folded(listed.instance)


def _check(rows: list[PriceRow], path: Path) -> None:
    """Every row as the price book will read it. Raises PlanError."""
    try:
        for row in rows:
            book.check_own_price(Own(row, path))
    except (PlanError, ValidationError) as error:
        raise PlanError("prices", str(error)) from None


def _changes(rows: list[PriceRow]) -> list[PriceChange]:
    before = {(price.provider, price.instance, price.region): price.usd_per_hour for price in book.shipped()}
    moved = []
    for row in rows:
        was = before.get((row.provider, row.instance, row.region)) if row.replaces else None
        if was and row.usd_per_hour and not math.isclose(was, row.usd_per_hour, rel_tol=1e-4):
            moved.append(
                PriceChange(
                    provider=row.provider, instance=row.instance, region=row.region, before_usd_per_hour=was,
                    usd_per_hour=row.usd_per_hour,
                )
            )  # fmt: skip
    return sorted(moved, key=lambda row: -abs(math.log(row.usd_per_hour / row.before_usd_per_hour)))
