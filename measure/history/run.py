"""A run of one's own: its plan as far as it is known, what was measured of it, and its steps."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from estimator.errors import STEERING

FORMAT = "shardwise-run/1"
# Steps that are kept of a run: enough for any plot.
MOST_STEPS = 2000
_OF_A_STEP = ("seq_len", "global_batch")
# Beyond this two figures of which one follows from the other contradict each other.
_ALIKE = 0.05
_ABOUT = {"name", "tags", "note", "source", "format", "predicted", "exported_as"}

PeakKind = Literal["allocated", "reserved", "nvidia-smi", "unknown"]


# Beyond it a figure is a slip of whoever wrote it down; the largest that are, bytes and tokens, are far below.
MOST = 1e18
Measured = Annotated[float, Field(ge=0, le=MOST)]


def _printable(text: str) -> str:
    """Without what a terminal or a reader would take for more than text: escapes, and marks that turn its direction."""
    return STEERING.sub(" ", text)


# What people and programs called a run and said of it: files of it travel.
Told = Annotated[str, AfterValidator(_printable)]


def can_be(value: float) -> bool:
    """Whether a figure may have been measured: finite, not below zero, and no larger than any is."""
    return 0.0 <= value <= MOST


class StepSeries(BaseModel):
    """What a program printed of its steps, a column a quantity; null where it printed none at that step."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    step: list[int] = Field(default_factory=list)
    step_s: list[float | None] = Field(default_factory=list, description="Seconds that the step took.")
    loss: list[float | None] = Field(default_factory=list)
    learning_rate: list[float | None] = Field(default_factory=list)
    gradient_norm: list[float | None] = Field(default_factory=list)
    memory_bytes: list[float | None] = Field(default_factory=list)
    tokens_per_s_per_device: list[float | None] = Field(default_factory=list)
    tflops_per_device: list[float | None] = Field(default_factory=list, description="As the program counts them.")

    @model_validator(mode="after")
    def _columns_are_as_long(self) -> Self:
        if {len(column) for name, column in self if column} - {len(self.step)}:
            raise ValueError("the columns of a series are as long as that of its steps")
        return self

    def column(self, name: str) -> list[float | None]:
        """A quantity at every step."""
        return list(getattr(self, name)) or [None] * len(self.step)

    def thinned(self, most: int = MOST_STEPS) -> StepSeries:
        """Every so many steps, so that `most` are left, the last among them."""
        count = len(self.step)
        if count <= most:
            return self
        places = sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})
        return StepSeries.model_validate({name: [column[at] for at in places] for name, column in self if column})


class MeasuredRun(BaseModel):
    """One run that somebody made, as history keeps it and as one file shares it."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    format: Literal["shardwise-run/1"] = FORMAT
    name: Told = Field(default="", max_length=200, description="What its owner calls it.")
    kind: Literal["training", "serving"] = "training"
    source: Told = Field(
        default="number", max_length=400, description="Where it is from: a log's kind and file, or 'number'."
    )
    date: str | None = Field(
        default=None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", description="Day of the run, 2026-01-31."
    )
    plan: dict[str, Any] = Field(default_factory=dict, description="The Plan as far as it is known.")
    outcome: Literal["ran", "oom", "failed"] = Field(default="ran", description="oom: it ran out of device memory.")
    figures: dict[str, Measured] = Field(
        default_factory=dict,
        description="Measured, by the names of figures: step_s, tokens_per_s_per_device, tflops_per_device, mfu, "
        "peak_bytes; of serving output_tokens_per_s, ttft_s, tpot_s, e2e_s. Medians of the steady part.",
    )
    spread: dict[str, tuple[Measured, Measured]] = Field(
        default_factory=dict, description="Quartiles of figures that were measured many times."
    )
    predicted: dict[str, Measured] = Field(default_factory=dict, description="What was estimated before it ran.")
    peak_kind: PeakKind = Field(default="unknown", description="Counter of peak_bytes.")
    steps: int | None = Field(default=None, ge=0, description="Steps of the steady part that the figures are of.")
    start_s: Measured | None = Field(default=None, description="Start-up: what the first steps took beyond later ones.")
    software: dict[Told, Told] = Field(default_factory=dict, description="Versions by name, e.g. {torch: 2.9.0}.")
    findings: list[Told] = Field(default_factory=list, description="What does not belong together, or stands out.")
    tags: list[Told] = Field(default_factory=list)
    note: Told = Field(default="", max_length=2000)
    series: StepSeries = Field(default_factory=StepSeries)
    exported_as: str = Field(
        default="", max_length=10, description="Its id before it was a line of CSV, which has no steps."
    )

    @property
    def id(self) -> str:
        """Of what was measured: the same run read twice has one id, and a line of CSV that of its run."""
        if self.exported_as:
            return self.exported_as
        data = self.model_dump(mode="json", exclude=_ABOUT)
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:10]

    def planned(self, path: str) -> Any:
        """A value of the plan by its dotted path; None where it is not known."""
        value: Any = self.plan
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    @property
    def devices(self) -> int | None:
        count = self.planned("cluster.count")
        return count if isinstance(count, int) else None

    def figure(self, name: str) -> float | None:
        """What was measured of a figure; None where nothing was."""
        return self.figures.get(name)

    @property
    def rate_per_device(self) -> float | None:
        """Tokens per second and device, of a step's time where that alone was measured; of serving those of answers."""
        if self.kind == "training":
            return self.figures.get("tokens_per_s_per_device") or self._rate_of_all or self._rate_of_a_step
        rate = self.figures.get("output_tokens_per_s")
        return rate / self.devices if rate and self.devices else None

    @property
    def tokens_of_a_step(self) -> float | None:
        """Of one device; None where the plan leaves it open."""
        sizes = [self.planned(f"workload.{name}") for name in _OF_A_STEP]
        if not all(isinstance(size, int) and size > 0 for size in (*sizes, self.devices)):
            return None
        return math.prod(sizes) / (self.devices or 1)

    @property
    def _rate_of_all(self) -> float | None:
        samples, seq_len = self.figures.get("samples_per_s"), self.planned("workload.seq_len")
        tokens = self.figures.get("tokens_per_s") or (samples * seq_len if samples and seq_len else None)
        return tokens / self.devices if tokens and self.devices else None

    @property
    def _rate_of_a_step(self) -> float | None:
        step_s, tokens = self.figures.get("step_s"), self.tokens_of_a_step
        return tokens / step_s if step_s and tokens else None

    @property
    def contradiction(self) -> str | None:
        """Why its rate and its step time, both measured, are not of one run of its plan. A step time without a spread
        is a mean over more than steps, which may well be the longer."""
        rate, step_s, would_be = self.figure("tokens_per_s_per_device"), self.figure("step_s"), self._rate_of_a_step
        if not (rate and step_s and would_be):
            return None
        ratio = rate / would_be
        if abs(math.log(ratio)) <= math.log1p(_ALIKE) or (ratio > 1.0 and "step_s" not in self.spread):
            return None
        batch, length = self.planned("workload.global_batch"), self.planned("workload.seq_len")
        return (
            f"{rate:,.0f} tokens/s and device do not belong to steps of {step_s:.4g} s: {batch:,} sequences of "
            f"{length:,} tokens on {self.devices:,} devices would be {would_be:,.0f}; the batch, the length or "
            "the number of devices is another one, or padding counts"
        )

    @property
    def version(self) -> str:
        """The software that it ran on: of its framework, else of all that is known."""
        framework = self.planned("workload.framework") or self.planned("workload.engine")
        version = self.planned("workload.software_version")
        if framework or version:
            return " ".join(str(part) for part in (framework, version or self.software.get(str(framework))) if part)
        return ", ".join(f"{name} {number}" for name, number in sorted(self.software.items()))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """(Lower quartile, median, upper quartile) of at least one value."""
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return at(0.25), at(0.5), at(0.75)
