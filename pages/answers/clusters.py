"""Which cluster to take, and a plan that was configured as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator.plan.schema import Inference, Plan
from pages import figures
from pages.answers.markdown import bullets, label, table
from pages.answers.plan import complete, hardware_words, model_words
from planner.clusters.results import AutoConfigured, ClusterOption, ClusterRejected, RecommendedCluster

_HEADS = ("Cluster", "Provider", "run", "cost", "per hour", "layout")
_MOST_ROWS, _MOST_REASONS, _MOST_TARGETS = 6, 8, 5
_MOST_OTHERS = 4
# What auto_configure's reasons are told of: the choices that matter most.
_CHOICES = ("workload.method", "cluster.accelerator", "cluster.count", "workload.precision", "workload.framework",
            "workload.seq_len", "workload.global_batch", "workload.engine", "workload.weight_dtype",
            "layout")  # fmt: skip


def recommended(clusters: RecommendedCluster) -> list[str]:
    if not clusters.options:
        return ["**Nothing that I know meets this.**", *_rejected(clusters.rejected)]
    first = clusters.options[0]
    where = f" at {first.provider} ({first.instance})" if first.provider else ""
    if clusters.satisfied:
        text = f"**{_name(first)}**{where} is what I would rent"
    else:
        text = f"**Nothing meets every limit.** The nearest is {_name(first)}{where}"
    text += _price_and_time(first)
    text += f", with {first.framework or first.engine}: {first.summary}." if first.summary else "."
    later = f"Prices of {clusters.priced}. The next question is about the first, unless you name another."
    return [
        text,
        *([" ".join(clusters.why)] if clusters.why else []),
        table(_HEADS, map(_row, clusters.options[:_MOST_ROWS]), words=2),
        *_rejected(clusters.rejected),
        *([later] if clusters.priced else []),
    ]


def _name(option: ClusterOption) -> str:
    return f"{option.count} x {option.accelerator}"


def _price_and_time(option: ClusterOption) -> str:
    if option.hours is None:
        return "" if option.usd_per_hour is None else f", {figures.usd(option.usd_per_hour)} per hour"
    text = f": about {_hours(option)}"
    if option.usd is not None and option.low_usd is not None and option.high_usd is not None:
        text += f" for {figures.usd(option.usd)} ({figures.usd(option.low_usd)} to {figures.usd(option.high_usd)})"
    return text


def _hours(run: ClusterOption | AutoConfigured) -> str:
    if run.hours is None or run.low_hours is None or run.high_hours is None:
        return figures.known(run.hours, figures.hours)
    return f"{figures.hours(run.hours)} ({figures.hour_range(run.low_hours, run.high_hours)})"


def _row(option: ClusterOption) -> tuple[Any, ...]:
    layout = f"{option.framework or option.engine or ''} {option.summary}"
    return _name(option), option.provider, option.hours, option.usd, option.usd_per_hour, layout


def _rejected(rejected: Sequence[ClusterRejected]) -> list[str]:
    rows = [row for row in rejected if row.reason != "no_framework"][:_MOST_OTHERS]
    return bullets("Not taken:", [f"{', '.join(row.accelerators[:_MOST_OTHERS])}: {row.why}" for row in rows])


def configured(found: AutoConfigured) -> list[str]:
    option = found.option
    text = "**Done.**" if found.satisfied else "**This is the nearest I can get; not every limit is met.**"
    text += f" {_what(complete(found.plan))}" if found.plan else ""
    text += f" at {option.provider}" if option and option.provider else ""
    text += f", {option.summary}." if option and option.summary else "."
    if found.hours is not None:
        text += f" About {_hours(found)}"
        text += f" and {figures.usd(found.usd)}." if found.usd is not None else "."
    elif found.usd_per_hour is not None:
        text += f" {figures.usd(found.usd_per_hour)} per hour."
    if found.per_device_bytes:
        text += f" The fullest device needs {figures.gib(found.per_device_bytes)}."
    reasons = [row for row in found.reasons if row.field.startswith(_CHOICES) and row.why][:_MOST_REASONS]
    considered = [row for row in found.considered if row.why][:_MOST_OTHERS]
    targets = ", ".join(found.launch_targets[:_MOST_TARGETS])
    return [
        text,
        *bullets("Why:", [f"{label(row.field)} {figures.plain(row.value)}: {row.why}" for row in reasons]),
        *bullets("Also considered:", [f"{row.choice}: {row.why}" for row in considered]),
        *bullets("What would have to give:", found.relax[:_MOST_OTHERS]),
        *([f"Say *write the files* for launch files ({targets}, …)."] if targets else []),
    ]


def _what(plan: Plan) -> str:
    workload = plan.workload
    served = isinstance(workload, Inference)
    how = f"{workload.engine}, {workload.weight_dtype} weights" if served else f"{workload.method} {workload.stage}"
    return f"{model_words(plan)}: {how} on {hardware_words(plan)}"
