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
from pages.answers.serving import writing_rate
from pages.blocks import BEFORE, CHANGED, Block, Foremost, Prose, capitalised
from pages.results.fields import field_name
from planner.money.results import CostEstimate
from planner.results import TrainingEstimate
from planner.serving.results import ServingCost, ServingEstimate

# Fields of a workload that other settings tell, or that a plan's limits and prices are.
_TOLD = frozenset({
    "kind", "stage", "method", "seq_len", "precision", "optimizer", "attention", "compile", "framework", "micro_batch",
    "global_batch", "dataset_tokens", "dataset_samples", "sample_tokens", "steps", "epochs", "lora", "input_len",
    "output_len", "concurrency", "request_rate", "requests", "scenario", "weight_dtype", "kv_dtype", "max_context",
    "engine", "ttft_slo_ms", "tpot_slo_ms",
})  # fmt: skip
PRICE = "price"
"""What is set of money: the run itself is the same at any of them."""
_MOST_FIGURES = 3
# What trains, and the figures that say what another one costs.
FRAMEWORK, _SPEEDS = "framework", ("hours", "tokens_per_s")
_USUAL, _NOTHING = "default", "none"


@dataclass(frozen=True)
class ShortAnswer:
    """An answer in short, as text: `figures` by key, with their units, and `settings` by what they are called; the
    `hours` and `usd` of a run once more as numbers, which others are written beside and measured by. `because` says why
    its framework was chosen, where nobody named one."""

    figures: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    hours: float | None = None
    usd: float | None = None
    because: str = ""


def summary(estimate: TrainingEstimate | ServingEstimate, bill: CostEstimate | None) -> ShortAnswer:
    """Of a run or a deployment that was estimated."""
    plan = complete(estimate.plan)
    settings = settings_of(plan)
    settings[PRICE] = _price_words(bill or (estimate.cost if isinstance(estimate, ServingEstimate) else None))
    if isinstance(estimate, TrainingEstimate):
        # Where nothing says one of them, it is not set otherwise.
        settings["data"] = f"{figures.count(estimate.run.tokens)} tokens" if estimate.run else ""
        settings["electricity"] = bill.region or "" if bill else ""
    memory = {"memory": f"{figures.gib(estimate.memory.per_device_bytes)} per device"}
    if not estimate.memory.fits:
        return ShortAnswer(memory, settings)
    usd = {"usd": figures.usd(bill.usd)} if bill and bill.usd is not None else {}
    if isinstance(estimate, ServingEstimate):
        settings["layout"] = replica_words(plan, estimate.replicas)
        latency, output = estimate.latency, writing_rate(plan.inference, estimate.throughput)
        ttft = {} if latency.ttft_s is None else {"ttft_s": f"TTFT {figures.seconds(latency.ttft_s)}"}
        tpot = {"tpot_s": f"TPOT {figures.seconds(latency.tpot_s)}"}
        price = bill or estimate.cost
        paid = price.usd_per_hour if price else None
        hourly = {} if paid is None else {"usd_per_hour": f"{figures.usd(paid)} per hour"}
        speed = {**ttft, **tpot, "output": f"{figures.rate(output)} output tokens/s"}
        return ShortAnswer({**hourly, **speed, **memory}, settings)
    rate = estimate.throughput
    hours = {"hours": figures.hours(estimate.run.hours)} if estimate.run else {}
    speed = {
        "tokens_per_s": f"{figures.rate(rate.tokens_per_s)} tokens/s", "mfu": f"{figures.percent(rate.mfu)} MFU",
        "step_s": f"{figures.seconds(estimate.time.step_s)} per step",
    }  # fmt: skip
    carbon = {} if bill is None or bill.co2_kg is None else {"co2_kg": f"{figures.shown('co2_kg', bill.co2_kg)} of CO2"}
    told = {**hours, **usd, **speed, **memory, **carbon}
    paid = bill.usd if bill else None
    because = next((row.why for row in estimate.assumptions if row.field == "workload.framework"), "")
    return ShortAnswer(told, settings, estimate.run.hours if estimate.run else None, paid, because)


def _price_words(bill: CostEstimate | ServingCost | None) -> str:
    """'on demand at Lambda'; nothing where no price was told."""
    if bill is None or bill.usd_per_hour is None:
        return ""
    kind = bill.price if isinstance(bill, CostEstimate) else "on_demand" if bill.provider else "own"
    return f"{kind.replace('_', ' ')}{f' at {bill.provider}' if bill.provider else ''}"


def settings_of(plan: Plan) -> dict[str, str]:
    """All that is set of a run or a deployment, by what it is called."""
    return {"model": model_words(plan), "hardware": hardware_words(plan), **_settings(plan), **_others(plan)}


def _others(plan: Plan) -> dict[str, str]:
    """What has no words of its own: whatever a person changes is told."""
    workload = plan.workload
    rows = {name: getattr(workload, name) for name in type(workload).model_fields if name not in _TOLD}
    if isinstance(workload, Training):
        rows |= {f"lora.{name}": value for name, value in workload.lora.model_dump().items()}
    rows |= {"cluster.interconnect": plan.cluster.interconnect, "beside": plan.cluster.beside}
    rows |= plan.overrides.model_dump()
    return {field_name(name): _NOTHING if row is None else figures.plain(row) for name, row in rows.items()}


def _settings(plan: Plan) -> dict[str, str]:
    workload = plan.workload
    if isinstance(workload, Training):
        return {
            "method": kind_words(workload), "sequences": f"{figures.plain(workload.seq_len)} tokens",
            "precision": workload.precision, "optimizer": workload.optimizer, "attention": workload.attention,
            "torch.compile": "on" if workload.compile else "off", "framework": workload.framework,
            "layout": layout_words(plan),
        }  # fmt: skip
    assert isinstance(workload, Inference)
    context = f"up to {figures.whole(workload.max_context)} tokens" if workload.max_context else _USUAL
    cache = _USUAL if workload.kv_dtype == "auto" else workload.kv_dtype
    return {"load": load_words(workload), "weights": workload.weight_dtype, "KV cache": cache, "context": context,
            "engine": workload.engine}  # fmt: skip


def differing(before: ShortAnswer, now: ShortAnswer) -> list[str] | None:
    """What is set otherwise; None where the two are of two kinds, or another model is trained in another way: that is
    no change of the run before."""
    if before.settings.keys() != now.settings.keys():
        return None
    old = before.settings
    other = [name for name, value in now.settings.items() if value != old[name] and value and old[name]]
    return None if {"model", "method"} <= {*other} else other


def moved(before: ShortAnswer, now: ShortAnswer, first: str = "") -> list[str]:
    """The keys of the figures that are told beside what they were; `first` is that of the one that was asked for.
    None where nothing was set otherwise, or the two are of two kinds."""
    other = differing(before, now)
    if not other:
        return []
    keys = [key for key in now.figures if before.figures.get(key, now.figures[key]) != now.figures[key]]
    # What a run gives off goes with its hours: it is told where it was asked for, or moved by itself.
    carbon = first in ("co2_kg", "kwh") or "electricity" in other
    keys = [key for key in keys if key != "co2_kg" or carbon] or keys
    # Whether it fits is asked along with how long it takes, which says more where it is known.
    led = "" if first == "memory" and "hours" in keys else first
    return sorted(keys, key=lambda key: key != led)[: _MOST_FIGURES + ("usd_per_hour" in keys)]


def changed(before: ShortAnswer, now: ShortAnswer, first: str = "") -> list[Block]:
    """`first` is the key of the figure that was asked for. Nothing where the two are the same, or of two kinds."""
    old, settings = before.figures, before.settings
    if before.hours is not None and now.hours is not None:
        # Both in the unit of this answer.
        old = old | {"hours": figures.hours_beside(before.hours, now.hours)}
    names, keys = differing(before, now) or [], moved(before, now, first)
    speed = next(
        (key for key in _SPEEDS if key in now.figures and old.get(key, now.figures[key]) != now.figures[key]), ""
    )
    head: list[Block] = []
    if FRAMEWORK in names and speed:
        # Another framework is a run of its own, whatever was asked: that it is one, and where its layout alone goes
        # with it what it costs. What else is set otherwise moves the figures, too: then they stand beside all of it.
        names = [name for name in names if name != FRAMEWORK]
        text = f"{capitalised(FRAMEWORK)} {_apart(settings[FRAMEWORK], now.settings[FRAMEWORK])}"
        text += f" ({now.because})" if now.because else ""
        faster = before.hours is not None and now.hours is not None and now.hours < before.hours
        if not {*names} - {"layout"}:
            keys = [key for key in keys if key != speed]
            text = f"{text}: {_then(old[speed], now.figures[speed])}"
        head = [Foremost(f"{text}.", beware=not faster)]
    rows = [_then(old[key], now.figures[key]) for key in keys]
    other = [f"{name} {_apart(settings[name], now.settings[name])}" for name in names]
    texts = [f"{title}: {'; '.join(told)}." for title, told in ((BEFORE, rows), (CHANGED, other)) if told]
    return [*head, *([Prose(" ".join(texts))] if texts and (other or head) else [])]


def _then(before: str, now: str) -> str:
    """'4.7 → 3.7 hours': what both say is said once."""
    old, new = before.split(" "), now.split(" ")
    if len(old) != len(new) or old[-1] != new[-1] or len(old) < 2:
        shared = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
        return f"{before} → {' '.join(new[shared:])}"
    ends = [place for place, (left, right) in enumerate(zip(old, new, strict=True)) if left != right]
    first, last = ends[0], ends[-1] + 1
    return " ".join([*old[:first], *old[first:last], "→", *new[first:]])


def _apart(before: str, now: str) -> str:
    """'ZeRO-1, no recompute → ZeRO-3, full recompute': the parts of a list that differ."""
    old, new = before.split(", "), now.split(", ")
    left, right = [part for part in old if part not in new], [part for part in new if part not in old]
    if len(left) == len(right) == 1:
        alike = len(old) == len(new) == 1 or left[0].split(" ")[0] == right[0].split(" ")[0]
        # Of a list a part without its noun says nothing: 'full recompute → no recompute'.
        return _then(left[0], right[0]) if alike else f"{left[0]} → {right[0]}"
    if left and right:
        return f"{', '.join(left)} → {', '.join(right)}"
    return f"with {', '.join(right)}" if right else f"without {', '.join(left)}" if left else f"{before} → {now}"


def values(before: ShortAnswer) -> list[str]:
    """The texts of an earlier answer, its hours in every unit that another may be written in."""
    units = (0.5, 2.0, 100.0)
    hours = [] if before.hours is None else [figures.hours_beside(before.hours, other) for other in units]
    return [*before.figures.values(), *before.settings.values(), *hours]
