"""Serving runs that are made up: what the estimator says of them with known factors, and a few of the measured ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from estimator.plan.schema import Plan
from estimator.serving.estimates import estimate
from estimator.serving.space import deployments
from knowledge.jobs.serving import serving_job
from measure.fit.hierarchy import Values
from measure.fit.serving.factors import DEVICE_FACTORS, ENGINE_FACTORS, applied, figures
from measure.history.serving import ServingCase, serving_cases

SMALL = "meta-llama/Llama-3.1-8B"
# Engine, accelerator and its family: more than one of each.
PLACES = (
    ("vllm", "h100-sxm", "Hopper"), ("vllm", "a100-sxm-80gb", "Ampere"), ("sglang", "h100-sxm", "Hopper"),
    ("trtllm", "b200-sxm", "Blackwell"), ("trtllm", "h100-sxm", "Hopper"),
)  # fmt: skip
LOADS = ((200, 800, 1), (200, 800, 100), (4000, 100, 16), (1000, 200, 400))


def truth(**changes: float) -> Values:
    """Known factors of every engine and family of PLACES: those that are expected, but for changes."""
    engine = {factor.name: factor.expected for factor in ENGINE_FACTORS} | changes
    device = {factor.name: factor.expected for factor in DEVICE_FACTORS}
    nodes = {("engine", name): engine for name, _, _ in PLACES} | {("device", name): device for *_, name in PLACES}
    return nodes | {("engine", "default"): engine, ("device", "default"): device}


def made(
    values: Values, source: str = "made up", places: Any = PLACES, tp: int = 1, error: float = 1.0
) -> list[ServingCase]:
    """A run of each place under each load, measured as `values` say, `error` times as slow."""
    found = []
    for engine, accelerator, family in places:
        for prompt, answer, clients in LOADS:
            plan = Plan.parse(
                {
                    "model": SMALL,
                    "cluster": {"accelerator": accelerator, "count": tp},
                    "layout": {"tp": tp, "pp": 1},
                    "workload": {
                        "kind": "inference", "engine": engine, "input_len": prompt, "output_len": answer,
                        "concurrency": clients,
                    },
                }
            )  # fmt: skip
            job = serving_job(plan)
            said = applied(job, values["engine", engine], values["device", family])
            seen = {name: float(value[0]) for name, value in figures(estimate(said, deployments(job))).items()}
            observed = {name: value / error if name == "throughput" else value * error for name, value in seen.items()}
            name = f"{source}-{engine}-{accelerator}-{tp}-{prompt}-{clients}"
            found.append(ServingCase(name, source, plan, observed, None, True, "server", (), "made up"))  # type: ignore[arg-type]
    return found


@cache
def measured(*sources: str) -> tuple[ServingCase, ...]:
    """The measured runs of some sources that count."""
    return tuple(one for one in serving_cases() if one.source in sources and one.reason_unscored is None)


def slower(cases: Any, error: float) -> list[ServingCase]:
    """The same runs, all of them measured `error` times as slow."""
    return [
        replace(
            one,
            observed={k: v / error if k == "throughput" else v * error for k, v in one.observed.items()},
        )
        for one in cases
    ]
