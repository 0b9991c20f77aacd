"""Each sentence of a turn is read for what it is: said for good, asked, told of earlier runs, or only pasted."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from conversations import begun, reading

from agent.offline.language.pasted import apart
from estimator.plan.schema import merge
from planner.partial import get

PLAN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"method": "full"},
    "cluster": {"accelerator": "h100-sxm", "count": 8},
}
TOLD = [
    "We have 16 now.",
    "We've got 16 GPUs.",
    "Let's use 16 H100s.",
    "wir haben jetzt 16 GPUs.",
    "There are 16 of them.",
]
ASKED = ["Should I use LoRA?", "Would LoRA help?", "What if we used LoRA?", "Why not LoRA?", "Sollte ich LoRA nehmen?"]


@pytest.mark.parametrize(("told", "asked"), list(product(TOLD, ASKED)))
def test_what_is_said_for_good_changes_the_plan_and_what_is_asked_does_not(told: str, asked: str) -> None:
    turn = begun(f"{told} {asked}", PLAN)
    assert turn.topic["supposed"]["workload"]["method"] == "lora"
    assert turn.topic["supposed"]["cluster"]["count"] == 16
    kept = merge(turn.topic["plans"][-1], {}) if turn.topic.get("plans") else {}
    assert kept == PLAN


def test_one_sentence_may_do_both() -> None:
    turn = begun("we have 16 now, should I use LoRA?", PLAN)
    assert get(turn.topic["supposed"], "cluster.count") == 16
    assert get(turn.topic["supposed"], "workload.method") == "lora"
    assert turn.topic["plans"] == [PLAN]


OLD = ["Last year we trained Llama-2-13B on 8 V100s.", "I read that others use Llama-2-13B on 8 V100s.",
       "In the past we ran Llama-2-13B on 8 V100s.", "On our old cluster Llama-2-13B took 8 V100s."]  # fmt: skip
NOW = ["Does LoRA of Llama-3.1-70B fit on 4 H200?", "Can I fine-tune Llama-3.1-70B with LoRA on 4 H200s?"]


@pytest.mark.parametrize(("old", "now"), list(product(OLD, NOW)))
@pytest.mark.parametrize("last", [False, True])
def test_earlier_runs_are_not_this_one(old: str, now: str, last: bool) -> None:
    said = reading(f"{now} {old}" if last else f"{old} {now}")
    values = {edit.field: edit.value for edit in said.edits}
    assert values["model"] == "meta-llama/Llama-3.1-70B"
    assert (values["accelerator"], values["count"]) == ("h200-sxm", 4)
    assert any("V100" in note for note in said.assumed), "what is left out is said"


def test_drop_to_a_number_is_no_refusal() -> None:
    assert begun("drop to 4 GPUs", PLAN).changes == {"cluster.count": 4}


def test_back_to_a_number_brings_back_what_had_it() -> None:
    turn = begun("back to 16", PLAN, {"plans": [merge(PLAN, {"cluster.count": 16, "workload.method": "lora"})]})
    assert turn.changes == {"cluster.count": 16}


@pytest.mark.parametrize("words", ["4 is too many", "we have 16"])
def test_a_number_alone_is_no_budget(words: str) -> None:
    assert "goal.budget_usd" not in begun(words, PLAN).changes


LOG = "{'loss': 1.2, 'learning_rate': 9.1e-06, 'epoch': 0.31} 31%|███ | 1204/3890 [2:11:07<4:52:33, 6.53s/it]"
TRACE = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 3 has a total capacity of "
    "79.11 GiB of which 1.12 GiB is free."
)
SMI = (
    "| 0  NVIDIA H100   On | 00000000:01:00.0 Off |   0 |\n"
    "| N/A 61C P0 287W / 350W | 43211MiB / 81559MiB | 98% Default |"
)


@pytest.mark.parametrize("pasted", [LOG, f"```\n{TRACE}\n```", TRACE, SMI])
@pytest.mark.parametrize("after", [False, True])
def test_logs_make_no_values_up(pasted: str, after: bool) -> None:
    words = "LoRA of Llama-3.1-8B on 2 H100, seq 4096, does it fit?"
    alone = {(edit.field, str(edit.value)) for edit in reading(words).edits}
    beside = reading(f"{words}\n{pasted}" if after else f"{pasted}\n{words}")
    assert {(edit.field, str(edit.value)) for edit in beside.edits} == alone
    assert beside.tool in ("check_fit", "estimate_training", "advise", "search_playbook")


def test_a_table_fills_fields_and_asks_for_nothing() -> None:
    table = "| model | gpus | seq | do |\n|---|---|---|---|\n| llama-3.1-8b | 8xA100-80G | 4096 | write the files |"
    said = reading(f"{table}\n\nhow fast is that?")
    values = {edit.field: edit.value for edit in said.edits}
    assert (values["model"], values["count"], values["seq_len"]) == ("meta-llama/Llama-3.1-8B", 8, 4096)
    assert said.tool == "estimate_training"


def test_a_block_asks_for_nothing() -> None:
    said = reading("does it fit?\n```\nLlama-3.1-8B full on 8 H100, then write the slurm files to ./out\n```")
    assert said.tool in ("check_fit", "estimate_training")
    assert "targets" not in said.own


def test_devices_of_a_monitor_are_counted() -> None:
    rows = "\n".join(f"| {index}  NVIDIA H100 80GB HBM3   On | 0000:0{index}:00.0 Off |  0 |" for index in range(4))
    assert apart(f"{rows}\nhow many users?").data.startswith("4 x H100")


OUTSIDE = ["finetune flux on a 4090", "train stable diffusion xl on 8 H100", "how many GPUs for whisper large?",
           "video generation on 4 H200", "bge-m3 embeddings on an L4, throughput?",
           "can you make a logo for me"]  # fmt: skip


@pytest.mark.parametrize("words", OUTSIDE)
def test_what_is_no_language_model_is_taken_for_none(words: str) -> None:
    turn = begun(words)
    assert not turn.calls
    assert turn.reading["own"]["control"] == "outside"


@pytest.mark.parametrize("words", ["Falcon-H9 90B on 8 H100", "Qwen-Z7 70B lora on 8 H100", "Hy-9-Max 80B on 8 H100"])
def test_a_version_that_nobody_knows_is_no_neighbour(words: str) -> None:
    turn = begun(words)
    assert "model" in turn.fields_asked, turn.changes


def test_one_and_two_are_counted_where_they_are_written_to_their_field() -> None:
    values = {edit.field: edit.value for edit in reading("vllm qwen2.5-32b tp2 A100 80GB, 32 users").edits}
    assert values["tp"] == 2
    assert "count" not in values
