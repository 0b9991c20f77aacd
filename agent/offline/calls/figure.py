"""Which figure 'where does that come from?' is about, among what was answered before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.grounding.figures import figures_in
from agent.grounding.origins import keyed
from agent.wire import Content
from planner.partial import is_serving

_NEARLY = 1e-6


def earlier(messages: Sequence[Content]) -> list[Mapping[str, Any]]:
    """Results of the conversation, the latest first."""
    responses = [
        part["functionResponse"]["response"]
        for content in messages
        for part in content["parts"]
        if part.get("functionResponse")
    ]
    return responses[::-1]


def resolved(figure: str, plan: Mapping[str, Any], messages: Sequence[Content]) -> str:
    """`figure` as explain calls it: "first" is what the last answer was about, and a printed value is looked for."""
    before = earlier(messages)
    if figure == "first":
        return _told_first(plan, before)
    return _by_value(figure, before) or figure if any(letter.isdigit() for letter in figure) else figure


def _told_first(plan: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> str:
    if is_serving(plan):
        return "latency.ttft_s"
    last = before[0] if before else {}
    if last.get("usd") is not None and "by_provider" in last:
        return "usd"
    estimate = next((result for result in before if "run" in result and "time" in result), {})
    return "hours" if estimate.get("run") else "time.step_s"


def _by_value(text: str, responses: Iterable[Mapping[str, Any]]) -> str | None:
    """The dotted key of the figure that is printed as `text` ('24.5 GiB') among earlier results, the latest first."""
    figures = list(figures_in(text))
    if not figures:
        return None
    wanted = figures[0]
    for response in responses:
        for key, origin in keyed(response):
            if origin.kind == wanted.kind and abs(origin.value - wanted.value) <= wanted.slack * (1 + _NEARLY):
                return key
    return None
