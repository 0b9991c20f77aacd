"""Files and folders that a turn names, saved plans, and rows of one's own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from agent.offline.form import Need, Reading
from agent.offline.language.lexicon import lexicon
from agent.offline.language.own.pricing import NEAR_DOLLARS
from agent.offline.language.own.searches import strategies_of
from knowledge.scenarios import scenarios

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_SCHEDULING = ("partition", "account", "namespace", "queue", "image")


def files_of(page: Page, reading: Reading) -> dict[str, Any]:
    own: dict[str, Any] = {}
    refused = set(page.refused.things)
    targets = [name for at, _, name in page.read.asked_at("target") if at not in refused]
    if targets:
        own["targets"] = list(dict.fromkeys(targets))
    if folder := folder_of(page):
        own["folder"] = folder
    return own | _settings(page)


def _settings(page: Page) -> dict[str, Any]:
    """'Partition gpu, account nlp': the chunk behind the setting's name."""
    found: dict[str, Any] = {}
    chunks = chunks_of(page)
    # 'The partition is gpu-long'
    chunks = [chunk for chunk in chunks if chunk[1].lower() not in ("is", "=", "called", "named")]
    for (_, word), (_start, value) in itertools.pairwise(chunks):
        name, _, glued = word.lower().partition("=")
        name = name.removeprefix("--").rstrip(":")
        if name in _SCHEDULING and (glued or value.lower() not in ("is", "for", "of", "and", "in", "the", "=")):
            found[name] = word.partition("=")[2] or value
    return found


def chunks_of(page: Page) -> list[tuple[int, str]]:
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


def folder_of(page: Page) -> str | None:
    """The folder that files are to go to: a path, or the name behind 'folder'."""
    chunks = chunks_of(page)
    for (_, before), (_, chunk) in zip([(0, ""), *chunks], chunks, strict=False):
        parts = [part for part in chunk.split("/") if part not in (".", "..", "~", "")]
        rooted = chunk.startswith(("./", "../", "~/", "/"))
        if (
            "/" in chunk
            and parts
            and (rooted or before.lower() in lexicon().into)
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


def scenario_of(page: Page, reading: Reading) -> dict[str, Any]:
    """The names of saved plans: known ones, or what stands behind 'as', 'called', 'scenario'."""
    known = {one.name.lower(): one.name for one in scenarios()}
    chunks = [chunk for _, chunk in chunks_of(page)]
    said = [known[chunk.lower()] for chunk in chunks if chunk.lower() in known]
    tool = reading.tool
    naming = lexicon().saving if tool == "save_scenario" else lexicon().naming
    named = [name.text for name in page.read.of("scenario")]
    new = [chunk for chunk in named or _behind_names(naming, chunks) if chunk.lower() not in known]
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


def matrix_of(page: Page, reading: Reading) -> dict[str, Any]:
    return strategies_of(page, reading) | files_of(page, reading)


def report_of(page: Page, reading: Reading) -> dict[str, Any]:
    forms = [token.norm for token in page.read.tokens if token.norm in ("pdf", "html", "markdown", "md")]
    return {"format": {"md": "markdown"}.get(forms[0], forms[0])} if forms else {}


def import_of(page: Page, reading: Reading) -> dict[str, Any]:
    if page.pasted:
        return {"text": page.pasted}
    return {"file_paths": page.files.configs} if page.files.configs else {"text": page.read.text}


def results_of(page: Page, reading: Reading) -> dict[str, Any]:
    folder = folder_of(page)
    return {"folder": folder} if folder else {}


def price_row(page: Page, reading: Reading) -> dict[str, Any]:
    """A price of one's own: whose, of what, how much."""
    own: dict[str, Any] = {}
    fields = ("usd_per_node_hour", "usd_per_device_hour", "max_usd_per_hour")
    hourly = next((number for name in fields for number in page.filled if number.field == name), None)
    if hourly and hourly.row.amounts[-1].unit(*NEAR_DOLLARS):
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
    for before, chunk in zip((words := [chunk for _, chunk in chunks_of(page)]), words[1:], strict=False):
        if before.lower() in ("at", "from", "by", "with") and chunk[:1].isupper() and "provider" not in own:
            own["provider"] = chunk
    return own


def device_row(page: Page, reading: Reading) -> dict[str, Any]:
    own: dict[str, Any] = {}
    device = next(iter(page.devices), None)
    if device and device.name.id:
        own["like"] = device.name.id
    memory = [number for number in page.filled if number.row.amounts[-1].unit("bytes")]
    if memory:
        amount = memory[0].row.amounts[-1]
        own["memory_gib"] = amount.value
    words = [chunk for _, chunk in chunks_of(page)]
    for before, two, chunk in zip(words, words[1:], words[2:], strict=False):
        if before.lower() in ("call", "name") and two.lower() in ("it", "that", "this"):
            own["id"] = chunk
    return own
