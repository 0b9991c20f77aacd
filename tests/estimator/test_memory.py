"""Memory: nothing is lost between the parts and the whole, and what should save memory saves it."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_jobs import MODELS, estimate_of, make_job, open_job, with_layout
from hypothesis import given
from hypothesis import strategies as st
from memory_jobs import ONE_DEVICE, first_stage, layouts_of

from estimator.kernels.activations import block_bytes, kept_bytes
from estimator.plan.layouts import RECOMPUTE
from estimator.plan.training.stages import block_parameters, stage_shape
from estimator.search.layouts import candidates
from estimator.training.estimates import estimate, stages_of
from estimator.training.memory import COMPONENTS, Memory, stage_memory
from knowledge.models.catalogue import architecture

FRAMEWORKS = ("deepspeed", "fsdp1", "fsdp2", "torchtitan", "torchtune", "megatron-lm", "megatron-deepspeed", "maxtext")


def states(memory: Memory) -> float:
    return sum(float(memory.component_peaks[name][0]) for name in ("weights", "gradients", "optimizer"))


@pytest.mark.parametrize("model", MODELS)
def test_blocks_on_one_device_hold_all_the_models_parameters(model: str) -> None:
    found = architecture(model)
    one = layouts_of(make_job(ONE_DEVICE))
    held = sum(float(part[0]) for kind in found.pattern for part in block_parameters(found.blocks[kind], one))
    outside = found.embedding_parameters + found.head_parameters
    outside += found.position_parameters + found.extra_parameters
    assert held + outside == found.parameters


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("pp", [1, 2, 3, 5, 8])
def test_the_stages_deal_out_every_layer_once(model: str, pp: int) -> None:
    found = architecture(model)
    layouts = layouts_of(make_job(ONE_DEVICE), pp=pp)
    shapes = [stage_shape(found, layouts, np.array([stage])) for stage in range(pp)]
    for kind in range(len(found.blocks)):
        assert sum(float(shape.layers[kind][0]) for shape in shapes) == found.pattern.count(kind)
    counts = [float(shape.layer_count[0]) for shape in shapes]
    assert max(counts) - min(counts) <= 1
    assert [float(shape.has_embedding[0]) for shape in shapes] == [1] + [0] * (pp - 1)
    assert [float(shape.has_head[0]) for shape in shapes] == [0] * (pp - 1) + [1]


@pytest.mark.parametrize("model", MODELS)
def test_sixteen_bit_weights_on_one_device_are_two_bytes_a_parameter(model: str) -> None:
    job = make_job(ONE_DEVICE | {"model": model, "workload.framework": "megatron-lm"})
    memory = first_stage(job, layouts_of(job))
    assert memory.components["weights"][0] == 2 * job.architecture.parameters
    assert memory.components["gradients"][0] == 4 * job.architecture.parameters
    assert memory.components["optimizer"][0] == 12 * job.architecture.parameters  # fp32 master and two moments


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("pp", [2, 4])
def test_the_stages_together_hold_the_model_and_a_second_copy_of_a_tied_head(model: str, pp: int) -> None:
    job = make_job(ONE_DEVICE | {"model": model, "workload.framework": "megatron-lm"})
    layouts = layouts_of(job, pp=pp)
    stages = [stage_memory(job, layouts, np.array([stage])).components["weights"][0] for stage in range(pp)]
    second = job.architecture.embedding_parameters if job.architecture.tied else 0
    assert sum(stages) == pytest.approx(2 * (job.architecture.parameters + second), rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_components_sum_to_the_total_of_every_candidate(model: str) -> None:
    job = open_job(model=model, workload_framework="megatron-lm", workload_global_batch=64)
    found = estimate(job, candidates(job))
    assert set(found.memory.components) == set(COMPONENTS)
    np.testing.assert_allclose(sum(found.memory.components.values()), found.memory.total, rtol=1e-12)
    for name, values in found.memory.components.items():
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    assert (found.low_bytes <= found.memory.total).all()
    assert (found.memory.total <= found.high_bytes).all()
    assert (found.fits == (found.high_bytes <= job.machine.accelerator.torch_bytes)).all()


@pytest.mark.parametrize("model", [*MODELS, "ai21labs/Jamba-v0.1"])
@pytest.mark.parametrize("pp", [2, 4, 8])
def test_the_fullest_stage_is_the_fullest_of_all(model: str, pp: int) -> None:
    job = open_job(
        model=model, workload_framework="megatron-lm", workload_global_batch=64, layout_pp=pp, layout_vpp=1,
        layout_tp=1, layout_zero_stage=1, layout_ep=1, layout_cp=1, workload_micro_batch=1, layout_recompute="none",
    )  # fmt: skip
    found = estimate(job, candidates(job))
    assert len(found.layouts) == 1
    stages = stages_of(job, found.layouts)
    assert len(stages) == pp
    assert sum(stage["layers"] for stage in stages) == job.architecture.layers
    assert found.memory.total[0] == max(stage["per_device_bytes"] for stage in stages)
    assert stages[int(found.fullest_stage[0])]["per_device_bytes"] == found.memory.total[0]


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"])
def test_each_zero_stage_holds_fewer_states_than_the_one_before(name: str, model: str) -> None:
    job = open_job(model=model, workload_framework=name, workload_global_batch=64)
    layouts = layouts_of(job, tp=1, pp=1, ep=1, etp=1, cp=1, dp=16, shard_group=16)
    sizes = [states(first_stage(job, with_layout(layouts, zero_stage=stage))) for stage in range(4)]
    assert sizes[0] > sizes[1] or job.framework.optimizer.always_sharded
    # FSDP that does not reshard after forward counts as stage 2: its states are sharded, its gathered weights are not.
    assert sizes[1] > sizes[2] >= sizes[3]
    gathered = [first_stage(job, with_layout(layouts, zero_stage=stage)).component_peaks for stage in (2, 3)]
    held = [float(part["weights"][0] + part["communication_buffers"][0]) for part in gathered]
    assert held[0] > held[1]
    whole = states(first_stage(job, with_layout(layouts, dp=1, shard_group=1, zero_stage=0)))
    assert sizes[3] == pytest.approx(whole / 16)


def test_zero_three_over_groups_shards_over_the_group_only() -> None:
    job = open_job(workload_framework="fsdp2", workload_global_batch=64)
    whole, half = (
        states(first_stage(job, layouts_of(job, dp=16, shard_group=group, zero_stage=3))) for group in (16, 8)
    )
    assert half == pytest.approx(2 * whole)


@pytest.mark.parametrize("model", MODELS)
def test_more_tensor_parallel_ranks_never_raise_states_or_activations(model: str) -> None:
    job = open_job(model=model, workload_framework="megatron-lm", workload_global_batch=64)
    before = None
    for tp in (1, 2, 4, 8):
        layouts = layouts_of(job, tp=tp, etp=tp, ep=1, pp=1, cp=1, dp=16 // tp, shard_group=16 // tp, zero_stage=0)
        layouts = with_layout(layouts, sequence_parallel=1, micro_batch=1, grad_accum=8, recompute=0)
        now = first_stage(job, layouts).component_peaks
        if before is not None:
            for name in ("weights", "gradients", "optimizer", "activations", "logits_and_loss"):
                assert now[name][0] < before[name][0], (tp, name)
        before = now


@pytest.mark.parametrize("model", MODELS)
def test_more_pipeline_stages_never_raise_the_states_of_the_fullest(model: str) -> None:
    job = open_job(model=model, workload_framework="megatron-lm", workload_global_batch=64)
    sizes = []
    for pp in (1, 2, 4, 8):
        layouts = layouts_of(job, tp=1, etp=1, ep=1, pp=pp, vpp=1, cp=1, dp=1, shard_group=1, zero_stage=0)
        sizes.append(max(states(stage_memory(job, layouts, np.array([stage]))) for stage in range(pp)))
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", ["megatron-lm", "torchtitan", "deepspeed"])
@pytest.mark.parametrize("model", MODELS)
def test_recomputing_more_keeps_fewer_activations(name: str, model: str) -> None:
    job = open_job(model=model, workload_framework=name, workload_global_batch=64)
    kept = {}
    for mode in ("none", "selective", "full"):
        layouts = layouts_of(job, tp=1, pp=1, cp=1, micro_batch=4, grad_accum=2, recompute=RECOMPUTE.index(mode))
        kept[mode] = float(first_stage(job, layouts).component_peaks["activations"][0])
    assert kept["full"] < kept["selective"] <= kept["none"]


@pytest.mark.parametrize("tp", [1, 4])
def test_maxtext_keeps_what_its_policy_names(tp: int) -> None:
    """query_proj to mlpwo and the block's input, on all tensor ranks together (decoders.py, minimal_policy)."""
    fields = {
        "workload.framework": "maxtext", "cluster.count": tp, "layout": {"tp": tp, "pp": 1, "dp": 1, "zero_stage": 3},
    }  # fmt: skip
    job = make_job(ONE_DEVICE | fields)
    layouts = layouts_of(job, recompute=RECOMPUTE.index("selective"), sequence_parallel=int(tp > 1))
    block = job.architecture.blocks[0]
    everything = block_bytes(job, block, layouts)
    widths = sum(matrix.outputs for matrix in block.matrices) + job.architecture.hidden
    assert kept_bytes(job, block, layouts, everything)[0] * tp == pytest.approx(2 * job.seq_len * widths)


def test_block_recompute_lies_between_none_and_full_and_falls_with_the_blocks() -> None:
    job = open_job(workload_framework="megatron-lm", workload_global_batch=64)

    def kept(mode: str, layers: int = 0) -> float:
        layouts = layouts_of(job, tp=1, pp=1, cp=1, recompute=RECOMPUTE.index(mode), recompute_layers=layers)
        return float(first_stage(job, layouts).component_peaks["activations"][0])

    series = [kept("block", layers) for layers in (1, 8, 16, 24, 31)]
    assert series == sorted(series, reverse=True)
    assert kept("full") <= min(series)
    assert kept("block", 32) == pytest.approx(kept("full"))
    assert kept("block", 99) == kept("block", 32)


@given(
    st.sampled_from(MODELS), st.sampled_from([1, 2, 4]), st.sampled_from([1024, 4096, 8192]), st.sampled_from([1, 2])
)
def test_activations_grow_with_what_is_in_a_micro_batch(model: str, micro: int, seq_len: int, cp: int) -> None:
    job = open_job(model=model, workload_framework="megatron-lm", workload_seq_len=seq_len, workload_global_batch=64)
    layouts = layouts_of(job, tp=1, pp=1, cp=cp, micro_batch=micro, grad_accum=4)
    now = first_stage(job, layouts).component_peaks
    more = first_stage(job, with_layout(layouts, micro_batch=2 * micro)).component_peaks
    less = first_stage(job, with_layout(layouts, cp=2 * cp)).component_peaks
    assert more["activations"][0] == pytest.approx(2 * now["activations"][0])
    assert less["activations"][0] == pytest.approx(now["activations"][0] / 2)
    assert more["weights"][0] == now["weights"][0]


def test_offloading_takes_states_off_the_device() -> None:
    layout = {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 3, "shard_group": 16}
    base = {"workload.framework": "deepspeed", "layout": layout}
    plain, optimizer, params = (
        estimate_of(base | {"layout.offload": kind}).memory.components for kind in ("none", "optimizer", "params")
    )
    assert plain["optimizer"][0] > 0
    assert optimizer["optimizer"][0] == params["optimizer"][0] == 0
    assert params["weights"][0] == 0 < optimizer["weights"][0]


def test_one_copy_of_an_expert_is_held_by_its_expert_parallel_rank() -> None:
    job = open_job(model="mistralai/Mixtral-8x7B-v0.1", workload_framework="megatron-lm", workload_global_batch=64)
    block = job.architecture.blocks[0]
    for ep in (1, 2, 4, 8):
        layouts = layouts_of(job, tp=1, etp=1, ep=ep)
        assert block_parameters(block, layouts)[1][0] == pytest.approx(block.expert_parameters / ep)


@pytest.mark.parametrize("seq_len", [2048, 8192])
def test_a_fused_loss_never_holds_all_logits(seq_len: int) -> None:
    unfused, fused = (
        float(estimate_of({"workload.fused_loss": on, "workload.seq_len": seq_len, "layout.pp": 1, "layout.dp": 8})
              .memory.component_peaks["logits_and_loss"][0]) for on in (False, True)
    )  # fmt: skip
    assert fused < unfused
    assert unfused > 4 * seq_len * 128256 / 2  # fp32 logits of the vocabulary's half
