"""What tools write: launch files, matrices of benchmark runs and their results, reports, rows of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from knowledge import figures
from pages.answers import steps
from pages.blocks import Block, Folded, Headline, Prose, Text
from pages.results.basis import notes
from pages.results.matrix import accuracy, predicted
from planner.files.expressible import SAYABLE
from planner.results import RenderedConfigs, WrittenConfigs, WrittenFile

if TYPE_CHECKING:
    from pages.report.report import RenderedReport, WrittenReport
    from planner.explain.results import Explanation
    from planner.matrix.render import WrittenMatrix
    from planner.matrix.results import MatrixResults
    from planner.records.catalogue import AddedRow, ShownRow
    from planner.records.scenarios import RenderedScenario

WITHHELD = (
    "**No files were written**, because this run would run out of memory. Say *write them anyway* if you want them as "
    "they are."
)
_MOST_CELLS = 12
_EXPLAINED = 3


def otherwise(configs: WrittenConfigs | RenderedConfigs) -> list[Block]:
    """That the files are of another layout than the one that was chosen, which they cannot say."""
    changes = [assumed for assumed in configs.assumptions if assumed.why.startswith(SAYABLE)]
    if not changes:
        return []
    values = ", ".join(f"{change.field.rpartition('.')[2]} {change.value}" for change in changes)
    why = changes[0].why.removeprefix(f"{SAYABLE}: ")
    return [Headline(f"The files use another layout than the best one: {values}, as {why}", beware=True)]


def written(configs: WrittenConfigs) -> list[Block]:
    names = [f"{_below(file.path, configs.folder)} ({figures.file_size(file.bytes)})" for file in configs.files]
    return [Headline(f"Files written to {configs.folder}:", True, f"{', '.join(names)}."), *_start(configs)]


def _below(path: str, folder: str) -> str:
    """The path from the folder on, where it lies in it."""
    return path.removeprefix(f"{folder.rstrip('/')}/")


def rendered(configs: RenderedConfigs) -> list[Block]:
    """A single file is the answer itself; of several the names are told, and their texts are details."""
    texts = [Text(file.text, file.path) for file in configs.files]
    names = ", ".join(f"`{file.path}`" for file in configs.files)
    last = f"Not on disk yet: {names}. Say *write the files* to save them."
    return [*(texts if len(texts) == 1 else [Folded(texts)]), *_start(configs), Prose(last)]


def _files(files: Iterable[WrittenFile]) -> list[Block]:
    return notes("", [f"{file.path} ({figures.file_size(file.bytes)})" for file in files])


def _start(made: WrittenConfigs | RenderedConfigs | WrittenMatrix) -> list[Block]:
    missing = notes("You still have to fill in", made.needs_from_user)
    left = len(made.needs_from_user)
    open = f" {left} thing{'s are' if left > 1 else ' is'} still to fill in." if missing else ""
    return [Prose(f"Start it with `{made.launch_command}`.{open}"), Folded(missing)]


def matrix(found: WrittenMatrix) -> list[Block]:
    """What a matrix holds and where it was written."""
    cells = found.cells
    more = f"and {len(cells) - _MOST_CELLS} more." if len(cells) > _MOST_CELLS else ""
    return [
        Prose(f"**A matrix of {len(cells)} cell{'' if len(cells) == 1 else 's'} is written** to `{found.folder}`."),
        *predicted(cells[:_MOST_CELLS]),
        Prose(more),
        *_start(found),
    ]


def measured(results: MatrixResults) -> list[Block]:
    """What the runs of a matrix gave against what was estimated."""
    missing = f", {len(results.missing)} have none yet." if results.missing else "."
    head = f"**{len(results.cells)} cells of `{results.folder}` have results**{missing}"
    return [Prose(head), *accuracy(results.accuracy)]


def report(page: WrittenReport) -> list[Block]:
    to = f" to `{page.files[0].path}`" if page.files else ""
    return [Prose(f"**The report is written**{to}: {page.title}. {page.verdict}"), *_files(page.files)]


def report_shown(page: RenderedReport) -> list[Block]:
    """What a report that is not written comes to; the whole of it is behind that."""
    return [Headline(f"{page.title}: {page.verdict}"), Folded([Text(page.markdown, verdict=page.verdict)])]


def added(row: AddedRow) -> list[Block]:
    return [Prose(f"**{row.id} is saved**; plans can name it now."), *notes("", [file.path for file in row.files])]


def shown(row: ShownRow) -> list[Block]:
    """A row of one's own as it would be kept."""
    texts = [Text(file.text, file.path) for file in row.files]
    return [Prose(f"**{row.id}**, not written yet. Say *add it* to keep it."), *texts]


def plan_text(plan: RenderedScenario) -> list[Block]:
    return [Text(file.text, file.path) for file in plan.files]


def explanation(figure: Explanation) -> list[Block]:
    """The figure, its formula and the numbers in it at first; where these are from behind them."""
    lines = figure.text.splitlines()
    return [
        Prose("\n".join(lines[:_EXPLAINED])),
        Folded([Prose("\n".join(lines[_EXPLAINED:]))]),
        *steps.explained(figure),
    ]
