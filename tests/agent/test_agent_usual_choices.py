"""What is taken where nobody says: as people do it, said first, and kept for what is asked next."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scoring import Said, talk

from pages.answers.plan import complete
from pages.rendering import fold
from planner.compare.scenarios import Comparison
from planner.results import Limit, TrainingEstimate
from planner.serving.results import ServingEstimate


def arguments(turn: Said, tool: str) -> list[dict[str, Any]]:
    return [dict(call.arguments) for call in turn.calls if call.name == tool]


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ("fine-tune Llama-3.1-8B on a 4090", "lora"),
        ("does a 70B fit on one H100 for finetuning?", "qlora"),
        ("fine-tune Mistral-7B on 2x 3090", "lora"),
        ("LoRA of Llama-3.1-70B on a 4090", None),
        ("full fine-tuning of Llama-3.1-8B on a 4090", None),
        ("fine-tune Qwen2.5-1.5B on one H100", None),
    ],
)
def test_adapters_are_taken_where_all_weights_have_no_room_and_no_method_was_named(
    words: str, method: str | None
) -> None:
    first, later = talk([words, "and on 8 H100?"])
    said = next((name for name in ("full", "LoRA") if name in words), "").lower() or None
    assert arguments(first, "estimate_training")[-1].get("method") == (method or said)
    assert ("No method was named" in first.answer) is bool(method)
    assert arguments(later, "estimate_training")[-1].get("method") == (method or said)


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ("is it worth going from 2 to 4 nodes for a full finetune of a 32b? nodes are 8xH100", [16, 32]),
        ("how much faster is 16 H100 than 8 for a full finetune of Llama-3.1-8B", [16, 8]),
        ("we train a 7B on 512 H100, what would happen at 1024 with the same global batch", [512, 1024]),
        ("Qwen3-14B on 8 A100 compared to 16, 100M tokens, how long?", [8, 16]),
    ],
)
def test_two_numbers_of_devices_are_compared(words: str, counts: list[int]) -> None:
    (turn,) = talk([words])
    (asked,) = arguments(turn, "compare")
    assert asked["over"]["count"] == counts


@pytest.mark.parametrize("words", [
    "which is cheaper per million tokens, Llama-3.1-70B in fp8 on 2 H100 or paying the API?",
    "would our own 8xH200 be cheaper than the API for DeepSeek-V3?",
])  # fmt: skip
def test_an_api_is_set_beside_a_deployment_that_is_kept_busy(words: str) -> None:
    (turn,) = talk([words])
    assert [call.name for call in turn.calls] == ["best_serving", "estimate_inference", "estimate_cost"]
    assert re.match(r"\W*(Cheaper than an API \(\$|An API is cheaper at any load: )", turn.answer)


@pytest.mark.parametrize("words", [
    "break-even of serving Llama-3.3-70B ourselves against an API at $0.6 per million tokens",
    "serve llama-3.3-70b on 4 h100 with 64 users, or an API for $0.6 per million tokens?",
])  # fmt: skip
def test_an_api_whose_price_is_named_goes_before_those_that_are_listed(words: str) -> None:
    (turn,) = talk([words])
    (asked,) = arguments(turn, "estimate_cost")
    assert asked["api_usd"] == 0.6
    assert re.match(
        r"\W*Cheaper than an API at \$0.60 per million tokens .* million output tokens a month", turn.answer
    )
    assert "over** your" not in turn.answer


@pytest.mark.parametrize(
    ("said", "prices"),
    [
        ("$0.60 in and $0.80 out per million", (0.8, 0.6, None)),
        ("$3/M input, $15/M output", (15.0, 3.0, None)),
        ("$15 per million output tokens and $3 per million input tokens", (15.0, 3.0, None)),
        ("$0.10/M input, $0.30/M output, $0.02/M cached", (0.3, 0.1, 0.02)),
        ("10 cents per million in, 30 cents per million out, 2 cents cached", (0.3, 0.1, 0.02)),
        ("$0.88 per million tokens", (0.88, None, None)),
    ],
)  # fmt: skip
def test_prices_of_an_api_are_of_what_stands_behind_them(said: str, prices: tuple[float | None, ...]) -> None:
    (turn,) = talk([f"llama-3.1-8b at 2 requests a second: rent H100s or an API at {said}?"])
    (asked,) = arguments(turn, "estimate_cost")
    assert tuple(asked.get(name) for name in ("api_usd", "api_input_usd", "api_cached_usd")) == prices


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("serve gemma 3 12b on one H100", "google/gemma-3-12b-it"),
        ("serve google/gemma-3-12b-pt on one H100", "google/gemma-3-12b-pt"),
        ("serve a 70B on 4 H100", "meta-llama/Llama-3.1-70B-Instruct"),
        ("LoRA of gemma 3 12b on one H100", "google/gemma-3-12b-pt"),
    ],
)
def test_who_serves_a_family_means_the_model_to_talk_to(words: str, model: str) -> None:
    (turn,) = talk([words])
    assert turn.plan["model"] == model


def test_machines_are_searched_for_a_load_that_is_said_where_none_was() -> None:
    searched = {
        "what do I rent to serve Llama-3.3-70B?": 32,
        "what's the minimum I need to serve Llama-3.3-70B at 50 tokens/s per user?": 1,
    }
    for words, clients in searched.items():
        (turn,) = talk([words])
        (asked,) = arguments(turn, "recommend_cluster")
        assert asked["concurrency"] == clients
        assert "no load was said" in turn.answer


def test_pretraining_without_devices_takes_about_two_months() -> None:
    (turn,) = talk(["how long does it take to pretrain Qwen2.5-7B on 2T tokens?"])
    (asked,) = arguments(turn, "estimate_training")
    estimate = turn.outcomes[0].result
    assert isinstance(estimate, TrainingEstimate)
    assert estimate.run
    days = estimate.run.hours / 24
    assert asked["count"] >= 16
    assert 30 < days < 120


def test_memory_of_the_host_is_read_beside_that_of_cards() -> None:
    for words, host in (("RTX 4090 and 64 GB DDR5, run gpt-oss-120b", 64),
                        ("my server has 4 A100 40GB and 512GB ram. LoRA of a 30b?", 512),
                        ("MacBook Pro with 64GB RAM, can it run Llama-3.1-70B?", None)):  # fmt: skip
        (turn,) = talk([words])
        assert (turn.plan.get("overrides") or {}).get("host_gib") == host


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("does Llama-3.1-70B fit on one H100 for inference?", {"weight_dtype": "fp8"}),
        ("serve Llama-3.1-405B on 8 H100", {"weight_dtype": "fp8"}),
        ("3060 12gb: Qwen3-14B?", {"weight_dtype": "q4_k_m", "engine": "llamacpp"}),
        ("can I serve DeepSeek-V3 in bf16 on 8 H100?", {}),
        ("serve Qwen3-8B on one H100", {}),
        ("serve Qwen3-14B with vllm on a 3060 12GB", {}),
    ],
)
def test_weights_of_fewer_bits_are_taken_where_the_published_have_no_room(words: str, taken: dict[str, str]) -> None:
    first, later = talk([words, "and with prompts of 2k?"])
    told = arguments(first, "estimate_inference")
    assert {name: value for name, value in told[-1].items() if told[0].get(name) != value} == taken
    assert ("No weight format was named" in first.answer) is bool(taken)
    kept = arguments(later, "estimate_inference")[-1]
    assert {name: kept[name] for name in taken} == taken


def test_a_longest_context_is_found_with_weights_that_fit() -> None:
    (turn,) = talk(["serve Llama-4-Maverick on one 8xH100 node, what's the max context?"])
    published, taken = (outcome.result for outcome in turn.outcomes if outcome.call.name == "find_limit")
    assert isinstance(published, Limit)
    assert published.value is None
    assert isinstance(taken, Limit)
    assert isinstance(taken.value, int)
    assert taken.value > 100_000
    assert complete(taken.plan).inference.weight_dtype == "fp8"


@pytest.mark.parametrize(
    ("words", "clients"),
    [("gemma 3 27b q4 on two 3090s", 1), ("Kimi-K2 on 4 mac studios with 512gb", 1), ("qwen3-32b on 2 L40S", 32)],
)
def test_what_people_have_at_home_serves_one_of_them(words: str, clients: int) -> None:
    (turn,) = talk([f"serve {words}, how fast?"])
    served = next(o.result for o in reversed(turn.outcomes) if isinstance(o.result, ServingEstimate))
    assert complete(served.plan).inference.concurrency == clients


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("summarize 10 million documents of 2000 tokens each with Llama-3.1-8B on 4 L4s",
         {"requests": 10_000_000, "input_len": 2000}),
        ("translate 50k pages with Qwen3-32B on one H100, how long?", {"requests": 50_000}),
        ("grade 300k essays with Llama-3.1-70B on 8 A100", {"requests": 300_000}),
        ("how long to run Llama-3.1-70B over 500k prompts of 3k tokens with 200 token answers on 4 H100?",
         {"requests": 500_000, "input_len": 3000, "output_len": 200}),
        ("generate 100k samples of 1k tokens with Llama-3.1-70B on 8 H100", {"requests": 100_000, "output_len": 1024}),
    ],
)  # fmt: skip
def test_a_job_on_texts_is_no_training(words: str, fields: dict[str, int]) -> None:
    (turn,) = talk([words])
    said = arguments(turn, "estimate_inference")[-1]
    assert said["scenario"] == "offline"
    assert {name: said[name] for name in fields} == fields
    assert f"All {fields['requests']:,} requests take " in fold.folded(turn.answer).lead.splitlines()[0]


@pytest.mark.parametrize("words", [
    "process 2T tokens of pretraining data with a 7B on 256 H100", "fine-tune Qwen3-8B to summarize 20k articles",
    "generate the files to train Llama-3.1-8B on 100k samples of 1k tokens",
])  # fmt: skip
def test_a_training_that_names_a_job_stays_one(words: str) -> None:
    (turn,) = talk([words])
    assert {call.name for call in turn.calls} & {"estimate_training", "recommend_cluster"}
    assert turn.plan.get("workload", {}).get("kind") != "inference"


@pytest.mark.parametrize(
    ("words", "asked", "first"),
    [
        ("rent 8 H200 for a week, how much?", {"count": 8, "hours": 168.0}, "8 x h200-sxm for 7.0 days cost $"),
        ("what is the electricity cost per month of 8 4090s at full load at $0.30 per kWh",
         {"count": 8, "hours": 730.0, "usd_per_kwh": 0.3}, "Electricity of 8 x rtx-4090 for a month: $"),
        ("what's cheaper for 3 months of nonstop training: renting 64 H100 or buying them?",
         {"count": 64, "hours": 2190.0}, "Rent 64 x h100-sxm for"),
        ("what does an 8xH100 node cost per month on AWS?", {"count": 8, "hours": 730.0}, "at AWS"),
        ("price of a 4090", {}, "GeForce RTX 4090"),
    ],
)  # fmt: skip
def test_hardware_has_a_bill_without_a_run(words: str, asked: dict[str, Any], first: str) -> None:
    (turn,) = talk([words])
    (call,) = arguments(turn, "describe_hardware")
    assert {name: value for name, value in call.items() if name != "accelerator"} == asked
    lead = next(line for line in turn.answer.splitlines() if line.startswith("**"))
    assert first in lead


@pytest.mark.parametrize(
    ("words", "beside"),
    [
        ("Is it worth using FP8 for my 8B finetune on H100?", ("precision", ["bf16", "fp8"])),
        ("would flash attention help for Llama-3.1-8B at 32k on 8 H100?", ("attention", ["eager", "flash"])),
        ("does gradient checkpointing slow down training of Llama-3.1-8B on 4 A100 much?",
         ("recompute", ["none", "full"])),
    ],
)  # fmt: skip
def test_whether_a_setting_pays_is_a_comparison(words: str, beside: tuple[str, list[str]]) -> None:
    (turn,) = talk([words])
    (asked,) = arguments(turn, "compare")
    assert asked["over"] == dict([beside])
    assert beside[0] not in turn.plan.get("workload", {})


def test_a_way_to_spread_is_set_beside_sharded_weights() -> None:
    (turn,) = talk(["4 nodes of 8xA100 with 100Gb ethernet: would pipeline parallel help vs FSDP for a 30B?"])
    (asked,) = arguments(turn, "compare")
    told = [{name: value for name, value in row.items() if name != "name" and value} for row in asked["scenarios"]]
    assert told == [{"pp": 4}, {"framework": "fsdp2"}]


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("is it worth upgrading my 3090 to a 5090 for running qwen3 32b?", "q4_k_m"),
        ("llama 70b serving: one H100 or 2 L40S?", "fp8"),
        ("qwen3-8b serving: one H100 or 2 L40S?", None),
    ],
)
def test_deployments_are_compared_in_a_format_that_all_have_room_for(words: str, taken: str | None) -> None:
    (turn,) = talk([words])
    assert arguments(turn, "compare")[-1].get("weight_dtype") == taken
    assert ("No weight format was named" in turn.answer) is bool(taken)


@pytest.mark.parametrize(
    ("words", "figure"),
    [
        ("how is MFU calculated?", "throughput.mfu"),
        ("why does the KV cache grow with batch size", "memory.components.kv_cache"),
        ("Explain why activation memory grows with sequence length", "memory.components.activations"),
    ],
)
def test_a_figure_is_explained_with_an_example_where_no_run_is_named(words: str, figure: str) -> None:
    first, later = talk([words, "fine-tune Qwen2.5-1.5B on one H100"])
    (asked,) = arguments(first, "explain")
    assert asked["figure"] == figure
    assert "no run was named" in first.answer
    # The example is no plan of the conversation.
    assert later.plan["cluster"] == {"accelerator": "h100-sxm", "count": 1}


def test_what_a_card_at_home_runs_is_told_in_the_weights_that_people_run() -> None:
    (turn,) = talk(["I have a single RTX 3060, what can I do with it?"])
    assert {call["weight_dtype"] for call in arguments(turn, "find_limit")} == {"q8_0", "q4_k_m"}


def test_people_to_serve_and_no_model_is_a_usual_assistant() -> None:
    (turn,) = talk(["I need a chatbot that answers in under 1 second for 50 people, which model and GPU?"])
    (asked,) = arguments(turn, "recommend_cluster")
    assert (asked["concurrency"], asked["ttft_slo_ms"]) == (50, 1000)
    assert "no model was named" in turn.answer
    assert "is taken as its first token" in turn.answer


@pytest.mark.parametrize(
    ("words", "figure", "first"),
    [
        ("Which is more energy efficient for training 13B: H100 or MI300X?", "kwh_per_billion_tokens",
         "needs the least energy: "),
        ("rank these by cost per million tokens for Llama-3.1-70B: H100, H200, MI300X",
         "usd_per_million_output_tokens", "costs the least: $"),
    ],
)  # fmt: skip
def test_a_comparison_answers_by_the_figure_that_was_asked(words: str, figure: str, first: str) -> None:
    (turn,) = talk([words])
    rows = next(outcome.result for outcome in turn.outcomes if isinstance(outcome.result, Comparison)).rows
    figures = {row.name: getattr(row, figure, None) or row.usd_per_million_tokens for row in rows}
    lead = next(line for line in turn.answer.splitlines() if "**" in line)
    assert f"{min(figures, key=lambda name: figures[name] or 0.0)} {first}" in lead


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("show the kubernetes yaml to serve gpt-oss-120b on 2 H100 with vllm", "kubernetes-deployment"),
        ("show the kubernetes files to finetune Llama-3.1-8B on 8 H100", "kubernetes-trainjob"),
    ],
)
def test_kubernetes_means_what_runs_there(words: str, target: str) -> None:
    (turn,) = talk([words])
    (asked,) = arguments(turn, "render_configs")
    assert target in asked["targets"]
    assert target in turn.answer or "kubectl" in turn.answer


def test_saving_checkpoints_writes_no_files() -> None:
    (turn,) = talk(
        ["How long until the first checkpoint if I save every 500 steps? Llama-3.1-8B full, 8 H100, gbs 128"]
    )
    assert [call.name for call in turn.calls] == ["estimate_training"]


def test_a_run_that_is_over_is_rated_by_its_tokens_and_days() -> None:
    (turn,) = talk(["we trained a 7B for 300B tokens in 9 days on 128 A100. Is that efficient?"])
    (asked,) = arguments(turn, "rate_run")
    assert asked["tokens_per_s"] == pytest.approx(300e9 / (9 * 86400))
    assert "deadline_h" not in asked


def test_one_counts_what_was_spoken_of() -> None:
    _, supposed, taken, later = talk(
        ["fine-tune Qwen3-8B on 2 A6000", "what if I only had one?", "ok go with one, 3 epochs", "and on two?"]
    )
    assert arguments(supposed, "estimate_training")[-1]["count"] == 1
    assert (taken.plan["cluster"]["count"], taken.plan["workload"]["epochs"]) == (1, 3)
    assert later.plan["cluster"]["count"] == 2
    assert "could not place" not in taken.answer


def test_what_was_supposed_holds_for_the_next_question() -> None:
    _, limited, again, after = talk(
        ["serve DeepSeek-R1 on 8 H200", "how many users can it take at 30 tok/s each?", "and with fp8 kv cache?",
         "is it cheaper on 8 B200?"]
    )  # fmt: skip
    limits = [arguments(turn, "find_limit")[-1]["tpot_slo_ms"] for turn in (limited, again)]
    assert limits == [pytest.approx(1000 / 30)] * 2
    assert arguments(again, "find_limit")[-1]["kv_dtype"] == "fp8"
    assert after.calls


def test_of_what_was_compared_another_figure_is_asked() -> None:
    _, again = talk(["compare gpt-oss-20b and qwen3-8b on a single L40S for 40 users", "which has the lower ttft?"])
    assert len(arguments(again, "compare")[-1]["over"]["model"]) == 2
    assert "has the lowest TTFT" in again.answer


def test_too_expensive_asks_for_what_costs_less() -> None:
    _, turn = talk(["pretrain a 3B on 100B tokens on 64 H100, cost?", "that's too expensive, what are my options?"])
    assert arguments(turn, "estimate_cost")[-1].get("cheaper")


def test_compute_optimal_is_twenty_tokens_a_parameter() -> None:
    (turn,) = talk(["train Qwen2.5-7B from scratch, chinchilla optimal, on 32 H100, how long?"])
    assert turn.plan["workload"]["dataset_tokens"] == pytest.approx(20 * 7.6e9, rel=0.05)
    assert "could not place" not in turn.answer
