"""Arguments of the tools' own, and what is said of prices: what no Plan holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent.offline.form import Edit, Need, Reading
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING
from agent.offline.language.names import head_words
from knowledge.scenarios import scenarios
from planner.partial import get
from planner.requests import ALL_PATHS

if TYPE_CHECKING:
    from agent.offline.language.reading import Page

_PRICES = (
    "usd_per_device_hour",
    "usd_per_node_hour",
    "usd_per_kwh",
    "pue",
    "capex_usd_per_device",
    "years",
    "utilisation",
    "reserved_discount",
    "interruptions_per_day",
    "restart_minutes",
    "checkpoint_interval_minutes",
)
_OWNED = ("capex_usd_per_device", "usd_per_kwh", "pue", "years")
_MOST_SIZES = 24
_USERS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
# Fields that a deployment is chosen by, as they are called.
_CHOSEN = {"engine": "engine", "precision": "weight_dtype"}
_NEAR_DOLLARS = ("eur", "gbp", "chf")
_IN_WORDS = {"eur": "euros", "gbp": "pounds", "chf": "Swiss francs"}
_VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "google": "Google", "aws": "AWS", "apple": "Apple"}
_SCHEDULING = ("partition", "account", "namespace", "queue", "image")
_SCENARIOS = ("save_scenario", "load_scenario", "delete_scenario", "diff_scenarios", "list_scenarios")


def pricing_of(page: Page) -> dict[str, Any]:
    """How a run is paid for, as estimate_cost takes it."""
    found: dict[str, Any] = {}
    for one in page.filled:
        if one.field in _PRICES and one.row.start not in page.refused.things:
            found[one.field] = one.values[-1]
            unit = one.row.amounts[-1].unit(*_NEAR_DOLLARS)
            if unit:
                said = page.read.said(one.row.start, one.row.end)
                page.assumed.append(f"{said!r} taken as US dollars one for one: no exchange rate is known here")
    for one in page.read.senses():
        if one.kind == "unit" and one.name in _NEAR_DOLLARS and not _has_amount(page, one.name):
            page.assumed.append(f"no amount is given in {_IN_WORDS[one.name]}: prices here are in US dollars, and no "
                                "exchange rate is known")  # fmt: skip
            break
    prices = [str(value.value) for value in page.kept if value.field == "price"]
    if prices:
        found["price"] = next((price for price in prices if price == "owned"), prices[0])
    elif any(name in found for name in _OWNED):
        found["price"] = "owned"
    for name in page.read.of("place"):
        found["region"] = name.id
    providers = [str(name.id) for name in page.read.of("provider") if name.start not in page.refused.things]
    if len(providers) > 1:
        found["providers"] = list(dict.fromkeys(providers))
    return found


def _has_amount(page: Page, currency: str) -> bool:
    return any(row.amounts[-1].unit(currency) for row in page.read.rows)


def own_of(page: Page, tool: str | None, reading: Reading) -> dict[str, Any]:
    """The arguments that only `tool` takes, as far as the words say them."""
    found = _limits_of_serving(page)
    make = _OF_TOOL.get(tool or "")
    if make:
        found |= make(page, reading)
    if page.read.does("anyway"):
        found["anyway"] = True
    if tool is None and (outside := page.read.asked("outside")) and not page.read.of("model"):
        found |= {"control": "outside", "outside": outside[0]}
    return found


def _limits_of_serving(page: Page) -> dict[str, Any]:
    """Limits of a deployment that no Plan holds."""
    found: dict[str, Any] = {}
    for name in ("e2e_limit_s", "usd_per_million"):
        if values := page.values(name):
            found[name] = values[-1]
    statistic = [str(value.value) for value in page.kept if value.field == "slo_statistic"]
    if statistic and page.mode == SERVING:
        found["slo_statistic"] = statistic[0]
    return found


def _limit(page: Page, reading: Reading) -> dict[str, Any]:
    goal = limit_goal(page) or any_goal(page) or ("model" if not has_model(page) else None)
    own: dict[str, Any] = {"goal": goal} if goal else {}
    if goal == "model":
        family = next((name for name in page.read.of("model") if not name.sized), None)
        own |= {"family": family.text} if family else {}
    return own


def has_model(page: Page) -> bool:
    """Whether it is known which model a turn is about."""
    return bool(get(page.plan, "model") or page.read.of("model", "path") or page.values("model_size"))


def limit_goal(page: Page) -> str | None:
    """What is asked the most or the least of: the thing that 'longest', 'fewest' or 'how many' stands before."""
    asks = [(start, end) for start, end, name in page.read.asked_at("focus") if name in ("most", "least", "size")]
    found: list[tuple[int, int, str]] = []
    for start, end, name in _goals(page):
        gaps = [start - after for at, after in asks if -1 <= start - after <= 4 or at <= start < after]
        found += [(max(min(gaps), 0), start - end, name)] if gaps else []
    whole = [name for name in page.read.of("model") if not name.sized]
    if whole and any(0 <= whole[0].start - end <= 2 for _, end, name in page.read.asked_at("focus") if name == "most"):
        found.append((0, -9, "model"))
    if _how_many(page):
        found.append((0, -9, "devices"))
    return min(found)[2] if found else None


_LIMITING = ("most", "least", "size", "fit", "best")


def _goals(page: Page) -> list[tuple[int, int, str]]:
    """What a limit may be asked of, where it is named without a number of its own."""
    serving = {"concurrency", "context", "input_len", "devices", "model"}
    open_ = serving if page.mode == SERVING else {"seq_len", "micro_batch", "model", "devices"}
    said = [(number.row.start, number.row.end) for number in page.filled] + [
        number.name for number in page.filled if number.name
    ]
    # 'How many requests per second' asks for a figure.
    said += [(start, end) for start, end, name in page.read.asked_at("focus") if name not in _LIMITING]
    return [
        one
        for one in page.read.asked_at("goal")
        if one[2] in open_ and not any(start <= one[0] < end for start, end in said)
    ]


def any_goal(page: Page) -> str | None:
    """The goal where no word says that the most of it is asked for."""
    goals = _goals(page)
    least = {"least", "size"} & set(page.read.asked("focus"))
    return goals[0][2] if goals else "devices" if least else None


def _how_many(page: Page) -> bool:
    """Whether 'how many' stands right before a device."""
    for at, end, name in page.read.asked_at("focus"):
        if name in ("size", "least") and any(
            at <= name.start <= end + 3 for name in page.read.of("accelerator", "instance")
        ):
            return True
    return False


def _sweep(page: Page, reading: Reading) -> dict[str, Any]:
    found: list[tuple[str, list[Any]]] = []
    if reading.options and len({edit.field for option in reading.options for edit in option}) == 1:
        found.append((reading.options[0][0].field, [option[0].value for option in reading.options]))
    for one in page.filled:
        if (
            len(one.values) > 1
            and not one.ranged
            and one.field in (*ALL_PATHS, "nodes", "batch")
            and one.field not in dict(found)
        ):
            found.append((one.field, [int(value) if value == int(value) else value for value in one.values]))
    found += [one for one in (*_ranges(page), *_several_values(page)) if one[0] not in dict(found)]
    named = {"batch": "global_batch", "length": "input_len", "nodes": "count"}
    own: dict[str, Any] = {}
    if (not found or found[0][0] in ("count", "nodes")) and not any(
        len(number.values) > 1 and not number.ranged for number in page.filled
    ):
        return _scaled(page)
    for (name, values), (field, of) in zip(
        found[:2], (("field", "values"), ("second_field", "second_values")), strict=False
    ):
        own |= {field: named.get(name, name), of: values}
        if name == "nodes" and field == "field":
            own["nodes"] = True
    if not own:
        names = [sense.name for sense in page.read.senses() if sense.kind == "field" and sense.name in ALL_PATHS]
        own = {"field": names[0] if names else "count", "scales": not names or names[0] == "count"}
    if page.read.asked("scaling") == ["weak"]:
        own["scale_batch"] = True
    return own


def _several_values(page: Page) -> Iterator[tuple[str, list[Any]]]:
    """Fields of words that several values are named of: 'bf16 and fp8'."""
    values: dict[str, list[Any]] = {}
    for one in page.kept:
        if one.field in ALL_PATHS:
            values.setdefault(one.field, []).append(one.value)
    yield from ((name, list(dict.fromkeys(said))) for name, said in values.items() if len(set(map(str, said))) > 1)


def _scaled(page: Page) -> dict[str, Any]:
    """'How does it scale to 64 nodes?': the sizes that are named, from and to."""
    sizes = [number for number in page.filled if number.field in ("count", "nodes")]
    ends = [int(value) for one in sizes for value in one.values][:2]
    names = [sense.name for sense in page.read.senses() if sense.kind == "field" and sense.name in ALL_PATHS]
    of_a_run = not any(one.field == "nodes" or len(one.values) > 1 for one in sizes)
    if of_a_run and names and names[0] not in ("count", "nodes") and "scaling" not in page.read.asked("wish"):
        return {"field": names[0]} | ({"values": _USERS} if names[0] == "concurrency" else {})
    own: dict[str, Any] = {
        "field": "count",
        "scales": True,
        "values": ends if len(ends) == 2 else [None, *ends] if ends else [None, None],
    }
    own |= {"nodes": True} if any(one.field == "nodes" for one in sizes) else {}
    return own | ({"scale_batch": True} if "weak" in page.read.asked("scaling") else {})


def _ranges(page: Page) -> Iterator[tuple[str, list[Any]]]:
    """'From 2k to 32k' as sizes doubled from the first to the last."""
    for one in page.filled:
        if not one.ranged:
            continue
        values, size, stop = [], one.values[0], one.values[1]
        while 0 < size < stop and len(values) < _MOST_SIZES:
            values.append(int(size) if size == int(size) else size)
            size *= 2
        yield one.field, [*values, int(stop) if stop == int(stop) else stop]


def _scaling(page: Page, reading: Reading) -> dict[str, Any]:
    nodes = [int(value) for number in page.filled if number.field in ("nodes",) for value in number.values]
    own: dict[str, Any] = {}
    if len(nodes) == 1:
        own["nodes"] = nodes[0]
    elif nodes:
        own["nodes"] = nodes[-1] if nodes[0] == 1 else f"{nodes[0]}..{nodes[-1]}"
    if values := page.values("efficiency_threshold"):
        own["efficiency_threshold"] = values[-1]
    if "weak" in page.read.asked("scaling"):
        own["scaling"] = "weak"
    return own


def _figure(page: Page, reading: Reading) -> dict[str, Any]:
    """The figure that is asked about, by its name or as it was printed."""
    named = page.read.asked_at("figure")
    specific = [
        name
        for _, _, name in named
        if name not in ("memory.per_device_bytes", "usd", "hours", "time.step_s", "throughput.tokens_per_s")
    ]
    if specific or named:
        return {"figure": (specific or [name for _, _, name in named])[0]}
    row = next(iter(page.left or [number.row for number in page.filled]), None)
    return {"figure": page.read.said(row.start, row.end) if row else "first"}


def _query(page: Page, reading: Reading) -> dict[str, Any]:
    """The words of content, for the playbook's search."""
    kept: list[str] = []
    for at, token in enumerate(page.read.tokens):
        words = page.read.found.words.get(at, ())
        plain = (
            bool(words)
            and words[0].end == at + 1
            and all(sense.kind in ("stop", "does", "by") for sense in words[0].senses)
        )
        if token.kind != "sign" and not plain and at not in page.read.courtesies:
            kept.append(page.read.text[token.start : token.end])
    return {"query": " ".join(kept)[:200] or page.read.text[:200]}


def _catalogue(page: Page, reading: Reading) -> dict[str, Any]:
    kinds = page.read.asked("catalogue")
    models = page.read.of("model")
    own: dict[str, Any] = {"kind": "models" if models else kinds[0] if kinds else "hardware"}
    vendors = [str(value.value) for value in page.read.values if value.field == "vendors"]
    names = [name.text for name in page.read.names if name.kind in ("model", "accelerator")]
    query = names or [_VENDORS.get(vendor, vendor) for vendor in vendors] or _families(page)
    return own | ({"query": query[0]} if query else {})


def _families(page: Page) -> list[str]:
    """Words of the catalogue that stand alone: 'which Nemotron models do you know?'."""
    heads = head_words(page.catalogue)
    return [
        token.text
        for token in page.read.tokens
        if token.norm in heads and len(token.norm) > 2 and token.text[:1].isupper()
    ] or [token.text for token in page.read.tokens if token.norm in heads and len(token.norm) > 3]


def _facts(kind: str, field: str) -> Callable[[Page, Reading], dict[str, Any]]:
    def make(page: Page, reading: Reading) -> dict[str, Any]:
        return {kind: list(dict.fromkeys(edit.value for edit in page.named if edit.field == field))}

    return make


def _files(page: Page, reading: Reading) -> dict[str, Any]:
    own: dict[str, Any] = {}
    refused = set(page.refused.things)
    targets = [name for at, _, name in page.read.asked_at("target") if at not in refused]
    if targets:
        own["targets"] = list(dict.fromkeys(targets))
    if folder := _folder(page):
        own["folder"] = folder
    return own | _settings(page)


def _settings(page: Page) -> dict[str, Any]:
    """'Partition gpu, account nlp': the chunk behind the setting's name."""
    found: dict[str, Any] = {}
    chunks = _chunks(page)
    for (_, word), (_start, value) in itertools.pairwise(chunks):
        name, _, glued = word.lower().partition("=")
        name = name.removeprefix("--").rstrip(":")
        if name in _SCHEDULING and (glued or value.lower() not in ("is", "for", "of", "and", "in", "the", "=")):
            found[name] = word.partition("=")[2] or value
    return found


def _chunks(page: Page) -> list[tuple[int, str]]:
    """[(character, run without white space)], marks at its ends left out."""
    found: list[tuple[int, str]] = []
    at = 0
    for piece in page.read.text.split():
        start = page.read.text.index(piece, at)
        at = start + len(piece)
        stripped = piece.strip(",;:!?\"'`()[]“”").rstrip(".")
        if stripped:
            found.append((start, stripped))
    return found


def _folder(page: Page) -> str | None:
    """The folder that files are to go to: a path, or the name behind 'folder'."""
    chunks = _chunks(page)
    into = (
        "to",
        "in",
        "into",
        "under",
        "at",
        "nach",
        "en",
        "a",
        "dans",
        "em",
        "from",
        "out",
        "results",
        "are",
        "called",
        "folder",
        "directory",
        "dir",
        "是",
        "到",
    )
    for (_, before), (_, chunk) in zip([(0, ""), *chunks], chunks, strict=False):
        parts = [part for part in chunk.split("/") if part not in (".", "..", "~", "")]
        rooted = chunk.startswith(("./", "../", "~/", "/"))
        if (
            "/" in chunk
            and parts
            and (rooted or before.lower() in into)
            and all(any(c.isalpha() for c in part) for part in parts[:1])
        ):
            if page.read.of("model") and any(name.text in chunk for name in page.read.of("model")) and not rooted:
                continue
            return chunk.rstrip("/") if len(chunk) > 1 else chunk
        if before.lower() in ("folder", "directory", "dir") and chunk.lower() not in (
            "called",
            "named",
            "is",
            "for",
            "with",
        ):
            return chunk
    return None


def _scenario(page: Page, reading: Reading) -> dict[str, Any]:
    """The names of saved plans: known ones, or what stands behind 'as', 'called', 'scenario'."""
    known = {one.name.lower(): one.name for one in scenarios()}
    chunks = [chunk for _, chunk in _chunks(page)]
    said = [known[chunk.lower()] for chunk in chunks if chunk.lower() in known]
    tool = reading.tool
    naming = lexicon().saving if tool == "save_scenario" else lexicon().naming
    new = [chunk for chunk in _behind_names(naming, chunks) if chunk.lower() not in known]
    if tool == "diff_scenarios":
        both = list(dict.fromkeys(said if page.read.asked("of_answer") else [*said, *new]))
        return dict(zip(("a", "b"), both, strict=False))
    if tool == "list_scenarios":
        words = [
            chunk
            for before, chunk in itertools.pairwise(chunks)
            if before.lower() in ("with", "about", "for", "named", "containing", "on")
        ]
        return {"query": words[-1]} if words and words[-1].lower() not in ("me", "it", "them") else {}
    named = new or said if tool == "save_scenario" else said or new
    return {"name": named[-1] if tool == "save_scenario" else named[0]} if named else {}


def _behind_names(naming: frozenset[str], chunks: list[str]) -> list[str]:
    found: list[str] = []
    for before, chunk in itertools.pairwise(chunks):
        plain = chunk.lower().strip("?.!,")
        if before.lower() in naming and plain not in lexicon().unnamed | lexicon().naming and plain:
            found.append(chunk)
    return found


def _search(page: Page, reading: Reading) -> dict[str, Any]:
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
    if kept:
        own["providers"] = list(dict.fromkeys(kept))
    elif left:
        own["providers"] = [name for name in page.catalogue.providers if name not in left and name != "owned"]
    for name, limit in (("count", "max_devices"), ("nodes", "max_nodes")):
        if (values := page.values(name)) and _bounded(page, name):
            own[limit] = int(values[-1])
    if (values := page.values("max_usd_per_hour")) or (
        (values := page.values("usd_per_device_hour")) and page.read.does("at_most")
    ):
        own["max_usd_per_hour"] = values[-1]
    return own


def _bounded(page: Page, name: str) -> bool:
    """Whether 'at most' stands beside a number."""
    for one in page.filled:
        if one.field == name:
            around = range(max(one.row.start - 4, 0), min(one.row.end + 3, len(page.read.tokens)))
            if any(page.read.found.does(at, "at_most") for at in around):
                return True
    return False


def _strategies(page: Page, reading: Reading) -> dict[str, Any]:
    names = page.read.asked("strategy")
    return ({"strategies": names} if names else {}) | _several(page)


def _several(page: Page) -> dict[str, Any]:
    """Models and devices, where several are named: a table is of all of them."""
    own: dict[str, Any] = {}
    for name, field in (("models", "model"), ("accelerators", "accelerator")):
        values = list(dict.fromkeys(edit.value for edit in page.named if edit.field == field))
        if len(values) > 1:
            own[name] = values
    return own


def _matrix(page: Page, reading: Reading) -> dict[str, Any]:
    return _strategies(page, reading) | _files(page, reading)


def _report(page: Page, reading: Reading) -> dict[str, Any]:
    forms = [token.norm for token in page.read.tokens if token.norm in ("pdf", "html", "markdown", "md")]
    return {"format": {"md": "markdown"}.get(forms[0], forms[0])} if forms else {}


def _import(page: Page, reading: Reading) -> dict[str, Any]:
    if page.pasted:
        return {"text": page.pasted}
    path = next((name.text for name in page.read.of("path")), None)
    return {"path": path} if path else {"text": page.read.text}


def _results(page: Page, reading: Reading) -> dict[str, Any]:
    folder = _folder(page)
    return {"folder": folder} if folder else {}


def _serving(page: Page, reading: Reading) -> dict[str, Any]:
    goals = {"cost": "cost", "time": "latency", "throughput": "throughput"}
    said = [str(edit.value) for edit in reading.edits if edit.field == "objective"]
    own: dict[str, Any] = {"goal": goals[said[-1]]} if said and said[-1] in goals else {}
    named = page.read.asked("word_field") if "best" in page.read.asked("focus") else []
    if left_open := [_CHOSEN[name] for name in named if name in _CHOSEN]:
        own["left_open"] = left_open
    for name, field in (("engines", "engine"), ("weight_dtypes", "weight_dtype")):
        values = [edit.value for option in reading.options for edit in option if edit.field == field]
        values = values or dict(_several_values(page)).get(field, [])
        if len(values) > 1:
            own[name] = values
    return own


def _own_price(page: Page, reading: Reading) -> dict[str, Any]:
    """A price of one's own: whose, of what, how much."""
    own: dict[str, Any] = {}
    fields = ("usd_per_node_hour", "usd_per_device_hour", "max_usd_per_hour")
    hourly = next((number for name in fields for number in page.filled if number.field == name), None)
    if hourly and hourly.row.amounts[-1].unit(*_NEAR_DOLLARS):
        # What is kept is kept in dollars.
        said = page.read.said(hourly.row.start, hourly.row.end)
        page.needs.append(Need("usd_per_hour", f"prices are kept in US dollars: how many are {said}?"))
    elif hourly:
        own["usd_per_hour"] = hourly.values[-1]
    device = next(iter(page.devices), None)
    if device and device.name.id:
        each = next(iter(page.values("per_node")), None)
        own |= {"accelerator": device.name.id, "count": device.count or int(device.per_node or each or 1)}
        own["instance"] = f"{own['count']} x {device.name.id}"
    for before, chunk in zip((words := [chunk for _, chunk in _chunks(page)]), words[1:], strict=False):
        if before.lower() in ("at", "from", "by", "with") and chunk[:1].isupper() and "provider" not in own:
            own["provider"] = chunk
    return own


def _own_device(page: Page, reading: Reading) -> dict[str, Any]:
    own: dict[str, Any] = {}
    device = next(iter(page.devices), None)
    if device and device.name.id:
        own["like"] = device.name.id
    memory = [number for number in page.filled if number.row.amounts[-1].unit("bytes")]
    if memory:
        amount = memory[0].row.amounts[-1]
        own["memory_gib"] = amount.value
    words = [chunk for _, chunk in _chunks(page)]
    for before, two, chunk in zip(words, words[1:], words[2:], strict=False):
        if before.lower() in ("call", "name") and two.lower() in ("it", "that", "this"):
            own["id"] = chunk
    return own


_OF_TOOL: Mapping[str, Callable[[Any, Reading], dict[str, Any]]] = {
    "find_limit": _limit,
    "sweep": _sweep,
    "project_scaling": _scaling,
    "explain": _figure,
    "search_playbook": _query,
    "list_catalogue": _catalogue,
    "describe_model": _facts("models", "model"),
    "describe_hardware": _facts("accelerators", "accelerator"),
    "render_configs": _files,
    "write_configs": _files,
    "recommend_cluster": _search,
    "auto_configure": _search,
    "size_serving": _serving,
    "best_serving": _serving,
    "apply_strategies": _strategies,
    "peak_throughput": _strategies,
    "benchmark_matrix": _matrix,
    "matrix_results": _results,
    "report": _report,
    "import_config": _import,
    "add_price": _own_price,
    "add_hardware": _own_device,
    **dict.fromkeys(_SCENARIOS, _scenario),
}
# Tools whose question is about no plan: what is named is theirs.
FREE = frozenset({"search_playbook", "list_catalogue", "describe_model", "describe_hardware", "load_scenario",
                  "delete_scenario", "list_scenarios", "diff_scenarios", "matrix_results", "add_price", "add_hardware",
                  "add_model"})  # fmt: skip


_WRITES = ("write_configs", "render_configs", "benchmark_matrix", "render_matrix")


def edits_left(tool: str | None, edits: list[Edit], own: Mapping[str, Any]) -> list[Edit]:
    """What of the edits is said of the plan, and not only to the tool, whose own arguments are given."""
    edits = [edit for edit in edits if not (f"{edit.field}s" in own and edit.field in ("engine", "weight_dtype"))]
    if tool in FREE:
        return []
    if tool in _WRITES:
        # A path is where they go.
        return [edit for edit in edits if not (edit.field == "model" and "/" in str(edit.value)[:2])]
    if tool == "save_scenario":
        return [
            edit
            for edit in edits
            if edit.field in ("model", "accelerator", "method", "count", "stage") and edit.op == "set"
        ]
    return edits
