"""Money, machines, and what to change."""

from __future__ import annotations

from typing import Any

from planner.asked.clusters import ClusterRequest, ConfigureRequest
from planner.asked.lookups import AdviseRequest
from planner.asked.money import CostRequest, ExplainRequest
from planner.asked.portfolio import PortfolioRequest
from planner.asked.scenarios import CompareRequest
from tools.registry import tool


@tool(title="Estimate what a run costs", read_only=True, by="planner.money.cost")
def estimate_cost(request: CostRequest) -> Any:
    """Hours, device-hours, USD by provider and part, energy and CO2 of a whole training run (needs dataset_tokens,
    dataset_samples or steps), or of serving: USD per hour, month and million tokens. On demand, spot with its
    interruptions, reserved, at your own price, or owned (hardware, power, room, staff). Use it for "what does it cost",
    "what on spot instances", "buy or rent", "cost per million tokens" and "which provider is cheapest"; prices come
    with date and age."""


@tool(title="Compare scenarios", read_only=True, by="planner.compare.scenarios")
def compare(request: CompareRequest) -> Any:
    """Scenarios side by side: hardware, methods, ZeRO stages, precisions, models, strategies, engines, of training or
    of serving. Each row is a plan of its own with memory, speed, hours, cost and energy, and what it is against the
    baseline; with the settings that differ, what matters about them in sentences, and the best by time, cost and
    memory. Use it for "A or B", "LoRA against full", "H100 vs MI300X"; for ranges of numbers use sweep."""


@tool(title="Recommend a cluster", read_only=True, by="planner.clusters.recommend")
def recommend_cluster(request: ClusterRequest) -> Any:
    """Which accelerators, how many, from which provider and instance, with which layout: for a training plan (hours and
    USD of the run where dataset_tokens is given) or a serving plan (request_rate or concurrency, ttft_slo_ms,
    tpot_slo_ms), over the whole catalogue and price book, under budget_usd, deadline_h and filters. Use it for "which
    GPU should I rent", "cheapest way to train", "what finishes in 24 hours". Each option has a patch
    that makes it the plan; rejected says why others fell out."""


@tool(title="Configure everything", read_only=True, by="planner.clusters.configure")
def auto_configure(request: ConfigureRequest) -> Any:
    """A complete plan in one call from a model and a goal: method (full, else LoRA, else QLoRA), precision, sequence
    length, batch, framework, cluster and layout for training (dataset_tokens, budget_usd, deadline_h), or engine,
    weight format, devices and layout for serving (request_rate or concurrency, ttft_slo_ms, tpot_slo_ms). What is given
    (accelerator, count, method …) is kept. Use it for "set it all up", "I have 8 A100 and want to fine-tune", "what can
    I do for 500 USD"."""


@tool(title="Schedule several runs", read_only=True, by="planner.money.portfolio")
def schedule_runs(request: PortfolioRequest) -> Any:
    """When each of several training runs on one cluster is done. They go by priority, order and the devices of each;
    with the latest ends, what the cluster costs until then, how busy it is, and where a run is late or does not fit how
    many devices are enough. Use it for "run A, then B"."""


@tool(title="Advise on a plan", read_only=True, by="planner.advice.advise")
def advise(request: AdviseRequest) -> Any:
    """What an experienced engineer would tell about a plan for training or serving: the entries of the playbook that
    apply to it, each with its source and settings (flags, NCCL and Slurm variables), and where it can be computed with
    a Plan patch and its estimated gain. Use it for "how do I improve this", "any tips", "best practices", "it runs
    out of memory, what now", and "what should I watch out for"."""


@tool(title="Explain where a figure comes from", read_only=True, by="planner.explain.explain")
def explain(request: ExplainRequest) -> Any:
    """Where a figure of an estimate comes from: its formula, every input with its value and origin (plan, assumption,
    model config, catalogue, fitted factor with the runs behind it), the arithmetic done again, the operators or
    collectives behind it, how its interval came about, and the nearest measured runs with what Shardwise says of them.
    Use it for "why is it so much", "how did you get that", "where does this number come from", "how sure are you"."""
