"""What the tools are asked that look something up, and what one adds to what is known."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from knowledge.own.rows import HardwareRow, ModelRow, PriceRow
from planner.requests import EitherRequest

Where = Literal["user", "project"]
_FOR = "For all the user's projects, or for the one in the working folder (./.shardwise)."
_MOST_ROWS = 500


class AdviseRequest(EitherRequest):
    topics: list[str] | None = Field(
        None, max_length=1_000, description="Only these topics of the playbook; all unless given."
    )
    limit: int = Field(12, ge=1, le=200, description="How many pieces of advice to return.")
    all: bool = Field(
        False, description="Whether to return every entry that applies, changes that gain nothing included."
    )


class CatalogueQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["hardware", "models", "prices"] = Field(description="What to list.")
    query: str | None = Field(None, max_length=200, description="Words that must be in its names, vendor or family.")
    only_own: bool = Field(False, description="Only what the user added.")
    limit: int = Field(100, ge=1, le=_MOST_ROWS, description="Most rows to list.")


class HardwareToShow(HardwareRow):
    where: Where = Field("user", description=_FOR)


class HardwareToAdd(HardwareToShow):
    overwrite: bool = Field(False, description="Replace the file of that name.")


class ModelToShow(ModelRow):
    where: Where = Field("user", description=_FOR)


class ModelToAdd(ModelToShow):
    overwrite: bool = Field(False, description="Replace the file of that name.")


class PriceToShow(PriceRow):
    where: Where = Field("user", description=_FOR)


class PriceToAdd(PriceToShow):
    overwrite: bool = Field(False, description="Replace the file of that name.")
