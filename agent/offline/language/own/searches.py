"""What restricts a search: for hardware, a deployment, strategies, a figure, the catalogue or the playbook."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent.offline.form import Reading
from agent.offline.language.asking import asks
from agent.offline.language.devices import is_machine
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import Found
from agent.offline.language.mentions import Mentions
from agent.offline.language.names import head_words
from agent.offline.language.own.limits import several_values
from estimator.money.cost import HOURS_PER_MONTH
from estimator.money.ownership import HOURS_PER_YEAR
from estimator.units import BYTES_PER_GB
from planner.partial import get

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

# Fields that a deployment is chosen by, as they are called.
_CHOSEN = {"engine": "engine", "precision": "weight_dtype"}
_VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "google": "Google", "aws": "AWS", "apple": "Apple"}


def explained(page: Page) -> str | None:
    """The figure that 'explain' stands before: 'explain the TTFT of Llama 8B on an H100', or 'why', where no run is
    named: 'why does the KV cache grow with the batch?'"""
    heard, read = page.read.found, page.read
    named = {at: name for at, _, name in reversed(read.asked_at("figure"))}
    reasons = {"explain"} & set(read.asked("wish")) or read.does("why")
    if named and reasons and not (page.plan or read.names or page.filled or page.left):
        return min(named.items())[1]
    for _, end, wish in read.asked_at("wish"):
        at = end
        while at < len(heard.text) and at not in named and heard.sense(at, "stop"):
            at += 1
        if wish == "explain" and at in named:
            return named[at]
    return None


def figure_of(page: Page, reading: Reading) -> dict[str, Any]:
    """The figure that is asked about, by its name or as it was printed."""
    if figure := explained(page):
        return {"figure": figure}
    named = page.read.asked_at("figure")
    specific = [
        name
        for _, _, name in named
        if name not in ("memory.per_device_bytes", "usd", "hours", "time.step_s", "throughput.tokens_per_s")
    ]
    if specific or named:
        return {"figure": (specific or [name for _, _, name in named])[0]}
    if "fit" in page.read.asked("focus"):
        # 'Why does it not fit?'
        return {"figure": "memory.per_device_bytes"}
    # The numbers of a first question say what is run.
    row = next(iter(page.left or [number.row for number in page.filled if page.plan]), None)
    if row and (size := row.amounts[-1].unit("bytes")) and _is_the_cards(page, row.amounts[-1].value * size.size):
        # 'Where do the 80 gigs go?'
        return {"figure": "memory.per_device_bytes"}
    return {"figure": page.read.said(row.start, row.end) if row else "first"}


def _is_the_cards(page: Page, size_bytes: float) -> bool:
    """Whether a size is that of the plan's device."""
    device = get(page.plan, "cluster.accelerator")
    held = page.catalogue.memory_gb(device) if isinstance(device, str) else None
    return bool(held) and abs(size_bytes / BYTES_PER_GB / held - 1) < _ABOUT


# How far what is said of a card's memory may be from it.
_ABOUT = 0.1
_GRAMMAR = ("stop", "does", "opens", "which", "defines", "defined")
# Senses of words of the field; of what is asked for the groups that name things, not wishes.
_SUBJECTS = ("field", "value", "unit")
_MACHINES = ("devices", "nodes")
_SUBJECT_GROUPS = ("topic", "figure", "target", "network", "word_field", "strategy", "outside", "goal")


def asks_how_accurate(page: Page) -> bool:
    """Whether it is asked how good the estimates are, and nothing of a run: 'how accurate are you?'."""
    about = page.plan or page.read.names or page.kept or page.filled
    return "accuracy" in page.read.asked("wish") and not about


def query_of(page: Page, reading: Reading) -> dict[str, Any]:
    """The words of content, for the playbook's search."""
    if asks_how_accurate(page):
        return {"query": "accuracy of estimates"}
    if told := symptoms(page.read):
        return {"query": " ".join(told)}
    heard, kept, behind = page.read.found, list[tuple[int, str]](), 0
    # How many machines there are narrows nothing.
    rows = [row for row in page.read.rows if row.amounts[-1].names or row.amounts[-1].unit(*_MACHINES)]
    sizes = {at for row in rows for amount in row.amounts for at in range(amount.start, amount.number)}
    for at, token in enumerate(heard.text):
        if at < behind or at in sizes:
            continue
        if at in heard.words and all(sense.kind in _GRAMMAR for sense in heard.words[at][0].senses):
            behind = heard.words[at][0].end
        if token.kind == "sign" or at in page.read.courtesies or not (token.kind == "number" or _is_subject(heard, at)):
            continue
        words = page.read.text[token.start : token.end]
        glued = bool(kept) and not token.space and heard.text[at - 1].kind != "sign"
        # 'fp8', '100GbE' are one word each.
        kept = [*kept[:-1], (kept[-1][0], kept[-1][1] + words)] if glued else [*kept, (at, words)]
    # That something is trained or served narrows nothing where more is said.
    works = {at for at, _, _ in page.read.asked_at("mode")}
    told = [words for at, words in kept if at not in works] or [words for _, words in kept]
    match page.last:
        case ("search_playbook", {"query": before}) if not ("?" in page.read.text or asks(heard, [])):
            # 'It is bf16 with AdamW' tells more of what was asked.
            told.insert(0, str(before))
    return {"query": " ".join(told)[:200] or page.read.text[:200]}


def symptoms(read: Mentions) -> list[str]:
    """What goes wrong with a run beside its memory, in the words that say it: 'loss spikes'."""
    senses = ((at, read.found.sense(at, "symptom")) for at in range(len(read.tokens)))
    return list(dict.fromkeys(read.said(at, sense[1]) for at, sense in senses if sense))


def _is_subject(heard: Found, at: int) -> bool:
    """Whether a word is of the field, or one that nothing is known about; not one of those that any sentence has."""
    senses = [sense for word in heard.words.get(at, ()) for sense in word.senses]
    if heard.text[at].norm in heard.lexicon.placing:
        return False
    named = any(
        sense.kind in _SUBJECTS or (sense.kind == "asked" and sense.value in _SUBJECT_GROUPS) for sense in senses
    )
    return named or not any(sense.kind in _GRAMMAR for sense in senses)


def catalogue_of(page: Page, reading: Reading) -> dict[str, Any]:
    kinds = page.read.asked("catalogue")
    models = page.read.of("model")
    own: dict[str, Any] = {"kind": "models" if models else kinds[0] if kinds else "hardware"}
    vendors = [str(value.value) for value in page.read.values if value.field == "vendors"]
    names = [name.text for name in page.read.names if name.kind in ("model", "accelerator")]
    query = names or [_VENDORS.get(vendor, vendor) for vendor in vendors] or _families(page)
    if any(token.norm in lexicon().of_ones_own for token in page.read.tokens):
        own["only_own"] = True
    return own | ({"query": query[0]} if query else {})


def _families(page: Page) -> list[str]:
    """Words of the catalogue that stand alone: 'which Nemotron models do you know?'."""
    heads = head_words(page.catalogue)
    return [
        token.text
        for token in page.read.tokens
        if token.norm in heads and len(token.norm) > 2 and token.text[:1].isupper()
    ] or [token.text for token in page.read.tokens if token.norm in heads and len(token.norm) > 3]


def facts_of(kind: str, field: str) -> Callable[[Page, Reading], dict[str, Any]]:
    def make(page: Page, reading: Reading) -> dict[str, Any]:
        return {kind: list(dict.fromkeys(edit.value for edit in page.named if edit.field == field))}

    return make


_HOUR_S, _OF_THIRTY_DAYS_H = 3600, 720.0


def hardware_facts(page: Page, reading: Reading) -> dict[str, Any]:
    """Devices that are asked about, and how many of them are paid for how long where it is asked what they cost."""
    use, priced = _use(page), {"cost", "cheaper"} & {*page.read.asked("focus")} or _seeks_the_cheapest(page)
    priced = priced or "buying" in page.read.asked("topic")
    paid: dict[str, dict[str, float]] = {}
    nodes, each = (int(page.values(name)[-1]) if page.values(name) else 0 for name in ("nodes", "per_node"))
    for device in (device for device in page.devices if device.name.id):
        name = str(device.name.id)
        # 'What does a DGX B200 cost?' is asked of all that is in it.
        machines = device.nodes or nodes or int(is_machine(page.read, device.name))
        number = device.count or machines * (device.per_node or each or page.catalogue.per_node(name)) or 1
        if use or (priced and number > 1):
            paid[name] = {"count": number, **use}
    kept = [str(name.id) for name in page.read.of("provider") if name.start not in page.refused.things]
    # '64 of these' are of what was spoken of.
    count = {"count": int(page.values("count")[-1])} if page.values("count") and not page.devices else {}
    told = {"paid_for": paid, "of_these": {} if paid else {**count, **use}, "providers": list(dict.fromkeys(kept))}
    told["regions"] = list(dict.fromkeys(str(name.id) for name in page.read.of("place")))
    return facts_of("accelerators", "accelerator")(page, reading) | {name: each for name, each in told.items() if each}


def _seeks_the_cheapest(page: Page) -> bool:
    """Whether the cheapest is asked for: 'cheapest cloud for 8 H100'."""
    return any(value.field == "objective" and value.value == "cost" for value in page.kept)


def _use(page: Page) -> dict[str, float]:
    """For how many hours hardware is paid, and of use how many of a year where that was said: '40 hours a week for two
    years'."""
    span, used = _hours(page), page.use_h
    if not used:
        return {"hours": span} if span else {}
    return {"hours": used * span / HOURS_PER_YEAR, "hours_per_year": used} if span else {"hours_per_year": used}


def _hours(page: Page) -> float | None:
    """How long hardware is paid for: 'for a week', 'per month', of which bills count 730 hours."""
    told = page.values("deadline_h")
    told = told or [number.values[-1] * HOURS_PER_YEAR for number in page.filled if number.field == "years"]
    hours = float(told[-1]) if told else _each(page)
    months = (hours or 0.0) / _OF_THIRTY_DAYS_H
    return HOURS_PER_MONTH * months if months and months == int(months) else hours


def hours_of_use(page: Page) -> float | None:
    """The hours of a year that hardware works, where buying or a term is weighed: '10 hours a day', '6000 hours a
    year', '60 % utilisation'."""
    prices = {str(value.value) for value in page.kept if value.field == "price"}
    term, owned = any(price.startswith("reserved") for price in prices), "owned" in prices
    if "buying" not in page.read.asked("topic") and not (term or owned):
        return None
    if (shares := page.values("utilisation")) and 0.0 < shares[-1] <= 1.0:
        return shares[-1] * HOURS_PER_YEAR
    for row in page.left:
        amount = row.amounts[-1]
        if (part := amount.unit("percent")) and 0.0 < amount.value * part.size <= 1.0:
            # 'Owning 8 H100 at 50 %'
            page.left = [other for other in page.left if other is not row]
            return amount.value * part.size * HOURS_PER_YEAR
        each = next((unit.size for unit in amount.per if unit.name == "time"), None)
        if (unit := amount.unit("time")) and each and unit.size < each:
            page.left = [other for other in page.left if other is not row]
            hours = min(1.0, amount.value * unit.size / each) * HOURS_PER_YEAR
            page.assumed.append(f"{page.read.said(row.start, row.end)!r} taken as {hours:,.0f} hours of a year")
            return hours
    return None


def _each(page: Page) -> float | None:
    """The hours of what a price is asked for by: 'per month', 'a year'; where buying is weighed 'for a year' alone, as
    what is paid by the month is so for as many as nobody said."""
    weighed = "buying" in page.read.asked("topic")
    for at in range(len(page.read.tokens)):
        behind = page.read.found.does(at, "per")
        units = [sense for word in page.read.found.words.get(behind or -1, ()) for sense in word.all("unit")]
        size = next((float(sense.value) for sense in units if sense.name == "time"), 0.0)
        lasts = any(page.read.found.sense(before, "over") for before in range(max(at - 2, 0), at))
        if (weighed and not lasts) or page.read.found.has_unit(at - 1, "time"):  # 'How many hours a month?'
            continue
        if size > _HOUR_S and not any(row.start < at < row.end for row in page.read.rows):
            return size / _HOUR_S
    return None


def hardware_search(page: Page, reading: Reading) -> dict[str, Any]:
    """What restricts a search for hardware: vendors, providers, and how much it may be."""
    own: dict[str, Any] = {}
    vendors, refused = [], []
    for one in page.read.values:
        if one.field == "vendors":
            (refused if one.start in page.refused.things else vendors).append(_VENDORS[str(one.value)])
    if refused and not vendors:
        vendors = [name for name in _VENDORS.values() if name not in refused]
    if vendors:
        own["vendors"] = list(dict.fromkeys(vendors))
    kept = [str(name.id) for name in page.read.of("provider") if name.start not in page.refused.things]
    left = [str(name.id) for name in page.read.of("provider") if name.start in page.refused.things]
    match page.last:
        case "recommend_cluster", {"providers": [*before]} if kept and page.read.does("plus"):
            # 'And Azure as well'
            kept = [*before, *kept]
    if kept:
        own["providers"] = list(dict.fromkeys(kept))
    elif _to_buy(page):
        own["providers"] = ["owned"]
    elif left:
        own["providers"] = [name for name in page.catalogue.providers if name not in left and name != "owned"]
    for name, limit in (("count", "max_devices"), ("nodes", "max_nodes")):
        if (values := page.values(name)) and _bounded(page, name):
            own[limit] = int(values[-1])
    if (values := page.values("max_usd_per_hour")) or (
        (values := page.values("usd_per_device_hour")) and page.read.does("at_most")
    ):
        own["max_usd_per_hour"] = values[-1]
    for name in ("max_kw", "least_memory_gib"):
        if values := page.values(name):
            own[name] = values[-1]
    return own | _devices(page)


def _to_buy(page: Page) -> bool:
    """Whether hardware is to be bought: not where that is weighed against rent, nor what money buys for a run."""
    owned = any(value.field == "price" and value.value == "owned" for value in page.kept)
    return owned and not page.values("more_usd") and "buying" not in page.read.asked("topic")


def _bounded(page: Page, name: str) -> bool:
    """Whether 'at most' stands beside a number."""
    for one in page.filled:
        if one.field == name:
            around = range(max(one.row.start - 4, 0), min(one.row.end + 3, len(page.read.tokens)))
            if any(page.read.found.does(at, "at_most") for at in around):
                return True
    return False


def strategies_named(page: Page) -> list[str]:
    """Strategies by name; the 'pipeline parallel' of 'pipeline parallel 4' is a size."""
    sizes = {at for number in page.filled if number.name for at in range(*number.name)}
    return list(dict.fromkeys(name for at, _, name in page.read.asked_at("strategy") if at not in sizes))


def strategies_of(page: Page, reading: Reading) -> dict[str, Any]:
    names = strategies_named(page)
    return ({"strategies": names} if names else {}) | _several(page)


def _devices(page: Page) -> dict[str, Any]:
    """Several devices that are named: the search is of these alone."""
    return {name: values for name, values in _several(page).items() if name == "accelerators"}


def _several(page: Page) -> dict[str, Any]:
    """Models, devices and precisions, where several are named: a table is of all of them."""
    own: dict[str, Any] = {}
    for name, field in (("models", "model"), ("accelerators", "accelerator")):
        values = list(dict.fromkeys(edit.value for edit in page.named if edit.field == field))
        if len(values) > 1:
            own[name] = values
    precisions = [value for name, values in several_values(page) for value in values if name == "precision"]
    return own | ({"precisions": precisions} if precisions else {})


def serving_search(page: Page, reading: Reading) -> dict[str, Any]:
    goals = {"cost": "cost", "time": "latency", "throughput": "throughput"}
    said = [str(edit.value) for edit in reading.edits if edit.field == "objective"]
    own: dict[str, Any] = {"goal": goals[said[-1]]} if said and said[-1] in goals else {}
    named = page.read.asked("word_field") if "best" in page.read.asked("focus") else []
    if left_open := [_CHOSEN[name] for name in named if name in _CHOSEN]:
        own["left_open"] = left_open
    for name, field in (("engines", "engine"), ("weight_dtypes", "weight_dtype")):
        values = [edit.value for option in reading.options for edit in option if edit.field == field]
        values = values or dict(several_values(page)).get(field, [])
        if len(values) > 1:
            own[name] = values
    return own | _devices(page)
