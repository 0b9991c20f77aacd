"""Runs of one's own in the person's words: which of them are listed, what is to be timed, where results lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.offline.form import Reading
from agent.offline.language.calendar import since
from agent.offline.language.lexicon import lexicon
from agent.offline.language.own.files import bare_names, folder_of, settings
from agent.offline.language.own.given import chunks, is_id, take
from agent.offline.language.rows import Row

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_OF_PROGRAMS = ("framework", "engine")
# How far from a number what it counts may be named.
_NEAR = 2
_COUNTED = {"warmup": "warmup_steps", "timed": "measured_steps", "repeats": "repeats", "part": "layers"}
_SCHEDULERS = ("slurm", "ssh", "compose", "skypilot", "kubernetes-trainjob")
_FORMATS = ("json", "yaml")
# What a plan is called that is only shown.
_SHOWN_AS = "plan"


def goes_on_with_runs(page: Page, before: str | None) -> str | None:
    """The tool of a turn that only says more of which runs are listed, or of how a plan is timed."""
    read = page.read
    if read.asked("focus") or read.asked("mode") or read.of("model"):
        return None
    if before == "render_benchmark" and read.asked("timing"):
        return before
    if before == "list_runs" and "?" not in read.text and history_of(page, Reading("")) != page.last[1]:
        return before
    return None


def history_of(page: Page, reading: Reading) -> dict[str, Any]:
    """Which runs of one's own are listed."""
    tool, own = page.last
    chosen = dict(own) if tool == "list_runs" else {}
    if len(ids := list(dict.fromkeys(name.id for name in page.read.of("run")))) > 1:
        # 'Compare run 29e48b7797 with 55bdfc83.'
        chosen["runs"] = ids
    if day := since(page.read, page.now):
        chosen["since"] = day
    if tag := _behind(page, "tag"):
        chosen["tag"] = tag
    programs = [str(value.value) for value in page.read.values if value.field in _OF_PROGRAMS]
    if version := _version(page) or next(iter(programs), None):
        chosen["software"] = version
    for kind in ("model", "accelerator"):
        if names := [name.id for name in page.read.of(kind) if name.id]:
            chosen[kind] = names[0]
    return chosen


def _behind(page: Page, part: str) -> str | None:
    """The name behind a word: 'tagged moe', 'tag가 ablation인'."""
    for _, end, name in page.read.asked_at("row_part"):
        if name == part:
            rest = page.read.text[page.read.tokens[end - 1].end :]
            return next((chunk for chunk in chunks(rest) if chunk.lower() not in lexicon().ordinary), None)
    return None


def _version(page: Page) -> str | None:
    """'Torch 2.9' as its version."""
    for row in page.read.rows:
        before = page.read.tokens[row.start - 1].norm if row.start else ""
        if before in ("torch", "pytorch", "cuda", "rocm") and not row.amounts[-1].units:
            return f"{row.amounts[-1].value:g}"
    return None


def benchmark_of(page: Page, reading: Reading) -> dict[str, Any]:
    """How a plan is timed: steps, repeats, how much of the model, what runs it."""
    tool, own = page.last
    timing = dict(own) if tool == "render_benchmark" else {}
    for row in page.read.rows:
        if name := _counts(page, row):
            timing[name] = int(row.amounts[-1].value)
            take(page, [row])
    if any(name == "trace" for _, _, name in page.read.asked_at("timing")):
        timing["profile"] = True
    named = [name for name in page.read.asked("target") if name in _SCHEDULERS]
    return timing | ({"scheduler": named[0]} if named else {}) | settings(page)


def _counts(page: Page, row: Row) -> str | None:
    """What of a benchmark a number counts: what is named right behind it, else right before it."""
    amount, length = row.amounts[-1], len(page.read.tokens)
    if amount.value != int(amount.value) or amount.per or row.start in page.read.named_tokens:
        return None
    named = {at: name for at, _, name in page.read.asked_at("timing")}
    around = [*range(row.start, min(row.end + _NEAR, length)), *range(row.start - 1, row.start - 1 - _NEAR, -1)]
    for at in around:
        if name := _COUNTED.get(named.get(at, "")):
            return name
        if at >= row.end and page.read.tokens[at].ends_clause:
            break
    if amount.unit("steps"):
        return "measured_steps"
    return "layers" if amount.unit("layers") else None


def results_of(page: Page, reading: Reading) -> dict[str, Any]:
    """Where the results of a matrix or of a benchmark lie; a turn that does not say it means the folder before."""
    _, own = page.last
    paths = [path for path in chunks(page.read.text) if "/" in path and not (is_id(path) and _is_model(page, path))]
    bare = bare_names(chunks(page.read.text), lexicon().into | {"for", "of"})
    bare_folder = next((name for name in bare if not name.isdigit()), None)
    folder = next(iter(paths), None) or folder_of(page) or bare_folder or own.get("folder")
    return {"folder": folder} if folder else {}


def _is_model(page: Page, chunk: str) -> bool:
    return any(name.id and chunk.lower() in str(name.id).lower() for name in page.read.of("model"))


def scenario_text(page: Page, reading: Reading) -> dict[str, Any]:
    """In which form a plan is shown."""
    forms = [token.norm for token in page.read.tokens if token.norm in _FORMATS]
    named = [name.text for name in page.read.of("scenario")]
    return ({"format": forms[0]} if forms else {}) | {"name": (named or [_SHOWN_AS])[0]}
