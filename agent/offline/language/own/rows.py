"""Rows of one's own in the person's words: an accelerator, a model. What a turn leaves out is what the turns before
said of the same row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agent.offline.calls.wishes import ROWS
from agent.offline.form import Reading
from agent.offline.language.lexicon import lexicon
from agent.offline.language.own.given import chunks, is_id, name_behind, name_in_quotes, name_joined, span_of, take
from agent.offline.language.rows import Row
from planner.partial import get
from tools.registry import registry

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8", "fp4", "int8", "int4")
# Tokens between a rate and its number format, between a price and how it is had.
_NEAR = 4
_GIB, _TERA = 1e9, 1e12
# Of what else is shown before it is written.
_SHOWN = {"render_matrix": "benchmark_matrix", "preview_report": "report"}
_WRITTEN = {**_SHOWN, **{f"preview_{kind}": f"add_{kind}" for kind in ROWS.values()}}
_PREVIEWED = {writes: shows for shows, writes in _WRITTEN.items()}
_REPORTS, _PAGES = ("render_report", "preview_report"), (".html", ".pdf", ".md")
# What questions about a run ask for, and no row of one's own.
_OF_RUNS = ("fit", "run", "time", "throughput", "latency", "layout", "memory", "faster", "need")


def goes_on_with(page: Page, before: str | None) -> str | None:
    """The tool of a turn that goes on with what the one before showed or wrote of one's own: it agrees, wants to see
    it first, or says more of it."""
    read = page.read
    if before not in (*_WRITTEN, *_PREVIEWED) or set(read.asked("focus")) & set(_OF_RUNS) or read.asked("mode"):
        return None
    if "show_only" in read.asked("wish"):
        return _PREVIEWED.get(before, before)
    agrees = read.asked("assent") or "write" in read.asked("focus")
    if before not in ROWS:
        says = page.filled or page.kept or page.named
        return _WRITTEN.get(before) if agrees and not says else None
    if agrees:
        return _WRITTEN.get(before, before)
    other = read.of("model") if ROWS[before] != "model" else read.of("accelerator")
    says_more = page.read.rows or read.asked("row_part") or read.of("place")
    return before if says_more and not other and "?" not in read.text else None


def shown_or_written(page: Page, tool: str) -> str:
    """The tool that only shows what another would write, where that is wished; what is to be added is added else."""
    wishes = page.read.asked("wish")
    if "show_only" in wishes:
        return _PREVIEWED.get(tool, tool)
    if tool in _REPORTS and any(chunk.endswith(_PAGES) for chunk in chunks(page.read.text)):
        return "report"
    if tool == "render_report" and {"html", "pdf"} & {token.norm for token in page.read.tokens}:
        return "preview_report"
    adds = tool in ROWS and ("add" in wishes or page.read.asked("assent")) and "?" not in page.read.text
    return _WRITTEN.get(tool, tool) if adds else tool


def kept(page: Page, kind: str) -> dict[str, Any]:
    """What the turns before said of a row of this kind."""
    tool, own = page.last
    return dict(own) if ROWS.get(tool) == kind else {}


def verbatim(page: Page, kind: str, of: type) -> dict[str, Any]:
    """Arguments by their own names: 'usd_per_hour: 13.9'."""
    known = registry()[f"add_{kind}"].request.model_fields.keys() & {field.name for field in fields(of)}
    arguments: dict[str, Any] = {}
    words = page.read.text.replace("=", ": ").replace("{", " ").replace("}", " ").split()
    for name, word in pairwise(words):
        value = word.strip("'\",;")
        if not name.endswith(":") or name.rstrip(":") not in known or not value:
            continue
        number = value.replace(".", "", 1).isdigit()
        arguments[name.rstrip(":")] = float(value) if number and "." in value else int(value) if number else value
    if arguments:
        take(page, page.read.rows)
    return arguments


@dataclass(frozen=True)
class OwnModel:
    """What was said of a model: `config` is its fields or where they stand."""

    id: str | None = None
    config: dict[str, Any] | str | None = None
    license: str | None = None
    aliases: list[str] | None = None


def device_row(page: Page, reading: Reading) -> dict[str, Any]:
    """An accelerator of one's own: what it is called, which one it is like, its memory and rates."""
    row = kept(page, "hardware")
    called = name_behind(page, "id") or name_in_quotes(page) or (None if row else name_joined(page))
    if called and called not in row.values():
        row = {"id": called}
    taken = span_of(page, called or "")
    like = next((name for name in page.read.of("accelerator") if name.id and name.start not in taken), None)
    row |= {"like": like.id} if like else {}
    inside = taken.union(range(like.start, like.end) if like else ())
    take(page, [number for number in page.read.rows if number.start in inside])
    for number in page.read.rows:
        if number.start not in inside and (figures := _of_device(page, number)):
            row |= figures
            take(page, [number])
    row |= dict(_same_rates(page, row))
    vendor = name_behind(page, "vendor") or next(iter(_makers(page)), None)
    return row | ({"vendor": vendor} if vendor else {})


def model_row(page: Page, reading: Reading) -> dict[str, Any]:
    """A model of one's own: its id, where its config is, its licence."""
    model = OwnModel(**kept(page, "model"))
    text = page.read.text
    ids = [chunk for chunk in chunks(text) if is_id(chunk)]
    called = ids[0] if ids else name_behind(page, "id") or name_in_quotes(page)
    if called is None and model.id is None:
        called = name_joined(page)
    paths = [name.text for name in page.read.of("path") if name.text.endswith(".json") or name.text[0] in "./~"]
    paths += [chunk for chunk in chunks(text) if chunk.endswith(".json")]
    planned = get(page.plan, "model")
    before = planned if isinstance(planned, dict) or str(planned).endswith(".json") else None
    alias = name_behind(page, "alias")
    model = replace(
        model,
        id=called or model.id,
        config=_config(page.pasted) or next(iter(paths), model.config or before),
        license=_licence(page) or model.license,
        aliases=[alias] if alias else model.aliases,
    )
    model = replace(model, **verbatim(page, "model", OwnModel))
    return {name: value for name, value in asdict(model).items() if value is not None}


def _config(pasted: str | None) -> dict[str, Any] | None:
    """The fields of a model's config that was pasted."""
    try:
        config = json.loads(pasted or "")
    except ValueError:
        return None
    return config if isinstance(config, dict) else None


def _of_device(page: Page, row: Row) -> dict[str, Any]:
    """What a number says of an accelerator, by its unit."""
    amount = row.amounts[-1]
    per = {unit.name for unit in amount.per}
    size = amount.value * (amount.units[0].size if amount.units else 1.0)
    if amount.unit("bytes") and "time" in per:
        return {"memory_bandwidth_gb_per_s": round(size / 1e9, 3)}
    if amount.unit("bytes"):
        return {"memory_gib": round(size / _GIB, 3)}
    if amount.unit("flops") or _has_flops_behind(page, row):
        size = size if amount.units else size * _TERA
        dtype = _dtype(page, row)
        return {f"{dtype}_tflops": round(size / _TERA, 3)} if dtype else {}
    if amount.unit("watts"):
        return {"tdp_w": size}
    if amount.unit("usd") and "time" in per:
        return {"usd_per_hour": size}
    return {}


def _has_flops_behind(page: Page, row: Row) -> bool:
    """Whether a number format stands between a rate and its unit: '700 bf16 tflops'."""
    named, heard = _dtypes(page, range(row.end, row.end + 1)), page.read.found
    return bool(named) and any(heard.has_unit(at, "flops") for at in range(row.end + 1, row.end + 3))


def _dtypes(page: Page, within: range) -> dict[int, str]:
    """Number formats by the token where they begin: 'fp8', and 'fp' with its '8' behind it."""
    norms = [token.norm for token in page.read.tokens[within.start : within.stop + 1]]
    spelled = [*zip(within, norms, strict=False), *zip(within, map("".join, pairwise(norms)), strict=False)]
    return {at: name for at, name in spelled if name in _DTYPES}


def _dtype(page: Page, row: Row) -> str:
    """The number format of a rate: the nearest that is named; bf16 where none is."""
    near = _dtypes(page, range(max(row.start - _NEAR, 0), row.end + _NEAR))
    places = {min(abs(at - row.end), abs(row.start - at)): name for at, name in near.items()}
    return places[min(places)] if places else "bf16"


def _same_rates(page: Page, row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """'bf16 same': of a format without a number the rate of the one before it."""
    last = None
    for at, dtype in sorted(_dtypes(page, range(len(page.read.tokens))).items()):
        name = f"{dtype}_tflops"
        if name in row:
            last = row[name]
        elif last and (page.read.found.does(at + 1, "same") or page.read.found.does(at + 2, "same")):
            yield name, last


def _makers(page: Page) -> Iterator[str]:
    makers = {maker.lower(): maker for maker in page.catalogue.makers}
    return (makers[token.norm] for token in page.read.tokens if token.norm in makers)


def _licence(page: Page) -> str | None:
    """What stands behind or before the word for a licence."""
    for at, end, name in page.read.asked_at("row_part"):
        if name != "licence":
            continue
        rest = chunks(page.read.text[page.read.tokens[end - 1].end :])[:1]
        before = chunks(page.read.text[: page.read.tokens[at].start])[-1:]
        names = [name for name in (*rest, *before) if name.lower() not in lexicon().ordinary]
        if names:
            return names[0]
    return None
