"""The Plan: what was given stays given through every form, and whatever cannot be is refused by name."""

from __future__ import annotations

import json
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError, nearest
from estimator.plan.schema import (
    Cluster,
    Goal,
    Inference,
    Layout,
    Lora,
    Overrides,
    Plan,
    PlanPart,
    Training,
    merge,
    parse_count,
)
from knowledge.own.files import parsed

TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


def _values(model: type[PlanPart], name: str) -> st.SearchStrategy[Any]:
    """Valid values of one field, from its annotation and bounds."""
    info = model.model_fields[name]
    annotation = info.annotation
    if name == "recompute":
        return st.sampled_from(["none", "selective", "full", "block:3"])
    if name == "beside":
        return st.lists(st.sampled_from(["rtx-3090", "cpu-core-i9-13900k"]), min_size=1, max_size=3)
    if name == "recompute_modules":
        return st.lists(st.sampled_from(["core_attn", "moe_act", "mlp"]), min_size=1, max_size=3, unique=True)
    if name == "credits_end":
        return st.dates().map(str)
    if name == "image_size":
        return st.builds("{}x{}".format, st.integers(1, 9999), st.integers(1, 9999))
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)] or [annotation]
    choices: list[st.SearchStrategy[Any]] = []
    for kind in kinds:
        if typing.get_origin(kind) is typing.Annotated:
            kind = typing.get_args(kind)[0]
        if typing.get_origin(annotation) is typing.Literal:
            return st.sampled_from(typing.get_args(annotation))
        if typing.get_origin(kind) is typing.Literal:
            choices.append(st.sampled_from(typing.get_args(kind)))
        elif kind is bool:
            choices.append(st.booleans())
        elif kind is int:
            bounds = {key: getattr(rule, key) for rule in info.metadata for key in ("ge", "le") if hasattr(rule, key)}
            choices.append(st.integers(bounds.get("ge", 1), min(bounds.get("le", 1000), 1000)))
        elif kind is str:
            choices.append(TEXT)
        else:
            limits = ("ge", "le", "lt")
            bounds = {key: getattr(rule, key) for rule in info.metadata for key in limits if hasattr(rule, key)}
            least = max(1e-3, bounds.pop("ge", 0.0))
            choices.append(st.floats(least, min([1e6, *bounds.values()]), allow_nan=False, exclude_max="lt" in bounds))
    return st.one_of(choices)


def _sections(model: type[PlanPart], *without: str) -> st.SearchStrategy[dict[str, Any]]:
    """Any subset of a section's fields with valid values."""
    fields = {name: _values(model, name) for name in model.model_fields if name not in without}
    return st.fixed_dictionaries({}, optional=fields)


WORKLOADS = st.one_of(
    st.builds(lambda fields, lora: fields | lora, _sections(Training, "kind", "lora"),
              st.fixed_dictionaries({}, optional={"lora": _sections(Lora)})),
    _sections(Inference, "kind").map(lambda fields: {"kind": "inference"} | fields),
)  # fmt: skip
PLANS = st.fixed_dictionaries(
    {"model": st.one_of(TEXT, st.dictionaries(TEXT, st.one_of(st.none(), st.integers(), TEXT), max_size=3))},
    optional={
        "name": TEXT,
        "workload": WORKLOADS,
        "cluster": _sections(Cluster),
        "layout": _sections(Layout),
        "goal": _sections(Goal),
        "overrides": _sections(Overrides),
    },
)


def fields_set(part: PlanPart) -> dict[str, Any]:
    """Which fields were given, section by section."""
    inner = {name: getattr(part, name) for name in part.model_fields_set}
    return {name: fields_set(value) if isinstance(value, PlanPart) else True for name, value in inner.items()}


@given(PLANS)
def test_yaml_and_json_give_the_same_plan_with_the_same_gaps(data: dict[str, Any]) -> None:
    plan = Plan.parse(data)
    for text in (plan.to_yaml(), json.dumps(plan.given())):
        again = Plan.parse(parsed(text, "plan"))
        assert again == plan
        assert again.given() == plan.given()
        assert fields_set(again) == fields_set(Plan.parse(plan.given()))


@given(PLANS)
def test_given_is_what_was_said_and_nothing_else(data: dict[str, Any]) -> None:
    said = Plan.parse(data).given()
    for section in ("workload", "cluster", "layout", "goal", "overrides"):
        wanted = {key: value for key, value in data.get(section, {}).items() if key != "kind"}
        got = {key: value for key, value in said.get(section, {}).items() if key != "kind"}
        assert got == wanted
    assert said["model"] == data["model"]


@given(PLANS, PLANS)
def test_a_patch_is_what_laying_one_plan_over_the_other_gives(first: dict[str, Any], second: dict[str, Any]) -> None:
    one, two = Plan.parse(first), Plan.parse(second)
    if one.workload.kind != two.workload.kind:
        return
    both = one.patch(two.given())
    assert both == Plan.parse(merge(one.given(), two.given()))
    assert both.patch(two.given()) == both
    assert one.patch({}) == one


def test_a_patch_takes_dotted_names_nested_mappings_and_none() -> None:
    plan = Plan.parse({"model": "m", "cluster": {"count": 8, "accelerator": "h100"}, "layout": {"tp": 8, "pp": 1}})
    patched = plan.patch({"cluster.count": 32, "layout": {"tp": None}, "workload.lora.rank": 64})
    assert patched.cluster == Cluster.model_validate({"count": 32, "accelerator": "h100"})
    assert patched.layout.model_fields_set == {"pp"}
    assert patched.training.lora.rank == 64
    assert plan.cluster.count == 8
    assert plan.layout.tp == 8


def test_null_is_the_same_as_not_given() -> None:
    text = "model: m\nlayout: {tp: null, pp: 2}\ngoal:\nworkload: {seq_len: null}\nname: null\n"
    plan = Plan.parse(parsed(text, "plan"))
    assert plan.layout.model_fields_set == {"pp"}
    assert plan.given() == {"model": "m", "layout": {"pp": 2}}
    assert "seq_len" not in plan.training.model_fields_set


def test_a_model_config_is_replaced_whole_and_keeps_its_nulls() -> None:
    plan = Plan.parse({"model": {"hidden_size": 64, "rope_scaling": None}})
    assert plan.model == {"hidden_size": 64, "rope_scaling": None}
    assert plan.patch({"model": {"n_layer": 2}}).model == {"n_layer": 2}
    assert plan.patch({"model": "gpt2"}).model == "gpt2"


def test_parsing_keeps_no_hold_on_the_callers_data() -> None:
    data: dict[str, Any] = {"model": {"hidden_size": 64}, "layout": {"tp": 2}}
    plan = Plan.parse(data)
    data["model"]["hidden_size"] = 1
    data["layout"]["tp"] = 4
    assert plan.model == {"hidden_size": 64}
    assert plan.layout.tp == 2


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1B", 1e9), ("300M", 3e8), ("1.5T", 1.5e12), ("52k", 52e3), ("1_000", 1e3), ("2e9", 2e9), ("2,000", 2e3),
        ("1,234,567.5", 1234567.5), (" 7 b ", 7e9), ("1e3K", 1e6),
    ],
)  # fmt: skip
def test_amounts_are_read_as_people_write_them(text: str, number: float) -> None:
    assert parse_count(text) == number
    assert Plan.parse({"model": "m", "workload": {"dataset_tokens": text}}).training.dataset_tokens == number


@pytest.mark.parametrize("text", ["1,5B", "1.2.3", "B", "one billion", "-1B", "1e", "0x10", "", "1B tokens"])
def test_an_amount_that_could_mean_two_things_is_refused(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse({"model": "m", "workload": {"dataset_tokens": text}})
    assert caught.value.field == "workload.dataset_tokens"


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "is required"),
    ({"model": 7}, "model", "got 7"),
    ({"model": ["a"]}, "model", "got ['a']"),
    ({"mdoel": "m"}, "mdoel", "valid: model"),
    ({"layout": {"tpp": 2}}, "layout.tpp", "valid: tp"),
    ({"workload": {"sequence_length": 2}}, "workload.sequence_length", "seq_len"),
    ({"workload": {"lora": {"r": 2}}}, "workload.lora.r", "valid: rank"),
    ({"workload": {"kind": "inference", "seq_len": 8}}, "workload.seq_len", "there is no such field"),
    ({"workload": {"kind": "trainig"}}, "workload.kind", "valid: training, inference"),
    ({"workload": {"stage": "sftt"}}, "workload.stage", "sft"),
    ({"workload": {"framework": "megatron"}}, "workload.framework", "megatron-lm"),
    ({"workload": {"fused_loss": "yes please"}}, "workload.fused_loss", "valid: auto true false"),
    ({"workload": "training"}, "workload", "got 'training'"),
    ({"cluster": {"count": True}}, "cluster.count", "got true"),
    ({"cluster": {"count": 0}}, "cluster.count", "greater than or equal to 1"),
    ({"cluster": {"count": -8}}, "cluster.count", "greater than or equal to 1"),
    ({"cluster": {"count": 10**30}}, "cluster.count", "less than or equal to 1000000"),
    ({"cluster": {"count": 8.5}}, "cluster.count", "got 8.5"),
    ({"cluster": {"count": "eight"}}, "cluster.count", "got 'eight'"),
    ({"cluster": {"count": {}}}, "cluster.count", "got {}"),
    ({"cluster": [1]}, "cluster", "got [1]"),
    ({"workload": {"dataset_tokens": float("nan")}}, "workload.dataset_tokens", "finite"),
    ({"workload": {"dataset_tokens": float("inf")}}, "workload.dataset_tokens", "finite"),
    ({"workload": {"dataset_tokens": "1e400"}}, "workload.dataset_tokens", "finite"),
    ({"workload": {"dataset_tokens": 10**5000}}, "workload.dataset_tokens", "too large"),
    ({"workload": {"dataset_tokens": 0}}, "workload.dataset_tokens", "greater than 0"),
    ({"workload": {"dataset_tokens": True}}, "workload.dataset_tokens", "got true"),
    ({"workload": {"epochs": float("-inf")}}, "workload.epochs", "finite"),
    ({"workload": {"lora": {"alpha": float("nan")}}}, "workload.lora.alpha", "finite"),
    ({"workload": {"seq_len": "8k"}}, "workload.seq_len", "got '8k'"),
    ({"layout": {"zero_stage": 4}}, "layout.zero_stage", "less than or equal to 3"),
    ({"layout": {"recompute": "some"}}, "layout.recompute", "valid: none selective full block:N"),
    ({"layout": {"recompute": "block:-1"}}, "layout.recompute", "valid: none selective full block:N"),
    ({"layout": {"schedule": "zb"}}, "layout.schedule", "zero-bubble"),
    ({"goal": {"objective": "fast"}}, "goal.objective", "valid: throughput, cost, time, memory"),
    ({"goal": {"budget_usd": "-2k"}}, "goal.budget_usd", "got '-2k'"),
]


@pytest.mark.parametrize(("data", "field", "says"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_bad_input_names_the_field_the_problem_and_what_is_valid(data: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse({"model": "m"} | data)
    error = caught.value
    assert error.field == field
    assert str(error).startswith(f"{field}: ")
    assert says in str(error)
    assert "http" not in str(error)
    assert len(str(error)) < 400


def test_several_problems_are_counted_by_field() -> None:
    with pytest.raises(PlanError, match=r"^workload\.seq_len: .*\(and 2 more problems\)"):
        Plan.parse({"model": "m", "cluster": {"count": 0, "per_node": 0}, "workload": {"seq_len": 0}})
    with pytest.raises(PlanError) as caught:
        Plan.parse({"model": 5})
    assert "more problem" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[1, 2", "a: b: c", "just words", "- 1\n- 2", "", "x: 2026-13-45", "[" * 5000, "!!python/object:os.system {}"],
)
def test_yaml_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.parse(parsed(text, "plan"))
    assert caught.value.field == "plan"


@pytest.mark.parametrize("data", [None, 3, "model: m", ["model"]])
def test_only_a_mapping_is_a_plan(data: Any) -> None:
    with pytest.raises(PlanError, match=r"^plan: must be a mapping"):
        Plan.parse(data)


def test_a_serving_plan_is_not_a_training_plan() -> None:
    plan = Plan.parse({"model": "m", "workload": {"kind": "inference"}})
    with pytest.raises(PlanError, match=r"^workload\.kind: "):
        _ = plan.training


@pytest.mark.parametrize(
    ("workload", "stage"),
    [
        ({"dataset_tokens": 3e11}, "pretrain"),
        ({"dataset_tokens": 3e11, "stage": "sft"}, "sft"),
        ({"dataset_tokens": 3e11, "method": "lora"}, "sft"),
        ({"dataset_tokens": 1e9}, "sft"),
        ({}, "sft"),
    ],
)
def test_so_many_tokens_are_those_of_pretraining_unless_a_stage_is_named(workload: dict[str, Any], stage: str) -> None:
    plan = Plan.parse({"model": "m", "workload": workload})
    assert plan.training.stage == stage
    assert plan.given().get("workload", {}).get("stage") == workload.get("stage")
    assert plan.patch({"workload.dataset_tokens": 1e8}).training.stage == workload.get("stage", "sft")


def test_the_text_of_an_error_is_the_same_for_short_and_long_choices() -> None:
    assert str(PlanError("layout.tp", "is wrong", [1, 2, 4])) == "layout.tp: is wrong; valid: 1 2 4"
    assert str(PlanError("model", "is wrong", ["a long name", "b"])) == "model: is wrong; valid: a long name, b"
    assert str(PlanError("model", "is wrong")) == "model: is wrong"


def test_nearest_finds_what_was_meant() -> None:
    words = ["megatron-lm", "megatron-bridge", "deepspeed", "torchtitan", "fsdp2", "hf-trainer", "litgpt"]
    assert nearest("Megatron", words)[0].startswith("megatron")
    assert nearest("zzzz", words) == words[:5]
    assert nearest("x", ["a", "b"]) == ["a", "b"]
