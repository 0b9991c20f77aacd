"""Pages of launch files and of reports that were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge.figures import file_size
from pages.blocks import Block, Figures, Headline, Text
from pages.results.basis import notes, tail
from pages.results.plan import plan_figures
from planner.results import RenderedConfigs, WrittenConfigs

if TYPE_CHECKING:  # a report draws on all that can be estimated
    from pages.report.report import RenderedReport, ReportFiles, WrittenReport


# What files of a plan begin with that is late or has no room.
_SERIOUS = "WARNING: "


def configs(result: RenderedConfigs | WrittenConfigs) -> list[Block]:
    serious = [text.removeprefix(_SERIOUS) for text in result.warnings if text.startswith(_SERIOUS)]
    late = " ".join(f"{text[:1].upper()}{text[1:]}." for text in serious)
    count = f"{len(result.files)} file{'s' if len(result.files) != 1 else ''}"
    if isinstance(result, WrittenConfigs):
        head = _head(late, f"{count} written to {result.folder}.", True)
        files = notes("Written", [f"{file.path}  {file_size(file.bytes)}" for file in result.files])
    else:
        head = _head(late, f"{count}, not written yet: --write DIR writes them (in the app, /config write).", None)
        files = [Text(file.text, f"{file.path} ({file.target})") for file in result.files]
    return [
        head,
        *plan_figures(result.plan),
        *files,
        *([Figures([("start with", result.launch_command)])] if result.launch_command else []),
        *notes("You still have to fill in", result.needs_from_user),
        *tail(result.warnings, result.assumptions),
    ]


def _head(late: str, done: str, good: bool | None) -> Headline:
    """What became of the files, behind what hurts."""
    return Headline(late, False, done) if late else Headline(done, good)


def report(result: RenderedReport) -> list[Block]:
    """Markdown as it is, for a file or a pipe."""
    return [Text(result.markdown, verdict=result.verdict)]


def written_report(result: WrittenReport) -> list[Block]:
    head = f"{result.file} written ({result.format}, {file_size(result.bytes)})."
    return [Headline(head, True), *notes("", [result.verdict] if result.verdict else [])]


def report_files(result: ReportFiles) -> list[Block]:
    names = [file.path for file in result.files]
    told = f"Not written yet: {', '.join(names)} in {result.folder}."
    return [Headline(": ".join(filter(None, (result.title, result.verdict))), None, told)]
