"""What is asked next: of runs of the history, of speeds that are told, of what was found, of money and of files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from measure.history import store
from measure.history.run import MeasuredRun
from tests.agent import scoring

PLAN = {
    "model": "meta-llama/Llama-3.1-8B",
    "cluster": {"accelerator": "h100-sxm", "count": 8},
    "workload": {"kind": "training", "method": "lora", "seq_len": 4096, "micro_batch": 2, "global_batch": 128},
}


@pytest.fixture(autouse=True)
def at_home() -> Iterator[None]:
    with scoring.home():
        yield


@pytest.fixture
def kept() -> list[str]:
    first = MeasuredRun(kind="training", plan=PLAN, figures={"tokens_per_s_per_device": 6000.0}, name="llama-lora-48b")
    return store.add([first, MeasuredRun(kind="training", plan=PLAN, figures={"step_s": 7.0})])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("is run {0} good?", 0),
        ("rate my run {1}", 1),
        ("was run llama-lora-48b slow?", 0),
        ("rate run llama-lora-48b", 0),
        ("is my last run good?", 1),
        ("ist der letzte Lauf gut?", 1),
        ("run {0}: is that normal?", 0),
    ],
)
def test_a_run_is_rated_as_itself(kept: list[str], text: str, place: int) -> None:
    *_, last = scoring.talk(["llama 70b lora on 8 h100", text.format(*kept)])
    assert [(call.name, call.arguments) for call in last.calls] == [("rate_run", {"run": kept[place]})]
    assert last.plan["model"] == "meta-llama/Llama-3.1-70B"


@pytest.mark.parametrize(
    "text", ["compare run {0} with {1}", "run {0} vs run llama-lora-48b, or run {1}: which is better?"]
)
def test_runs_stand_beside_each_other_in_their_list(kept: list[str], text: str) -> None:
    *_, last = scoring.talk([text.format(*kept)])
    assert [(call.name, sorted(call.arguments["runs"])) for call in last.calls] == [("list_runs", sorted(kept))]


@pytest.mark.parametrize("name", ["llama, second try", "lora 8k, tp 2", "the big one"])
def test_a_run_is_called_what_its_name_is(kept: list[str], name: str) -> None:
    store.change(kept[0], rename=name)
    *_, last = scoring.talk([f"is run {name} good?"])
    assert [(call.name, call.arguments) for call in last.calls] == [("rate_run", {"run": kept[0]})]
    *_, last = scoring.talk([f"compare run {name} with run {kept[1]}"])
    assert [sorted(call.arguments["runs"]) for call in last.calls] == [sorted(kept)]


@pytest.mark.parametrize(
    "text", ["can i run llama-3.1-8b on a 4090?", "run qwen3-8b-awq on an l4", "run 8 h100 at once"]
)
def test_to_run_something_is_no_run_of_the_history(kept: list[str], text: str) -> None:
    *_, last = scoring.talk([text])
    assert "rate_run" not in [call.name for call in last.calls]


@pytest.mark.parametrize(
    "text", ["i only get 38. thats low no?", "it gives me 38, is that normal?", "i get 38. is that low?"]
)
def test_a_number_alone_that_is_seen_is_a_speed(text: str) -> None:
    *_, last = scoring.talk(["qwen3 30b a3b 4-bit in mlx on a macbook pro m4 max 64gb: tok/s?", text])
    (call,) = last.calls
    assert (call.name, call.arguments["tokens_per_s"], call.arguments.get("count", 1)) == ("rate_run", 38, 1)


def test_what_was_sized_is_what_is_asked_about_next() -> None:
    _, why, other = scoring.talk(
        ["how many MI300X do I need to serve llama 3.1 70b for 200 users", "what limits it?", "use sglang"]
    )
    assert why.calls[-1].name == "explain"
    assert why.calls[-1].arguments["count"] == other.calls[-1].arguments["count"] > 1
    assert other.calls[-1].arguments["engine"] == "sglang"


def test_what_there_is_stands_beside_another() -> None:
    *_, last = scoring.talk(["lora of llama 70b on 8 h100, 100M tokens", "which costs less, that or full?"])
    assert [call.name for call in last.calls] == ["compare"]


def test_a_month_is_told_first_where_it_is_asked() -> None:
    _, month, tokens = scoring.talk(
        ["serve llama 3.1 70b on 4 h100 for 50 users", "what does it cost per month?", "and per million tokens?"]
    )
    assert " a month" in month.answer.partition(":")[0]
    assert "per million output tokens" in tokens.answer.partition(":")[0]


def test_files_of_slurm_keep_the_framework_that_has_some() -> None:
    _, files = scoring.talk(["pretrain mixtral 8x7b on 64 h100, 300B tokens", "write the slurm files"])
    assert files.calls[-1].arguments["framework"] == "megatron-lm"
