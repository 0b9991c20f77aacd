"""Files and folders that a turn names, and saved plans."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any

from agent.offline.form import Reading
from agent.offline.language.lexicon import lexicon
from agent.offline.language.own.given import span_of
from agent.offline.language.own.searches import strategies_of
from knowledge.scenarios import scenarios
from launchers.site import SYNTHETIC

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

# Pairs of quotation marks, and the longest name that is looked for between them.
_QUOTES, _LONGEST_NAME = ("''", '""', "“”", "„“", "«»", "「」", "『』"), 40
_SCHEDULING = ("partition", "account", "namespace", "queue", "image")
# What files say of where jobs run.
SITE = (*_SCHEDULING, "time_limit_h")

_REPORTS = (".pdf", ".html", ".md")
_ROOTS = ("./", "../", "~/", "/")


def files_of(page: Page, reading: Reading) -> dict[str, Any]:
    own = site_of(page.topic)
    refused = set(page.refused.things)
    targets = [name for at, _, name in page.read.asked_at("target") if at not in refused]
    targets = targets or _targets_before(page)
    if targets:
        own["targets"] = list(dict.fromkeys(targets))
    if folder := folder_of(page):
        own["folder"] = folder
    if limits := page.values("time_limit_h"):
        own["time_limit_h"] = limits[-1]
    return own | settings(page) | _tried(page, refused)


def site_of(topic: Mapping[str, Any]) -> dict[str, Any]:
    """What was said before of where jobs run."""
    match topic:
        case {"site": {**site}}:
            return site
    return {}


def _targets_before(page: Page) -> list[str]:
    """The programs that the turn before showed files for, where a turn changes what these are of."""
    match page.topic:
        case {"reading": {"tool": "render_configs" | "write_configs", "own": {"targets": [*targets]}}} if page.plan:
            named = page.read.asked("target") or any(value.field == "framework" for value in page.kept)
            return [] if named else list(targets)
    return []


def _tried(page: Page, refused: set[int]) -> dict[str, Any]:
    """Random tokens for data, and a profiler, the program's own unless it is named."""
    words = [name for at, _, name in page.read.asked_at("tried") if at not in refused]
    chosen: dict[str, Any] = {"dataset": SYNTHETIC} if "synthetic" in words else {}
    if tools := sorted((name for name in words if name != "synthetic"), key=lambda name: name == "auto"):
        chosen["profile"] = tools[0]
    return chosen


def settings(page: Page) -> dict[str, Any]:
    """'Partition gpu, account nlp': the chunk behind the setting's name."""
    found: dict[str, Any] = {}
    chunks = chunks_of(page)
    # 'The partition is gpu-long'
    chunks = [chunk for chunk in chunks if chunk[1].lower() not in ("is", "=", "called", "named")]
    for at, ((_, word), (_start, value)) in enumerate(itertools.pairwise(chunks)):
        name, _, glued = word.lower().partition("=")
        name = name.removeprefix("--").rstrip(":")
        if name == "image" and not glued:
            # 'The image has to come from our mirror, registry.corp/vllm:0.11'
            behind = (chunk for _, chunk in chunks[at + 1 :] if set("/:") & set(chunk))
            if address := next(behind, None):
                found[name] = address
        elif name in _SCHEDULING and (glued or value.lower() not in ("is", "for", "of", "and", "in", "the", "=")):
            found[name] = word.partition("=")[2] or value
    return found


def of_settings(own: Mapping[str, Any], words: str) -> bool:
    """Whether words are those of a setting or a folder that was taken: 'account nlp', the 0.11 of an image."""
    taken = " ".join(str(own[name]) for name in (*_SCHEDULING, "folder") if name in own)
    return bool(taken) and all(word in taken or word.lower() in _SCHEDULING for word in words.split())


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
        rooted = chunk.startswith(_ROOTS)
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
    # '全部./runに': nothing stands between a path and the words around it.
    return next((name.text for name in page.read.of("path") if name.text.startswith(_ROOTS)), None)


_PLACES = {"first": 0, "second": 1, "third": 2, "fourth": 3, "latter": -1}


def saved_plans(page: Page) -> list[str]:
    """The saved plans that are named."""
    named = [str(name.id) for name in page.read.of("scenario")]
    return [name for name in named if name in {row.name for row in scenarios()}] if named else []


def scenario_of(page: Page, reading: Reading) -> dict[str, Any]:
    """The names of saved plans: known ones, or what stands behind 'as', 'called', 'scenario'."""
    known = {row.name for row in scenarios()}
    chunks = [chunk for _, chunk in chunks_of(page)]
    names = [str(name.id) for name in page.read.of("scenario")]
    said = saved_plans(page)
    tool = reading.tool
    naming = lexicon().saving if tool == "save_scenario" else lexicon().naming
    new = [name for name in names or _behind_names(naming, chunks) if name not in known]
    if tool == "diff_scenarios":
        things = {name.text.lower() for name in page.read.of("model", "accelerator")}
        written = [chunk for chunk in chunks if _is_written_as_name(chunk) and chunk.lower() not in things]
        written += quoted(page.read.text)
        both = list(dict.fromkeys(said if page.read.asked("of_answer") else [*said, *written, *new]))
        return dict(zip(("a", "b"), both, strict=False))
    if tool == "list_scenarios":
        words = [
            chunk
            for before, chunk in itertools.pairwise(chunks)
            if before.lower() in ("with", "about", "for", "named", "containing", "on")
        ]
        return {"query": words[-1]} if words and words[-1].lower() not in ("me", "it", "them") else {}
    marked = [name.strip() for name in quoted(page.read.text)]
    written = [chunk for chunk in chunks if _is_written_as_name(chunk)]
    placed = _saved_at_a_place(page) if tool != "save_scenario" else []
    named = marked or new or said or written if tool == "save_scenario" else said or placed or new or marked or written
    if not named:
        return {}
    name = named[-1] if tool == "save_scenario" else named[0]
    # The gemma of 'save this as gemma-day' is no model.
    page.taken |= {page.read.tokens[at].start for at in span_of(page, name)}
    return {"name": name}


def _saved_at_a_place(page: Page) -> list[str]:
    """The plan that was saved at the place that is said: 'drop the first one'."""
    match page.topic:
        case {"saved": [_, *_] as saved}:
            places = [place for word, place in _PLACES.items() if page.read.does(word) and place < len(saved)]
            return [str(saved[places[0]])] if places else []
    return []


def quoted(text: str) -> list[str]:
    """What stands between quotation marks."""
    names: list[str] = []
    for opens, closes in _QUOTES:
        parts = text.split(opens) if opens == closes else [part.partition(closes)[0] for part in text.split(opens)]
        inner = parts[1::2] if opens == closes else parts[1:]
        names += [part for part in inner if part.strip() and len(part) <= _LONGEST_NAME]
    return names


def _is_written_as_name(chunk: str) -> bool:
    """Whether a run of characters is joined as plans are called: 'q1-capacity'."""
    parts = chunk.replace("_", "-").split("-")
    return len(parts) > 1 and parts[0][:1].isalpha() and all(part.isalnum() for part in parts)


def _behind_names(naming: frozenset[str], chunks: list[str]) -> list[str]:
    found: list[str] = []
    for before, chunk in itertools.pairwise(chunks):
        plain = chunk.lower().strip("?.!,")
        if before.lower() in naming and plain not in lexicon().unnamed | lexicon().naming and plain:
            found.append(chunk)
    return found


def matrix_of(page: Page, reading: Reading) -> dict[str, Any]:
    own = strategies_of(page, reading) | files_of(page, reading)
    named = {name.text for name in page.read.names}
    chunks = [] if "folder" in own else [chunk for _, chunk in chunks_of(page)]
    bare = (chunk for chunk in bare_names(chunks, lexicon().into) if not {chunk.lower(), chunk} & named)
    folder = next((chunk for chunk in bare if chunk.isidentifier()), None)
    return own | ({"folder": folder} if folder else {})


def bare_names(chunks: Iterable[str], leading: Set[str]) -> Iterator[str]:
    """Chunks that no word is, behind one that says where: 'write it to benchq', 'results lie in tender-suite'."""
    ordinary = lexicon().ordinary | lexicon().known
    behind = (chunk for before, chunk in itertools.pairwise(chunks) if before.lower() in leading)
    return (chunk for chunk in behind if chunk.lower() not in ordinary)


def report_of(page: Page, reading: Reading) -> dict[str, Any]:
    """In which form a report is, and where it goes."""
    forms = [token.norm for token in page.read.tokens if token.norm in ("pdf", "html", "markdown", "md")]
    own = {"format": {"md": "markdown"}.get(forms[0], forms[0])} if forms else {}
    files = [chunk for _, chunk in chunks_of(page) if chunk.lower().endswith(_REPORTS) and not chunk.startswith(".")]
    return own | ({"file": files[-1]} if files else {})


def import_of(page: Page, reading: Reading) -> dict[str, Any]:
    if page.pasted:
        return {"text": page.pasted}
    return {"file_paths": page.files.configs} if page.files.configs else {"text": page.read.text}
