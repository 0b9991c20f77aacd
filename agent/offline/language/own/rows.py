"""Rows of one's own in the person's words: a price, an accelerator, a model. What a turn leaves out is what the turns
before said of the same row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agent.offline.form import Need, Reading
from agent.offline.language.assign import Row, single
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import Amount
from agent.offline.language.mentions import Value
from agent.offline.language.own.pricing import NEAR_DOLLARS
from planner.partial import get
from tools.registry import registry

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

# Tools by the kind of row.
ROWS = {f"{does}_{kind}": kind for does in ("add", "preview") for kind in ("price", "hardware", "model")}
_DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8", "fp4", "int8", "int4")
# Tokens between a rate and its number format, between a price and how it is had.
_NEAR = 4
_HOUR_S, _GIB, _TERA, _CENT_USD = 3600.0, 1e9, 1e12, 0.01
OWN = "own"
_TIERS = ("usd_per_hour", "spot_usd_per_hour", "reserved_usd_per_hour")
_QUOTES = "'\"`“”‘’„«»「」『』"
_IN_NAMES = "-_./+"
# Words that may stand between 'call' and a name.
_MOST_FILLERS = 4


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
    if tool in _REPORTS and any(one.endswith(_PAGES) for one in chunks(page.read.text)):
        return "report"
    if tool == "render_report" and {"html", "pdf"} & {token.norm for token in page.read.tokens}:
        return "preview_report"
    adds = tool in ROWS and ("add" in wishes or page.read.asked("assent")) and "?" not in page.read.text
    return _WRITTEN.get(tool, tool) if adds else tool


def kept(page: Page, kind: str) -> dict[str, Any]:
    """What the turns before said of a row of this kind."""
    tool, own = page.last
    return dict(own) if ROWS.get(tool) == kind else {}


def price_row(page: Page, reading: Reading) -> dict[str, Any]:
    """A price of one's own: whose, of which machine, how much."""
    own = kept(page, "price")
    device = next((each for each in page.devices if each.name.id), None)
    if device and own.get("accelerator") not in (None, device.name.id):
        own = {}
    if device:
        own |= {"accelerator": device.name.id}
        each = next(iter(page.values("per_node")), None)
        counts = [number.values[0] for number in single(page.filled, "count")]
        own["count"] = int(device.count or device.per_node or each or (counts or [own.get("count", 1)])[0])
    for one in page.read.of("instance"):
        own |= {"accelerator": one.id, "instance": one.text}
        own |= {"count": one.instance.count, "provider": one.instance.provider} if one.instance else {}
    for name in ("provider", "instance"):
        if given := _given(page, name):
            own[name] = given
    if provider := next((name.id for name in page.read.of("provider")), None) or _who(page) or _stranger(page):
        own.setdefault("provider", provider)
    if "instance" not in own and (joined := _joined(page)):
        own["instance"] = joined
    own |= _rates(page, own)
    own |= _verbatim(page, "price")
    if own and "provider" not in own:
        own["provider"] = OWN
        page.assumed.append(f"no provider was named: {OWN!r} taken")
    if day := _iso_day(page):
        own["price_date"] = day
    if places := page.read.of("place"):
        own["region"] = places[0].id
    inside = _span_of(page, str(own.get("instance", "")))
    take(page, [row for row in page.read.rows if row.start in inside])
    if "accelerator" in own:
        own.setdefault("instance", f"{own['count']} x {own['accelerator']}")
    return own


def device_row(page: Page, reading: Reading) -> dict[str, Any]:
    """An accelerator of one's own: what it is called, which one it is like, its memory and rates."""
    own = kept(page, "hardware")
    given = _given(page, "id") or _quoted(page) or (None if own else _joined(page))
    if given and own.get("id") not in (None, given):
        own = {}
    own |= {"id": given} if given else {}
    taken = _span_of(page, str(own.get("id", "")))
    like = next((name for name in page.read.of("accelerator") if name.id and name.start not in taken), None)
    own |= {"like": like.id} if like else {}
    take(page, [row for row in page.read.rows if row.start in taken])
    for row in page.read.rows:
        if row.start in taken or (like and like.start <= row.start < like.end):
            continue
        if said := _of_device(page, row):
            own |= said
            take(page, [row])
    for dtype, rate in _same_rates(page, own):
        own[dtype] = rate
    vendor = _given(page, "vendor") or next(iter(_makers(page)), None)
    return own | ({"vendor": vendor} if vendor else {}) | _verbatim(page, "hardware")


def model_row(page: Page, reading: Reading) -> dict[str, Any]:
    """A model of one's own: its id, where its config is, its licence."""
    own = kept(page, "model")
    names = [chunk for chunk in chunks(page.read.text) if is_id(chunk)]
    given = names[0] if names else _given(page, "id") or _quoted(page) or (None if own else _joined(page))
    own |= {"id": given} if given else {}
    paths = [name.text for name in page.read.of("path") if name.text.endswith(".json") or name.text[0] in "./~"]
    loose = [chunk for chunk in chunks(page.read.text) if chunk.endswith(".json")]
    planned = get(page.plan, "model")
    before = planned if isinstance(planned, dict) or str(planned).endswith(".json") else None
    if config := _config(page.pasted) or next(iter([*paths, *loose]), own.get("config") or before):
        own["config"] = config
    if licence := _licence(page):
        own["license"] = licence
    if alias := _given(page, "alias"):
        own["aliases"] = [alias]
    return own | _verbatim(page, "model")


def _config(pasted: str | None) -> dict[str, Any] | None:
    """The fields of a model's config that was pasted."""
    try:
        found = json.loads(pasted or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def is_id(chunk: str) -> bool:
    """Whether a run of characters is a model's id of the form owner/name, and no path."""
    owner, slash, name = chunk.partition("/")
    plain = all(one.isalnum() or one in "-_." for one in f"{owner}{name}")
    rooted = chunk.startswith((".", "/", "~")) or chunk.endswith((".json", ".yaml"))
    return bool(slash and owner and name and plain and not rooted) and any(one.isalpha() for one in owner)


def chunks(text: str) -> list[str]:
    """Runs of what names are written with: 'h200-450w', 'BM.GPU.MI300X.8', './runs/x'."""
    found: list[str] = []
    run = ""
    for one in f"{text} ":
        if (one.isascii() and one.isalnum()) or (one in "~" and not run) or one in _IN_NAMES:
            run += one
            continue
        if stripped := run.rstrip("./-+"):
            found.append(stripped)
        run = ""
    return found


def _given(page: Page, part: str) -> str | None:
    """What stands behind a word for a part of a row: 'call it X', 'provider: X', 'instance X'; of several what is
    written most like a name."""
    read = page.read
    ends = [end for _, end, name in read.asked_at("row_part") if name == part]
    found = [name for end in ends if (name := _behind(read.text[read.tokens[end - 1].end :], part))]
    if part in ("provider", "vendor"):
        return next(iter(found), None)
    things = {name.text.lower() for name in read.of("accelerator", "model")}
    found = [name for name in found if any(one.isalpha() for one in name)]
    return max(reversed(found), key=lambda name: _likeness(name, things), default=None)


def _likeness(name: str, things: set[str]) -> int:
    """How much a word is written like a name of one's own, which no thing of the catalogue has."""
    joined = any(one in "-_./" for one in name)
    return 2 * (name.lower() not in things) + joined + any(one.isdigit() for one in name)


def _behind(rest: str, part: str) -> str | None:
    """The first word of the rest of a text that may be a name."""
    for word in rest.split()[:_MOST_FILLERS]:
        plain = word.strip(f"{_QUOTES}:=,.;!?()")
        if plain.lower() in lexicon().ordinary | lexicon().articles | lexicon().unnamed or not plain:
            continue
        called = next(iter(chunks(plain)), plain) if plain[0].isascii() else plain
        return _whole_name(rest, word, called) if part in ("provider", "vendor") else called
    return None


def _whole_name(rest: str, word: str, called: str) -> str:
    """A name with the capitalised word behind it: 'Kestrel Silicon'."""
    if not called[:1].isupper() or word[-1:] in ",.;:!?)":
        return called
    behind = rest.split(word, 1)[1].split()[:1]
    second = behind[0].strip(f"{_QUOTES},.;:!?") if behind else ""
    return f"{called} {second}" if second[:1].isupper() and second.isalpha() else called


def _quoted(page: Page) -> str | None:
    """The first name between quotation marks that is written as one: 'h100-capped'."""
    text = page.read.text
    for chunk in chunks(text):
        at = text.find(chunk)
        closed = text[at + len(chunk) : at + len(chunk) + 1]
        if at > 0 and text[at - 1] in _QUOTES and closed and closed in _QUOTES:
            return chunk
    return None


def _joined(page: Page) -> str | None:
    """The first run of characters that is joined like a name, which nothing in the catalogue is called: gulf-96."""
    things = [name.text.lower() for name in page.read.of("accelerator", "model", "instance") if name.id]
    joined = (one for one in chunks(page.read.text) if {"-", "."} & set(one) and "/" not in one)
    found = [one for one in joined if one[0].isalpha()]
    known = lexicon().known
    return next(
        (
            one
            for one in found
            if not any(one.lower() in thing for thing in things)
            and not all(part.lower() in known for part in one.replace(".", "-").split("-"))
        ),
        None,
    )


def _stranger(page: Page) -> str | None:
    """A capitalised word that nothing is known of: whoever rents a machine out."""
    words = page.read.text.split()
    for at, word in enumerate(words):
        plain = word.strip(f"{_QUOTES},.;:!?()")
        opens = at == 0 or words[at - 1][-1:] in ".!?"
        if plain[:1].isupper() and plain.isalpha() and plain.lower() not in lexicon().known and not opens:
            return plain
    return None


def _verbatim(page: Page, kind: str) -> dict[str, Any]:
    """Arguments by their own names: 'usd_per_hour: 13.9'."""
    found: dict[str, Any] = {}
    words = page.read.text.replace("=", ": ").replace("{", " ").replace("}", " ").split()
    for name, word in pairwise(words):
        field = registry()[f"add_{kind}"].request.model_fields.get(name.rstrip(":"))
        value = word.strip(f"{_QUOTES},;")
        if field is None or not name.endswith(":") or not value:
            continue
        number = value.replace(".", "", 1).isdigit()
        found[name.rstrip(":")] = float(value) if number and "." in value else int(value) if number else value
    if found:
        take(page, page.read.rows)
    return found


def _span_of(page: Page, name: str) -> frozenset[int]:
    """Tokens of a name that is written somewhere in the text."""
    at = page.read.text.find(name) if name else -1
    if at < 0:
        return frozenset()
    return frozenset(
        index for index, token in enumerate(page.read.tokens) if at <= token.start and token.end <= at + len(name)
    )


def _who(page: Page) -> str | None:
    """Whoever rents it out, where no provider of the catalogue is named: a capitalised word behind 'from' or 'at'."""
    words = page.read.text.split()
    for before, word in pairwise(words):
        plain = word.strip(f"{_QUOTES},.;:!?()")
        if before.lower() in lexicon().sellers and plain.isalpha() and plain.lower() not in lexicon().ordinary:
            return plain
    return None


def _rates(page: Page, own: dict[str, Any]) -> dict[str, Any]:
    """What the whole machine costs an hour, by how it is had."""
    found: dict[str, Any] = {}
    rows = [row for row in page.read.rows if _is_hourly(row.amounts[-1])]
    if not rows:
        # 'Er sagt jetzt 60': the same price, in what it was said in.
        bare = [row for row in page.read.rows if not (row.amounts[-1].units or row.amounts[-1].per)]
        rows = [row for row in bare if own.get("usd_per_hour") and row.start not in page.read.named_tokens][-1:]
        cents = bool(rows) and rows[0].amounts[-1].value > 1 > own.get("usd_per_hour", 1)
        take(page, rows)
        return {"usd_per_hour": rows[0].amounts[-1].value * (_CENT_USD if cents else 1)} if rows else {}
    take(page, rows)
    for row in rows:
        amount = row.amounts[-1]
        if amount.unit(*NEAR_DOLLARS):
            said = page.read.said(row.start, row.end)
            page.needs.append(Need("usd_per_hour", f"prices are kept in US dollars: how many are {said}?"))
            continue
        value = amount.value * next((unit.size for unit in amount.units if unit.name == "usd"), 1.0)
        value = _with_cents(page, row) or value
        value *= _HOUR_S / next((unit.size for unit in amount.per if unit.name == "time"), _HOUR_S)
        each = any(unit.name == "devices" for unit in amount.per)
        tier = _tier(page, row)
        if not each or tier not in found:
            found[tier] = round(value * (own.get("count", 1) if each else 1), 6)
    return found | _bare_tiers(page, found)


def _with_cents(page: Page, row: Row) -> float | None:
    """'22 dollar 40 per hour'"""
    before = next((one for one in page.read.rows if one.end == row.start), None)
    whole = before is not None and before.amounts[-1].unit("usd") and not row.amounts[-1].units
    if not (whole and before and row.amounts[-1].value < 1 / _CENT_USD):
        return None
    take(page, [before])
    return before.amounts[-1].value + row.amounts[-1].value * _CENT_USD


def take(page: Page, rows: Iterable[Row]) -> None:
    """Numbers that something was made of are lost no more."""
    taken = {row.start for row in rows}
    page.left = [row for row in page.left if row.start not in taken]
    page.filled = [number for number in page.filled if number.row.start not in taken]


def _is_hourly(amount: Amount) -> bool:
    """Whether it is a price: money is of an hour where no time is said."""
    per = {unit.name for unit in amount.per}
    return bool(amount.unit("usd", *NEAR_DOLLARS)) or ("time" in per and not amount.units)


def _bare_tiers(page: Page, found: dict[str, Any]) -> dict[str, Any]:
    """'19.20 $/h on demand, 14 reserved': a number of no unit beside how it is had."""
    bare = [row for row in page.read.rows if not (row.amounts[-1].units or row.amounts[-1].per)]
    tiers = {value.start: _argument(value) for value in page.read.values if value.field == "price"}
    named = [(row, tiers[row.end]) for row in bare if tiers.get(row.end) in _TIERS and tiers[row.end] not in found]
    take(page, [row for row, _ in named])
    return {name: row.amounts[-1].value for row, name in named}


def _tier(page: Page, row: Row) -> str:
    """The argument that a price by the hour is of: how it is had stands right beside it."""
    ways = [value for value in page.read.values if value.field == "price"]
    beside = [value for value in ways if value.end == row.start] or [value for value in ways if value.start == row.end]
    named = _argument(beside[0]) if beside else ""
    return named if named in _TIERS else "usd_per_hour"


def _argument(way: Value) -> str:
    return "usd_per_hour" if way.value == "on_demand" else f"{way.value}_usd_per_hour"


def _iso_day(page: Page) -> str | None:
    """A day that is written as a price's: 2026-11-12."""
    days = (chunk for chunk in chunks(page.read.text) if len(chunk) == len("2026-11-12"))
    return next((day for day in days if day.replace("-", "").isdigit() and day[4] == day[7] == "-"), None)


def _of_device(page: Page, row: Row) -> dict[str, Any]:
    """What a number says of an accelerator, by its unit."""
    amount = row.amounts[-1]
    per = {unit.name for unit in amount.per}
    size = amount.value * (amount.units[0].size if amount.units else 1.0)
    if amount.unit("bytes") and "time" in per:
        return {"memory_bandwidth_gb_per_s": round(size / 1e9, 3)}
    if amount.unit("bytes"):
        return {"memory_gib": round(size / _GIB, 3)}
    if amount.unit("flops"):
        dtype = _dtype(page, row)
        return {f"{dtype}_tflops": round(size / _TERA, 3)} if dtype else {}
    if amount.unit("watts"):
        return {"tdp_w": size}
    if amount.unit("usd") and "time" in per:
        return {"usd_per_hour": size}
    return {}


def _dtype(page: Page, row: Row) -> str:
    """The number format of a rate: the nearest that is named; bf16 where none is."""
    norms = [token.norm for token in page.read.tokens]
    text = page.read.tokens
    first = next((at + 1 for at in range(row.start - 1, -1, -1) if text[at].ends_clause), 0)
    last = next((at for at in range(row.end, len(text)) if text[at].ends_clause), len(text))
    around = [*range(row.start, min(row.end + _NEAR, last)), *range(max(row.start - _NEAR, first), row.start)]
    places = [at for at in around if norms[at] in _DTYPES]
    return norms[min(places, key=lambda at: min(abs(at - row.end), abs(row.start - at)))] if places else "bf16"


def _same_rates(page: Page, own: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """'bf16 same': of a format without a number the rate of the one before it."""
    last = None
    for at, token in enumerate(page.read.tokens):
        if token.norm not in _DTYPES:
            continue
        name = f"{token.norm}_tflops"
        if name in own:
            last = own[name]
        elif last and page.read.found.does(at + 1, "same"):
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
        both = [one for one in (*rest, *before) if one.lower() not in lexicon().ordinary]
        if both:
            return both[0]
    return None
