"""What tools write: launch files, matrices of benchmark runs and their results, reports, rows of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pages import figures
from pages.answers.markdown import bullets, label, table
from planner.results import RenderedConfigs, WrittenConfigs, WrittenFile

if TYPE_CHECKING:
    from pages.report.report import WrittenReport
    from planner.explain.results import Explanation
    from planner.matrix.render import MatrixCell, WrittenMatrix
    from planner.matrix.results import Accuracy, MatrixResults
    from planner.records.catalogue import AddedRow
    from planner.records.scenarios import RenderedScenario

WITHHELD = (
    "**No files were written**, because this run would run out of memory. Say *write them anyway* if you want them as "
    "they are."
)
_LANGUAGES = {"yaml": "yaml", "yml": "yaml", "json": "json", "sbatch": "bash", "sh": "bash", "py": "python"}
_MOST_CELLS = 12


def written(configs: WrittenConfigs) -> list[str]:
    head = f"**Files written** to `{configs.folder}`:"
    return [*bullets(head, map(_file, configs.files)), _start(configs.launch_command), *_fill_in(configs)]


def rendered(configs: RenderedConfigs) -> list[str]:
    blocks: list[str] = []
    for file in configs.files:
        language = _LANGUAGES.get(file.path.rpartition(".")[2], "")
        fence = "````" if "```" in file.text else "```"
        blocks.append(f"`{file.path}`\n{fence}{language}\n{file.text.rstrip()}\n{fence}")
    last = "Nothing is on disk yet; say *write the files* to save them."
    return [*blocks, _start(configs.launch_command), *_fill_in(configs), last]


def _file(file: WrittenFile) -> str:
    return f"`{file.path}` ({figures.file_size(file.bytes)})"


def _start(command: str) -> str:
    return f"Start it with `{command}`."


def _fill_in(configs: WrittenConfigs | RenderedConfigs) -> list[str]:
    return bullets("You still have to fill in:", configs.needs_from_user)


def matrix(found: WrittenMatrix) -> list[str]:
    """What a matrix holds and where it was written."""
    cells = found.cells
    rows = table(("Strategy", "model", "on", "layout", "step"), map(_cell, cells[:_MOST_CELLS]), words=2)
    more = f"\n\nand {len(cells) - _MOST_CELLS} more." if len(cells) > _MOST_CELLS else ""
    return [
        f"**A matrix of {len(cells)} cell{'' if len(cells) == 1 else 's'} is written** to `{found.folder}`.",
        *([f"{rows}{more}"] if cells else []),
        _start(found.launch_command),
        *bullets("It needs from you:", found.needs_from_user[:_MOST_CELLS]),
    ]


def _cell(cell: MatrixCell) -> tuple[Any, ...]:
    step = cell.predicted.step_s if cell.predicted else None if cell.fits else "does not fit"
    model = cell.model.rpartition("/")[2]
    return cell.strategy, model, f"{cell.devices} x {cell.platform}", cell.summary, step


def measured(results: MatrixResults) -> list[str]:
    """What the runs of a matrix gave against what was estimated."""
    missing = f", {len(results.missing)} have none." if results.missing else "."
    head = f"**{len(results.cells)} cells of `{results.folder}` have results**{missing}"
    return [head, *bullets("Measured against estimated:", map(_accuracy, results.accuracy))]


def _accuracy(row: Accuracy) -> str:
    return ", ".join(f"{label(name)} {figures.plain(value)}" for name, value in row if value is not None)


def report(page: WrittenReport) -> list[str]:
    return [f"**The report is written**: {page.title}.", page.verdict, *bullets("", map(_file, page.files))]


def row(added: AddedRow | RenderedScenario) -> list[str]:
    return ["Done.", *bullets("", [f"`{file.path}`" for file in added.files])]


def explanation(figure: Explanation) -> list[str]:
    return [figure.text]
