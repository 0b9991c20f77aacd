"""Which figure 'where does the optimizer memory come from?' is about, in words that the explain tool takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent.grounding.figures import figures_in
from agent.grounding.origins import keyed

# (words, what explain calls it). The first that fits.
_FIGURES: tuple[tuple[str, str], ...] = (
    (r"\bactivations?\b", "memory.components.activations"),
    (r"\boptimi[sz]er\b(?! step)", "memory.components.optimizer"),
    (r"\bgrad(?:ient)?s?\b(?! (?:sync|comm|all))", "memory.components.gradients"),
    (r"\blogits?\b|\bloss (?:memory|buffer)\b", "memory.components.logits_and_loss"),
    (r"\bweights?\b|\bparam(?:eter)?s? memory\b", "memory.components.weights"),
    (r"\bkv[- ]?cache\b", "memory.components.kv_cache"),
    (r"\bm\.?f\.?u\b|\butili[sz]ation\b|\bmodel flops?\b", "throughput.mfu"),
    (r"\bttft\b|\bfirst token\b", "latency.ttft_s"),
    (r"\btpot\b|\bper (?:output )?token\b(?! cost)|\bitl\b", "latency.tpot_s"),
    (r"\bstep[- ]?times?\b|\bsteps?\b(?= (?:take|last|so))|\bthe step\b", "time.step_s"),
    (r"\bper million\b", "usd_per_million_tokens"),
    (r"\bco2|\bcarbon\b|\bemissions?\b", "co2_kg"),
    (r"\benergy\b|\bkwh\b|\bpower\b", "kwh"),
    (r"\bcosts?\b|\bpric(?:e|es|ing)\b|\bdollars?\b|\busd\b|\bmoney\b|\bexpensive\b|\bbill\b", "usd"),
    (r"\bhours?\b|\bdays\b|\bruntime\b|\bduration\b|\brun time\b|\beta\b|\bhow long\b", "hours"),
    (r"\bthroughput\b|\btok(?:en)?s?(?:/| per |/ )s\w*|\bspeed\b|\btokens\b", "throughput.tokens_per_s"),
    (r"\bcomm(?:unication|s)?\b|\ball-?reduce\b|\bnccl\b", "communication"),
    (r"\btimes?\b(?! (?:does|do|is|are))", "time.step_s"),
    (r"\bmemory\b|\bvram\b|\bhbm\b|\bpeak\b|\bgi?b\b", "memory.per_device_bytes"),
)
_OTHER = re.compile(r"\b(?:layout|parallelism|split|sharding|difference|zero|tp|pp|dp|ep|cp|why|choice|recompute)\b")
_GENERAL = re.compile(
    r"^\W*(?:(?:that|this|it|these|those|the|your|you|figures?|numbers?|estimates?|results?|about|of|to|at|are|is|all|be|"
    r"be about|answer)\W*)*$"
)
_FIGURE = re.compile(r"\d")


def figure_of(named: str, text: str, sure: bool = False) -> str | None:
    """The figure that some words mean, or None: 'the layout' is none. A number with its unit is given as it stands, for
    `by_value`; 'how sure are you?' alone is about the first figure of the plan, which the caller knows."""
    if re.search(r"\bbottleneck\b", named):
        return None
    for pattern, figure in _FIGURES:
        if re.search(pattern, named) and not (_FIGURE.search(text) and figure == "memory.per_device_bytes"):
            return figure
    if _FIGURE.search(text):
        return text.strip()
    if _OTHER.search(named):
        return None
    return "first" if sure and _GENERAL.match(named) else None


def by_value(text: str, responses: Iterable[Mapping[str, Any]]) -> str | None:
    """The dotted key of the figure that is printed as `text` ('24.5 GiB') among earlier results, the latest first."""

    figures = list(figures_in(text))
    if not figures:
        return None
    wanted = figures[0]
    for response in responses:
        for key, origin in keyed(response):
            if origin.kind == wanted.kind and abs(origin.value - wanted.value) <= wanted.slack * (1 + 1e-6):
                return key
    return None
