"""What the tools for reports are asked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.asked.scenarios import CompareRequest


class ReportRequest(CompareRequest):
    title: str | None = Field(None, max_length=200, description="Of the report; the plan's name unless given.")


class ReportFileRequest(ReportRequest):
    file: str | None = Field(
        None, description="Where to write, ending in .html, .md or .pdf; ./reports/<name>.html unless given."
    )
    format: Literal["html", "markdown", "pdf"] | None = Field(None, description="Follows from the file's ending.")


class WriteReportRequest(ReportFileRequest):
    overwrite: bool = Field(False, description="Replace files that exist with other contents.")
