"""The same figure reads the same on the command line, in the app's cards and pane, in Markdown, in a report and in the
offline chat's answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from typing import Any

import pytest
from pydantic import BaseModel

from agent.offline.answers import serving as told_serving
from agent.offline.answers import training as told_training
from agent.offline.answers import wishes as told_wishes
from agent.offline.turn import TurnWork
from agent.wire import Call, Outcome
from estimator.plan.schema import Plan
from knowledge import figures
from knowledge.figure_facts import figures as described
from pages.blocks import Block, Details, Figures, Table, value_of
from pages.rendering import html, markdown, terminal
from pages.report.serving import serving
from pages.report.training import training
from pages.results.advice import gain_words
from pages.results.of_results import VIEWS, blocks_of
from pages.results.overview import Overview, figure_rows, fold
from planner.advice.advise import Advice
from planner.explain.results import Explanation
from tools.registry import find, registry
from tui.result_page import page

TRAINED: dict[str, Any] = {"model": "qwen2.5-0.5b", "accelerator": "h100", "count": 2, "dataset_tokens": "100M"}
SERVED: dict[str, Any] = {"model": "qwen2.5-0.5b", "accelerator": "h100", "concurrency": 8, "ttft_slo_ms": 500}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "fit": ("check_fit", TRAINED),
    "estimate": ("estimate_training", TRAINED),
    "layouts": ("best_parallelism", TRAINED),
    "clusters": ("recommend_cluster", {"model": "qwen2.5-0.5b", "dataset_tokens": "100M", "accelerators": ["h100"]}),
    "cost": ("estimate_cost", TRAINED),
    "compare": ("compare", TRAINED | {"over": {"method": ["full", "lora"]}}),
    "advise": ("advise", TRAINED),
    "explain": ("explain", TRAINED | {"figure": "mfu"}),
    "serving": ("estimate_inference", SERVED),
    "limits": ("find_limit", TRAINED | {"goal": "micro_batch"}),
}
WIDTH = 400


@cache
def result(name: str) -> BaseModel:
    tool, arguments = CALLS[name]
    return find(tool).run(arguments)


def cells(blocks: Sequence[Block]) -> Iterator[tuple[str, str]]:
    """(Label, text) of every labelled value and every cell of a table."""
    for block in blocks:
        match block:
            case Figures(rows):
                yield from ((row[0], value_of(row)) for row in rows)
            case Table(head=head, rows=rows):
                yield from ((label, cell) for row in rows for label, cell in zip(head, row, strict=True))
            case Details(blocks=inner):
                yield from cells(inner)


def plain(text: str) -> str:
    """Without the marks of a face, and on one line."""
    text = unescape(re.sub(r"<[^>]+>", " ", text))
    return re.sub(r"\s+", " ", text.replace("\\", "").replace("|", " ").replace("**", ""))


def values(found: BaseModel) -> Iterator[tuple[str, float]]:
    """(Key, value) of every number of a result that the table of figures has a label for."""
    for key, value in found:
        if isinstance(value, BaseModel):
            yield from values(value)
        elif isinstance(value, list | tuple):
            for each in value:
                if isinstance(each, BaseModel):
                    yield from values(each)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield key, value


@pytest.mark.parametrize("name", CALLS)
def test_every_figure_reads_the_same_on_every_face(name: str) -> None:
    blocks = blocks_of(result(name))
    # What is longer is words, and broken over lines.
    said = [(label, text) for label, text in cells(blocks) if re.search(r"\d", text) and len(text) < 60]
    assert said
    faces = {
        "command line": plain(terminal.render(blocks, WIDTH)),
        "card": plain(page(result(name), WIDTH, colour=False).whole().plain),
        "markdown": plain(markdown.render(blocks)),
        "report": plain(html.render(blocks)),
    }
    for face, text in faces.items():
        for label, value in said:
            assert plain(value).strip() in text, f"{label} reads otherwise in {face}"


@pytest.mark.parametrize("name", CALLS)
def test_a_labelled_figure_is_written_by_its_row_alone(name: str) -> None:
    """Whatever stands under a label is how knowledge.figures writes one of the result's values of that figure."""
    found = result(name)
    written: dict[str, set[str]] = {}
    for key, value in values(found):
        written.setdefault(figures.label(key), set()).add(figures.shown(key, value))
    # Shares of memory are worked out where they are shown.
    labels = {row.label for row in described().values() if row.label} - {"share"}
    for label, text in cells(blocks_of(found)):
        if label in labels & written.keys() and text != figures.NONE and re.match(r"[$\d]", text):
            assert text.partition(" (")[0] in written[label], f"{label}: {text}"


@pytest.mark.parametrize(("name", "told"), [("estimate", training), ("serving", serving)])
def test_pane_and_report_have_the_figures_of_the_command_line(name: str, told: Any) -> None:
    found = result(name)
    plan = vars(found)["plan"]
    # Of several places the first: the others are of other layouts and loads.
    report = dict(reversed(list(cells(told(Plan.parse(plan), {}).blocks))))
    pane = fold(Overview(), found).figures
    command_line = dict(cells(blocks_of(found)))
    rows = figure_rows(found)
    assert len(rows) >= 8
    # The front page of a report has the figures that decide, not all of them.
    assert len([row for row in rows if row[0] in report]) >= 6
    for row in rows:
        assert pane[row[0]] == value_of(row) == command_line[row[0]]
        assert report.get(row[0], row[1]).partition(" (")[0] == row[1]


# What the chat asks its tools for an answer about each.
ASKED = {name: (name,) for name in CALLS} | {"fit": ("estimate", "fit"), "cost": ("estimate", "cost")}
INTENTS = ["fit", "layout", "why"]


def chat(name: str) -> str:
    """The offline answer in Markdown."""
    outcomes = [Outcome(Call("1", *CALLS[part]), result(part).model_dump(mode="json")) for part in ASKED[name]]
    work = TurnWork(
        start=0, kind="training", intents=INTENTS, limit={"goal": "micro_batch"} if name == "limits" else None
    )
    if name in ("clusters", "compare", "advise", "explain"):
        return told_wishes.compose({}, work, outcomes)[0]
    if name == "serving":
        return told_serving.compose({}, work, outcomes)[0]
    return told_training.compose({}, work, outcomes)[0]


def in_tables(text: str) -> Iterator[tuple[str, str]]:
    """(Label, text) of every cell of the tables in Markdown; of those without heads the first column has the labels."""
    head: list[str] | None = None
    for line in text.splitlines():
        row = [plain(cell).strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not row:
            head = None
        elif head is None:
            head = row
        elif not re.fullmatch(r"[-:]+", "".join(row)):
            yield from zip(head, row, strict=True) if any(head) else [(capital(row[0]), row[1])]


def capital(label: str) -> str:
    return label[:1].upper() + label[1:]


@pytest.mark.parametrize("name", CALLS)
def test_the_chat_has_the_figures_of_the_other_faces(name: str) -> None:
    found, text = [result(part) for part in ASKED[name]], chat(name)
    known: dict[str, set[str]] = {}
    for label, value in (cell for each in found for cell in cells(blocks_of(each))):
        known.setdefault(capital(label), set()).add(plain(value).strip())
    for key, value in (pair for each in found for pair in values(each)):
        known.setdefault(capital(figures.label(key)), set()).add(figures.shown(key, value))
    labels = {capital(row.label) for row in described().values() if row.label}
    told = [(label, cell) for label, cell in in_tables(text) if label in labels and re.match(r"[$\d]", cell)]
    match found[-1]:
        case Explanation() as figure:
            assert figures.amount(figure.figure, figure.unit, figure.value) in text
        case Advice(entries=entries):
            assert any(gain_words(row) in text for row in entries if row.gain)
        case _:
            assert len(told) >= 4
    for label, cell in told:
        assert cell in known[label] or cell.partition(" (")[0] in known[label], f"{label}: {cell}"


def test_every_result_of_a_tool_has_its_page() -> None:
    assert {tool.response.__name__ for tool in registry().values()} <= VIEWS.keys()


def test_figures_of_results_are_described() -> None:
    """Numbers that stand in tables have a label, so that nothing is guessed from a name."""
    for name in CALLS:
        for block_label, _ in cells(blocks_of(result(name))):
            assert "_" not in block_label, f"{name}: {block_label}"


def test_a_figure_says_which_end_is_better_where_one_is() -> None:
    for key, end in {
        "step_s": "lower",
        "tokens_per_s": "higher",
        "mfu": "higher",
        "usd": "lower",
        "replicas": "",
    }.items():
        assert figures.better(key) == end
