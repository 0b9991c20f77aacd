"""Every field of every planning tool has a flag, and what is typed there reaches the plan."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.plan.choices import valid_values
from estimator.plan.schema import Plan
from planner.requests import ALL_PATHS, FLAT_PATHS, ONLY_SERVING, SERVING_PATHS, PlanRequest, ServingRequest
from tools.registry import Tool, find
from tui.arguments.parser import commands_of
from tui.arguments.top import parser
from tui.flags import arguments_of, fields_of, flag_of, normal, serves, takes_plan
from tui.planning import PLANNING

PARSERS = commands_of(parser(every_flag=True))
# Values for fields whose type does not say what is valid.
_TYPED = {
    "model": "qwen2.5-0.5b", "name": "mine", "software_version": "2.4", "lora_targets": "attention",
    "accelerator": "h200-sxm", "interconnect": "ib-ndr-400x8", "recompute": "block:3", "provider": "AWS",
    "shard_group": "4", "zero_stage": "2", "image_size": "768x768", "beside": "rtx-3090", "overrides": "weights_gib=3",
    "credits_end": "2026-12-31", "days_per_week": "5",
}  # fmt: skip
_LISTS = ("beside", "recompute_modules")
_SHARES = ("engine_share", "prefix_hit", "memory_share", "acceptance", "output_spread", "lora_dropout", "fp8_healing")
FIELDS = sorted(ALL_PATHS)


def read(command: str, *words: str) -> dict[str, Any]:
    planning = PLANNING[command]
    return arguments_of(PARSERS[command].parse_intermixed_args(normal(words, planning)), planning)


@pytest.mark.parametrize("command", PLANNING)
def test_every_field_of_the_tools_has_a_flag_with_help(command: str) -> None:
    planning, made = PLANNING[command], PARSERS[command]
    flags = made._option_string_actions
    for name, info in fields_of(planning).items():
        assert flag_of(name) in flags
        if info.description:
            assert info.description.split("%")[0][:40] in (flags[flag_of(name)].help or "")
    known = {name for place in planning.tools for name in find(place).request.model_fields}
    by_other_words = {"plan"} | ({"text", "files"} if planning.files else set())
    if "goal" not in fields_of(planning) and "--goal" in flags:
        # That of the plan says what a tool's own does.
        assert flags["--goal"] is flags["--objective"]
        by_other_words.add("goal")
    assert known - by_other_words == set(fields_of(planning)) & known
    assert set(planning.places) <= set(fields_of(planning))
    assert made.format_help().startswith(f"usage: shardwise {command} ")


@pytest.mark.parametrize("command", PLANNING)
def test_the_example_in_the_help_can_be_read(command: str) -> None:
    words = re.findall(r'"[^"]*"|\S+', PLANNING[command].example)
    assert read(command, *[word.strip('"') for word in words])


@st.composite
def typed(draw: st.DrawFn) -> tuple[str, str]:
    """A field and a word for it that the Plan takes."""
    name = draw(st.sampled_from(FIELDS))
    if name in _TYPED:
        return name, _TYPED[name]
    # Training and serving can have a field of one name with values of their own: the plan here is for the first that
    # has the field.
    kind = ServingRequest if name in ONLY_SERVING else PlanRequest
    values = valid_values(kind.model_fields[name].annotation)
    if values:
        return name, draw(st.sampled_from(values))
    if name in _SHARES:
        return name, f"{draw(st.floats(0.05, 0.9)):.3f}"
    # Those whose bounds in the Plan are below that.
    most = {"weight_bits": 32, "output_spread": 10, "hours_per_day": 24}.get(name, 64)
    return name, str(draw(st.integers(1, most)))


@settings(max_examples=examples(150), deadline=None)
@given(field=typed(), style=st.sampled_from(["flag", "equals", "underscore", "set", "dotted"]))
def test_every_flag_reaches_the_plan(field: tuple[str, str], style: str) -> None:
    name, word = field
    if name in ("overrides", "beside") and style in ("set", "dotted"):
        style = "flag"
    path = SERVING_PATHS[name] if name in ONLY_SERVING else FLAT_PATHS[name]
    words = {
        "flag": (flag_of(name), word),
        "equals": (f"{flag_of(name)}={word}",),
        "underscore": (f"--{name}", word),
        "set": ("--set", f"{name}={word}"),
        "dotted": ("--set", f"{path}={word}") if "." in path else (flag_of(name), word),
    }[style]
    arguments = read("fit", *words, *(() if name == "model" else ("--model", "llama-3.1-8b")))
    request = find("check_fit").parse(arguments)
    plan = request.to_plan()  # type: ignore[attr-defined]
    found: Any = plan.model_dump(mode="json")
    for key in path.split("."):
        found = found[key]
    section = (
        {"overrides": {"weights_gib": 3}} if name == "overrides" else _section(path, [word] if name in _LISTS else word)
    )
    expected = Plan.parse({"model": "llama-3.1-8b"} | section)
    wanted: Any = expected.model_dump(mode="json")
    for key in path.split("."):
        wanted = wanted[key]
    assert found == wanted
    assert serves(arguments, PLANNING["estimate"]) == (name in ONLY_SERVING)


@pytest.mark.parametrize(("word", "value"), [("true", True), ("false", False), ("auto", "auto")])
def test_a_field_of_both_kinds_takes_what_serving_takes_too(word: str, value: bool | str) -> None:
    arguments = read("fit", "--model", "llama-3.1-8b", "--engine", "vllm", "--cuda-graph", word)
    request = find("check_fit").parse(arguments)
    assert request.to_plan().model_dump(mode="json")["workload"]["cuda_graph"] == value  # type: ignore[attr-defined]


def _section(path: str, word: str | list[str]) -> dict[str, Any]:
    """The section of a plan with the word at the end of `path`; of serving where only that has the field."""
    *outer, last = path.split(".")
    section: dict[str, Any] = {last: word}
    for key in reversed(outer):
        section = {key: section}
    if outer[:1] == ["workload"]:
        section["workload"]["kind"] = "inference" if last in ONLY_SERVING else "training"
    return section


@settings(max_examples=examples(30), deadline=None)
@given(words=st.lists(st.text(max_size=12), max_size=5))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    from tui.cli import main

    assert main(["playbook", *words, "--json"]) in (0, 2)


def test_lists_and_mappings() -> None:
    assert read("clusters", "m", "--accelerators", "h100, mi300x", "--accelerators", "b200")["accelerators"] == [
        "h100", "mi300x", "b200",
    ]  # fmt: skip
    assert read("clusters", "m", "--accelerators", '["h100"]')["accelerators"] == ["h100"]
    given = read("fit", "m", "--overrides", "weights_gib=3.5", "--overrides", '{"usable_gib": 70}')
    assert given["overrides"] == {"weights_gib": 3.5, "usable_gib": 70}
    over = read("compare", "m", "--over", "method=full,lora", "--over", "count=8..32")["over"]
    assert over == {"method": "full,lora", "count": "8..32"}
    assert read("compare", "m", "--scenarios", "name=a,count=16")["scenarios"] == [{"name": "a", "count": 16}]
    assert read("sweep", "m", "--values", "1,2", "--values", "4")["values"] == "1,2,4"
    assert read("sweep", "m", "--values", "[1, 2]")["values"] == [1, 2]
    assert read("fit", '{"hidden_size": 64}')["model"] == {"hidden_size": 64}


def test_accelerator_with_a_count() -> None:
    assert read("fit", "m", "16xh100") == {"model": "m", "accelerator": "h100", "count": "16"}
    assert read("fit", "m", "8 x mi300x")["accelerator"] == "mi300x"
    assert read("fit", "m", "rtx-4090")["accelerator"] == "rtx-4090"


def test_which_tool_is_meant() -> None:
    for command, planning in PLANNING.items():
        place = planning.training or planning.serving
        assert place is not None
        assert isinstance(find(place), Tool), command
        assert takes_plan(planning) == ("plan" in fields_with_plan(place))
    assert not serves({"model": "m"}, PLANNING["estimate"])
    assert serves({"model": "m", "plan": {"workload": {"engine": "vllm"}}}, PLANNING["estimate"])
    assert serves({"model": "m", "slo_statistic": "p99"}, PLANNING["estimate"])


def fields_with_plan(place: str) -> set[str]:
    return set(find(place).request.model_fields)
