"""What is said relatively makes the plan that it makes said absolutely: factors, amounts more and less, parts of what
there is, devices of a node and in total. Of every field of the Plan that a number fills."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from conversations import Begun, begun
from samples import part
from spoken import FIELDS, MODEL, SERVING, TRAINING, plan_with, written

from planner.partial import get
from planner.requests import ALL_PATHS

FACTORS: dict[float, tuple[str, ...]] = {
    2: ("double the {}", "twice the {}", "double {}", "{} doubled", "2x the {}", "two times the {}",
        "make the {} twice as large", "increase the {} by a factor of 2", "doubling the {}"),
    3: ("triple the {}", "three times the {}", "3x the {}", "thrice the {}"),
    4: ("quadruple the {}", "four times the {}", "4x the {}"),
    10: ("ten times the {}", "10x the {}"),
    1.5: ("one and a half times the {}", "1.5x the {}", "50% more {}", "increase the {} by 50%"),
    1.25: ("a quarter more {}",),
    0.75: ("three quarters of the {}", "reduce the {} by 25%", "25% less {}", "cut the {} by a quarter"),
    0.5: ("half the {}", "halve the {}", "cut the {} in half", "half of the {}", "reduce the {} by half",
          "make the {} half as large", "with half the {}", "reduce the {} by a factor of 2"),
    0.25: ("a quarter of the {}", "quarter the {}", "one quarter of the {}", "a fourth of the {}",
           "cut the {} to a quarter"),
    0.2: ("a fifth of the {}",),
    0.1: ("a tenth of the {}",),
}  # fmt: skip
BY = {
    1: ("increase the {} by {}", "raise the {} by {}", "bump the {} up by {}"),
    -1: ("reduce the {} by {}", "lower the {} by {}", "decrease the {} by {}", "cut the {} by {}"),
}
COUNTED = {
    2: ("2 more {}", "two more {}", "add 2 {}", "2 additional {}", "2 extra {}", "another 2 {}", "plus 2 {}"),
    -2: ("2 fewer {}", "two less {}", "remove 2 {}", "take away 2 {}", "minus 2 {}"),
}
# How half of the usual value is written with its unit.
UNITS = {"dataset_tokens": "2B", "budget_usd": "$2000", "deadline_h": "20 hours", "ttft_slo_ms": "200 ms",
         "tpot_slo_ms": "20 ms", "reserve_gib": "2 GB", "usable_gib": "20 GB"}  # fmt: skip
SHARES = ("engine_share", "prefix_hit", "acceptance", "memory_share", "lora_dropout")


@cache
def said(name: str, value: float) -> Begun:
    return begun(FIELDS[name].set.format(written(value)), plan_with(name))


def differs(text: str, name: str, value: float) -> str | None:
    """What is unlike the plan that the absolute words make; a value that cannot be must be asked about instead."""
    relative, absolute = begun(text, plan_with(name)), said(name, value)
    impossible = (name in SHARES and value >= 1) or (name not in SHARES and value != int(value))
    if impossible and relative.asked and relative.changes == {}:
        return None
    held = get(relative.plan, ALL_PATHS[name])
    same = held is not None and abs(held - value) < 1e-9 * max(1, value)
    if same and (impossible or relative.plan == absolute.plan):
        return None
    return f"{text}: {held} for {value}, {relative.changes} for {absolute.changes}"


@pytest.mark.parametrize("name", FIELDS)
def test_factors(name: str) -> None:
    usual = FIELDS[name]
    first, *others = usual.nouns
    texts = {way.format(first): factor for factor, ways in FACTORS.items() for way in ways}
    texts |= {ways[0].format(noun): factor for factor, ways in FACTORS.items() for noun in others}
    # Each way is said of a third of the fields, and of each field a third of the ways.
    drawn = list(texts.items())[part(list(FIELDS).index(name) % 3, 0) :: part(3, 1)]
    wrong = (differs(text, name, round(usual.value * factor, 9)) for text, factor in drawn)
    assert [each for each in wrong if each] == []


@pytest.mark.parametrize("name", FIELDS)
def test_so_much_more_or_less(name: str) -> None:
    usual = FIELDS[name]
    amount = UNITS.get(name, written(usual.value / 2))
    first, *others = usual.nouns
    texts = {way.format(first, amount): sign for sign, ways in BY.items() for way in ways}
    texts |= {ways[0].format(noun, amount): sign for sign, ways in BY.items() for noun in others}
    texts |= {f"add {amount} to the {noun}": 1 for noun in usual.nouns}
    wrong = (differs(text, name, round(usual.value * (1 + sign / 2), 9)) for text, sign in texts.items())
    assert [each for each in wrong if each] == []


@pytest.mark.parametrize("name", [name for name, field in FIELDS.items() if field.counted])
def test_one_more_or_less_of_what_is_counted(name: str) -> None:
    usual = FIELDS[name]
    texts = {way.format(usual.counted): more for more, ways in COUNTED.items() for way in ways}
    texts |= {f"one more {usual.counted}".rstrip("s"): 1, f"one fewer {usual.counted}".rstrip("s"): -1}
    wrong = (differs(text, name, usual.value + more) for text, more in texts.items())
    assert [each for each in wrong if each] == []


def cluster(text: str, plan: dict[str, Any]) -> dict[str, Any]:
    return begun(text, plan).plan["cluster"]


FOUR_NODES = {"model": MODEL, "cluster": {"accelerator": "h100-sxm", "count": 32, "per_node": 8}}


@pytest.mark.parametrize("number", ["2", "four", "6"])
@pytest.mark.parametrize("ways", [
    "use {} of the 8 GPUs", "only {} of the 8 GPUs", "{} of the 8", "{} out of the 8 GPUs", "{} of our 8 cards",
    "with {} of these 8 devices", "on {} of the 8 H100s", "{} von den 8 GPUs", "{} de las 8 GPUs", "{} des 8 GPU",
])  # fmt: skip
def test_some_of_the_devices(ways: str, number: str) -> None:
    plan = {"model": MODEL, "cluster": {"accelerator": "h100-sxm", "count": 8}}
    assert cluster(ways.format(number), plan)["count"] == {"2": 2, "four": 4, "6": 6}[number]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("ways", [
    "use {} of the 4 nodes", "only {} of our 4 nodes", "{} out of the 4 machines", "on {} of 4 servers",
])  # fmt: skip
def test_some_of_the_nodes(ways: str, number: int) -> None:
    assert cluster(ways.format(number), FOUR_NODES) == FOUR_NODES["cluster"] | {"count": 8 * number}


@pytest.mark.parametrize(("text", "count"), [
    ("one node less", 24), ("another node", 40), ("two more nodes", 48), ("double the nodes", 64),
    ("a quarter of the machines", 8), ("one box died", 24), ("3 fewer nodes", 8), ("twice as many machines", 64),
    ("lose 2 of the 32 GPUs", 30), ("2 of the 32 GPUs died", 30), ("half as many cards", 16), ("20 of the 32", 20),
])  # fmt: skip
def test_more_and_fewer_machines(text: str, count: int) -> None:
    assert cluster(text, FOUR_NODES)["count"] == count


@pytest.mark.parametrize(("each", "nodes"), [(4, 2), (8, 2), (2, 4), (4, 8)])
def test_devices_of_a_node_and_in_total(each: int, nodes: int) -> None:
    total = each * nodes
    ways = (
        f"{each} GPUs per node on {nodes} nodes", f"{nodes} nodes of {each} GPUs", f"{nodes} nodes, {each} GPUs each",
        f"{nodes} machines, {each} cards each", f"{total} GPUs in total, {each} per node",
        f"{nodes} x {each} GPUs per box", f"{nodes} nodes with {each} GPUs each",
        f"{each} GPUs in each of {nodes} boxes", f"{nodes} nodes, {total} GPUs in total",
        f"{total} GPUs across {nodes} nodes", f"{total} GPUs spread over {nodes} boxes",
    )  # fmt: skip
    meant = {"accelerator": "h100-sxm", "count": total, "per_node": each}
    assert {text: cluster(text, TRAINING) for text in ways if cluster(text, TRAINING) != meant} == {}


def test_devices_that_do_not_fill_the_nodes_are_asked_about() -> None:
    asked = begun("30 GPUs on 4 nodes", TRAINING)
    assert asked.fields_asked == ["cluster.per_node"]


def test_two_changes_at_once() -> None:
    plan = plan_with("seq_len")
    both = begun("double the GPUs and halve the sequence length", plan)
    assert both.changes == {"cluster.count": 32, "workload.seq_len": 2048}


@pytest.mark.parametrize("text", ["twice the glory", "raise the mood by 8", "3x the fun"])
def test_a_change_of_nothing_that_is_known_is_told(text: str) -> None:
    read = begun(text, SERVING)
    assert read.plan == SERVING
    assert read.reading["unread"]
