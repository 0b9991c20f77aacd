"""Collectives: no faster than the links allow, nothing for a group of one, and the volumes of the ring algorithms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimator_jobs import make_job, open_job
from hypothesis import given
from hypothesis import strategies as st

from estimator.kernels.collectives import Group, all_gather, all_reduce, all_to_all, group, place, send
from estimator.machine.hardware import Topology
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates

BYTES = st.floats(1.0, 1e12)
SIZES = st.sampled_from([1, 2, 4, 8, 16, 32, 128])
STRIDES = st.sampled_from([1, 2, 4, 8, 16, 64])
TOPOLOGIES: tuple[Topology, ...] = ("switch", "mesh", "torus", "pcie", "none")


def make_group(job: Job, size: int, stride: int = 1) -> Group:
    return group(job, np.array([size]), np.array([stride]))


def on(topology: Topology, count: int = 256) -> Job:
    job = make_job({"cluster.count": count, "layout.dp": count // 4, "workload.global_batch": count})
    accelerator = replace(job.machine.accelerator, topology=topology, peer_bandwidth=5e10)
    return replace(job, machine=replace(job.machine, accelerator=accelerator))


JOBS = {topology: on(topology) for topology in TOPOLOGIES}


@given(st.sampled_from(TOPOLOGIES), SIZES, STRIDES, BYTES)
def test_no_collective_is_faster_than_its_links(topology: Topology, size: int, stride: int, payload: float) -> None:
    job = JOBS[topology]
    members = make_group(job, size, stride)
    accelerator = job.machine.accelerator
    moved = payload * (size - 1) / size
    for seconds in (all_gather(members, np.array([payload])), all_to_all(members, np.array([payload]))):
        assert seconds[0] >= moved / accelerator.scaleup_bandwidth
    if size * stride > job.machine.per_node and topology == "pcie" and members.inside[0] < size:
        share = job.machine.network.bandwidth_per_node / job.machine.per_node * members.inside[0]
        assert all_gather(members, np.array([payload]))[0] >= moved / share


@given(st.sampled_from(TOPOLOGIES), STRIDES, BYTES)
def test_a_group_of_one_is_free(topology: Topology, stride: int, payload: float) -> None:
    members, size = make_group(JOBS[topology], 1, stride), np.array([payload])
    for collective in (all_gather, all_reduce, all_to_all, send):
        assert collective(members, size)[0] == 0


@given(st.sampled_from(TOPOLOGIES), SIZES, STRIDES)
def test_sending_nothing_is_free(topology: Topology, size: int, stride: int) -> None:
    members, nothing = make_group(JOBS[topology], size, stride), np.array([0.0])
    for collective in (all_gather, all_reduce, all_to_all, send):
        assert collective(members, nothing)[0] == 0


@given(st.sampled_from(TOPOLOGIES), st.sampled_from([2, 4, 8, 32]), STRIDES, st.floats(1e6, 1e12))
def test_a_ring_moves_g_minus_one_over_g_and_an_all_reduce_twice_that(
    topology: Topology, size: int, stride: int, payload: float
) -> None:
    members = make_group(JOBS[topology], size, stride)
    # Besides the own share's copy.
    shares = size - 1 + members.factors.own
    once, twice = members.gather, members.ring
    assert once.s_per_byte[0] == pytest.approx(shares / size * members.ring_s[0])
    assert twice.s_per_byte[0] == pytest.approx((shares + size - 1) / size * members.ring_s[0])
    assert all_gather(members, np.array([payload]))[0] == once.seconds(np.array([payload]))[0]
    assert once.seconds(np.array([payload]))[0] >= payload * once.s_per_byte[0] + once.latency_s[0]
    assert all_reduce(members, np.array([payload]))[0] <= twice.seconds(np.array([payload]))[0]


@given(st.sampled_from(TOPOLOGIES), SIZES, STRIDES, BYTES, st.floats(1.0, 100.0))
def test_more_bytes_never_take_less_time(
    topology: Topology, size: int, stride: int, payload: float, times: float
) -> None:
    members = make_group(JOBS[topology], size, stride)
    for collective in (all_gather, all_reduce, all_to_all, send):
        assert collective(members, np.array([payload * times]))[0] >= collective(members, np.array([payload]))[0]


# On a mesh and a torus a larger group has more links.
@given(st.sampled_from(["switch", "pcie"]), STRIDES, st.floats(1e6, 1e12))
def test_a_larger_group_never_gathers_the_same_bytes_faster(topology: Topology, stride: int, payload: float) -> None:
    times = [all_gather(make_group(JOBS[topology], size, stride), np.array([payload]))[0] for size in (2, 4, 8, 32)]
    assert times == sorted(times)


def test_a_group_that_leaves_the_node_is_slower_than_one_inside() -> None:
    job, payload = JOBS["switch"], np.array([1e9])
    inside, outside = make_group(job, 8, 1), make_group(job, 8, 8)
    assert inside.inside[0] == 8
    assert outside.inside[0] == 1
    assert all_gather(outside, payload)[0] > all_gather(inside, payload)[0]


def test_a_rack_scale_domain_counts_as_inside() -> None:
    nvl72 = open_job(cluster_accelerator="gb200-nvl72", cluster_count=144, workload_framework="megatron-lm",
                     workload_global_batch=144)  # fmt: skip
    assert make_group(nvl72, 16, 1).inside[0] == 16
    assert make_group(nvl72, 144, 1).inside[0] < 144


def test_the_groups_of_a_layout_have_its_sizes() -> None:
    job = open_job(model="mistralai/Mixtral-8x7B-v0.1", workload_framework="megatron-lm", workload_global_batch=64)
    layouts = candidates(job)
    groups = place(job, layouts)
    assert (groups.tensor.size == layouts.tp).all()
    assert (groups.context.size == layouts.cp).all()
    assert (groups.expert.size == layouts.ep).all()
    assert (groups.data.size == layouts.dp * layouts.cp).all()
    assert (groups.pipeline.size == layouts.pp).all()
    assert (groups.expert_data.size * layouts.ep * layouts.etp == layouts.tp * layouts.cp * layouts.dp).all()
    assert (groups.tensor.inside == np.minimum(layouts.tp, 8)).all()


@pytest.mark.parametrize(("device", "count"), [("rtx-4090", 2), ("rtx-4090", 6), ("rtx-3090", 4), ("rtx-3090", 8)])
def test_geforce_cards_reach_each_other_through_the_host(device: str, count: int) -> None:
    """What six RTX 4090 copy through it, both ways together, is 21 to 31 GB/s (NVIDIA/nccl issue 814), what eight RTX
    3090 do 6 to 9 (issue 1127): a ring goes both ways at once and has half of that, whatever joins some in pairs."""
    members = group(make_job({"cluster": {"accelerator": device, "count": count}}), np.array([count]), np.array([1]))
    payload = 1e9
    bus = payload / float(all_reduce(members, np.array([payload]))[0]) * 2.0 * (count - 1) / count
    assert 3e9 < bus < 15e9


def test_cards_that_a_bridge_joins_are_faster_than_through_the_host() -> None:
    two, four = (
        group(make_job({"cluster": {"accelerator": "rtx-3090", "count": 4}}), np.array([size]), np.array([1]))
        for size in (2, 4)
    )
    assert two.ring_s[0] * 3.0 < four.ring_s[0]
