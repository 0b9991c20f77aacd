"""report: a plan or a comparison as a page to hand on, in HTML, Markdown or PDF."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference
from launchers.pieces import File, Rendered
from launchers.writing import write
from pages.blocks import Block, Chart, Details, Headline, ranked
from pages.rendering import html, markdown
from pages.rendering.drawing import svg
from pages.report.comparison import comparison
from pages.report.request import ReportFileRequest, ReportRequest, WriteReportRequest
from pages.report.sections import Told
from pages.report.serving import serving
from pages.report.training import training
from planner.clock import today
from planner.compare.scenarios import CompareRequest
from planner.files.below import inside_root
from planner.result import Result
from planner.results import RenderedFile, WrittenFile

_FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".pdf": "pdf"}


class RenderedReport(Result):
    title: str
    verdict: str
    markdown: str


class ReportFiles(Result):
    title: str
    verdict: str
    folder: str
    files: list[RenderedFile] = Field(description="As they would be written; of a PDF its words as Markdown.")


class WrittenReport(Result):
    title: str
    verdict: str
    file: str
    format: str
    bytes: int
    pictures: list[str] = Field(description="Pictures written beside a Markdown report.")
    folder: str
    files: list[WrittenFile]
    sections: list[str]


@dataclass(frozen=True)
class Report:
    """`made` says when and of what; the first of the blocks is the verdict."""

    title: str
    blocks: Sequence[Block]
    made: str

    @property
    def verdict(self) -> str:
        return next(block.text for block in self.blocks if isinstance(block, Headline))

    @property
    def sections(self) -> list[Details]:
        lead, appendix = ranked(self.blocks)
        return [block for block in (*lead, *appendix) if isinstance(block, Details)]


def render_report(request: ReportRequest) -> RenderedReport:
    """Render a report."""
    made = _report(request)
    return RenderedReport(title=made.title, verdict=made.verdict, markdown=_markdown(made))


def preview_report(request: ReportFileRequest) -> ReportFiles:
    """Preview a report's files."""
    made = _report(request)
    path, kind = _place(request, made)
    files = _files(made, path.name, kind)
    shown = [RenderedFile(path=file.path, target=file.target, text=file.text) for file in files]
    return ReportFiles(title=made.title, verdict=made.verdict, folder=str(path.parent), files=shown)


def report(request: WriteReportRequest) -> WrittenReport:
    """Write a report."""
    made = _report(request)
    path, kind = _place(request, made)
    files = _files(made, path.name, kind)
    if kind == "pdf":
        files = [File(path.name, "report", "", data=_pdf(made))]
    written = write(Rendered(tuple(files), "", ()), path.parent, overwrite=request.overwrite)
    return WrittenReport(
        title=made.title,
        verdict=made.verdict,
        file=written[0].path,
        format=kind,
        bytes=written[0].bytes,
        pictures=[file.path for file in written[1:]],
        folder=str(path.parent),
        files=[WrittenFile(path=file.path, target=file.target, bytes=file.bytes) for file in written],
        sections=[section.title for section in made.sections],
    )


def _files(made: Report, name: str, kind: str) -> list[File]:
    """The Markdown with its pictures beside it, or the page; of a PDF its words as Markdown."""
    if kind == "markdown":
        pictures = _pictures(made, Path(name).stem)
        links = {title: file for title, (file, _) in pictures.items()}
        files = [File(name, "report", _markdown(made, links))]
        return files + [File(file, "report", text) for file, text in pictures.values()]
    if kind == "pdf":
        return [File(name, "report", _markdown(made))]
    return [File(name, "report", html.page(made.title, made.blocks, made.made))]


def _report(request: ReportRequest) -> Report:
    if request.scenarios is not None or request.over is not None:
        asked = {
            name: getattr(request, name) for name in CompareRequest.model_fields if name in request.model_fields_set
        }
        told = comparison(CompareRequest.model_validate(asked).model_dump(exclude_unset=True, mode="json"))
    else:
        told = _of_one(request)
    name = request.title or request.base().get("name") or told.subject
    return Report(
        title="".join(character if character.isprintable() else " " for character in name),
        blocks=told.blocks,
        made=f"{made_today()} Every figure is an estimate with its 80 % interval; the evidence above says what each "
        "rests on.",
    )


def made_today() -> str:
    """What stands below a page that is kept."""
    return f"Made by Shardwise {version('shardwise')} on {today().isoformat()}."


def _markdown(made: Report, pictures: Mapping[str, str] | None = None) -> str:
    return markdown.page(made.title, made.blocks, made.made, pictures)


def _pdf(made: Report) -> bytes:
    """Raises PlanError where the library for it is missing."""
    try:
        from pages.rendering import pdf  # fpdf2 is an extra
    except ModuleNotFoundError as error:
        if error.name not in ("fpdf", "defusedxml"):
            raise
        problem = "PDF needs fpdf2, which is not installed; `pip install 'shardwise[pdf]'` brings it"
        raise PlanError("format", problem, ["html", "markdown"]) from None
    return pdf.page(made.title, made.blocks, made.made, today())


def _of_one(request: ReportRequest) -> Told:

    plan = request.to_plan()
    price = {} if request.usd_per_device_hour is None else {"usd_per_device_hour": request.usd_per_device_hour}
    return (serving if isinstance(plan.workload, Inference) else training)(plan, price)


def _place(request: ReportFileRequest, made: Report) -> tuple[Path, str]:
    """Where the report goes, and its format. Raises PlanError."""
    if request.file is None:
        kind = request.format or "html"
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", made.title).strip("-.")[:80] or "report"
        ending = {"html": ".html", "markdown": ".md", "pdf": ".pdf"}[kind]
        return inside_root(f"reports/{stem}{ending}"), kind
    path = inside_root(request.file)
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise PlanError("file", f"{path.name!r} does not end as a report does", [".html", ".md", ".pdf"])
    if request.format is not None and request.format != kind:
        raise PlanError("format", f"{request.format} does not go with a file that ends in {path.suffix}", [kind])
    return path, kind


def _pictures(made: Report, stem: str) -> dict[str, tuple[str, str]]:
    """File name and text of each plot, by its title."""
    charts = [block for section in made.sections for block in section.blocks if isinstance(block, Chart)]
    pictures: dict[str, tuple[str, str]] = {}
    for number, chart in enumerate(charts, 1):
        title = chart.plot.title
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60]
        pictures[title] = (f"{stem}-{number}-{name}.svg", svg(chart.plot, alone=True, places=chart.places))
    return pictures
