"""What `explain` returns. Numbers of figures and terms are in the unit beside them: SI, bytes, hours and USD."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.result import Assumption, Evidence, Result


class ExplainedTerm(Result):
    symbol: str
    value: float
    unit: str
    what: str
    enters: str = Field(description="How it comes into the figure: + or - in a sum, * or / in a product.")
    origin: str = Field(
        description="plan (you gave it), assumption, model, catalogue, fitted, software, price, constant or computed."
    )
    source: str | None = Field(description="Where the value comes from.")
    figure: str | None = Field(description="The figure that explains this term further; null for a last input.")


class Check(Result):
    """The arithmetic done again from the terms."""

    rule: str = Field(
        description="sum, product, rounded_up, rounded_down, least, most, or inputs: no single operation."
    )
    recomputed: float | None
    holds: bool | None = Field(description="Whether it is the value, to rounding; null for inputs.")


class ExplainedFigure(Result):
    figure: str
    name: str
    value: float | None
    unit: str
    symbol: str
    formula: str
    source: str = Field(description="Of the formula: paper, or framework and function.")
    code: str = Field(description="Where Shardwise does it.")
    terms: list[ExplainedTerm]
    check: Check
    note: str


class Interval(Result):
    """How the low and high of a figure come about."""

    below: float = Field(description="low = value / (1 + below).")
    above: float = Field(description="high = value * (1 + above).")
    coverage: float = Field(description="Part of measured runs that it is made to hold.")
    runs: int = Field(description="Measured runs of this framework or engine behind the half width.")
    how: str


class ExplainedOperator(Result):
    """An operator of the stage that takes longest, over a whole step on one device."""

    name: str
    phase: str
    shape: str = Field(description="Rows x columns x depth of a matmul; empty for others.")
    runs: float
    flop: float
    traffic_bytes: float | None
    seconds: float
    share: float = Field(description="Of the step.")
    bound: str = Field(description="compute, memory bandwidth or kernel launch.")


class ExplainedCollective(Result):
    component: str
    what: str
    group_size: int
    group_stride: int
    crosses_nodes: bool
    size_bytes: float = Field(description="The buffer of one call.")
    calls: float = Field(description="A step.")
    algorithm: str
    link_bytes_per_s: float = Field(description="Of one device, one way.")
    seconds: float = Field(description="A step, before anything hides it.")
    exposed_s: float | None = Field(description="What of it the step waits for; null where kinds share what is hidden.")


class MeasuredFigure(Result):
    name: str
    unit: str
    measured: float
    estimated: float = Field(description="What Shardwise says of that run.")
    error: float = Field(description="Relative: 0.1 is 10 % more than measured.")


class NearestRun(Result):
    id: str
    distance: float = Field(description="0 is the same run; about 2 is another framework, 3 another kind of device.")
    differs: dict[str, float] = Field(description="In what, and how much of the distance that is.")
    run: dict[str, str] = Field(description="What its source says of it.")
    source: str
    reference: str
    figures: list[MeasuredFigure]


class Explanation(Result):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    figure: str
    name: str
    value: float | bool | None
    unit: str
    low: float | None = Field(description="Of the 80 % interval; null where there is none.")
    high: float | None
    share: float | None = Field(description="Of the step or the memory that it is a part of; null for other figures.")
    formula: str
    symbol: str
    source: str
    code: str
    terms: list[ExplainedTerm]
    check: Check
    note: str
    steps: list[ExplainedFigure] = Field(description="The terms explained further, as deep as asked, nearest first.")
    operators: list[ExplainedOperator] = Field(description="For figures of compute time: those that take longest.")
    collectives: list[ExplainedCollective] = Field(description="For figures of communication: what is sent.")
    interval: Interval | None
    nearest: list[NearestRun] = Field(description="The measured runs most like this plan, the nearest first.")
    text: str = Field(description="The same in a few lines of Markdown.")
    figures: list[str] = Field(description="Figures near this one that can be asked for too.")
    warnings: list[str]
    evidence: list[Evidence]
