"""The commands with a slash as text: what a line means, and what it may become."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from tui.actions import ACTIONS
from tui.plan_fields import (
    KINDS,
    assignments,
    checked,
    fields_of,
    find_field,
    laid_over,
    main_fields,
    matching,
    read,
    shown,
    value_at,
)
from tui.slash import PromptContext, completions, find_command, split

PLAN = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}
AROUND = PromptContext(PLAN, ["nord", "textual-dark"], lambda: [("ab12", "Llama on 8 H100s"), ("cd34", "Serving")])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/fit", ("fit", [])),
        ("/Plan count=16  tp=2", ("plan", ["count=16", "tp=2"])),
        ("/", ("", [])),
        ("does it fit?", None),
        ("/models/llama/config.json does it fit?", None),
        ("/fit\nand more", None),
    ],
)
def test_what_a_line_means(text: str, meant: object) -> None:
    assert split(text) == meant


def test_an_unknown_command_names_the_nearest() -> None:
    with pytest.raises(PlanError, match=r"/sweap: there is no such command; valid: /sweep"):
        find_command("sweap")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("/sw", "/sweep "),
        ("/plan glob", "/plan global_batch="),
        ("/plan count=16 zero", "/plan count=16 zero_stage="),
        ("/plan method=q", "/plan method=qlora"),
        ("/plan model=llama-3.1-8", "/plan model=meta-llama/Llama-3.1-8B"),
        ("/hardware h200", "/hardware h200-sxm"),
        ("/theme n", "/theme nord"),
        ("/resume serv", "/resume cd34"),
        ("/sweep seq", "/sweep seq_len"),
        ("/config slu", "/config slurm"),
        ("/export j", "/export json"),
    ],
)
def test_what_a_line_may_become(text: str, first: str) -> None:
    assert completions(text, AROUND)[0][0] == first


@pytest.mark.parametrize("text", ["", "hello", "/plan nosuch=", "/fit\nx", "/nosuch x", "/plan =", "/save x"])
def test_nothing_to_complete(text: str) -> None:
    assert completions(text, AROUND) == ()


@given(st.text(max_size=30))
def test_any_line_is_read(text: str) -> None:
    for line in (text, f"/{text}", f"/plan {text}", f"/sweep {text}"):
        split(line)
        for row, told in completions(line, AROUND):
            assert isinstance(row, str)
            assert isinstance(told, str)


def test_every_command_says_what_it_does() -> None:
    assert all(command.meaning for command in ACTIONS)
    names = [command.name for command in ACTIONS]
    assert len(set(names)) == len(names)
    wanted = [
        "model",
        "hardware",
        "plan",
        "fit",
        "best",
        "compare",
        "sweep",
        "config",
        "save",
        "export",
        "resume",
        "theme",
        "help",
    ]
    assert set(wanted) <= set(names)


# The fields of the plan


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_has_every_field_of_the_schema(kind: str) -> None:
    whole = Plan.parse({"model": "x", "workload": {"kind": kind}}).model_dump()
    of_schema = {f"workload.{name}" for name in whole["workload"]} | {f"cluster.{name}" for name in whole["cluster"]}
    paths = {field.path for field in fields_of(kind)}
    assert of_schema - {"workload.lora"} <= paths
    assert all(field.meaning for field in fields_of(kind))


def test_fields_are_found_by_name_and_meaning() -> None:
    assert find_field("global-batch", PLAN).path == "workload.global_batch"
    assert find_field("layout.tp", PLAN).name == "tp"
    assert find_field("engine", PLAN).path == "workload.engine"
    assert matching(PLAN, "rank")[0].name == "lora_rank"
    assert "micro_batch" in [field.name for field in matching(PLAN, "sequences micro-step")]
    with pytest.raises(PlanError, match="no such field"):
        find_field("batchsize_x", PLAN)


def test_what_is_set_is_always_among_the_first_fields() -> None:
    plan = laid_over(PLAN, {"workload.group_size": 4})
    assert "group_size" in [field.name for field in main_fields(plan)]
    assert "group_size" not in [field.name for field in main_fields(PLAN)]


def test_assignments() -> None:
    changes = assignments(["count=16", "seq_len=8k", "dataset_tokens=1.5B", "tp=", "fused_loss=true"], PLAN)
    plan = checked(laid_over(PLAN | {"layout": {"tp": 2}}, changes))
    assert plan["cluster"] == {"accelerator": "h100-sxm", "count": 16}
    assert plan["workload"] == {"kind": "training", "seq_len": 8192, "dataset_tokens": 1.5e9, "fused_loss": True}
    assert "tp" not in plan.get("layout", {})
    with pytest.raises(PlanError, match="field=value"):
        assignments(["count"], PLAN)


def test_another_kind_of_plan_keeps_what_both_have() -> None:
    plan = checked(laid_over(PLAN | {"workload": {"seq_len": 4096}}, assignments(["kind=inference"], PLAN)))
    assert plan == PLAN | {"workload": {"kind": "inference"}}


def test_a_plan_without_a_model_says_so() -> None:
    with pytest.raises(PlanError, match="model: is needed"):
        checked({"cluster": {"count": 8}})


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_what_is_shown_reads_back(kind: str, data: st.DataObject) -> None:
    """A value shown in the form and typed again is the same value."""
    field = data.draw(st.sampled_from([field for field in fields_of(kind)[1:] if field.choices]))
    text = data.draw(st.sampled_from(field.choices))
    base = {"model": "gpt2", "workload": {"kind": kind}}
    plan = checked(laid_over(base, {field.path: read(field, text)}))
    again = read(field, shown(value_at(plan, field.path)))
    assert checked(laid_over(base, {field.path: again})) == plan


@given(st.floats(1e-6, 1e15))
def test_numbers_read_back(number: float) -> None:
    base = {"model": "gpt2", "workload": {"kind": "training"}}
    plan = checked(laid_over(base, {"workload.dataset_tokens": shown(number)}))
    assert plan["workload"]["dataset_tokens"] == number
