"""Edits over a plan: every field, every operator."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from conversation import DEVICE, MODEL, edit
from hypothesis import given
from hypothesis import strategies as st

from agent.offline.catalogue import known
from agent.offline.form import BESIDE, Edit
from agent.offline.patching import Before, patched
from estimator.plan.schema import Inference, Layout, Training
from planner.partial import flat, get
from planner.requests import ALL_PATHS, FLAT_PATHS, SERVING_PATHS

TRAINED: dict[str, Any] = {"model": MODEL, "cluster": {"accelerator": DEVICE, "count": 16, "per_node": 8},
                           "workload": {"dataset_samples": 1000.0}}  # fmt: skip
SERVED: dict[str, Any] = TRAINED | {"workload": {"kind": "inference", "input_len": 1000, "output_len": 200}}
# A value of each field that is no number, and numbers where 64 is none of the field's.
VALUES: dict[str, Any] = {
    "model": MODEL, "name": "run", "overrides": {"weights_gib": 3.0}, "accelerator": "mi300x", "interconnect": "auto",
    "provider": "AWS", "software_version": "2.1", "recompute": "full", "lora_targets": "attention",
    "lora_dropout": 0.5, "zero_stage": 2, "engine_share": 0.5, "prefix_hit": 0.5, "output_spread": 2.0,
    "quantisation": "gptq", "train_embeddings": True, "objective": "cost", "memory_share": 0.5, "acceptance": 0.5,
    "weight_bits": 4.0, "speculative_tokens": 4, "image_size": "768x768", "fp8_healing": 0.5,
    "beside": ["rtx-3090"], "credits_end": "2026-12-31",
    "hours_per_day": 8.0, "days_per_week": 4, "recompute_modules": ["mlp"],
}  # fmt: skip


def laid(plan: dict[str, Any], *edits: Edit, **before: Any) -> Any:
    return patched(plan, edits, "words", known(), Before(**before))


def value_of(name: str, serving: bool) -> Any:
    """Some value of the field: one of its words, the other truth value, or a number."""
    if name in VALUES:
        return VALUES[name]
    room, _, field = ALL_PATHS[name].partition(".")
    parts: dict[str, Any] = {"workload": Inference if serving else Training, "layout": Layout}
    info = parts[room].model_fields.get(field) if room in parts else None
    hints = [info.annotation, *get_args(info.annotation)] if info else []
    if words := [word for hint in hints for word in get_args(hint) if isinstance(word, str)]:
        return words[-1]
    return (not info.default) if info and bool in hints else 64


BOTH = [(name, False) for name in FLAT_PATHS] + [(name, True) for name in SERVING_PATHS]
DOUBLED = [row for row in BOTH if type(value_of(*row)) in (int, float) and value_of(*row) > 1]


@pytest.mark.parametrize(("name", "serving"), BOTH)
def test_every_field_can_be_set_and_opened_again(name: str, serving: bool) -> None:
    base, value = (SERVED if serving else TRAINED), value_of(name, serving)
    change = laid(base, edit(name, value))
    assert change.patch.needs == []
    assert get(change.plan, ALL_PATHS[name]) == value
    opened = laid(change.plan, edit(name, op="drop"))
    assert get(opened.plan, ALL_PATHS[name]) is None


@pytest.mark.parametrize(("name", "serving"), DOUBLED)
def test_times_and_plus_are_the_value_that_they_come_to(name: str, serving: bool) -> None:
    base, value = (SERVED if serving else TRAINED), value_of(name, serving)
    half = value / 2 if isinstance(value, float) else value // 2
    start = laid(base, edit(name, half)).plan
    wanted = laid(start, edit(name, value))
    for change in (laid(start, edit(name, 2, "times")), laid(start, edit(name, half, "plus"))):
        assert change.plan == wanted.plan
        assert change.patch.needs == []


@pytest.mark.parametrize("name", ["count", "seq_len", "micro_batch", "tp", "lora_rank", "steps", "nodes", "batch"])
@given(value=st.one_of(st.integers(max_value=0), st.floats(1.1, 1e4).filter(lambda size: size != int(size))))
def test_what_the_plan_refuses_is_asked_and_never_rounded(name: str, value: float) -> None:
    change = laid(TRAINED, edit(name, value))
    assert len(change.patch.needs) == 1
    assert change.plan == laid(TRAINED).plan


def test_a_part_that_is_no_whole_number_is_asked() -> None:
    change = laid(TRAINED | {"cluster": {"accelerator": DEVICE, "count": 5}}, edit("count", 0.5, "times"))
    assert [need.field for need in change.patch.needs] == ["cluster.count"]
    assert get(change.plan, "cluster.count") == 5


def test_more_of_what_was_not_said_is_more_of_what_was_taken_for_it() -> None:
    last = {"model": MODEL, "workload": {"kind": "training", "global_batch": 128}}
    assert get(laid(TRAINED, edit("batch", 0.5, "times"), last=last).plan, "workload.global_batch") == 64
    assert get(laid(SERVED, edit("output_len", 2, "times")).plan, "workload.output_len") == 400
    assert laid(TRAINED, edit("seq_len", 2, "times")).patch.needs


@pytest.mark.parametrize(
    ("name", "refused", "left"),
    [
        ("method", "lora", "full"),
        ("method", "full", "lora"),
        ("zero_stage", 3, 2),
        ("precision", "fp8", "bf16"),
        ("precision", "bf16", "fp16"),
        ("recompute", "full", "selective"),
        ("packing", True, False),
        ("tp", 8, 4),
        ("optimizer", "adamw", "paged_adamw"),
    ],
)
@pytest.mark.parametrize("held", [True, False])
def test_what_is_refused_is_neither_kept_nor_chosen(name: str, refused: Any, left: Any, held: bool) -> None:
    start = laid(TRAINED, edit(name, refused)).plan if held else TRAINED
    change = laid(start, edit(name, refused, "refuse"))
    assert get(change.plan, ALL_PATHS[name]) == left
    assert change.refused == {name: [refused]}
    assert any("without" in text for text in change.patch.refusals)
    again = laid(change.plan, edit(name, refused), refused=change.refused)
    assert get(again.plan, ALL_PATHS[name]) == refused
    assert again.refused == {}


@given(name=st.sampled_from(sorted(FLAT_PATHS)), refused=st.data())
def test_no_refused_value_of_any_field_is_left(name: str, refused: st.DataObject) -> None:
    value = value_of(name, False)
    held = refused.draw(st.booleans())
    start = laid(TRAINED, edit(name, value)).plan if held else TRAINED
    change = laid(start, edit(name, value, "refuse"))
    assert get(change.plan, ALL_PATHS[name]) != value


def test_what_depends_on_the_devices_goes_with_them() -> None:
    plan = TRAINED | {"layout": {"dp": 16}, "overrides": {"usable_gib": 70.0}}
    moved = laid(plan, edit("accelerator", "mi300x"), edit("count", 4)).plan
    assert moved["cluster"] == {"accelerator": "mi300x", "count": 4}
    assert get(moved, "layout.dp") is None
    assert get(moved, "overrides.usable_gib") is None


@pytest.mark.parametrize(
    ("name", "value", "serving", "made"),
    [
        ("nodes", 4, False, {"count": 32, "per_node": 8}),
        ("batch", 512, False, {"global_batch": 512}),
        ("batch", 4, False, {"micro_batch": 4}),
        ("batch_tokens", 4_194_304, False, {"global_batch": 1024, "seq_len": 4096}),
        ("accumulation", 4, False, {"micro_batch": 1, "global_batch": 64}),
        ("recompute_block", 3, False, {"recompute": "block:3"}),
        ("prompt_len", 1024, False, {"seq_len": 2048, "response_len": 1024}),
        ("length", 8192, False, {"seq_len": 8192}),
        ("load", 32, True, {"concurrency": 32}),
        ("token_rate", (400.0, "output"), True, {"request_rate": 2.0}),
        ("total_tokens", 1.2e6, True, {"requests": 1000, "scenario": "offline"}),
        ("prefix_tokens", 500, True, {"prefix_hit": 0.5}),
        ("expert_parallel", True, True, {"ep": 16}),
        ("length", 32768, True, {"max_context": 32768}),
    ],
)
def test_quantities_beside_the_fields_become_fields(name: str, value: Any, serving: bool, made: dict[str, Any]) -> None:
    change = laid(SERVED if serving else TRAINED, edit(name, value))
    assert change.patch.needs == []
    found = flat(change.plan)
    assert {field: found.get(field) for field in made} == made


def test_every_quantity_beside_the_fields_is_understood() -> None:
    for name in BESIDE:
        change = laid(SERVED, edit(name, (2.0, "total") if name == "token_rate" else 3))
        assert change.patch.needs or change.patch.notes or change.plan != SERVED


@pytest.mark.parametrize("name", ["nodes", "batch", "load", "length"])
def test_quantities_beside_the_fields_can_be_doubled(name: str) -> None:
    for base in (SERVED, TRAINED):
        once = laid(base, edit(name, 512)).plan
        if base is SERVED and name == "batch":
            continue
        assert (
            flat(laid(once, edit(name, 2, "times")).plan) == flat(laid(base, edit(name, 1024)).plan) or name == "length"
        )


def test_nodes_wait_for_their_size() -> None:
    change = laid({"model": MODEL}, edit("nodes", 2))
    assert change.patch.nodes == 2
    later = laid(change.plan, edit("accelerator", DEVICE), nodes=2).plan
    assert later["cluster"] == {"accelerator": DEVICE, "per_node": 8, "count": 16}


def test_clients_and_a_rate_stand_for_each_other() -> None:
    plan = laid(SERVED, edit("concurrency", 32)).plan
    rated = laid(plan, edit("request_rate", 2.0)).plan
    assert get(rated, "workload.concurrency") is None
    assert get(laid(rated, edit("load", 3)).plan, "workload.request_rate") == 3


def test_adapter_settings_mean_adapters() -> None:
    assert get(laid(TRAINED, edit("lora_rank", 8)).plan, "workload.method") == "lora"
    assert get(laid(TRAINED, edit("quantisation", "nf4")).plan, "workload.method") == "qlora"
