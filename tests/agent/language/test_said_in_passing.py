"""Numbers and names that a word beside them gives another sense: each is read as what it is, or told to be unread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.agent import scoring
from tests.agent.conversations import reading
from tools.registry import registry

TRAINED = {
    "model": "Qwen/Qwen3-32B",
    "cluster": {"accelerator": "h100-sxm", "count": 16},
    "workload": {"kind": "training", "method": "full", "dataset_samples": 200000.0, "global_batch": 64},
}


@pytest.fixture(autouse=True)
def at_home() -> Iterator[None]:
    with scoring.home():
        yield


def _set(text: str, plan: dict[str, Any] | None = None) -> dict[str, Any]:
    return {edit.field: edit.value for edit in reading(text, plan).edits if edit.op == "set"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("We have two DGX H100 (8 cards each): full fine-tune of Qwen3-32B", {"nodes": 2, "per_node": 8}),
        ("30 devs: 4 H100 or 8 L40S for qwen3 32b", {"concurrency": 30}),
        ("serve llama 70b for 80 people on 4 L40S. About 20 requests at same time", {"concurrency": 20}),
        ("kv cache for 200 concurrent 16k chats of llama 3.3 70b", {"concurrency": 200, "input_len": 16384}),
        ("how many requests at once at 8k each for llama 8b on an l40s", {"input_len": 8192}),
        ("grpo qwen3-8b, 8 rollouts, 1k prompt 8k answer, 16 h100", {"prompt_len": 1024, "response_len": 8192}),
        ("ppo with vllm colocated with 40% of each gpu", {"engine_share": 0.4}),
        ("serve qwen3-32b with eagle3 on an h200", {"draft_method": "eagle3"}),
        ("the letters come to 260k tokens, lora llama 8b on my 4090", {"dataset_tokens": 260000}),
        ("3 Epochen über 12.000 Dokumente mit je rund 5.000 Token", {"dataset_samples": 12000, "sample_tokens": 5000}),
        ("900M in, 120M out tokens a month on 2 h200 with gpt-oss-120b", {"token_rate": (120e6, "both", 900e6)}),
        ("zero3 offload param+opt for 34B on 2x 3090", {"offload": "params"}),
        ("lora of 8b on 8 h100 with 5000 in AWS credits", {"credits_usd": 5000}),
        ("qlora qwen2.5 14b con unsloth per 20mila esempi da 600 token", {"dataset_samples": 20000}),
        ("finetune llama 8b on my mails, about 4 million words, 2x 3090", {"dataset_tokens": 5333200}),
        ("serve 8b on an l4 for 20 users with answers of 300 words", {"output_len": 400}),
        ("what if i put the 2nd 3090 in", {"accelerator": "rtx-3090", "count": 2}),
        ("lora llama 8b, r16 a32, on a 4090", {"lora_rank": 16, "accelerator": "rtx-4090"}),
    ],
)
def test_what_a_number_counts(text: str, said: dict[str, Any]) -> None:
    found = _set(text)
    for name, value in said.items():
        if name == "token_rate":
            answers, both, prompts = found[name]
            assert (both, round(prompts / answers, 6)) == (value[1], value[2] / value[0])
        else:
            assert found[name] == value


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("How much is serving gemma 3 27b on 4 L40S for one month?", "deadline_h"),
        ("explain where 41 GiB of activations come from", "accelerator"),
        ("900M in 120M out tokens a month on 2 h200 with gpt-oss-120b", "input_len"),
    ],
)
def test_what_a_number_is_not(text: str, field: str) -> None:
    assert field not in _set(text)


@pytest.mark.parametrize("count", ["Drei Varianten", "3 options", "three setups", "tres opciones"])
def test_the_number_of_choices_is_none_of_theirs(count: str) -> None:
    found = reading(f"{count}: 8 H100, 8 A100, 8 L40S, llama 70b qlora")
    assert found.lost == []
    assert [edit.value for edit in found.edits if edit.field == "count"] == [8]


@pytest.mark.parametrize("text", ["sorry, 20k not 200k", "20k, not 200k", "not 200k, 20k"])
def test_what_the_plan_has_is_put_right(text: str) -> None:
    assert _set(text, TRAINED)["dataset_samples"] == 20000


@pytest.mark.parametrize(
    "text", ["Sorry, I meant the 14B, not the 32B.", "the 14B, not the 32B", "not the 32B, the 14B"]
)
def test_a_size_that_is_refused_is_none(text: str) -> None:
    assert _set(text, TRAINED) == {"model": "Qwen/Qwen3-14B"}


@pytest.mark.parametrize("refusing", ["but not vast", "not on vast", "ohne vast", "sin vast", "aber nicht vast"])
def test_who_is_refused_by_a_plain_word(refusing: str) -> None:
    found = reading(f"llama 70b lora, cheapest cluster, {refusing}")
    assert "Vast" not in found.own["providers"]
    assert found.lost == []


@pytest.mark.parametrize("refusing", ["nothing from AMD", "no AMD", "anything but AMD", "nichts von AMD", "AMD is out"])
def test_makers_are_refused(refusing: str) -> None:
    found = reading(f"llama 70b lora, cheapest cluster, {refusing}")
    assert found.own["vendors"]
    assert "AMD" not in found.own["vendors"]


def test_a_decimal_comma_is_one_where_others_are() -> None:
    found = reading("qwen2.5-14B LoRA, 200 Mio. Token, 4x A100 80GB, Strom 0,24 €/kWh, PUE 1,35: was kostet das?")
    assert found.pricing["pue"] == 1.35


def test_a_speed_that_was_rated_is_put_right() -> None:
    told = "gemma 3 12b lora r16 on 2 h100s, seq 4096, 5400 tok/s per gpu. is that any good"
    *_, second = scoring.talk([told, "sorry, 5400 was both together"])
    assert second.calls[0].arguments["tokens_per_s"] == 5400
    assert second.plan["workload"]["seq_len"] == 4096


def test_a_language_has_its_own_small_words() -> None:
    found = _set("se eu usar zero 2 em vez de zero 3 no qwen 7b full com 4 a100 80gb, ganho quanto?")
    assert found["model"].startswith("Qwen/")


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("needs to be done by thu evening", 30.0),
        ("must finish friday 6pm", 54.0),
        ("on friday it must be done", 60.0),
        ("muss am Freitag fertig sein", 60.0),
    ],
)
def test_days_by_which_a_run_is_to_be_done(text: str, hours: float) -> None:
    assert _set(text, TRAINED)["deadline_h"] == hours


@pytest.mark.parametrize("text", ["the gpu sat at 30 % all night", "it sat idle", "a sun workstation"])
def test_three_letters_that_are_no_day(text: str) -> None:
    assert "deadline_h" not in _set(text, TRAINED)


def test_dollars_of_other_money() -> None:
    found = reading("7b full on 4 h100, cost in euros at 0.92 per dollar for 1B tokens")
    assert found.pricing["currency"] == f"EUR={1 / 0.92:.6g}"
    assert found.lost == []


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("is a 5090 for 2400 dollars worth it against renting one? 10 hours a week", "capex_usd_per_device", 2400),
        ("what do our 16 H100s cost us a year at 0.11 dollars per kWh, PUE 1.3?", "pue", 1.3),
    ],
)
def test_what_hardware_costs_that_is_owned(text: str, field: str, value: float) -> None:
    first, *_ = scoring.talk([text])
    assert [call.arguments.get(field) for call in first.calls] == [value]


def test_a_step_that_is_told_is_rated_and_so_is_the_next() -> None:
    told = "llama 8b lora on 8 h100, batch 64, it does 12 s a step"
    first, second, third = scoring.talk([told, "with 16 of them it's 9.8 s", "why is it not twice as fast?"])
    assert [first.calls[0].arguments["step_s"], second.calls[0].arguments["step_s"]] == [12.0, 9.8]
    assert second.calls[0].arguments["count"] == 16
    assert "could not place" not in third.answer


def test_a_time_of_another_size_is_of_no_step() -> None:
    told = "llama 8b lora on 8 h100, batch 64, it does 12 s a step"
    *_, second = scoring.talk([told, "and if it runs for two weeks?"])
    assert all(call.arguments.get("step_s") in (None, 12.0) for call in second.calls)


def test_a_number_alone_is_the_speed_that_was_rated() -> None:
    told = "we measure 61,300 tokens/s in total for llama 3.1 8b full fine-tuning on 8 H100s at 8k. Is that good?"
    *_, second = scoring.talk([told, "With 16 of them it is 98,400. Is the network holding us back?"])
    assert second.calls[0].arguments["tokens_per_s"] == 98400
    assert second.calls[0].arguments["count"] == 16


def test_where_jobs_run_holds_for_later_files_and_a_layout_for_its_program() -> None:
    asked = "slurm script: llama-3.2-3b full sft, 2 nodes x 4 a100-80, partition gpu-long, account phys-nlp"
    first, second, third = scoring.talk([asked, "24h walltime please", "with torchtune"])
    for told in (first, second, third):
        arguments = told.calls[-1].arguments
        assert told.calls[-1].name == "render_configs"
        assert (arguments["partition"], arguments["account"]) == ("gpu-long", "phys-nlp")
    assert third.calls[-1].arguments["time_limit_h"] == 24.0
    assert third.plan["workload"]["framework"] == "torchtune"
    assert "cannot do that" not in third.answer


def test_the_best_layout_stays_for_more_data() -> None:
    first, second = scoring.talk(["qwen3 8b full ft on 8 h100, best layout?", "1B tokens, how long"])
    assert second.calls[-1].arguments["framework"] == first.outcomes[0].response["plan"]["workload"]["framework"]


def test_what_is_supposed_and_limited_stays_supposed() -> None:
    said = ["gpt2-medium from scratch on 10B tokens with a 4090", "and if I rent 8 a100s 80gb for it instead"]
    *_, last = scoring.talk([*said, "we have 150 dollars for it"])
    assert last.calls[-1].arguments["count"] == 8


def test_clients_hold_a_limit_by_the_statistic_that_was_asked() -> None:
    asked = "serve llama 70b fp8 on 2 h100, 100 users 2k in 300 out, p99 ttft under a second"
    *_, second = scoring.talk([asked, "how many users before it breaks that"])
    most = second.outcomes[-1].response["value"]
    of_the_mean = registry()["find_limit"]({**second.calls[-1].arguments, "slo_statistic": "mean"})["value"]
    assert second.calls[-1].arguments["slo_statistic"] == "p99"
    assert 0 < most < of_the_mean


@pytest.mark.parametrize("back", ["ok back to 12. give me the vllm command", "back to 12"])
def test_what_is_brought_back_is_what_it_was(back: str) -> None:
    asked = "llama 3.3 70b fp8, 4xH100, vllm, 3000 in / 500 out, 12 rps: how many gpus in total"
    *_, last = scoring.talk([asked, "and a 30 rps spike", back])
    assert last.plan["workload"]["request_rate"] == 12


@pytest.mark.parametrize(("asked", "tool"), [("cheaper?", "estimate_cost"), ("too slow, faster?", "advise")])
def test_what_is_asked_alone_behind_a_search_is_of_what_was_found(asked: str, tool: str) -> None:
    *_, second = scoring.talk(["llama 3.1 8b full ft, 300M tokens, cheapest cluster?", asked])
    assert tool in [call.name for call in second.calls]
    assert "recommend_cluster" not in [call.name for call in second.calls]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qwen3 8b full ft on our 4 A100s, 100M tokens, cost?", True),
        ("qwen3 8b full ft on our 4 A100s, 100M tokens, cost at 0.3 per kWh?", False),
        ("qwen3 8b full ft on 4 A100s, 100M tokens, cost?", False),
    ],
)
def test_devices_of_ones_own_are_priced_as_rented_only_with_a_word(text: str, said: bool) -> None:
    assert any("as if rented" in note for note in reading(text).assumed) is said


_TRAINED_ON_8 = "full finetune llama 8b on 8 h100"
_SERVED_ON_8 = "serve llama 70b on 8 h100 with 64 users"


@pytest.mark.parametrize(
    ("first", "asked", "field", "objective"),
    [
        (_TRAINED_ON_8, "which framework is fastest?", "workload.framework", "throughput"),
        (_TRAINED_ON_8, "welches framework ist am schnellsten?", "workload.framework", "throughput"),
        (_TRAINED_ON_8, "compare the frameworks", "workload.framework", None),
        (_TRAINED_ON_8, "which optimizer needs the least memory", "workload.optimizer", "memory"),
        (_TRAINED_ON_8, "what recompute mode is fastest", "layout.recompute", "throughput"),
        (_TRAINED_ON_8, "which zero stage is best?", "layout.zero_stage", None),
        (_SERVED_ON_8, "which engine is fastest?", "workload.engine", "throughput"),
        (_SERVED_ON_8, "which quantization is cheapest per token?", "workload.weight_dtype", "cost"),
        (_SERVED_ON_8, "which precision gives the most throughput?", "workload.weight_dtype", "throughput"),
    ],
)
def test_a_field_that_is_asked_about_is_told_over_all_its_values(
    first: str, asked: str, field: str, objective: str | None
) -> None:
    """'Which framework is fastest?' was told by a comparison of the run with itself."""
    one, other = scoring.talk([first, asked])
    arguments = other.calls[-1].arguments
    assert [call.name for call in other.calls] == ["sweep"]
    assert (arguments["field"], arguments["values"], arguments.get("objective")) == (field, "all", objective)
    # A question changes nothing.
    assert other.plan == one.plan


@pytest.mark.parametrize(
    "asked", ["cheapest server for llama 70b with 50 users", "which server is cheapest for llama 70b?"]
)
def test_a_server_is_a_machine_and_no_engine(asked: str) -> None:
    assert reading(asked).tool != "sweep"


@pytest.mark.parametrize(
    "asked", ["which is faster, torchtune or axolotl?", "use the fastest framework", "what zero stage is that?"]
)
def test_a_value_that_is_named_is_no_question_over_all(asked: str) -> None:
    *_, other = scoring.talk([_TRAINED_ON_8, asked])
    assert "sweep" not in [call.name for call in other.calls]


@pytest.mark.parametrize(
    "taken", ["ok take that", "use the fastest one", "go with the winner", "use the fastest framework"]
)
def test_what_a_sweep_found_best_can_be_taken(taken: str) -> None:
    *_, asked, other = scoring.talk([_TRAINED_ON_8, "which framework is fastest?", taken])
    best = asked.outcomes[-1].response["best"]["values"]["workload.framework"]
    assert other.plan["workload"]["framework"] == best
    assert "sweep" not in [call.name for call in other.calls]


_OF_THREE = "h100 vs h200 vs mi300x for serving qwen3-235b-a22b fp8, 8 of each, 64 users, 4k in 1k out"


@pytest.mark.parametrize(
    ("refused", "left"),
    [
        *(
            (words, ["h100-sxm", "h200-sxm"])
            for words in ("drop the amd", "no amd", "not the amd one", "without the third")
        ),
        *((words, ["h100-sxm", "mi300x"]) for words in ("drop the second", "the second is out", "skip the second one")),
        ("not the first one", ["h200-sxm", "mi300x"]),
    ],
)
def test_one_of_several_that_is_refused_by_place_or_maker_is_left_out(refused: str, left: list[str]) -> None:
    """'No amd' took the one of AMD."""
    *_, last = scoring.talk([_OF_THREE, refused])
    assert [call.name for call in last.calls] == ["compare"]
    assert last.calls[0].arguments["over"] == {"accelerator": left}
    assert last.calls[0].arguments["count"] == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dpo llama 3.1 8b, 60k pairs, lora 32, 4x a100 80gb", {"lora_rank": 32, "count": 4}),
        ("llama 8b full, seq 8192 bs 2 per gpu on 8 h100", {"seq_len": 8192, "micro_batch": 2}),
        ("rag bot on an l40s: 6k prompt, about 70% of it is always the same prefix, llama 8b", {"prefix_hit": 0.7}),
        ("lora 3 epochs llama 8b", {"epochs": 3, "lora_rank": None}),
    ],
)
def test_numbers_right_behind_their_names(text: str, said: dict[str, Any]) -> None:
    assert said.items() <= ({"lora_rank": None} | _set(text)).items()


def test_layers_of_experts_lie_in_the_host_where_no_processor_is_named() -> None:
    *_, last = scoring.talk(["qwen3 30b a3b q4_k_m in llama.cpp on a 3060 12gb, 16k ctx", "n-cpu-moe 30"])
    assert last.plan["workload"]["host_experts"] == 30
    assert last.outcomes[-1].response["memory"]["fits"]


def test_an_api_is_set_beside_what_one_runs_oneself() -> None:
    asked = (
        "we pay 2.5 $/M tokens to an api. would llama 3.3 70b fp8 on our own 4 h100 at 3$/h each be cheaper? 32 users"
    )
    (said,) = scoring.talk([asked])
    call = next(call for call in said.calls if call.name == "estimate_cost")
    assert (call.arguments["api_usd"], call.arguments["usd_per_device_hour"]) == (2.5, 3.0)


@pytest.mark.parametrize("asked", ["how does this scale up to 4096", "how does it scale to 4096 gpus?"])
def test_what_a_run_scales_to_are_devices(asked: str) -> None:
    plan = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "b200-sxm", "count": 512}}
    told = reading(asked, plan | {"workload": {"kind": "training", "stage": "pretrain", "seq_len": 8192}})
    assert (told.tool, told.own["field"], told.own["values"]) == ("sweep", "count", [None, 4096])
    assert not [edit for edit in told.edits if edit.field == "seq_len"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (
            "MTBF per gpu ~40k hours, ckpt every 20 min",
            {"device_hours_between_failures": 40000.0, "checkpoint_interval_minutes": 20.0},
        ),
        ("mtbf of the whole thing is 12 hours", {"interruptions_per_day": 2.0}),
    ],
)
def test_time_between_failures_is_no_deadline(text: str, terms: dict[str, float]) -> None:
    told = reading(f"llama 405b pretraining on 1024 h100, 3T tokens. {text}. how much do we lose to failures?")
    assert terms.items() <= (told.pricing | told.own).items()
    assert not [edit for edit in told.edits if edit.field == "deadline_h"]


@pytest.mark.parametrize(("said", "count"), [("what if i add a third 3090", 3), ("add a third card", 3)])
def test_one_more_of_a_card_by_its_place(said: str, count: int) -> None:
    *_, last = scoring.talk(["glm 4.5 air q4_k_m, 2x3090, llama.cpp. tok/s?", said])
    assert last.calls[0].arguments["count"] == count


def test_a_setting_that_is_named_for_the_most_asks_for_no_limit() -> None:
    *_, last = scoring.talk(["qwen3-8b qlora on a 4090, bs 2, seq 4096", "max_seq_length: 8192"])
    assert "find_limit" not in [call.name for call in last.calls]
    assert last.plan["workload"]["seq_len"] == 8192


@pytest.mark.parametrize("refused", ["skip the last one", "not the cheapest, the second"])
def test_a_refusal_that_is_not_placed_takes_nothing(refused: str) -> None:
    *_, last = scoring.talk([_OF_THREE, refused])
    assert [call.name for call in last.calls] == ["compare"]
