"""Is a measured speed of a deployment good? By its estimate, and by what would explain it where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import merge
from pages.results.of_results import blocks_of
from planner.history.rating import RateRequest, rate_run
from planner.history.results import RunRating
from planner.serving.planned import latency_of, plan_serving, throughput_of

SERVER: dict[str, Any] = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 4,
                          "concurrency": 32, "engine": "vllm", "plan": {"workload": {"kind": "inference"}}}  # fmt: skip
AT_HOME: dict[str, Any] = {"model": "Qwen/Qwen3-14B", "accelerator": "rtx-4090", "weight_dtype": "q4_k_m",
                           "engine": "llamacpp", "plan": {"workload": {"kind": "inference"}}}  # fmt: skip


def rate(run: dict[str, Any], **fields: Any) -> RunRating:
    return rate_run(RateRequest.model_validate(run | fields))


def estimated(run: dict[str, Any], **patch: Any) -> Any:
    return plan_serving(RateRequest.model_validate(merge(run, patch)).to_plan())


def test_an_estimate_is_as_expected_by_whichever_figure_says_it() -> None:
    served = estimated(SERVER)
    rate_s, tpot_s = throughput_of(served).output_tokens_per_s, latency_of(served).tpot_s
    for told in ({"tokens_per_s": rate_s}, {"tokens_per_s_per_device": rate_s / 4}, {"tpot_s": tpot_s}):
        rating = rate(SERVER, **told)
        assert rating.verdict == "as expected"
        assert rating.ratio == pytest.approx(1.0)
        assert rating.mfu is rating.step_s is None
        assert blocks_of(rating)
    slow, fast = rate(SERVER, tokens_per_s=rate_s / 3), rate(SERVER, tpot_s=tpot_s / 3)
    assert (slow.verdict, fast.verdict) == ("low", "good")
    assert fast.ratio == pytest.approx(3.0)


def test_one_client_is_told_how_fast_it_writes() -> None:
    rating = rate(AT_HOME, tokens_per_s=1.0 / latency_of(estimated(AT_HOME)).tpot_s)
    assert rating.ratio == pytest.approx(1.0)


def test_what_was_otherwise_is_found() -> None:
    layers = 30
    held = estimated(AT_HOME).plan.patch({"cluster.beside": ["cpu-core-i9-13900k"], "workload.device_layers": layers})
    rating = rate(AT_HOME, tokens_per_s=1.0 / latency_of(plan_serving(held)).tpot_s)
    assert rating.verdict == "low"
    assert f"only {layers} of 40 layers are on the card" in [cause.what for cause in rating.causes]
    alone = throughput_of(estimated(SERVER | {"weight_dtype": "fp8"}, count=1)).output_tokens_per_s
    rating = rate(SERVER | {"weight_dtype": "fp8"}, tokens_per_s=alone)
    assert any(cause.what.startswith("one device works") for cause in rating.causes)


def test_what_cannot_be_rated_is_said() -> None:
    with pytest.raises(PlanError, match="figure of training"):
        rate(SERVER, mfu=0.4)
    with pytest.raises(PlanError, match="does not fit"):
        rate(SERVER | {"count": 1}, tokens_per_s=100.0)
    with pytest.raises(PlanError, match="figure of serving"):
        rate({"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm"}, tpot_s=0.03)
