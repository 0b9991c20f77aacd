"""How people go on: what stays, what was before, one of several, a comparison without one or with something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agent.offline import language
from agent.offline.catalogue import known
from planner.partial import get
from planner.requests import ALL_PATHS
from tests.agent import scoring
from tests.agent.scoring import NOON

PLAN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "cluster": {"accelerator": "h100-sxm", "count": 8, "per_node": 4},
    "workload": {"kind": "training", "method": "lora", "micro_batch": 4, "seq_len": 8192},
    "goal": {"deadline_h": 24},
}


@pytest.fixture(autouse=True)
def at_home() -> Iterator[None]:
    with scoring.home():
        yield


def said(text: str, plan: dict[str, Any] | None = None) -> dict[str, Any]:
    reading = language.read(text, known(), plan or {}, {}, NOON)
    assert not reading.lost, text
    return {edit.field: edit.value for edit in reading.edits if edit.op != "refuse"}


def plans(*turns: str) -> list[dict[str, Any]]:
    return [turn.plan for turn in scoring.talk(list(turns))]


def own(*turns: str) -> dict[str, Any]:
    """The arguments of the last call of a conversation."""
    *_, last = scoring.talk(list(turns))
    return last.calls[-1].arguments


@pytest.mark.parametrize("words", ["perdón,", "perdona,", "pardon,", "scusate,", "oops,", "sorry,", "Entschuldigung,"])
def test_a_number_behind_an_apology_is_the_one_meant(words: str) -> None:
    assert said(f"qlora of gemma 2 9b on 4 L40S, {words} 6. What fits?")["count"] == 6


@pytest.mark.parametrize("question", ["ok now?", "now does it fit?", "better now?"])
def test_what_stands_before_now_is_no_earlier_run(question: str) -> None:
    assert said(f"micro batch 1. {question}", PLAN)["micro_batch"] == 1
    assert "a100" not in str(said("we had 8 a100 last year. now 16 h100, lora of llama 3.1 8b"))


@pytest.mark.parametrize(
    "words",
    [
        "only one of the two nodes",
        "solo una de las dos máquinas",
        "un seul des deux noeuds",
        "nur einen der beiden Server",
    ],
)  # fmt: skip
def test_one_of_the_two_is_one(words: str) -> None:
    assert said(words, PLAN) == {"nodes": 1}


@pytest.mark.parametrize("words", ["I can wait a day longer", "a day later is fine", "24 hours more", "ein Tag länger"])
def test_time_that_is_added_moves_the_deadline(words: str) -> None:
    reading = language.read(words, known(), PLAN, {}, NOON)
    assert [(edit.field, edit.op, edit.value) for edit in reading.edits] == [("deadline_h", "plus", 24)]


@pytest.mark.parametrize("keeps", ["leave it at", "keep it at", "stay at", "stick with", "back to"])
def test_a_value_that_stays_is_that_of_before(keeps: str) -> None:
    *_, last = plans("lora of llama 3.1 8b on 8 h100, rank 16", "rank 64", f"{keeps} 16 and 4 gpus")
    assert (get(last, ALL_PATHS["lora_rank"]), get(last, "cluster.count")) == (16, 4)


def test_what_there_was_first_is_taken_again() -> None:
    reading = [*scoring.talk(["sft of qwen3 14b on 8 h100", "what if I only get 4", "now with the 8 I first had"])][-1]
    assert get(reading.plan, "cluster.count") == 8


@pytest.mark.parametrize("words", ["4 h100 or h200", "4 a100 80gb or h100", "4 h100 sxm or pcie", "4x 3090 or 4090"])
def test_as_many_of_each_device_are_compared(words: str) -> None:
    reading = language.read(f"lora of llama 3.1 8b on {words}?", known(), {}, {}, NOON)
    assert [[edit.value for edit in option if edit.field == "count"] for option in reading.options] == [[4], [4]]
    single = language.read("lora of llama 3.1 8b: 4 a100 80gb or an h100?", known(), {}, {}, NOON)
    assert [[edit.value for edit in option if edit.field == "count"] for option in single.options] == [[4], [1]]


@pytest.mark.parametrize("words", ["heavier than", "cheaper than", "faster than", "schneller als", "mejor que"])
def test_a_comparative_sets_side_by_side(words: str) -> None:
    reading = language.read(f"is ppo {words} dpo for olmo 2 13b on 8 a100 80gb?", known(), {}, {}, NOON)
    assert (reading.tool, [option[0].value for option in reading.options]) == ("compare", ["ppo", "dpo"])


@pytest.mark.parametrize("leaves", ["drop the l40s", "without the l40s", "no l40s"])
def test_a_comparison_goes_on_without_what_is_refused(leaves: str) -> None:
    first = "a100 80gb, l40s or h100 for a qlora of mixtral 8x7b, 4 of each?"
    arguments = own(first, f"{leaves}, and at 4k")
    assert arguments["over"] == {"accelerator": ["a100-sxm-80gb", "h100-sxm"]}
    assert arguments["seq_len"] == 4096


def test_which_of_the_two_is_asked_of_both_with_what_is_set() -> None:
    arguments = own("llama 3.1 8b lora on 8 h100", "and on 8 a100?", "which one is cheaper for 2B tokens")
    rows = arguments["scenarios"]
    assert [get(row["plan"], "cluster.accelerator") for row in rows] == ["h100-sxm", "a100-sxm-80gb"]
    assert {get(row["plan"], "workload.dataset_tokens") for row in rows} == {2e9}


@pytest.mark.parametrize("words", ["the one that needs least", "the one with the least memory"])
def test_one_of_several_is_called_by_its_memory(words: str) -> None:
    *_, last = plans("adamw vs muon vs adafactor for pretraining pythia-1b on one a6000", f"let's use {words}")
    assert get(last, "workload.optimizer") == "adafactor"


def test_devices_that_were_priced_are_those_of_the_run_behind() -> None:
    *_, last = plans("what do 32 B200s cost an hour?", "llama 3.1 70b lora, 500M tokens")
    assert (get(last, "cluster.accelerator"), get(last, "cluster.count")) == ("b200-sxm", 32)


def test_a_list_of_jobs_is_a_queue_of_those_that_fit_beside_each_other() -> None:
    arguments = own(
        "three jobs wait for our 16 A100 80GB: lora of llama 3.1 8b with 50M tokens on 4 gpus, full sft of qwen2.5-7b "
        "with 200M tokens on 8, and qlora of llama 3.3 70b with 30M on 4. when is each of them done?",
        "put the qlora one first, it is due on friday",
    )
    assert (arguments["count"], "start" in arguments) == (16, False)
    assert [(run["devices"], run.get("after", [])) for run in arguments["runs"]] == [(4, []), (4, []), (8, [])]
    assert arguments["runs"][0]["deadline_h"] == 60.0


@pytest.mark.parametrize("words", ["a euro is 1.09 dollars", "1.09 dollars to the euro", "un euro vale 1,09 dólares"])
def test_other_money_is_worth_what_is_said(words: str) -> None:
    assert said(f"{words}. lora of llama 3.1 8b on 8 h100, budget 1000 euros")["budget_usd"] == pytest.approx(1090)


@pytest.mark.parametrize(
    "words", ["64 prompts x 8 samples a step", "64 prompts, 8 samples each", "64 prompts, group of 8"]
)
def test_prompts_beside_a_group_are_those_of_a_step(words: str) -> None:
    found = said(f"grpo with qwen3-8b on 8 h100, {words}")
    assert (found["global_batch"], found["group_size"]) == (64, 8)
    assert "prompt_len" not in found


def test_devices_that_nvidia_smi_lists_are_counted() -> None:
    listed = "\n".join(f"GPU {at}: NVIDIA RTX A6000 (UUID: GPU-{at}5f1c-77aa)" for at in range(4))
    assert said(f"{listed}\nwhat can I qlora on this box?") == {
        "method": "qlora",
        "accelerator": "rtx-a6000",
        "count": 4,
    }


@pytest.mark.parametrize(
    ("words", "device"),
    [("my gaming laptop with a 4090", "rtx-4090-laptop"), ("a 4060 in my laptop", "rtx-4060-laptop"),
     ("my laptop is slow, a 4090", "rtx-4090"), ("a 3090 and a laptop", "rtx-3090")],
)  # fmt: skip
def test_a_card_in_a_laptop_is_the_laptops(words: str, device: str) -> None:
    assert said(f"qlora of qwen3 4b on {words}")["accelerator"] == device


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [("50m tokns", "dataset_tokens", 5e7), ("3 epohs", "epochs", 3), ("20k sampels", "dataset_samples", 20_000)],
)
def test_a_slip_in_a_unit_is_mended(words: str, field: str, value: float) -> None:
    assert said(f"lora of llama 3.1 8b on 8 h100, {words}")[field] == value


@pytest.mark.parametrize("words", ["between 1 and 32 nodes", "from 1 up to 32 nodes", "zwischen 1 und 32 Knoten"])
def test_a_range_has_both_ends(words: str) -> None:
    reading = language.read(f"how does llama 3.1 8b sft scale {words} of 8 h100?", known(), {}, {}, NOON)
    assert "1" not in reading.unread


def test_non_stop_refuses_nothing() -> None:
    assert said("rent or buy 16 H200 for training llama 3.3 70b lora non stop, 20B tokens")["method"] == "lora"


def test_more_like_adds_no_money() -> None:
    assert said("our data is more like 140M actually", PLAN) == {"dataset_tokens": 140e6}


@pytest.mark.parametrize("words", ["i can't make the sequence any shorter", "we cannot change the context"])
def test_what_cannot_be_changed_stays(words: str) -> None:
    assert said(f"{words}. batch of 1 ok?", PLAN) == {"batch": 1}
    reading = language.read(f"{words}. batch of 1 ok?", known(), PLAN, {}, NOON)
    assert not [edit for edit in reading.edits if edit.op in ("drop", "refuse")]


def test_another_choice_is_taken_behind_a_correction() -> None:
    first = "fp8 vs awq vs bf16 for llama-3.1-70b on 2 h100, 32 users"
    *_, last = plans(first, "take the second", "sorry i meant the first")
    assert get(last, "workload.weight_dtype") == "fp8"


@pytest.mark.parametrize("refuses", ["don't", "we can't", "never", "we don't want to", "please do not", "we must not"])
@pytest.mark.parametrize("change", ["lower the rank", "reduce the context", "increase the batch", "double the batch"])
def test_a_change_that_is_refused_changes_nothing(refuses: str, change: str) -> None:
    reading = language.read(f"{refuses} {change}", known(), PLAN, {}, NOON)
    assert not reading.edits
    wanted = language.read(f"why don't we {change}?", known(), PLAN, {}, NOON)
    assert [edit.op for edit in wanted.edits] == ["times"]


@pytest.mark.parametrize(
    "question",
    [
        "what's the smallest gpu that runs qwen3-14b at q4",
        "smallest card for llama 8b qlora",
        "kleinste Karte für Qwen3-14B q4?",
        "minimum gpu for llama 70b qlora",
    ],
)
def test_the_smallest_card_is_a_kind_of_device_not_how_many(question: str) -> None:
    assert own(question)["goal"] == "accelerator"


def test_a_length_in_thousands_is_no_number_of_devices() -> None:
    *_, last = plans("serve qwen3-14b q4 at 32k on a 3060", "how many do I need", "and at 16k")
    assert get(last, "cluster.count") in (None, 1)
    assert 16_000 <= get(last, "workload.input_len") + 256 <= 16_640


@pytest.mark.parametrize(
    "words",
    [
        "8 answers per prompt of 4096 tokens each",
        "8 respostas por prompt com 4096 tokens cada",
        "8 Antworten pro Prompt mit je 4096 Token",
        "8 réponses par prompt de 4096 tokens",
        "8 respuestas por prompt de 4096 tokens",
        "每个prompt生成8个回答，每个4096 token",
        "プロンプトごとに8回答、各4096トークン",
    ],
)
def test_answers_to_each_prompt_are_a_group_and_their_tokens_its_length(words: str) -> None:
    read = said(f"GRPO qwen3 8b, {words}")
    assert (read["group_size"], read["response_len"]) == (8, 4096)


@pytest.mark.parametrize(
    "words",
    [
        "Danach soll das Modell für 20 gleichzeitige Nutzer laufen.",
        "学習後、20人が同時に使う場合の速度は？",
        "and afterwards 20 people will use it",
        "y luego lo usarán 20 personas a la vez",
        "nach dem Training sollen 20 Leute es nutzen",
    ],
)
def test_people_who_are_to_use_a_model_are_served_whatever_is_trained_now(words: str) -> None:
    reading = language.read(words, known(), PLAN, {}, NOON)
    assert reading.serving
    assert {"concurrency": 20}.items() <= {edit.field: edit.value for edit in reading.edits}.items()


def test_going_back_to_the_training_is_to_the_last_plan_that_was_one() -> None:
    turns = ("lora on llama 8b, one L40S, 10M tokens", "then serve it to 8 people", "could 20 people use it?")
    *_, back, memory = scoring.talk([*turns, "back to the training. what if I take rank 64", "what does that need?"])
    assert [get(turn.plan, "workload.method") for turn in (back, memory)] == ["lora", "lora"]
    assert "estimate_inference" not in {call.name for call in memory.calls}


@pytest.mark.parametrize("words", ["if we spend only 500", "wir wollen nur 500 ausgeben", "si on ne dépense que 500"])
def test_a_bare_number_that_is_spent_is_money(words: str) -> None:
    assert said(words, {**PLAN, "goal": {"budget_usd": 3000}})["budget_usd"] == 500


@pytest.mark.parametrize("words", ["my loss goes to nan", "we keep getting loss spikes", "it hangs at step 30"])
@pytest.mark.parametrize("plan", [{}, PLAN], ids=["no plan", "a plan"])
def test_what_goes_wrong_beside_memory_is_looked_up_and_changes_nothing(words: str, plan: dict[str, Any]) -> None:
    reading = language.read(words, known(), plan, {}, NOON)
    assert (reading.tool, reading.edits) == ("search_playbook", [])


def test_files_that_were_shown_are_shown_again_with_what_is_changed() -> None:
    arguments = own("llamafactory yaml for dpo on llama 3.1 8b, 2 a6000, lora r 32", "make the rank 16")
    assert (arguments["lora_rank"], arguments["targets"]) == (16, ["llamafactory"])


@pytest.mark.parametrize(("kind", "model"), [("dense", "Qwen/Qwen3-32B"), ("MoE", "Qwen/Qwen3-30B-A3B")])
def test_a_size_is_of_a_model_of_the_kind_that_is_said(kind: str, model: str) -> None:
    assert said(f"pretrain a 30B {kind} on 256 H100")["model"] == model


def test_one_of_two_that_were_spoken_of_is_no_number_of_devices() -> None:
    compared = own("llama 8b on a 4090", "or a 3090", "which of the two is faster")
    assert "count" not in str(compared.get("over", {}))


@pytest.mark.parametrize(
    ("before", "words", "model"),
    [
        ("lora llama 3.1 8b on a 4090", "sorry i meant 3.2 3b", "meta-llama/Llama-3.2-3B"),
        ("lora llama 3.1 8b on a 4090", "the 3.2 3b instead", "meta-llama/Llama-3.2-3B"),
        ("serve llama 3.1 70b on 8 h100", "and 3.3 70b?", "meta-llama/Llama-3.3-70B-Instruct"),
    ],
)
def test_a_generation_and_a_size_are_of_the_family_that_there_is(before: str, words: str, model: str) -> None:
    *_, last = scoring.talk([before, words])
    assert model in {call.arguments["model"] for call in last.calls}
    assert "could not place" not in last.answer


@pytest.mark.parametrize("part", ["optimizer", "activations"])
@pytest.mark.parametrize("words", ["with the {} on the cpu", "if the {} goes to cpu", "keep the {} in system ram"])
def test_what_is_put_into_the_hosts_memory_is_offloaded_whatever_the_verb(part: str, words: str) -> None:
    assert said(f"llama 8b full on one h100, {words.format(part)}")["offload"] == part


@pytest.mark.parametrize("words", ["how do we halve it", "how can I double the batch", "wie können wir das halbieren"])
def test_how_to_come_to_a_change_makes_none(words: str) -> None:
    reading = language.read(words, known(), PLAN, {}, NOON)
    assert (reading.tool, reading.edits) == ("advise", [])
    assert language.read("what if we double the batch", known(), PLAN, {}, NOON).edits
