"""From a form to calls, a plan and an answer: one executor acts on every turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversation import DEVICE, MODEL, Conversation, begun, edit

from agent.offline.form import Need, Reference
from pages.rendering.fold import folded
from planner.partial import flat, get, nested
from tools.registry import registry

PLANNED = [name for name, tool in registry().items() if "plan" in tool.request.model_fields and name != "import_config"]
OWN: dict[str, dict[str, Any]] = {
    "find_limit": {"goal": "seq_len"},
    "sweep": {"field": "seq_len", "values": [1024, 2048]},
    "explain": {"figure": "time.step_s"},
    "project_mlperf": {"benchmark": "llama2-70b"},
    "compare": {"over": {"method": ["full", "lora"]}},
}
SEARCHED = {"recommend_cluster", "auto_configure", "project_scaling"}


@pytest.mark.parametrize("tool", PLANNED)
def test_every_tool_that_takes_a_plan_gets_the_sessions(tool: str) -> None:
    conversation = begun(edit("precision", "fp8"), edit("optimizer", "lion"), runs=False)
    told = conversation.say(tool=tool, own=OWN.get(tool, {}))
    assert told.calls, told.answer
    call = told.calls[0]
    registry()[call.name].parse(call.arguments)
    if tool in ("estimate_inference", "best_serving", "size_serving", "project_mlperf"):
        assert call.arguments.get("model", call.arguments.get("benchmark")) is not None
        return
    plan = flat(nested(call.arguments))
    wanted = flat(conversation.plan)
    for name in set(wanted) - set(OWN.get(tool, {}).get("over", ())):
        assert plan.get(name) == wanted[name] or (tool in SEARCHED and name in ("accelerator", "count"))


@pytest.mark.parametrize("tool", [name for name in PLANNED if registry()[name].read_only])
def test_a_hypothetical_never_changes_the_plan(tool: str) -> None:
    conversation = begun(runs=False)
    before = json.dumps(conversation.plan, sort_keys=True)
    supposing: dict[str, Any] = {"scope": "hypothetical", "act": "what_if"}
    told = conversation.say(edit("seq_len", 32768), edit("count", 64), tool=tool, own=OWN.get(tool, {}), **supposing)
    assert json.dumps(conversation.plan, sort_keys=True) == before
    assert told.calls or told.asked
    conversation.say(edit("micro_batch", 2), **supposing)
    assert json.dumps(conversation.plan, sort_keys=True) == before


def test_what_is_supposed_goes_on_until_it_is_taken_or_left() -> None:
    conversation = begun(runs=False)
    conversation.say(edit("seq_len", 32768), scope="hypothetical", act="what_if")
    again = conversation.say(edit("micro_batch", 2), act="ask")
    assert (again.calls[0].arguments["seq_len"], again.calls[0].arguments["micro_batch"]) == (32768, 2)
    assert conversation.say(focus=["time"]).calls[0].arguments["seq_len"] == 32768
    taken = conversation.say(refs=[Reference("supposed")], act="change")
    assert taken.plan["workload"] == {"seq_len": 32768, "micro_batch": 2}
    conversation.say(edit("seq_len", 512), scope="hypothetical", act="what_if")
    left = conversation.say(edit("count", 16), act="change")
    assert left.plan["workload"] == {"seq_len": 32768, "micro_batch": 2}
    assert "supposed" not in conversation.topic


def test_an_answer_says_that_it_is_about_what_was_only_supposed() -> None:
    conversation = begun()
    supposed = conversation.say(edit("micro_batch", 2), scope="hypothetical", act="what_if")
    assert "only supposed" not in supposed.answer
    assert "Assumed: micro-batch 2, as supposed before." in folded(conversation.say(focus=["time"]).answer).lead
    assert "supposed" not in conversation.say(edit("micro_batch", 1), act="change").answer


@pytest.mark.parametrize("supposing", [False, True])
def test_a_turn_that_fails_changes_nothing(supposing: bool) -> None:
    conversation = begun()
    plan, topic = conversation.plan, conversation.topic
    form: dict[str, Any] = {"scope": "hypothetical"} if supposing else {}
    told = conversation.say(edit("tp", 5), edit("count", 5), **form)
    assert "tp=5" in told.answer
    assert conversation.plan == plan
    kept = {name: value for name, value in conversation.topic.items() if name not in ("turn", "reading", "pending")}
    assert kept == {name: value for name, value in topic.items() if name not in ("turn", "reading")}
    # What was meant is there for a correction of it.
    corrected = conversation.say(edit("tp", 1), **form)
    assert corrected.calls[0].arguments["count"] == 5


def test_a_first_turn_that_fails_can_be_corrected() -> None:
    conversation = begun(edit("tp", 5))
    assert conversation.say(edit("tp", 2)).plan["cluster"]["count"] == 8


def test_a_need_leaves_a_whole_plan_alone_and_is_answered_by_its_field() -> None:
    conversation = begun(runs=False)
    plan = conversation.plan
    asked = conversation.say(edit("count", 3), needs=[Need("model", "which GPT-5 is it?")])
    assert (asked.asked, asked.calls, conversation.plan) == (["model: which GPT-5 is it?"], [], plan)
    other = conversation.say(edit("model", "Qwen/Qwen2.5-7B"))
    assert (get(other.plan, "model"), get(other.plan, "cluster.count")) == ("Qwen/Qwen2.5-7B", 3)
    conversation = begun(runs=False)
    conversation.say(edit("count", 3), needs=[Need("model", "which GPT-5 is it?")])
    assert get(conversation.say(edit("seq_len", 1024)).plan, "cluster.count") == 8


def test_what_is_missing_is_asked_and_the_rest_kept() -> None:
    conversation = Conversation()
    told = conversation.say(edit("accelerator", DEVICE), edit("count", 1), tool="check_fit", lost=["frobnicate"])
    assert [text.partition(":")[0] for text in told.asked] == ["model"]
    assert told.answer.startswith("I could not place 'frobnicate'")
    assert conversation.say(edit("model", MODEL)).names[0] == "estimate_training"


def test_where_no_device_is_named_the_usual_one_is_taken_until_one_is() -> None:
    conversation = Conversation()
    first = conversation.say(edit("model", MODEL), edit("method", "full"), tool="check_fit")
    taken = get(first.plan, "cluster.accelerator")
    assert taken
    assert taken in first.answer
    again = conversation.say(edit("micro_batch", 2))
    assert get(again.plan, "cluster.accelerator") == taken
    assert "no device was named" not in again.answer
    named = conversation.say(edit("accelerator", "mi300x"))
    assert get(named.plan, "cluster.accelerator") == "mi300x"


def test_a_follow_up_asks_the_last_question_again() -> None:
    conversation = begun(runs=False)
    for tool in ("find_limit", "sweep", "project_scaling", "compare"):
        first = conversation.say(tool=tool, own=OWN.get(tool, {}))
        again = conversation.say(edit("micro_batch", 2))
        assert again.names == [tool]
        assert again.calls[0].arguments == first.calls[0].arguments | {"micro_batch": 2}
    assert conversation.say(edit("method", "lora")).names == ["estimate_training"]


def test_going_back() -> None:
    conversation = begun(runs=False)
    first = conversation.plan
    second = conversation.say(edit("count", 16)).plan
    conversation.say(edit("count", 32))
    assert conversation.say(refs=[Reference("before")]).plan == second
    assert conversation.say(refs=[Reference("first")]).plan == first
    assert conversation.say(edit("model", MODEL), new=True, tool="describe_model").plan == first


def test_what_was_not_understood_comes_first_and_what_was_assumed_ends_the_lead() -> None:
    told = begun().say(tool="check_fit", lost=["not"], assumed=["A100 read as 80 GB SXM; say PCIe where it is that"])
    first, *rest = folded(told.answer).lead.split("\n\n")
    assert "'not'" in first
    assumed, *steps = [line for line in rest if line.startswith(("Assumed: ", "Next: "))]
    assert assumed.startswith("Assumed: A100 read as")
    assert all(line.startswith("Next: ") for line in steps)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([["method", "full"], ["method", "lora"]], {"over": {"method": ["full", "lora"]}}),
        ([["accelerator", DEVICE], ["accelerator", "mi300x"]], {"over": {"accelerator": [DEVICE, "mi300x"]}}),
        ([["precision", "fp8"]], {"over": {"precision": ["bf16", "fp8"]}}),
        ([["nodes", 2], ["nodes", 4]], {"over": {"count": [16, 32]}, "per_node": 8}),
    ],
)
@pytest.mark.parametrize("tool", [None, "compare", "estimate_training", "check_fit", "estimate_cost"])
def test_options_are_set_side_by_side(options: list[Any], wanted: dict[str, Any], tool: str | None) -> None:
    conversation = begun(runs=False)
    plan = conversation.plan
    told = conversation.say(tool=tool, options=[[edit(*option)] for option in options])
    assert told.names == ["compare"]
    assert {name: told.calls[0].arguments.get(name) for name in wanted} == wanted
    assert told.plan == plan
    registry()["compare"].parse(told.calls[0].arguments)


def test_options_of_several_fields_are_scenarios() -> None:
    options = [[edit("accelerator", "b200-sxm"), edit("count", 4)], [edit("accelerator", DEVICE), edit("count", 8)]]
    told = begun().say(options=options)
    rows = told.calls[0].arguments["scenarios"]
    assert [(row["accelerator"], row["count"]) for row in rows] == [("b200-sxm", 4), (DEVICE, 8)]
    assert "4 x b200-sxm" in told.answer


def test_what_was_said_before_is_compared() -> None:
    conversation = begun(runs=False)
    conversation.say(edit("count", 16))
    rows = conversation.say(tool="compare").calls[0].arguments["scenarios"]
    assert [get(row["plan"], "cluster.count") for row in rows] == [8, 16]


def test_a_limit_of_several_options_is_one_call_each() -> None:
    told = begun(runs=False).say(
        tool="find_limit", own={"goal": "seq_len"}, options=[[edit("method", "full")], [edit("method", "lora")]]
    )
    assert [call.arguments["method"] for call in told.calls] == ["full", "lora"]


def test_a_refused_framework_is_not_chosen() -> None:
    conversation = Conversation()
    start = [
        edit("model", MODEL),
        edit("accelerator", DEVICE),
        edit("count", 8),
        edit("framework", "deepspeed", "refuse"),
    ]
    told = conversation.say(*start, tool="estimate_training")
    assert told.names[:2] == ["sweep", "estimate_training"]
    assert get(told.plan, "workload.framework") not in (None, "auto", "deepspeed")
    assert "without framework deepspeed" in folded(told.answer).lead
    assert get(conversation.say(edit("count", 4)).plan, "workload.framework") != "deepspeed"


def test_a_refused_device_leaves_the_others() -> None:
    conversation = begun(runs=False)
    options = [[edit("accelerator", DEVICE)], [edit("accelerator", "mi300x")]]
    conversation.say(options=options)
    assert get(conversation.say(edit("accelerator", DEVICE, "refuse")).plan, "cluster.accelerator") == "mi300x"
    asked = begun(runs=False).say(edit("accelerator", DEVICE, "refuse")).asked
    assert [text.partition(":")[0] for text in asked] == ["cluster.accelerator"]


def test_a_search_leaves_out_what_is_refused() -> None:
    conversation = Conversation(runs=False)
    refused = [edit("accelerator", DEVICE, "refuse"), edit("provider", "AWS", "refuse")]
    call = conversation.say(
        edit("model", MODEL), edit("dataset_tokens", 1e8), *refused, tool="recommend_cluster"
    ).calls[0]
    assert DEVICE not in call.arguments["accelerators"]
    assert "mi300x" in call.arguments["accelerators"]
    assert "AWS" not in call.arguments["providers"]
    registry()["recommend_cluster"].parse(call.arguments)
    sized = conversation.say(edit("load", 8), serving=True, tool="size_serving").calls[0]
    assert DEVICE not in sized.arguments["accelerators"]


def test_files_are_withheld_where_the_run_does_not_fit() -> None:
    big = [
        edit("model", "meta-llama/Llama-3.1-70B"),
        edit("accelerator", DEVICE),
        edit("count", 1),
        edit("method", "full"),
    ]
    conversation = Conversation()
    told = conversation.say(
        *big, tool="write_configs", own={"targets": ["slurm"], "folder": "runs/x", "partition": "a"}
    )
    assert "write_configs" not in told.names
    assert told.names[-1] == "render_configs"
    assert told.calls[-1].arguments["partition"] == "a"


def test_cost_follows_the_layout_that_was_chosen() -> None:
    conversation = begun(edit("dataset_tokens", 1e8), tool="best_parallelism", focus=["layout", "cost"])
    *_, last = [part for content in conversation.messages for part in content["parts"] if "functionCall" in part]
    call = last["functionCall"]
    assert call["name"] == "estimate_cost"
    assert call["args"]["dp"] * call["args"]["tp"] * call["args"]["pp"] * call["args"]["cp"] == 8


@pytest.mark.parametrize(
    ("form", "starts"),
    [
        ({"act": "control", "own": {"control": "thanks"}}, "I plan LLM"),
        ({"act": "control", "own": {"control": "help"}}, "I plan LLM"),
        ({"new": True}, "Done"),
        ({}, "That is outside"),
        ({"refs": [Reference("before")]}, "There is no plan"),
        ({"tool": "save_scenario"}, "There is no plan"),
        ({"tool": "matrix_results"}, "Which folder"),
        ({"tool": "diff_scenarios"}, "There is no plan here yet"),
        ({"tool": "add_price"}, "Before I can work that out"),
    ],
)
def test_what_needs_no_tool(form: dict[str, Any], starts: str) -> None:
    told = Conversation().say(**form)
    assert told.calls == []
    assert told.answer.startswith(starts)


def test_facts_are_asked_of_each_thing_and_change_nothing() -> None:
    conversation = begun(runs=False)
    plan = conversation.plan
    told = conversation.say(tool="describe_hardware", own={"accelerators": ["l40s", "a100-sxm-80gb"]})
    assert [call.arguments for call in told.calls] == [{"accelerator": "l40s"}, {"accelerator": "a100-sxm-80gb"}]
    assert conversation.say(edit("accelerator", "mi300x")).calls[0].arguments == {"accelerator": "mi300x"}
    assert conversation.say(tool="describe_model").calls[0].arguments == {"model": MODEL}
    assert conversation.plan == plan


def test_serving_keeps_model_and_devices_and_comes_back() -> None:
    conversation = begun(edit("seq_len", 4096))
    told = conversation.say(edit("load", 16), edit("length", 8192), serving=True, tool="estimate_inference")
    assert told.plan["workload"]["kind"] == "inference"
    assert (told.plan["model"], told.plan["cluster"]["count"]) == (MODEL, 8)
    assert told.calls[0].arguments["input_len"] == 8192 - 256
    doubled = conversation.say(edit("load", 2, "times"))
    assert doubled.calls[0].arguments["concurrency"] == 32
    assert get(conversation.say(refs=[Reference("first")]).plan, "workload.seq_len") == 4096


def test_an_own_price_is_of_its_device() -> None:
    conversation = begun(edit("dataset_tokens", 1e8), runs=True)
    told = conversation.say(tool="estimate_cost", pricing={"usd_per_node_hour": 16.0})
    assert told.calls[-1].arguments["usd_per_device_hour"] == 2.0
    moved = conversation.say(edit("accelerator", "a100-sxm-80gb"))
    assert "usd_per_device_hour" not in moved.calls[-1].arguments


def test_devices_restrict_a_search_that_goes_on() -> None:
    conversation = Conversation(runs=False)
    conversation.say(
        edit("model", MODEL), edit("dataset_tokens", 1e8), tool="recommend_cluster", own={"vendors": ["AMD"]}
    )
    options = [[edit("accelerator", name)] for name in ("l40s", DEVICE)]
    narrowed = conversation.say(edit("provider", "AWS"), options=options)
    assert narrowed.names == ["recommend_cluster"]
    assert narrowed.calls[0].arguments["accelerators"] == ["l40s", DEVICE]
    assert narrowed.calls[0].arguments["providers"] == ["AWS"]
    assert "vendors" not in narrowed.calls[0].arguments


def test_a_recommended_cluster_is_taken_up() -> None:
    conversation = Conversation()
    conversation.say(
        edit("model", MODEL),
        edit("dataset_tokens", 1e8),
        tool="recommend_cluster",
        own={"accelerators": ["l40s", DEVICE]},
    )
    offers = conversation.topic["offers"]
    told = conversation.say(refs=[Reference("offer", place=1)], tool="check_fit")
    assert get(told.plan, "cluster.accelerator") == offers[1]["cluster.accelerator"]


def test_an_option_that_was_compared_is_taken_up() -> None:
    conversation = Conversation()
    options = [[edit("accelerator", name)] for name in ("l40s", DEVICE)]
    compared = conversation.say(edit("model", MODEL), edit("count", 2), options=options, tool="compare")
    assert get(compared.plan, "cluster.accelerator") is None
    assert get(conversation.say(tool="render_configs").plan, "cluster.accelerator") == DEVICE
    assert get(conversation.say(refs=[Reference("offer", place=0)]).plan, "cluster.accelerator") == "l40s"


def test_memory_needs_no_device() -> None:
    told = Conversation().say(edit("model", MODEL), focus=["need"])
    assert told.names == ["estimate_training", "find_limit", "find_limit", "find_limit"]


def test_a_printed_figure_is_found_again() -> None:
    conversation = begun()
    shown = conversation.messages[-1]["parts"][0]["text"].partition("about ")[2].partition(" (")[0]
    call = conversation.say(tool="explain", own={"figure": shown}).calls[0]
    assert call.arguments["figure"].startswith("memory.")
