"""Which cluster to take, and a plan that was configured as a whole."""

from __future__ import annotations

from estimator.plan.schema import Inference, Plan
from knowledge import figures
from pages.answers.plan import complete, hardware_words, model_words
from pages.blocks import Block, Prose
from pages.results.basis import notes
from pages.results.money import cluster_name, considered, decisions, options, rejected
from planner.clusters.results import AutoConfigured, ClusterOption, RecommendedCluster

_MOST_ROWS, _MOST_REASONS, _MOST_TARGETS = 6, 8, 5
_MOST_OTHERS = 4
# What auto_configure's reasons are told of: the choices that matter most.
_CHOICES = ("workload.method", "cluster.accelerator", "cluster.count", "workload.precision", "workload.framework",
            "workload.seq_len", "workload.global_batch", "workload.engine", "workload.weight_dtype",
            "layout")  # fmt: skip


def recommended(clusters: RecommendedCluster) -> list[Block]:
    others = rejected([row for row in clusters.rejected if row.reason != "no_framework"][:_MOST_OTHERS])
    if not clusters.options:
        return [Prose("**No known cluster meets this.**"), *others]
    first = clusters.options[0]
    where = f" at {first.provider} ({first.instance})" if first.provider else ""
    if clusters.satisfied:
        text = f"**Rent {cluster_name(first)}**{where}"
    else:
        text = f"**Nothing meets every limit.** The closest is {cluster_name(first)}{where}"
    text += _price_and_time(first)
    text += f", with {first.framework or first.engine}: {first.summary}." if first.summary else "."
    later = f"Prices of {clusters.priced}. Your next question is about the first, unless you name another."
    return [
        *map(Prose, (text, " ".join(clusters.why))),
        *options(clusters.options[:_MOST_ROWS], clusters.sort),
        *others,
        Prose(later if clusters.priced else ""),
    ]


def _price_and_time(option: ClusterOption) -> str:
    if option.hours is None:
        return "" if option.usd_per_hour is None else f", {figures.usd(option.usd_per_hour)} per hour"
    text = f": about {figures.held(option, 'hours')}"
    return text if option.usd is None else f"{text} for {figures.held(option, 'usd')}"


def configured(found: AutoConfigured) -> list[Block]:
    option = found.option
    text = "**Done.**" if found.satisfied else "**Not every limit is met; this is the closest.**"
    text += f" {_what(complete(found.plan))}" if found.plan else ""
    text += f" at {option.provider}" if option and option.provider else ""
    text += f", {option.summary}." if option and option.summary else "."
    if found.hours is not None:
        text += f" About {figures.held(found, 'hours')}"
        text += f" and {figures.usd(found.usd)}." if found.usd is not None else "."
    elif found.usd_per_hour is not None:
        text += f" {figures.usd(found.usd_per_hour)} per hour."
    if found.per_device_bytes:
        text += f" It needs {figures.gib(found.per_device_bytes)} per device."
    targets = ", ".join(found.launch_targets[:_MOST_TARGETS])
    return [
        Prose(text),
        *decisions([row for row in found.reasons if row.field.startswith(_CHOICES) and row.why][:_MOST_REASONS]),
        *considered([row for row in found.considered if row.why][:_MOST_OTHERS]),
        *notes("What to relax", found.relax[:_MOST_OTHERS]),
        Prose(f"Say *write the files* for launch files ({targets}, …)." if targets else ""),
    ]


def _what(plan: Plan) -> str:
    workload = plan.workload
    served = isinstance(workload, Inference)
    how = f"{workload.engine}, {workload.weight_dtype} weights" if served else f"{workload.method} {workload.stage}"
    return f"{model_words(plan)}: {how} on {hardware_words(plan)}"
