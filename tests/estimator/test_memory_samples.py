"""Preference and reinforcement training: paired answers, models beside the trained one, generated samples."""

from __future__ import annotations

from typing import Any

import pytest
from estimator_jobs import make_job
from memory_jobs import LLAMA_8B, first_stage, kept, layouts_of, most, on_one_device

from estimator.plan.training.job import Job

SEQ_LEN, VOCAB = 4096, 128_256
# Keys and values of a token: 2 x 32 layers x 8 heads of 128 in 16 bits, 128 KiB for Llama-3.1-8B.
KV_BYTES = 2 * 32 * 8 * 128 * 2
LOGIT_BYTES = VOCAB * (2 + 4)  # of the last token, in 16 bits and as fp32 probabilities
FROZEN = 2 * LLAMA_8B


def trained(stage: str, method: str = "full", batch: int = 1, **workload: Any) -> Job:
    """Llama-3.1-8B on one device in DeepSpeed (16-bit weights and gradients, 12 bytes of optimizer states)."""
    changes = {"framework": "deepspeed", "stage": stage, "method": method, "global_batch": batch}
    return on_one_device(**changes, **workload)


def extra(job: Job, **layout: int) -> float:
    return most(job, "extra_models", **layout)


@pytest.mark.parametrize(
    ("stage", "copies"),
    [("pretrain", 0), ("sft", 0), ("rm", 0), ("orpo", 0), ("simpo", 0), ("dpo", 1), ("ipo", 1), ("kto", 1)],
)
def test_a_reference_model_is_one_more_copy_in_sixteen_bits(stage: str, copies: int) -> None:
    assert extra(trained(stage)) == copies * FROZEN


@pytest.mark.parametrize("stage", ["dpo", "kto", "grpo"])
def test_adapters_are_their_own_reference(stage: str) -> None:
    # PEFT switches them off instead (disable_adapter).
    assert extra(trained(stage, "lora", rollout="separate")) == 0


def test_zero_three_shards_a_reference_as_it_does_weights() -> None:
    job = make_job({
        "workload": {"framework": "deepspeed", "stage": "dpo"}, "cluster.count": 8,
        "layout": {"tp": 1, "pp": 1, "dp": 8, "zero_stage": 3},
    })  # fmt: skip
    assert extra(job) == FROZEN / 8
    assert extra(job, zero_stage=2) == FROZEN


@pytest.mark.parametrize("stage", ["dpo", "orpo", "simpo", "ipo", "rm"])
def test_a_pair_is_two_sequences(stage: str) -> None:
    one, two = trained("sft"), trained(stage)
    assert most(two, "activations") == pytest.approx(2 * most(one, "activations"), rel=1e-12)
    if stage == "rm":  # A score takes the place of the vocabulary (AutoModelForSequenceClassification).
        assert most(two, "weights") == 2 * (LLAMA_8B - VOCAB * 4096 + 4096)
        assert most(two, "logits_and_loss") < 0.05 * most(one, "logits_and_loss")
        return
    assert most(two, "logits_and_loss") == pytest.approx(2 * most(one, "logits_and_loss"), rel=1e-12)
    assert most(two, "gradients") == most(one, "gradients")
    assert two.tokens_per_step == 2 * one.tokens_per_step


def test_kto_and_grpo_take_samples_one_by_one() -> None:
    for stage in ("kto", "grpo"):
        assert most(trained(stage), "activations") == most(trained("sft"), "activations")


@pytest.mark.parametrize(("micro_batch", "grad_accum"), [(1, 1), (2, 1), (1, 8), (4, 4)])
def test_generation_by_the_trainer_needs_a_cache_of_all_samples_of_a_step(micro_batch: int, grad_accum: int) -> None:
    job = trained("grpo", rollout="trainer")
    samples = micro_batch * grad_accum
    expected = FROZEN + samples * (KV_BYTES * SEQ_LEN + LOGIT_BYTES)
    assert extra(job, micro_batch=micro_batch, grad_accum=grad_accum) == pytest.approx(expected, rel=1e-12)


def test_a_step_of_many_samples_peaks_while_it_generates() -> None:
    job = trained("grpo", "qlora", rollout="trainer", fused_loss=True)
    few, many = (first_stage(job, layouts_of(job, grad_accum=count, recompute=2)) for count in (1, 512))
    assert many.total[0] - many.components["extra_models"][0] < few.total[0]
    assert many.components["extra_models"][0] == pytest.approx(512 * (KV_BYTES * SEQ_LEN + LOGIT_BYTES))
    assert many.components["activations"][0] == 0


def test_zero_three_gathers_the_policy_to_generate_with_it() -> None:
    changes = {"framework": "deepspeed", "stage": "grpo", "rollout": "trainer"}
    job = make_job({"workload": changes, "cluster.count": 8, "layout": {"tp": 1, "pp": 1, "dp": 8, "zero_stage": 3}})
    samples = 64 // 8
    expected = FROZEN / 8 + 2 * LLAMA_8B + samples * (KV_BYTES * SEQ_LEN + LOGIT_BYTES)
    assert extra(job) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_an_engine_on_the_same_device_takes_its_share_of_it(share: float) -> None:
    job = trained("grpo", rollout="colocated", engine_share=share)
    # A tenth of the device has no room for the weights in 16 bits, of which a tenth more is the least it can be given.
    engine = max(share * job.machine.accelerator.torch_bytes, FROZEN / 0.9)
    assert extra(job) == pytest.approx(FROZEN + engine, rel=1e-12)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_an_engine_that_holds_the_trained_weights_has_none_of_its_own(share: float) -> None:
    """Unsloth trains the four-bit weights that its vLLM serves (unsloth.ai/blog/grpo)."""
    job = on_one_device(
        framework="unsloth", stage="grpo", method="qlora", global_batch=1, rollout="colocated", engine_share=share
    )
    weights, device = most(job, "weights"), job.machine.accelerator.torch_bytes
    assert extra(job) == pytest.approx(max(share * device, weights / 0.9) - weights, rel=1e-9)


def test_samples_made_elsewhere_take_nothing_here() -> None:
    assert extra(trained("grpo", rollout="separate")) == FROZEN


def test_ppo_has_a_reference_a_reward_model_and_a_trained_critic() -> None:
    job = trained("ppo", rollout="separate")
    critic = (2 + 2 + 12) * LLAMA_8B
    # The critic keeps its activations in the same pass as the policy.
    assert extra(job) == pytest.approx(2 * FROZEN + critic + kept(job, layouts_of(job)), rel=1e-12)
    assert extra(job) > extra(trained("grpo", rollout="separate"))


@pytest.mark.parametrize("stage", ["ppo", "grpo"])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_generating_elsewhere_never_takes_more(stage: str, method: str) -> None:
    sizes = {}
    for rollout in ("separate", "trainer", "colocated"):
        job = trained(stage, method, rollout=rollout)
        sizes[rollout] = float(first_stage(job, layouts_of(job)).total[0])
    assert sizes["separate"] <= sizes["trainer"]
    assert sizes["separate"] < sizes["colocated"]
