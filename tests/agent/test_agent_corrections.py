"""What is said twice: corrections take the later number, and a number that says otherwise without one is told."""

from itertools import product

import pytest

from agent.offline import language
from agent.offline.catalogue import known
from tests.agent.scoring import NOON

_CORRECTIONS = (
    "no make that",
    ", make that",
    ", no,",
    ". no wait",
    ", sorry,",
    " - i mean",
    ", or rather",
    ", actually",
)
_FIELDS = {
    "global_batch": ("gbs", 512, 256),
    "seq_len": ("seq len", 4096, 8192),
    "lora_rank": ("rank", 16, 64),
    "epochs": ("epochs", 2, 3),
    "tp": ("tp", 8, 4),
}


def _values(text: str, name: str) -> tuple[list[object], list[str]]:
    reading = language.read(text, known(), {}, {}, NOON)
    return [edit.value for edit in reading.edits if edit.field == name], reading.unread


@pytest.mark.parametrize(("name", "words"), [*product(_FIELDS, _CORRECTIONS)])
def test_a_correction_takes_the_later_number(name: str, words: str) -> None:
    said, wrong, right = _FIELDS[name]
    for again in (f"{said} ", ""):
        values, unread = _values(f"lora of llama 3.1 8b on 8 h100, {said} {wrong}{words} {again}{right}", name)
        assert values == [right], (words, again)
        assert str(right) not in unread


@pytest.mark.parametrize("name", _FIELDS)
def test_a_number_that_says_otherwise_is_told(name: str) -> None:
    said, first, second = _FIELDS[name]
    values, unread = _values(f"lora of llama 3.1 8b, {said} {first}, on 8 h100 with {said} {second}", name)
    assert values == [first]
    assert unread == [str(second)]


@pytest.mark.parametrize("before", ["for 200 users", "at 4k", "llama 70b", "2 epochs", "at 50 req/s"])
def test_devices_behind_a_colon_are_counted(before: str) -> None:
    reading = language.read(f"llama 70b {before}: 4 h100 or 2 h200?", known(), {}, {}, NOON)
    counts = [[edit.value for edit in option if edit.field == "count"] for option in reading.options]
    assert counts == [[4], [2]]
    assert not reading.unread


@pytest.mark.parametrize("machine", ["a DGX Station", "a mac studio", "an HGX", "a box"])
def test_devices_of_a_machine_are_those_that_are_counted_in_it(machine: str) -> None:
    reading = language.read(f"lora of mistral 7b on {machine} with 4 V100 32GB", known(), {}, {}, NOON)
    said = {edit.field: edit.value for edit in reading.edits}
    assert (said["accelerator"], said["count"]) == ("v100-sxm-32gb", 4)


@pytest.mark.parametrize("strategy", ["data", "model", "pipeline", "hybrid"])
def test_a_run_that_is_to_be_spread_in_a_named_way_is(strategy: str) -> None:
    reading = language.read(f"train llama-3.1-8b on 8 h100 with {strategy} parallelism", known(), {}, {}, NOON)
    assert (reading.tool, reading.own) == ("apply_strategies", {"strategies": [strategy]})
