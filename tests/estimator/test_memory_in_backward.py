"""Weights that are updated within the backward pass, and optimizer states in pages that give way."""

from __future__ import annotations

import pytest
from memory_jobs import LLAMA_8B, LLAMA_8B_TABLE, first_stage, layouts_of, most, on_one_device

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates, search
from estimator.training.estimates import estimate
from estimator.training.memory import MOMENTS
from knowledge.jobs.training import job_of
from planner.training.planned import plan_training

GIB = 2**30


def tuned(accelerator: str = "rtx-4090", **workload: object) -> Job:
    """Llama-3.1-8B by torchtune on one device, as its config for one device has it."""
    usual = {
        "framework": "torchtune", "optimizer": "paged_adamw_8bit", "optimizer_in_backward": True, "compile": True,
        "seq_len": 2048, "micro_batch": 2, "global_batch": 2,
    }  # fmt: skip
    plan = {"model": "meta-llama/Llama-3.1-8B", "workload": usual | workload}
    plan |= {"cluster": {"accelerator": accelerator, "count": 1}, "layout": {"recompute": "full"}}
    return job_of(Plan.parse(plan))


def test_one_gradient_is_there_at_a_time() -> None:
    job = tuned(optimizer="adamw")
    memory = first_stage(job, layouts_of(job))
    assert memory.component_peaks["gradients"][0] == 2 * LLAMA_8B_TABLE
    after = tuned(optimizer="adamw", optimizer_in_backward=False)
    assert most(after, "gradients") == 2 * LLAMA_8B
    # The head's gradient stands beside the logits.
    assert MOMENTS[int(memory.moment[0])] == "loss"
    assert memory.components["gradients"][0] == 2 * LLAMA_8B_TABLE


def test_published_peak_of_torchtune_on_one_card() -> None:
    # torchtune's README: Llama 3.1 8B, full finetune, 1x 4090, 18.9 GiB active, which pages are not part of.
    estimates, order = search(tuned())
    memory, best = estimates.memory, int(order[0])
    shown = memory.total - memory.components["framework_and_context"] - memory.components["allocator_slack"]
    assert (shown - memory.paged)[best] / GIB == pytest.approx(18.9, rel=0.05)
    assert estimates.fits[best]


def test_pages_take_what_room_there_is_and_the_rest_is_on_the_host() -> None:
    states = LLAMA_8B * 2.03125
    large, small = tuned("h200-sxm"), tuned("rtx-4090")
    roomy, tight = (estimate(job, candidates(job)) for job in (large, small))
    assert roomy.memory.paged[0] == roomy.memory.components["optimizer"][0] == pytest.approx(states)
    assert 0 < tight.memory.paged[0] < states
    assert tight.fits[0]
    assert roomy.step.components["offload"][0] == 0
    # What is on the host comes in once a step, at no more than the link's rate.
    least = (states - tight.memory.paged[0]) / small.machine.accelerator.host_bandwidth
    assert tight.step.components["offload"][0] > least > 0
    planned = plan_training(small.plan)
    host = planned.host_needs.host.components["optimizer"]
    assert host == pytest.approx(states - float(planned.estimates.memory.paged[planned.index]))


def test_states_that_do_not_page_stay() -> None:
    assert not estimate(job := tuned(optimizer="adamw_8bit"), candidates(job)).fits[0]


def test_adapters_of_a_low_rank_have_no_pages() -> None:
    low, high = (
        on_one_device(method="lora", optimizer="paged_adamw", lora={"rank": rank}).pages_states for rank in (16, 64)
    )
    assert (low, high) == (False, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"method": "lora"}, "workload.optimizer_in_backward"),
        ({"framework": "deepspeed"}, "workload.optimizer_in_backward"),
        ({"optimizer": "lion"}, "workload.optimizer_in_backward"),
        ({"global_batch": 4}, "workload.micro_batch"),
    ],
)
def test_what_cannot_be(changes: dict[str, object], field: str) -> None:
    with pytest.raises(PlanError) as raised:
        plan_training(tuned().plan.patch({f"workload.{name}": value for name, value in changes.items()}))
    assert raised.value.field == field


def test_a_framework_that_has_it_is_found_and_its_batch_is_one_micro_batch() -> None:
    plan = {"model": "meta-llama/Llama-3.1-8B", "workload": {"optimizer_in_backward": True}}
    planned = plan_training(Plan.parse(plan | {"cluster": {"accelerator": "h100-sxm", "count": 8}}))
    assert planned.job.framework.name == "torchtune"
    assert int(planned.estimates.layouts.grad_accum[planned.index]) == 1
    assert planned.job.global_batch == 8
