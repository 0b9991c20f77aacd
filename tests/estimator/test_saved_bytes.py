"""Parameters and saved activations of twelve architectures, against what PyTorch's autograd itself counts and keeps."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import yaml
from estimator_jobs import with_layout

from estimator.kernels.activations import block_bytes, kept_bytes
from estimator.plan.layouts import Layouts
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.memory import MOMENTS, stage_memory
from knowledge.jobs.training import job_of
from knowledge.models.catalogue import architecture

DATA = Path(__file__).parent / "data"
ARCHITECTURES: dict[str, Any] = yaml.safe_load((DATA / "oracle_architectures.yaml").read_text())
# Left out of the account: rotary tables, routing indices and one fp32 statistic per token and norm, 0.2 % at most.
TOLERANCE = 0.005


@dataclass(frozen=True)
class Weighed:
    """One row of oracle_activations.csv."""

    architecture: str
    implementation: Literal["eager", "fused"]
    recompute: str
    seq_len: int
    micro_batch: int
    layers_bytes: int
    peak_bytes: int

    def __str__(self) -> str:
        return f"{self.architecture}-{self.implementation}-{self.recompute}-{self.micro_batch}x{self.seq_len}"


def weighed() -> list[Weighed]:
    lines = [line for line in (DATA / "oracle_activations.csv").read_text().splitlines() if not line.startswith("#")]
    return [
        Weighed(
            architecture=row["architecture"],
            implementation="eager" if row["implementation"] == "eager" else "fused",
            recompute=row["recompute"],
            seq_len=int(row["seq_len"]),
            micro_batch=int(row["micro_batch"]),
            layers_bytes=int(row["layers_bytes"]),
            peak_bytes=int(row["peak_bytes"]),
        )
        for row in csv.DictReader(lines)
    ]


ROWS = weighed()
PLAIN = [row for row in ROWS if row.recompute == "none"]
CHECKPOINTED = [row for row in ROWS if row.recompute == "full"]


@cache
def hf_job(name: str, seq_len: int) -> Job:
    """Hugging Face's Trainer on one device."""
    plan = {
        "model": ARCHITECTURES[name]["model"],
        "workload": {"framework": "hf-trainer", "weights": "bf16", "seq_len": seq_len, "global_batch": 2},
        "cluster": {"accelerator": "h100-sxm", "count": 1},
    }
    return job_of(Plan.parse(plan))


def run(row: Weighed) -> tuple[Job, Layouts]:
    """The row as a job (transformers modules, fused where the row's are) and its one layout."""
    job = hf_job(row.architecture, row.seq_len)
    # The rows drop each gradient as soon as it is complete.
    framework = job.framework
    activations = replace(framework.activations, style=row.implementation)
    gradients = replace(framework.gradients, held_bytes=0.0)
    job = replace(job, framework=replace(framework, activations=activations, gradients=gradients))
    layout = {"recompute": row.recompute, "zero_stage": 0, "offload": "none"}
    layouts = candidates(replace(job, plan=job.plan.patch({"layout": layout, "workload.micro_batch": 1})))
    assert len(layouts) == 1
    return job, with_layout(layouts, micro_batch=row.micro_batch, grad_accum=1)


def layers_bytes(row: Weighed) -> float:
    """What all the layers keep, by the estimator's account of one block."""
    job, layouts = run(row)
    blocks = job.architecture.blocks
    kept = [kept_bytes(job, block, layouts, block_bytes(job, block, layouts)) for block in blocks]
    return sum(float(kept[kind][0]) for kind in job.architecture.pattern)


def peak_bytes(row: Weighed) -> float:
    """Activations and logits at the peak of forward and backward."""
    job, layouts = run(row)
    memory = stage_memory(job, layouts, np.array([0]))
    assert MOMENTS[memory.moment[0]] in ("loss", "backward_start")
    return float(memory.components["activations"][0] + memory.components["logits_and_loss"][0])


def weighed_peak_bytes(row: Weighed) -> float:
    """The row's peak as Hugging Face's Trainer has it, which drops the 16-bit logits before the backward pass."""
    vocab = hf_job(row.architecture, row.seq_len).architecture.vocab
    return row.peak_bytes - 2.0 * vocab * row.seq_len * row.micro_batch


def expert_gradient_bytes(row: Weighed) -> float:
    """The 16-bit gradient of the largest stacked expert weight of a layer (gate and up of all experts), whole while it
    is made: a gradient in the making counts as alive in the rows, and among the gradients in the estimator."""
    blocks = hf_job(row.architecture, row.seq_len).architecture.blocks
    first = ("gate", "up")
    return max(
        2.0 * sum(m.parameters for m in block.matrices if m.role == "expert" and m.name.startswith(first))
        for block in blocks
    )


def logits_peak_bytes(row: Weighed) -> float:
    """What the loss holds at its own peak: fp32 log-softmax and two gradients of the logits."""
    return 12.0 * hf_job(row.architecture, row.seq_len).architecture.vocab * row.seq_len * row.micro_batch


def largest_block_bytes(row: Weighed) -> float:
    job, layouts = run(row)
    return max(float(block_bytes(job, block, layouts)[0]) for block in job.architecture.blocks)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_parameters_are_exact(name: str) -> None:
    found, exact = architecture(ARCHITECTURES[name]["model"]), ARCHITECTURES[name]
    assert (found.parameters, found.active_parameters) == (exact["parameters"], exact["active_parameters"])


def test_the_oracle_covers_what_it_should() -> None:
    assert {row.architecture for row in ROWS} == set(ARCHITECTURES)
    assert (len(PLAIN), len(CHECKPOINTED)) == (68, 68)
    assert {row.implementation for row in ROWS} == {"eager", "fused"}


@pytest.mark.parametrize("row", PLAIN, ids=str)
def test_layers_keep_for_backward_what_autograd_keeps(row: Weighed) -> None:
    assert layers_bytes(row) == pytest.approx(row.layers_bytes, rel=TOLERANCE)


@pytest.mark.parametrize("row", CHECKPOINTED, ids=str)
def test_a_checkpointed_layer_keeps_its_input_and_nothing_else(row: Weighed) -> None:
    # Exact: a checkpoint of every layer keeps one bf16 hidden state a layer, and that is all that the rows hold.
    assert layers_bytes(row) == row.layers_bytes


@pytest.mark.parametrize("row", PLAIN, ids=str)
def test_the_peak_is_the_layers_and_the_loss(row: Weighed) -> None:
    estimated, seen = peak_bytes(row), weighed_peak_bytes(row)
    if expert_gradient_bytes(row) < logits_peak_bytes(row):
        assert estimated == pytest.approx(seen, rel=TOLERANCE)
    else:
        # Few tokens and large experts: the peak is the weight gradient of one layer's experts, not the loss.
        assert estimated * (1 - TOLERANCE) <= seen <= estimated + expert_gradient_bytes(row)


def test_only_large_experts_at_few_tokens_peak_at_their_weight_gradient() -> None:
    apart = [row for row in PLAIN if expert_gradient_bytes(row) >= logits_peak_bytes(row)]
    assert {(row.architecture, row.seq_len * row.micro_batch) for row in apart} == {("Mixtral-8x7B", 2048)}


def peaks_in_the_loss(row: Weighed) -> bool:
    """Whether the last block, recomputed and with the gradient of its experts, is less than the loss."""
    return expert_gradient_bytes(row) + largest_block_bytes(row) < logits_peak_bytes(row)


@pytest.mark.parametrize("row", CHECKPOINTED, ids=str)
def test_the_peak_with_checkpoints_is_one_hidden_state_a_layer_and_the_loss(row: Weighed) -> None:
    estimated, seen = peak_bytes(row), weighed_peak_bytes(row)
    if peaks_in_the_loss(row):
        assert estimated == pytest.approx(seen, rel=TOLERANCE)
    else:
        # The peak is in the last block, which holds the weight gradient of its experts besides what it recomputed.
        block = layers_bytes(row) + largest_block_bytes(row)
        assert max(estimated, block) * (1 - TOLERANCE) <= seen <= block + expert_gradient_bytes(row)


def test_only_large_experts_and_a_small_vocabulary_peak_in_a_checkpointed_block() -> None:
    assert {row.architecture for row in CHECKPOINTED if not peaks_in_the_loss(row)} == {"Mixtral-8x7B"}
