"""What an option costs and takes, and how it is told."""

from __future__ import annotations

import math

from knowledge.figures import hours, rate, seconds, usd
from planner.clusters.results import ClusterOption, from_whom


def cost_of(option: ClusterOption) -> float:
    """USD of the run (of all their years where machines are bought), or USD per million tokens where its length is not
    known; inf without a price."""
    value = option.usd if option.hours is not None else option.usd_per_million_tokens
    value = value if option.years_usd is None or option.hours is None else option.years_usd
    return math.inf if value is None else value


def outlay_of(option: ClusterOption) -> float:
    """What is cheapest is told by: the price of machines that are bought, else what `cost_of` says."""
    return cost_of(option) if option.capex_usd is None else option.capex_usd


def duration_of(option: ClusterOption) -> float:
    """Hours of the run, or seconds per token; of serving seconds per request."""
    if option.engine:
        return math.inf if option.e2e_s is None else option.e2e_s
    return option.hours if option.hours is not None else 1.0 / option.tokens_per_s


def described(option: ClusterOption) -> str:
    figures = [f"{usd(option.capex_usd)} to buy"] if option.capex_usd is not None else []
    if option.engine:
        figures += [f"{usd(option.usd_per_hour)} per hour"] if option.usd_per_hour is not None else []
        figures += [f"{seconds(option.e2e_s)} a request"] if option.e2e_s is not None else []
    elif option.hours is not None:
        figures += [usd(option.usd)] if option.usd is not None else ["no price known"]
        figures += [hours(option.hours)]
    else:
        value = option.usd_per_million_tokens
        figures += [f"{usd(value)} per million tokens"] if value is not None else ["no price known"]
        figures += [f"{rate(option.tokens_per_s or 0.0)} tokens/s"]
    return f"{option.count} x {option.accelerator}{from_whom(option.provider)} ({', '.join(figures)})"


def cheaper(option: ClusterOption, word: str = "Cheaper") -> str:
    """'Cheaper: 16 x tpu-v6e at GCP ($74.23, 1.7 hours), without launch files', of one whose targets are known."""
    bought = " to buy" if option.capex_usd is not None else ""
    return f"{word}{bought}: {described(option)}{'' if option.launch_targets else ', without launch files'}"
