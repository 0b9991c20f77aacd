"""What a follow-up changed: figures of the answer before beside those of this one, and all that is set otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field

from estimator.plan.schema import Inference, Plan, Training
from knowledge import figures
from pages.answers.plan import (
    complete,
    hardware_words,
    kind_words,
    layout_words,
    load_words,
    model_words,
    replica_words,
)
from pages.blocks import Block, Prose
from planner.money.results import CostEstimate
from planner.results import TrainingEstimate
from planner.serving.results import ServingEstimate

_MOST_FIGURES = 3


@dataclass(frozen=True)
class ShortAnswer:
    """An answer in short, as text: `figures` by key, with their units, and `settings` by what they are called."""

    figures: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


def summary(estimate: TrainingEstimate | ServingEstimate, bill: CostEstimate | None) -> ShortAnswer:
    """Of a run or a deployment that was estimated."""
    plan = complete(estimate.plan)
    settings = {"model": model_words(plan), "hardware": hardware_words(plan), **_settings(plan)}
    memory = {"memory": f"{figures.gib(estimate.memory.per_device_bytes)} per device"}
    if not estimate.memory.fits:
        return ShortAnswer(memory, settings)
    usd = {"usd": figures.usd(bill.usd)} if bill and bill.usd is not None else {}
    if isinstance(estimate, ServingEstimate):
        settings["layout"] = replica_words(plan, estimate.replicas)
        latency, output = estimate.latency, estimate.throughput.output_tokens_per_s
        ttft = {} if latency.ttft_s is None else {"ttft_s": f"TTFT {figures.seconds(latency.ttft_s)}"}
        tpot = {"tpot_s": f"TPOT {figures.seconds(latency.tpot_s)}"}
        return ShortAnswer({**ttft, **tpot, "output": f"{figures.rate(output)} output tokens/s", **memory}, settings)
    rate = estimate.throughput
    hours = {"hours": figures.hours(estimate.run.hours)} if estimate.run else {}
    speed = {
        "tokens_per_s": f"{figures.rate(rate.tokens_per_s)} tokens/s", "mfu": f"{figures.percent(rate.mfu)} MFU",
        "step_s": f"{figures.seconds(estimate.time.step_s)} per step",
    }  # fmt: skip
    return ShortAnswer({**hours, **usd, **speed, **memory}, settings)


def _settings(plan: Plan) -> dict[str, str]:
    workload = plan.workload
    if isinstance(workload, Training):
        return {
            "training": kind_words(workload), "sequences": f"{figures.plain(workload.seq_len)} tokens",
            "precision": workload.precision, "framework": workload.framework, "layout": layout_words(plan),
        }  # fmt: skip
    assert isinstance(workload, Inference)
    return {"load": load_words(workload), "weights": workload.weight_dtype, "engine": workload.engine}


def changed(before: ShortAnswer, now: ShortAnswer, first: str = "") -> list[Block]:
    """`first` is the key of the figure that was asked for. Nothing where the two are the same, or of two kinds."""
    old, settings = before.figures, before.settings
    if settings.keys() != now.settings.keys():
        return []
    moved = [f"{old[key]} → {now.figures[key]}" for key in sorted(now.figures, key=lambda key: key != first)
             if key in old and old[key] != now.figures[key]]  # fmt: skip
    differing = [name for name, value in now.settings.items() if settings[name] != value]
    other = [f"{name} {_apart(settings[name], now.settings[name])}" for name in differing]
    texts = [f"{title}: {'; '.join(rows)}." for title, rows in
             (("Before → now", moved[:_MOST_FIGURES]), ("Changed", other)) if rows]  # fmt: skip
    return [Prose(" ".join(texts))] if texts and other else []


def _apart(before: str, now: str) -> str:
    """'ZeRO-1, no recompute → ZeRO-3, full recompute': the parts of a list that differ."""
    old, new = before.split(", "), now.split(", ")
    left, right = [part for part in old if part not in new], [part for part in new if part not in old]
    return f"{', '.join(left) or 'none'} → {', '.join(right) or 'none'}" if left or right else f"{before} → {now}"


def values(before: ShortAnswer) -> list[str]:
    """The texts of an earlier answer."""
    return [*before.figures.values(), *before.settings.values()]
