"""Algorithms of collectives on real links: what was measured, what must grow or shrink, and what a user gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from estimator_jobs import make_job
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.kernels.collectives import (
    COPIES_S,
    Group,
    NetworkFactors,
    all_gather,
    all_reduce,
    all_to_all,
    connect,
    copies_by_node,
    dispatch,
    one_shot_all_reduce,
    reduce_scatter,
    send,
)
from estimator.machine.hardware import Machine
from estimator.machine.links import KernelLimits
from estimator.plan.schema import Plan
from estimator.plan.training.stages import Floats
from knowledge.machines.catalogue import machine
from knowledge.machines.networks import network_factors

Collective = Callable[[Group, Floats], Floats]
COLLECTIVES: dict[str, Collective] = {
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "all_reduce": all_reduce,
    "all_to_all": all_to_all,
    "send": send,
    "one_shot_all_reduce": one_shot_all_reduce,
}
# Switches with and without sums, a rack, full meshes, bridged pairs, PCIe, torus, and no links at all.
MACHINES: dict[str, Machine] = {
    name: machine(accelerator, count, None, network)[0]
    for name, (accelerator, count, network) in {
        "h100": ("h100-sxm", 256, "ib-ndr-400x8"),
        "a100": ("a100-sxm-80gb", 256, "efa-v1-100x4"),
        "nvl72": ("gb200", 144, "ib-ndr-400x4"),
        "mi300x": ("mi300x", 256, "roce-400x8"),
        "gaudi3": ("gaudi3", 256, "roce-200x3"),
        "pairs": ("a100-pcie-80gb", 256, "ib-hdr-200x1"),
        "pcie": ("l40s", 256, "ethernet-25"),
        "tpu": ("tpu-v5e", 256, "auto"),
        "alone": ("gb10-dgx-spark", 256, "roce-200x1"),
    }.items()
}
NAMES = st.sampled_from(list(MACHINES))
KINDS = st.sampled_from(list(COLLECTIVES))
SIZES = st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128])
STRIDES = st.sampled_from([1, 2, 4, 8, 16])
BYTES = st.floats(1.0, 1e11)


def members(on: Machine, size: int, stride: int = 1, factors: NetworkFactors | None = None) -> Group:
    return connect(on, factors or network_factors(on.accelerator), np.array([size]), np.array([stride]))


def seconds(kind: str, group: Group, payload: float) -> float:
    return float(COLLECTIVES[kind](group, np.array([payload]))[0])


def bus_bandwidth(accelerator: str, network: str, count: int, size_bytes: float, per_node: int | None = None) -> float:
    """GB/s of an all-reduce as nccl-tests print it."""
    on, _ = machine(accelerator, count, per_node, network)
    taken = seconds("all_reduce", members(on, count), size_bytes)
    return 2 * (count - 1) / count * size_bytes / taken / 1e9


@pytest.mark.parametrize(
    ("accelerator", "network", "count", "size_bytes", "measured"),
    [
        ("h100-sxm", "auto", 8, 2**29, 445),
        ("h100-sxm", "auto", 4, 2**29, 350),
        ("h100-sxm", "auto", 8, 2**20, 72),
        ("h100-sxm", "efa-v2-100x32", 16, 2**29, 393),
        ("h100-sxm", "efa-v2-100x32", 16, 2**34, 487),
        ("h100-sxm", "ib-ndr-400x8", 16, 2**33, 470),
        ("h100-sxm", "ib-ndr-400x8", 32, 2**33, 366),
        ("h100-sxm", "ib-ndr-400x8", 64, 2**33, 387),
        ("h200-sxm", "efa-v3-200x16", 32, 2**32, 365),
        ("a100-sxm-80gb", "efa-v1-100x4", 16, 2**31, 78.3),
        ("a100-sxm-80gb", "efa-v1-100x4", 16, 2**20, 6.35),
        ("b200-sxm", "efa-v4-400x8", 32, 2**34, 382),
        ("gb200", "auto", 72, 2**32, 839),
        ("gb200", "ib-ndr-400x4", 144, 2**33, 793),
        ("mi300x", "auto", 8, 2**32, 313),
        ("mi300x", "auto", 2, 2**32, 47.7),
        ("h100-nvl", "auto", 4, 2**26, 48.4),
    ],
)
def test_all_reduce_reaches_the_measured_bus_bandwidth(
    accelerator: str, network: str, count: int, size_bytes: float, measured: float
) -> None:
    assert bus_bandwidth(accelerator, network, count, size_bytes) == pytest.approx(measured, rel=0.15)


@given(NAMES, KINDS, SIZES, STRIDES, BYTES, st.floats(1.0, 10.0), st.sampled_from(["up", "out", "latency"]))
def test_a_faster_link_is_never_slower(
    name: str, kind: str, size: int, stride: int, payload: float, times: float, what: str
) -> None:
    on = MACHINES[name]
    slow = members(on, size, stride)
    if what == "up":
        fast = connect(on, network_factors(on.accelerator), np.array([size]), np.array([stride]), scaleup=times)
    elif what == "out":
        joined = replace(on.network, bandwidth_per_node=on.network.bandwidth_per_node * times)
        fast = members(replace(on, network=joined), size, stride)
    else:
        fast = members(replace(on, network=replace(on.network, latency_s=on.network.latency_s / times)), size, stride)
    assert seconds(kind, fast, payload) <= seconds(kind, slow, payload) * (1 + 1e-12)


@given(NAMES, KINDS, SIZES, STRIDES, BYTES, st.floats(1.0, 100.0))
def test_more_bytes_are_never_faster(
    name: str, kind: str, size: int, stride: int, payload: float, times: float
) -> None:
    group = members(MACHINES[name], size, stride)
    assert seconds(kind, group, payload * times) >= seconds(kind, group, payload)


@given(NAMES, st.sampled_from(["gather", "ring", "near", "pair"]), STRIDES)
def test_a_larger_group_never_starts_sooner(name: str, path: str, stride: int) -> None:
    groups = [members(MACHINES[name], size, stride) for size in (2, 4, 8, 16, 32, 64, 128)]
    starts = [float(getattr(group, path).latency_s[0]) for group in groups]
    assert starts == sorted(starts)


@given(NAMES, st.sampled_from([2, 4, 8, 16, 32, 64]), STRIDES, st.floats(6.4e7, 1e11))
def test_an_all_reduce_takes_as_long_as_an_all_gather_or_longer(
    name: str, size: int, stride: int, payload: float
) -> None:
    group = members(MACHINES[name], size, stride)
    assert seconds("all_reduce", group, payload) >= seconds("all_gather", group, payload)


@given(NAMES, KINDS, st.lists(st.tuples(SIZES, STRIDES, BYTES), min_size=2, max_size=6))
def test_an_entry_of_a_batch_is_what_it_is_alone(name: str, kind: str, entries: list[tuple[int, int, float]]) -> None:
    on = MACHINES[name]
    sizes, strides, payloads = (np.array(part) for part in zip(*entries, strict=True))
    together = COLLECTIVES[kind](connect(on, network_factors(on.accelerator), sizes, strides), payloads)
    alone = [seconds(kind, members(on, size, stride), payload) for size, stride, payload in entries]
    assert together.tolist() == alone


@given(NAMES, KINDS, SIZES, STRIDES, BYTES)
def test_factors_may_differ_by_candidate(name: str, kind: str, size: int, stride: int, payload: float) -> None:
    on = MACHINES[name]
    factors = network_factors(on.accelerator)
    numbers = [field.name for field in fields(factors) if field.name != "adds_in_switch"]
    scales = np.array([0.5, 0.8, 1.0])
    many = replace(factors, **{field: getattr(factors, field) * scales for field in numbers})
    sizes, strides = np.full(3, size), np.full(3, stride)
    found = COLLECTIVES[kind](connect(on, many, sizes, strides, scaleup=scales, scaleout=scales), np.full(3, payload))
    for index, scale in enumerate(scales):
        one = replace(factors, **{field: getattr(factors, field) * scale for field in numbers})
        group = connect(on, one, sizes[:1], strides[:1], scaleup=float(scale), scaleout=float(scale))
        assert found[index] == pytest.approx(seconds(kind, group, payload))


def test_one_member_a_node_gets_its_share_of_the_node() -> None:
    on = MACHINES["h100"]
    payload = 1e11
    alone, all_rails = members(on, 8, stride=8), members(on, 64)
    ideal = payload * 7 / 8 / (on.network.bandwidth_per_node / 8)
    assert seconds("all_gather", alone, payload) == pytest.approx(ideal, rel=0.05)
    assert seconds("all_gather", alone, payload) > 6 * seconds("all_gather", all_rails, payload)


def test_what_leaves_the_node_in_an_all_to_all_uses_the_network_of_its_own_device() -> None:
    on = MACHINES["h100"]
    payload = 1e11
    rail = on.network.bandwidth_per_node / 8
    assert seconds("all_to_all", members(on, 16), payload) == pytest.approx(payload / 2 / rail, rel=0.05)
    inside = seconds("all_to_all", members(on, 8), payload)
    assert inside < payload / 300e9
    # With nothing left to cross, what stays inside decides.
    none = all_to_all(members(on, 16), np.array([payload]), node_copies=0.0)[0]
    assert none < inside


@given(NAMES, st.sampled_from([2, 8, 32, 128]), st.integers(1, 16))
def test_rows_that_cross_once_a_node_are_fewer(name: str, size: int, copies: int) -> None:
    group = members(MACHINES[name], size)
    left = float(copies_by_node(group, copies)[0])
    assert 1 / copies - 1e-12 <= left <= 1 + 1e-12
    assert copies_by_node(group, 1)[0] == pytest.approx(1)
    assert copies_by_node(group, copies, most=1)[0] <= left + 1e-12


@pytest.mark.parametrize(
    ("size", "width", "copies", "measured_s"),
    # 4,096 tokens of 16 bits to 8 experts on H100: in a node at 360 GB/s of what 5.25 of 8 ranks get (HybridEP), over
    # two nodes in one kernel of 1,366 us, and of 2,048 elements at 72.1 GB/s of what both nodes get
    # (NVIDIA-NeMo/Automodel, docs/deepep_vs_hybridep_benchmark.md@18007663, tables 3.1, 3.2 and 3.3).
    [(8, 7168, 8, 8.56e-4), (16, 7168, 8, 1.366e-3), (16, 2048, 8, 4.64e-4)],
)
def test_kernels_that_dispatch_take_what_was_measured(size: int, width: int, copies: int, measured_s: float) -> None:
    found = dispatch(members(MACHINES["h100"], size), np.array([4096.0]), 2.0 * width, copies, "hybridep")
    assert float(found[0]) == pytest.approx(measured_s, rel=0.1)


@given(NAMES, st.sampled_from([1, 2, 8, 32, 128]), st.integers(1, 22), st.sampled_from([0.25, 0.5, 1.0]))
@pytest.mark.parametrize("kernels", COPIES_S)
def test_rows_that_may_go_to_fewer_places_take_no_longer(
    kernels: str, name: str, size: int, copies: int, reach: float
) -> None:
    group, rows = members(MACHINES[name], size), np.array([4096.0])
    every = dispatch(group, rows, 8192.0, copies, kernels)
    assert dispatch(group, rows, 8192.0, copies, kernels, reach) <= every + 1e-15
    assert every <= dispatch(group, rows, 8192.0, copies + 1, kernels) + 1e-15
    assert (every > 0) == (size > 1)


def test_beyond_their_bridge_pairs_use_pcie() -> None:
    on = MACHINES["pairs"]
    pair, four = members(on, 2), members(on, 4)
    assert seconds("all_reduce", four, 1e9) > 5 * seconds("all_reduce", pair, 1e9)
    assert seconds("send", members(on, 2, stride=4), 1e9) > 5 * seconds("send", pair, 1e9)


def test_a_larger_group_has_more_links_of_a_torus() -> None:
    on = MACHINES["tpu"]
    assert members(on, 4).up == pytest.approx(on.accelerator.peer_bandwidth * 2)
    assert members(on, 64).up == pytest.approx(on.accelerator.scaleup_bandwidth)


def test_links_of_a_node_end_at_the_node() -> None:
    small, _ = machine("a100-sxm-80gb", 8, 4, "slingshot-200x4")
    assert small.fast_domain == 4
    assert MACHINES["nvl72"].fast_domain == 72
    assert members(small, 8).crosses[0]


def test_engines_kernels_win_where_messages_are_small() -> None:
    on = MACHINES["h100"]
    group = members(on, 8)
    assert 3e-6 < seconds("one_shot_all_reduce", group, 8192) < 6.5e-6
    assert seconds("all_reduce", group, 8192) > 2.5 * seconds("one_shot_all_reduce", group, 8192)
    assert seconds("one_shot_all_reduce", group, 1e9) == seconds("all_reduce", group, 1e9)
    over_pcie = members(MACHINES["pcie"], 4)
    assert seconds("one_shot_all_reduce", over_pcie, 8192) == seconds("all_reduce", over_pcie, 8192)
    across = members(on, 16)
    assert seconds("one_shot_all_reduce", across, 8192) == seconds("all_reduce", across, 8192)


# As vLLM has them on Hopper.
LIMITS = KernelLimits(
    direct=((2, 2.0**23), (4, 2.0**23), (8, 2.0**18)),
    one_shot=((2, 2.0**23), (4, 2.0**19), (8, 2.0**18)),
    switch=((4, 2.0**25), (8, 2.0**26)),
)


def limited(group: Group, payload: float, limits: KernelLimits | None = LIMITS) -> float:
    return float(one_shot_all_reduce(group, np.array([payload]), limits)[0])


def test_limits_say_which_kernel_an_engine_takes() -> None:
    on = MACHINES["h100"]
    pair, four, eight = members(on, 2), members(on, 4), members(on, 8)
    below = np.array([2.0**18])
    assert limited(four, 2.0**18) == four.one_shot.seconds(below)[0]
    assert limited(four, 2.0**19) == four.two_shot.seconds(2 * below)[0]
    # One phase is what two devices always take; more than the limit is the library's.
    assert limited(pair, 2.0**22) == pair.one_shot.seconds(16 * below)[0]
    assert limited(pair, 2.0**23) == seconds("all_reduce", pair, 2.0**23)
    assert limited(eight, 2.0**23) == eight.in_switch.seconds(32 * below)[0]
    assert limited(eight, 2.0**26) == seconds("all_reduce", eight, 2.0**26)
    assert limited(eight, 2.0**23, LIMITS._replace(switch=())) == seconds("all_reduce", eight, 2.0**23)
    # A group that is not listed, and links whose switches do not add.
    assert limited(members(on, 16), 8192) == seconds("all_reduce", members(on, 16), 8192)
    assert limited(members(on, 2, stride=2), 8192) == limited(pair, 8192)
    ampere = members(MACHINES["a100"], 8)
    assert limited(ampere, 2.0**22) == seconds("all_reduce", ampere, 2.0**22)
    # Without a rule for phases the faster one is taken, and the limit still counts.
    free = KernelLimits(direct=((2, 2.0**24),))
    assert limited(pair, 2.0**23, free) == seconds("one_shot_all_reduce", pair, 2.0**23)
    assert limited(pair, 2.0**24, free) == seconds("all_reduce", pair, 2.0**24)


@given(NAMES, SIZES, STRIDES, BYTES)
def test_no_kernel_is_taken_where_the_library_is_faster(name: str, size: int, stride: int, payload: float) -> None:
    group = members(MACHINES[name], size, stride)
    library = seconds("all_reduce", group, payload)
    for limits in (None, LIMITS, KernelLimits(direct=())):
        assert limited(group, payload, limits) <= library
    assert limited(group, payload, KernelLimits(direct=())) == library


@pytest.mark.parametrize(
    ("accelerator", "engine", "devices", "size_bytes", "measured_us"),
    [
        # Timings of aiconfigurator's database at sizes that the fit does not see.
        ("h100-sxm", "sglang", 8, 2**16, 4.8),
        ("h100-sxm", "sglang", 4, 2**20, 11.1),
        ("h100-sxm", "trtllm", 4, 2**18, 5.5),
        ("h100-sxm", "trtllm", 8, 2**16, 4.6),
        ("h100-sxm", "vllm", 8, 2**16, 6.4),
        ("b200-sxm", "sglang", 8, 2**20, 15.0),
        ("b200-sxm", "trtllm", 4, 2**16, 5.4),
        ("b200-sxm", "vllm", 8, 2**16, 8.6),
    ],
)
def test_engines_kernels_reach_what_was_measured(
    accelerator: str, engine: str, devices: int, size_bytes: float, measured_us: float
) -> None:
    on, _ = machine(accelerator, devices)
    group = members(on, devices, factors=network_factors(on.accelerator, engine))
    assert seconds("one_shot_all_reduce", group, size_bytes) * 1e6 == pytest.approx(measured_us, rel=0.12)


def test_a_batch_of_steps_has_the_shape_of_its_groups() -> None:
    on = MACHINES["h100"]
    group = connect(on, network_factors(on.accelerator), np.array([2, 8, 1]), np.ones(3))
    sizes = np.array([[8192.0, 2.0**23, 0.0], [0.0, 2.0**18, 8192.0]])
    found = one_shot_all_reduce(group, sizes, LIMITS)
    for row in range(2):
        assert found[row].tolist() == one_shot_all_reduce(group, sizes[row], LIMITS).tolist()
    assert found[1, 0] == found[0, 2] == found[1, 2] == 0


def test_links_that_a_user_gives_replace_those_of_the_catalogue() -> None:
    plain = make_job()
    given_links = {"scaleup_gb_per_s": 200, "network_gb_per_s": 25, "network_latency_us": 40}
    job = make_job({"overrides": given_links})
    assert job.machine.accelerator.scaleup_bandwidth == 200e9
    assert job.machine.accelerator.peer_bandwidth == 200e9
    assert job.machine.network.bandwidth_per_node == 25e9
    assert job.machine.network.latency_s == pytest.approx(40e-6)
    assert job.overridden_bytes == plain.overridden_bytes == {}
    mesh = make_job({"cluster.accelerator": "mi300x", "overrides": {"scaleup_gb_per_s": 224}})
    assert mesh.machine.accelerator.peer_bandwidth == pytest.approx(32e9)
    factors = network_factors(plain.machine.accelerator)
    for kind in COLLECTIVES:
        for size in (8, 16):
            before = members(plain.machine, size, factors=factors)
            assert seconds(kind, members(job.machine, size, factors=factors), 1e9) > seconds(kind, before, 1e9)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("network_gb_per_s", 0, "greater than 0"),
        ("scaleup_gb_per_s", -1, "greater than 0"),
        ("network_latency_us", "fast", "got 'fast'"),
        ("network_latency_us", 1e9, "less than or equal to 1000000"),
        ("network_gb_s", 50, "network_gb_per_s"),
    ],
)
def test_links_that_cannot_be_are_refused(name: str, value: object, problem: str) -> None:
    with pytest.raises(PlanError) as refused:
        Plan.parse({"model": "gpt2", "overrides": {name: value}})
    assert refused.value.field == f"overrides.{name}"
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("size", "stride", "inside"), [(5, 1, 1), (6, 1, 2), (3, 1, 1), (8, 1, 8), (4, 2, 4), (16, 1, 8)]
)
def test_groups_that_fill_no_domain_leave_it(size: int, stride: int, inside: int) -> None:
    """Of groups of five on nodes of eight, one behind another, the second lies in two nodes."""
    on = MACHINES["h100"]
    assert float(members(on, size, stride).inside[0]) == inside
    node = replace(on, count=8)
    assert float(members(node, size, stride).inside[0]) == min(size, 8 // stride)
    payload = np.array([1e8])
    if inside < min(size, 8):
        assert all_reduce(members(on, size, stride), payload) > all_reduce(members(on, 8), payload)
