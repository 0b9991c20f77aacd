"""Money, machines, and what to change."""

from __future__ import annotations

from planner.advice import advise as advice_advise
from planner.advice.advise import Advice, AdviseRequest
from planner.clusters import configure, recommend
from planner.clusters.configure import ConfigureRequest
from planner.clusters.recommend import ClusterRequest
from planner.clusters.results import AutoConfigured, RecommendedCluster
from planner.compare import scenarios
from planner.compare.scenarios import CompareRequest, Comparison
from planner.explain import explain as explain_explain
from planner.explain.explain import ExplainRequest
from planner.explain.results import Explanation
from planner.money import cost
from planner.money.cost import CostRequest
from planner.money.results import CostEstimate
from tools.registry import tool


@tool(title="Estimate what a run costs", read_only=True)
def estimate_cost(request: CostRequest) -> CostEstimate:
    """Hours, device-hours, USD by provider and part, energy and CO2 of a whole training run (needs dataset_tokens,
    dataset_samples or steps), or of serving: USD per hour, month and million tokens. On demand, spot with its
    interruptions, reserved, at your own price, or owned (hardware, power, room, staff). Use it for "what does it cost",
    "what on spot instances", "buy or rent", "cost per million tokens" and "which provider is cheapest"; prices come
    with date and age."""
    return cost.estimate_cost(request)


@tool(title="Compare scenarios", read_only=True)
def compare(request: CompareRequest) -> Comparison:
    """Scenarios side by side: hardware, methods, ZeRO stages, precisions, models, strategies, engines, of training or
    of serving. Each row is a plan of its own with memory, speed, hours, cost and energy, and what it is against the
    baseline; with the settings that differ, what matters about them in sentences, and the best by time, cost and
    memory. Use it for "A or B", "LoRA against full", "H100 vs MI300X"; for ranges of numbers use sweep."""
    return scenarios.compare(request)


@tool(title="Recommend a cluster", read_only=True)
def recommend_cluster(request: ClusterRequest) -> RecommendedCluster:
    """Which accelerators, how many, from which provider and instance, with which layout: for a training plan (hours and
    USD of the run where dataset_tokens is given) or a serving plan (request_rate or concurrency, ttft_slo_ms,
    tpot_slo_ms), over the whole catalogue and price book, under budget_usd, deadline_h and filters. Use it for "which
    GPU should I rent", "cheapest way to train", "what finishes in 24 hours", "B200 or H100". Each option has a patch
    that makes it the plan; rejected says why others fell out."""
    return recommend.recommend_cluster(request)


@tool(title="Configure everything", read_only=True)
def auto_configure(request: ConfigureRequest) -> AutoConfigured:
    """A complete plan in one call from a model and a goal: method (full, else LoRA, else QLoRA), precision, sequence
    length, batch, framework, cluster and layout for training (dataset_tokens, budget_usd, deadline_h), or engine,
    weight format, devices and layout for serving (request_rate or concurrency, ttft_slo_ms, tpot_slo_ms). What is given
    (accelerator, count, method …) is kept. Use it for "set it all up", "I have 8 A100 and want to fine-tune", "what can
    I do for 500 USD"."""
    return configure.auto_configure(request)


@tool(title="Advise on a plan", read_only=True)
def advise(request: AdviseRequest) -> Advice:
    """What an experienced engineer would tell about a plan for training or serving: the entries of the playbook that
    apply to it, each with its source and settings (flags, NCCL and Slurm variables), and where it can be computed with
    a Plan patch and its estimated gain. Use it for "how do I improve this", "any tips", "best practices", "it runs
    out of memory, what now", and "what should I watch out for"."""
    return advice_advise.advise(request)


@tool(title="Explain where a figure comes from", read_only=True)
def explain(request: ExplainRequest) -> Explanation:
    """Where a figure of an estimate comes from: its formula, every input with its value and origin (plan, assumption,
    model config, catalogue, fitted factor with the runs behind it), the arithmetic done again, the operators or
    collectives behind it, how its interval came about, and the nearest measured runs with what Shardwise says of them.
    Use it for "why is it so much", "how did you get that", "where does this number come from", "how sure are you"."""
    return explain_explain.explain(request)
