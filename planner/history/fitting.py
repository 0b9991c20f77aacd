"""What a local calibration did, before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from measure.fit.own import FamilyFit
from planner.result import Result


class FamilyCalibration(Result):
    family: str
    runs: int
    frameworks: dict[str, int]
    error_before: float = Field(description="Mean error of the shipped factors on these runs, as a fraction.")
    error_after: float | None = Field(description="Of runs that were left out of the fit; null for one run alone.")
    step: float = Field(description="What a whole step takes here, as a multiple of what is shipped.")
    helps: bool = Field(
        description="Whether it counts: those of all families that were left out are estimated better by a tenth."
    )


class LocalCalibration(Result):
    families: list[FamilyCalibration]
    file: str | None = Field(description="Where it was written; null where nothing was.")


def told(fits: Sequence[FamilyFit], file: str | None) -> LocalCalibration:
    rows = [
        FamilyCalibration(
            family=fit.family,
            runs=fit.runs,
            frameworks=fit.frameworks,
            error_before=math.expm1(fit.before),
            error_after=None if fit.after is None else math.expm1(fit.after),
            step=fit.step,
            helps=fit.used,
        )
        for fit in fits
    ]
    return LocalCalibration(families=rows, file=file)
