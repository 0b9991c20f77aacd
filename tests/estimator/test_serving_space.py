"""Which ways of splitting a model for serving there are, and what is said of those that there are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from deployment_jobs import LARGE, MODELS, ONE, SMALL, make
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.serving.deployments import Deployments
from estimator.serving.space import concurrency, deployments, request_rate, requests, shapes

MIXTRAL, V3 = "mistralai/Mixtral-8x7B-v0.1", "deepseek-ai/DeepSeek-V3"


def named(*fields: Any, **more: Any) -> set[tuple[int, int, int, int, int]]:
    return {tuple(row) for row in shapes(make(*fields, **more)).tolist()}


def test_a_dense_model_is_split_by_tensor_and_layers_and_the_rest_are_replicas() -> None:
    assert named(SMALL, count=4) == {
        (1, 1, 1, 1, 4), (2, 1, 1, 1, 2), (4, 1, 1, 1, 1), (1, 2, 1, 1, 2), (2, 2, 1, 1, 1), (1, 4, 1, 1, 1)
    }  # fmt: skip


def test_experts_are_whole_or_in_parts_on_the_devices_of_all_lanes() -> None:
    found = named(MIXTRAL, count=4, engine="sglang")
    assert {(1, 1, 4, 4, 1), (2, 1, 4, 2, 1), (4, 1, 2, 1, 1), (1, 1, 1, 4, 1), (2, 2, 2, 1, 1)} <= found
    for tp, pp, ep, dp, replicas in found:
        assert tp * pp * dp * replicas == 4
        assert (tp * dp) % ep == 0
        assert 8 % ep == 0
    # vLLM spreads experts over all devices of a stage or cuts each over them; a rank of TensorRT-LLM is one device.
    assert named(MIXTRAL, count=4) == {split for split in found if split[2] in (1, split[0] * split[3])}
    assert named(MIXTRAL, count=4, engine="trtllm") == {split for split in found if 1 in (split[0], split[3])}
    assert (4, 1, 2, 1, 1) in named(MIXTRAL, count=4, layout={"ep": 2})


def test_tensor_parallelism_divides_the_heads() -> None:
    # 14 heads, and 40.
    assert {tp for tp, *_ in named("Qwen/Qwen2.5-0.5B", count=8)} == {1, 2}
    assert {tp for tp, *_ in named("Qwen/Qwen2.5-14B", count=16)} == {1, 2, 4, 8}
    assert {tp for tp, *_ in named("state-spaces/mamba-2.8b-hf", count=2)} == {1, 2}


def test_no_more_stages_than_layers() -> None:
    assert max(pp for _, pp, *_ in named("openai-community/gpt2", count=24)) == 12


def test_engines_that_lack_a_way_do_not_take_it() -> None:
    assert named(SMALL, count=2, engine="llamacpp") == {(1, 2, 1, 1, 1)}
    assert {(ep, dp) for _, _, ep, dp, _ in named(MIXTRAL, count=4, engine="mlc")} == {(1, 1)}
    assert {pp for _, pp, *_ in named(SMALL, count=4, engine="gpt-fast")} == {1}
    assert {dp for _, _, _, dp, _ in named(MIXTRAL, count=4, engine="trtllm", software_version="0.10")} == {1}


def test_layers_one_after_the_other_unless_another_split_is_named() -> None:
    assert named(SMALL, count=4, engine="llamacpp") == {(1, 4, 1, 1, 1)}
    assert named(SMALL, count=4, engine="llamacpp", layout={"pp": 2}) == {(1, 2, 1, 1, 2)}
    assert named(SMALL, count=4, engine="llamacpp", layout={"pp": 1}) == {(1, 1, 1, 1, 4)}


def test_what_is_named_is_held_fixed() -> None:
    assert named(SMALL, count=8, layout={"tp": 4}) == {(4, 1, 1, 1, 2), (4, 2, 1, 1, 1)}
    assert named(SMALL, count=8, layout={"tp": 4, "pp": 1}) == {(4, 1, 1, 1, 2)}
    # Lanes of a dense model share nothing: they are replicas.
    assert named(SMALL, count=8, layout={"tp": 2, "pp": 1, "dp": 4}) == {(2, 1, 1, 1, 4)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"layout": {"cp": 2}}, r"layout.cp: cp=2: no tensor group .* holds the same keys"),
        ({"layout": {"vpp": 2}}, r"layout.vpp: .*serving"),
        ({"layout": {"etp": 2}}, r"layout.etp: .*serving"),
        ({"layout": {"zero_stage": 3}}, r"layout.zero_stage: .*serving.*tp pp ep dp"),
        ({"layout": {"shard_group": 4}}, r"layout.shard_group: .*serving"),
        ({"layout": {"offload": "params"}}, r"layout.offload: .*host memory.*none"),
        ({"layout": {"tp": 3}, "count": 3}, r"layout.tp: tp=3 does not divide 32 attention heads .*; valid: 1"),
        ({"layout": {"tp": 16}, "count": 8}, r"layout.tp: tp=16 is more than the 8 devices; valid: 1 2 4 8"),
        ({"layout": {"tp": 4}, "count": 6}, r"layout.tp: tp=4 does not divide 6 devices; valid: 1 2"),
        ({"layout": {"pp": 64}, "count": 64}, r"layout.pp: pp=64 is more than 32 layers"),
        ({"layout": {"ep": 2}, "count": 2}, r"layout.ep: .* has no experts; valid: 1"),
        ({"model": MIXTRAL, "layout": {"ep": 3}, "count": 3}, r"layout.ep: ep=3 does not divide 8 experts"),
        ({"model": MIXTRAL, "layout": {"ep": 8}, "count": 4}, r"layout.ep: .*ep=8 is more than the 4 devices"),
        ({"model": MIXTRAL, "layout": {"tp": 1, "dp": 1, "ep": 4}, "count": 4}, r"ep=4 does not divide tp x dp"),
        ({"layout": {"tp": 8, "pp": 8}, "count": 8}, r"layout.tp: tp=8, pp=8 cannot be laid out on 8 devices"),
        ({"layout": {"tp": 2}, "count": 2, "engine": "llamacpp"}, r"layout.tp: tp=2 is not possible with llamacpp"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_what_can(fields: dict[str, Any], words: str) -> None:
    job = make(**fields)
    with pytest.raises(PlanError, match=words) as caught:
        deployments(job)
    assert caught.value.field.startswith("layout.")
    assert caught.value.valid


def test_training_fields_that_say_nothing_are_let_through() -> None:
    layout = {"cp": 1, "vpp": 1, "etp": 1, "zero_stage": 0, "offload": "none", "tp": 1, "pp": 1}
    assert named(SMALL, layout=layout) == {(1, 1, 1, 1, 1)}


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        ({"engine": "vlm"}, r"workload.engine: 'vlm' is not one of the known values; valid: .*vllm"),
        ({"weight_dtype": "int5"}, r"workload.weight_dtype: 'int5' .*valid: .*int4"),
        ({"concurency": 3}, r"workload.concurency: there is no such field; valid: concurrency"),
        ({"concurrency": 0}, r"workload.concurrency: got 0"),
        ({"output_len": 0}, r"workload.output_len: got 0"),
        ({"input_len": float("inf")}, r"workload.input_len: .*finite"),
        ({"prefix_hit": 1.0}, r"workload.prefix_hit: got 1.0"),
        ({"memory_share": 1.5}, r"workload.memory_share: got 1.5"),
        ({"speculative_tokens": True}, r"workload.speculative_tokens: got true"),
        ({"seq_len": 4096}, r"workload.seq_len: there is no such field"),
        ({"kv_dtype": "int2"}, r"workload.kv_dtype: 'int2' .*fp8"),
        ({"scenario": "batch"}, r"workload.scenario: .*offline"),
    ],
)
def test_a_workload_that_is_none_is_refused(workload: dict[str, Any], problem: str) -> None:
    data = {"model": SMALL, "cluster": {"accelerator": "h100-sxm"}, "workload": {"kind": "inference"} | workload}
    with pytest.raises(PlanError, match=problem):
        Plan.parse(data)


def test_loads_are_multiplied_with_layouts_layouts_first() -> None:
    job = make(SMALL, count=4)
    plain = deployments(job)
    loaded = deployments(job, [{"concurrency": 1.0}, {"concurrency": 64.0, "input_len": 10.0}])
    assert len(loaded) == 2 * len(plain)
    for index, row in enumerate((1.0, 64.0)):
        part = loaded.take(np.arange(index * len(plain), (index + 1) * len(plain)))
        assert part.tp.tolist() == plain.tp.tolist()
        assert (part.concurrency == row).all()
    assert loaded.input_len.tolist() == [1024.0] * len(plain) + [10.0] * len(plain)


@pytest.mark.parametrize(
    ("workload", "clients", "rate", "sent"),
    [
        ({"concurrency": 64}, 64.0, 0.0, 640.0),
        ({"concurrency": 64, "requests": 100}, 64.0, 0.0, 100.0),
        ({}, 32.0, 0.0, 320.0),
        ({"request_rate": 2.5}, np.inf, 2.5, np.inf),
        ({"ttft_slo_ms": 500}, np.inf, np.nan, np.inf),
        ({"ttft_slo_ms": 500, "concurrency": 8}, 8.0, 0.0, 80.0),
        ({"scenario": "offline"}, np.inf, 0.0, np.inf),
        ({"scenario": "offline", "requests": 1000}, np.inf, 0.0, 1000.0),
        ({"scenario": "single-stream"}, 1.0, 0.0, np.inf),
        ({"scenario": "static-batch", "max_batch": 16}, 16.0, 0.0, np.inf),
        ({"scenario": "static-batch"}, 1.0, 0.0, np.inf),
    ],
)
def test_how_requests_come(workload: dict[str, Any], clients: float, rate: float, sent: float) -> None:
    job = make(**workload)
    assert concurrency(job) == clients
    np.testing.assert_equal(request_rate(job), rate)
    assert requests(job) == sent
    these = deployments(job)
    np.testing.assert_equal(these.request_rate[0], rate)
    assert (these.concurrency[0], these.requests[0]) == (clients, sent)


def test_steps_are_bounded_as_the_engine_has_it_or_the_plan_says() -> None:
    def bounds(**fields: Any) -> tuple[float, float]:
        these = deployments(make(**fields))
        return float(these.max_batch[0]), float(these.max_tokens[0])

    assert bounds() == (1024, 8192)
    assert bounds(scenario="offline") == (1024, 16384)
    assert bounds(accelerator="a100-sxm-80gb") == (256, 2048)
    assert bounds(max_batch=7, max_batched_tokens=99) == (7, 99)
    # A step must hold the longest request.
    assert bounds(engine="trtllm", input_len=20_000, output_len=1000) == (2048, 21_000)


def test_derived_sizes_and_rows() -> None:
    job = make(MIXTRAL, count=8, layout={"tp": 2, "pp": 1, "ep": 2, "dp": 2}, prefix_hit=0.25)
    these = deployments(job)
    assert len(these) == 1
    assert these.row(0) == {"tp": 2, "pp": 1, "ep": 2, "dp": 2}
    assert (these.etp[0], these.lanes[0], these.devices[0], these.replicas[0]) == (2, 4, 8, 2)
    assert these.read_len[0] == 768.0
    assert deployments(make(input_len=10, prefix_hit=0.99)).read_len[0] == 1.0


@settings(max_examples=examples(40))
@given(
    st.sampled_from(MODELS), st.sampled_from([1, 2, 3, 6, 8, 12, 16, 64]), st.sampled_from(["vllm", "sglang", "mlc"])
)
def test_every_layout_uses_every_device_once(model: str, count: int, engine: str) -> None:
    job = make(model, count=count, engine=engine)
    these = deployments(job)
    assert (these.devices == count).all()
    assert len({tuple(row.values()) for row in map(these.row, range(len(these)))}) == len(these)
    heads, experts = job.architecture.heads, job.architecture.experts
    assert all(heads % tp == 0 for tp in these.tp if heads)
    assert all(experts % ep == 0 or 8 < ep <= 2 * experts for ep in these.ep if experts)
    assert (these.etp == np.floor(these.etp)).all()
    picked = these.take(these.tp == 1)
    assert isinstance(picked, Deployments)
    assert (picked.tp == 1).all()
    named_again = make(model, count=count, engine=engine, layout=these.row(len(these) - 1))
    assert these.row(len(these) - 1) == deployments(named_again).row(0)
    assert len(deployments(named_again)) == 1


def test_blocks_of_fp8_stay_whole_on_every_device() -> None:
    # 1,536 columns an expert in blocks of 128: eight parts are 192 (vllm-project/vllm, issue 17327).
    blocks = "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8"
    assert {(8, 8), (4, 1)} <= {(tp, ep) for tp, _, ep, _, _ in named(blocks, count=8)}
    for engine in ("vllm", "sglang", "trtllm"):
        assert (8, 1) not in {(tp, ep) for tp, _, ep, _, _ in named(blocks, count=8, engine=engine)}
        with pytest.raises(PlanError, match=r"layout.tp: .*no whole blocks of 128.*valid: tp=8 ep=8"):
            deployments(make(blocks, count=8, engine=engine, layout={"tp": 8, "ep": 1}))
    # Scales of whole tensors are cut with them, and so are 16 bits.
    assert (8, 1) in {(tp, ep) for tp, _, ep, _, _ in named("Qwen/Qwen3-235B-A22B", count=8)}
    # 18,432 columns of dense layers: 16 parts are whole blocks, 32 are not (sgl-project/sglang, issue 3345).
    assert max(tp for tp, *_ in named("deepseek-ai/DeepSeek-R1", count=32, engine="sglang")) == 16


def test_the_catalogue_of_sizes_is_as_the_tests_say() -> None:
    assert make(LARGE).architecture.heads == 64
    assert make(V3).architecture.experts == 256
    assert set(ONE.values()) == {1}
