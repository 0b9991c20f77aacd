"""What words make of a plan, and what they ask. The catalogue is the real one."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import begun, reading
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.plan.schema import merge
from planner.partial import get

PLAN = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}
MODEL, DEVICE, COUNT, NODE = "model", "cluster.accelerator", "cluster.count", "cluster.per_node"
SEQ, TOKENS, METHOD, STAGE = "workload.seq_len", "workload.dataset_tokens", "workload.method", "workload.stage"
SAMPLES, EACH = "workload.dataset_samples", "workload.sample_tokens"
FRAMEWORK = "workload.framework"
SETTLED = {STAGE, METHOD, NODE, "workload.precision"}


FIRST_WORDS: list[tuple[str, dict[str, Any]]] = [
    (
        "Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens?",
        {
            MODEL: "meta-llama/Llama-3.1-8B",
            DEVICE: "h100-sxm",
            COUNT: 8,
            SEQ: 4096,
            TOKENS: 1e9,
            METHOD: "full",
            STAGE: "sft",
        },
    ),
    ("Train Mixtral 8x7B on 16 H100s", {MODEL: "mistralai/Mixtral-8x7B-v0.1", DEVICE: "h100-sxm", COUNT: 16}),
    (
        "pretrain llama 3 8b on two nodes of 8 A100-80GB",
        {MODEL: "meta-llama/Meta-Llama-3-8B", DEVICE: "a100-sxm-80gb", COUNT: 16, NODE: 8, STAGE: "pretrain"},
    ),
    (
        "qlora llama 2 70b on a single 4090",
        {MODEL: "meta-llama/Llama-2-70b-hf", DEVICE: "rtx-4090", COUNT: 1, METHOD: "qlora"},
    ),
    ("2x8 H100, qwen2.5-7b, 8k context", {MODEL: "Qwen/Qwen2.5-7B", DEVICE: "h100-sxm", COUNT: 16, NODE: 8, SEQ: 8192}),
    ("8x H100, gemma-2-9b", {MODEL: "google/gemma-2-9b", DEVICE: "h100-sxm", COUNT: 8}),
    ("gemma-2-9b on 2 nodes x 8 H200", {MODEL: "google/gemma-2-9b", DEVICE: "h200-sxm", COUNT: 16, NODE: 8}),
    (
        "p5.48xlarge x2 for Llama-3.1-70B",
        {MODEL: "meta-llama/Llama-3.1-70B", DEVICE: "h100-sxm", COUNT: 16, NODE: 8, "goal.provider": "AWS"},
    ),
    (
        "Llama-3.1-70B on 4x p4de.24xlarge under $2,000",
        {
            MODEL: "meta-llama/Llama-3.1-70B",
            DEVICE: "a100-sxm-80gb",
            COUNT: 32,
            NODE: 8,
            "goal.provider": "AWS",
            "goal.budget_usd": 2000,
        },
    ),
    (
        "pretrain Llama-3.1-70B, 1.5T tokens on 512 H200, tp 8 pp 4, gbs 1024, 64k window",
        {
            MODEL: "meta-llama/Llama-3.1-70B",
            DEVICE: "h200-sxm",
            COUNT: 512,
            TOKENS: 1.5e12,
            "layout.tp": 8,
            "layout.pp": 4,
            "workload.global_batch": 1024,
            SEQ: 65536,
            STAGE: "pretrain",
        },
    ),
    (
        "mistral 7b on v5p-256 maxtext",
        {MODEL: "mistralai/Mistral-7B-v0.1", DEVICE: "tpu-v5p", COUNT: 128, FRAMEWORK: "maxtext"},
    ),
    ("gemma-2-9b on tpu v5e", {MODEL: "google/gemma-2-9b", DEVICE: "tpu-v5e"}),
    ("fine-tune lama 3.1 8b on 8xh100", {MODEL: "meta-llama/Llama-3.1-8B", DEVICE: "h100-sxm", COUNT: 8, STAGE: "sft"}),
    (
        "deepseek v3 on 2048 H800 with fp8, ep 64 pp 16",
        {
            MODEL: "deepseek-ai/DeepSeek-V3",
            DEVICE: "h800-sxm",
            COUNT: 2048,
            "layout.ep": 64,
            "layout.pp": 16,
            "workload.precision": "fp8",
        },
    ),
    (
        "train gpt-oss 20b on 4 nodes with 8 MI300X each, zero-3, full recompute",
        {
            MODEL: "openai/gpt-oss-20b",
            DEVICE: "mi300x",
            COUNT: 32,
            NODE: 8,
            "layout.zero_stage": 3,
            "layout.recompute": "full",
        },
    ),
    ("llama-3.1-8b 16xH100", {MODEL: "meta-llama/Llama-3.1-8B", DEVICE: "h100-sxm", COUNT: 16}),
    (
        "H100 x8 llama-3.1-8b half a trillion tokens",
        {MODEL: "meta-llama/Llama-3.1-8B", DEVICE: "h100-sxm", COUNT: 8, TOKENS: 5e11},
    ),
    ("phi 3 mini on a 40GB A100", {MODEL: "microsoft/Phi-3-mini-4k-instruct", DEVICE: "a100-sxm-40gb", COUNT: 1}),
    (
        "llama3.1 8b, 8 NVIDIA H100 80GB HBM3, 300M tokens, seq len 8192",
        {MODEL: "meta-llama/Llama-3.1-8B", DEVICE: "h100-sxm", COUNT: 8, TOKENS: 3e8, SEQ: 8192},
    ),
    ("GRPO on Qwen3-8B with 8 L40S", {MODEL: "Qwen/Qwen3-8B", DEVICE: "l40s", COUNT: 8, STAGE: "grpo"}),
    (
        "gpt-3 175b on 1024 a100-80gb megatron tp=8 pp=16 sequence parallel",
        {
            MODEL: "paper/GPT-3-175B",
            DEVICE: "a100-sxm-80gb",
            COUNT: 1024,
            "layout.tp": 8,
            "layout.pp": 16,
            "layout.sequence_parallel": True,
            FRAMEWORK: "megatron-lm",
        },
    ),
    ("nemotron 4 15b on 2 DGX H100s", {MODEL: "nvidia/Nemotron-4-15B", DEVICE: "h100-sxm", COUNT: 16, NODE: 8}),
    (
        "qwen3 30b a3b lora on 4 A6000 48GB",
        {MODEL: "Qwen/Qwen3-30B-A3B", DEVICE: "rtx-a6000", COUNT: 4, METHOD: "lora"},
    ),
    (
        "train Phi-4 for 3 epochs over 100k examples with max length 2048 using 4x L40S",
        {MODEL: "microsoft/phi-4", DEVICE: "l40s", COUNT: 4, SEQ: 2048, SAMPLES: 1e5, "workload.epochs": 3},
    ),
    (
        "train llama-3.1-8b with 64k sequence length on 16 H100 with cp 8",
        {MODEL: "meta-llama/Llama-3.1-8B", DEVICE: "h100-sxm", COUNT: 16, SEQ: 65536, "layout.cp": 8},
    ),
    ("train llama-3.1-8b on M3 Max", {MODEL: "meta-llama/Llama-3.1-8B", DEVICE: "apple-m3-max"}),
    (
        "llama-3.1-8b on trn1.32xlarge x4",
        {MODEL: "meta-llama/Llama-3.1-8B", DEVICE: "trainium1", COUNT: 64, NODE: 16, "goal.provider": "AWS"},
    ),
    (
        "mixtral 8x22b ep=8 on 8 nodes x 8 H100 with 400G infiniband",
        {
            MODEL: "mistralai/Mixtral-8x22B-v0.1",
            DEVICE: "h100-sxm",
            COUNT: 64,
            NODE: 8,
            "layout.ep": 8,
            "cluster.interconnect": "ib-400",
        },
    ),
    (
        "seq_len=4096 gbs=256 mbs=2 tp=2 llama-3.1-8b h100 x16",
        {
            MODEL: "meta-llama/Llama-3.1-8B",
            DEVICE: "h100-sxm",
            COUNT: 16,
            SEQ: 4096,
            "workload.global_batch": 256,
            "workload.micro_batch": 2,
            "layout.tp": 2,
        },
    ),
    (
        "train on 3 million samples of 512 tokens, 8 h100, qwen2.5-0.5b",
        {MODEL: "Qwen/Qwen2.5-0.5B", DEVICE: "h100-sxm", COUNT: 8, SAMPLES: 3e6, EACH: 512},
    ),
    (
        "llama-3.1-8b 8xh100 within 24 hours under $2.5k",
        {
            MODEL: "meta-llama/Llama-3.1-8B",
            DEVICE: "h100-sxm",
            COUNT: 8,
            "goal.budget_usd": 2500,
            "goal.deadline_h": 24,
        },
    ),
    (
        "Llama 3.1 405B on 1,024 H100s, 15T tokens, $1.89/hr per gpu",
        {
            MODEL: "meta-llama/Llama-3.1-405B",
            DEVICE: "h100-sxm",
            COUNT: 1024,
            TOKENS: 1.5e13,
            "usd_per_device_hour": 1.89,
        },
    ),
    (
        "LoRA r=64 alpha 128 for Qwen2.5-7B on 2x 3090, 2 epochs",
        {
            MODEL: "Qwen/Qwen2.5-7B",
            DEVICE: "rtx-3090",
            COUNT: 2,
            METHOD: "lora",
            "workload.lora.rank": 64,
            "workload.lora.alpha": 128,
            "workload.epochs": 2,
        },
    ),
    (
        "train SmolLM2-1.7B on 4 RTX 4090s with torchtitan",
        {MODEL: "HuggingFaceTB/SmolLM2-1.7B", DEVICE: "rtx-4090", COUNT: 4, FRAMEWORK: "torchtitan"},
    ),
    (
        "unsloth qlora Mistral-7B-v0.3 on t4",
        {MODEL: "mistralai/Mistral-7B-v0.3", DEVICE: "t4", METHOD: "qlora", FRAMEWORK: "unsloth"},
    ),
    ("train ./my/config.json on 8 h100", {MODEL: "./my/config.json", DEVICE: "h100-sxm", COUNT: 8}),
    (
        "meta-llama/Llama-3.3-70B-Instruct with DoRA on 1 node of 8 H200s, global batch of 4M tokens at 8k",
        {
            MODEL: "meta-llama/Llama-3.3-70B-Instruct",
            DEVICE: "h200-sxm",
            COUNT: 8,
            NODE: 8,
            METHOD: "dora",
            "batch_tokens": 4e6,
        },
    ),
    (
        "full fine tune of llama 3.1 8b, 8 gpus a100 80gb, twenty million tokens",
        {COUNT: 8, DEVICE: "a100-sxm-80gb", TOKENS: 2e7, METHOD: "full"},
    ),
    (
        "fine tune Falcon-40b on 8 V100-32GB fp16",
        {MODEL: "tiiuae/falcon-40b", DEVICE: "v100-sxm-32gb", COUNT: 8, "workload.precision": "fp16"},
    ),
    (
        "cheapest way to fine-tune llama 3.1 8b with 1B tokens on AWS",
        {TOKENS: 1e9, "goal.provider": "AWS", "goal.objective": "cost"},
    ),
    ("4 A100s (80GB), qwen2.5-14b at 8k", {MODEL: "Qwen/Qwen2.5-14B", DEVICE: "a100-sxm-80gb", COUNT: 4, SEQ: 8192}),
    ("Mixtral-8x22B LoRA on an 8xA100-80GB node", {MODEL: "mistralai/Mixtral-8x22B-v0.1", COUNT: 8}),
    ("gemma-2-9b on two 8xH100 nodes", {MODEL: "google/gemma-2-9b", COUNT: 16, NODE: 8}),
    ("DPO llama-3.1-8b on 8xH100, 50k pairs of 2k tokens", {STAGE: "dpo", SAMPLES: 5e4, EACH: 2000, COUNT: 8}),
    ("deepseek v3 pretraining on 2 GB200 NVL72 racks", {DEVICE: "gb200", COUNT: 144}),
    ("deepseek v3 pretraining on four racks of gb300", {DEVICE: "gb300", COUNT: 288}),
    ("lora of llama 3 8b on 2 3090s, we also have a 4090 but someone games on it", {DEVICE: "rtx-3090", COUNT: 2}),
    ("lora of llama 3 8b, 30k q&a rows (350 tokens avg), 8 L4", {SAMPLES: 3e4, EACH: 350, SEQ: None, COUNT: 8}),
    ("lora of llama 3 8b, 80k pages at 500 tokens a page, 8 L4", {SAMPLES: 8e4, EACH: 500, COUNT: 8}),
    ("lora of llama 3 8b, 80k dialogues, 40M tokens, 8 L4", {SAMPLES: 8e4, EACH: None, TOKENS: 4e7}),
    ("llama 3 8b sft on 8 L4, full act ckpt, optimizer on cpu",
     {"layout.recompute": "full", "layout.offload": "optimizer"}),
    ("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2, llama 3 8b on 8 H100",
     {"layout.tp": 4, "layout.pp": 2}),
    ("lora of llama 3 8b on 8 L4, the demo is monday 9am and it has to be done before that", {"goal.deadline_h": 117}),
    ("lora of llama 3 8b on 8 L4 over the weekend", {"goal.deadline_h": 48}),
]  # fmt: skip

FOLLOW_UPS: list[tuple[str, dict[str, Any]]] = [
    ("what about 32 GPUs", {COUNT: 32}),
    ("on H200", {DEVICE: "h200-sxm"}),
    ("with LoRA", {METHOD: "lora"}),
    ("16k context", {SEQ: 16384}),
    ("what about 16k?", {SEQ: 16384}),
    ("and on 16?", {COUNT: 16}),
    ("without offload", {"layout.offload": "none"}),
    ("drop the lora", {METHOD: "full"}),
    ("with 4-bit", {METHOD: "qlora"}),
    ("what if I use AdamW 8-bit?", {"workload.optimizer": "adamw_8bit"}),
    ("same on 2 nodes of 8 B200 with fp8", {DEVICE: "b200-sxm", COUNT: 16, NODE: 8, "workload.precision": "fp8"}),
    ("cheaper than $500?", {"goal.budget_usd": 500}),
    ("by Friday", {"goal.deadline_h": 60}),
    ("within 2 days", {"goal.deadline_h": 48}),
    ("what does it cost with 3 epochs?", {"workload.epochs": 3}),
    ("what about the 70B?", {MODEL: "meta-llama/Llama-3.1-70B"}),
    ("what about 70B?", {MODEL: "meta-llama/Llama-3.1-70B"}),
    ("with 70B tokens", {TOKENS: 7e10}),
    ("with 20B tokens?", {TOKENS: 2e10}),
    ("tensor parallel size of 4 and 2-way pipeline parallelism", {"layout.tp": 4, "layout.pp": 2}),
    ("DP=16, expert-tensor-parallel 2, vpp 3", {"layout.dp": 16, "layout.etp": 2, "layout.vpp": 3}),
    ("on sixteen GPUs for two epochs", {COUNT: 16, "workload.epochs": 2}),
    ("make it a dozen GPUs", {COUNT: 12}),
    ("use zero stage 2 with cpu offload", {"layout.zero_stage": 2, "layout.offload": "optimizer"}),
    ("100Gb ethernet", {"cluster.interconnect": "ethernet-100"}),
    ("use 8x400Gb/s infiniband", {"cluster.interconnect": "ib-400x8"}),
    ("batch size 256, micro batch 2", {"workload.global_batch": 256, "workload.micro_batch": 2}),
    ("fsdp instead", {FRAMEWORK: "fsdp2"}),
    ("1e9 tokens", {TOKENS: 1e9}),
    ("seq len 2k, 10B tokens, rank 32", {SEQ: 2048, TOKENS: 1e10, "workload.lora.rank": 32}),
    ("try tp 2", {"layout.tp": 2}),
    ("no recompute", {"layout.recompute": "none"}),
    ("run on gcp", {"goal.provider": "GCP"}),
    ("on lambda labs", {"goal.provider": "Lambda"}),
    ("on one GPU", {COUNT: 1}),
    ("100k context", {SEQ: 100_000}),
    ("1M context", {SEQ: 1_048_576}),
]
RESERVE, USABLE, WEIGHTS, ROLLOUT = (
    "overrides.reserve_gib", "overrides.usable_gib", "workload.weights", "workload.rollout",
)  # fmt: skip
DROPOUT, EMBEDDINGS, PACKED = (f"workload.lora.{name}" for name in ("dropout", "train_embeddings", "quantisation"))
OPTIMIZER, GROUP = "workload.optimizer", "workload.group_size"
FOLLOW_UPS += [
    ("keep 5 GB free", {RESERVE: 5}),
    ("leave at least 4GiB per GPU free", {RESERVE: 4}),
    ("with 2.5 GB headroom", {RESERVE: 2.5}),
    ("assume 70 GB usable", {USABLE: 70}),
    ("usable memory of 72 GiB", {USABLE: 72}),
    ("only 20 GB are available per gpu", {USABLE: 20}),
    ("pure bf16", {WEIGHTS: "bf16"}),
    ("bf16 weights, fp8", {WEIGHTS: "bf16", "workload.precision": "fp8"}),
    ("with fp32 weights", {WEIGHTS: "fp32"}),
    ("dropout 0.05", {DROPOUT: 0.05}),
    ("a dropout of 10%", {DROPOUT: 0.1}),
    ("no dropout", {DROPOUT: 0.0}),
    ("train the embeddings too", {EMBEDDINGS: True}),
    ("train embeddings and the lm_head as well", {EMBEDDINGS: True}),
    ("without training the embeddings", {EMBEDDINGS: False}),
    ("on gptq weights", {PACKED: "gptq"}),
    ("nf4 without double quantization", {PACKED: "nf4-single"}),
    ("colocated vllm", {ROLLOUT: "colocated"}),
    ("vllm on the same GPUs", {ROLLOUT: "colocated"}),
    ("a separate vllm server for rollouts", {ROLLOUT: "separate"}),
    ("gpu_memory_utilization 0.4", {"workload.engine_share": 0.4}),
    ("group size 16", {GROUP: 16}),
    ("8 generations per prompt", {GROUP: 8}),
    ("shard group of 8", {"layout.shard_group": 8}),
    ("paged adamw 32-bit", {OPTIMIZER: "paged_adamw"}),
    ("paged_adamw", {OPTIMIZER: "paged_adamw"}),
    ("paged adamw 8-bit", {OPTIMIZER: "paged_adamw_8bit"}),
    ("v-half schedule", {"layout.schedule": "v-half"}),
]

# What numbers and their nouns look like in other languages.
FIRST_WORDS += [
    ("LoRA von Qwen3 14B mit 50.000 Samples à 800 Token auf 2x RTX 4090", {SAMPLES: 50_000, EACH: 800, COUNT: 2}),
    ("DPO von llama 3.1 8b, 120.000 Paare mit je 900 Token, 2 Knoten mit je 8 H100", {SAMPLES: 120_000, COUNT: 16}),
    ("passt qwen3 14b mit qlora auf ne einzelne 4090, 1 mrd tokens, eine Epoche?", {COUNT: 1, "workload.epochs": 1}),
    ("llama 3.1 8b mit lora, läuft das auf 'ner einzigen 3090?", {COUNT: 1}),
    ("combien de temps pour un DPO de llama 3.1 70b, 60 000 paires, sur 16 MI300X ?", {SAMPLES: 60_000, COUNT: 16}),
    ("fine-tuner mistral 7b sur 2 nœuds de 8 H100, 1 500 exemples de 1 200 tokens", {SAMPLES: 1500, EACH: 1200}),
    ("un sft de qwen2.5 7b con 12.500 ejemplos de 700 tokens, tres épocas, en 8 H100", {SAMPLES: 12_500, EACH: 700}),
    ("lora de llama 3.2 3b con 100 mil ejemplos en 4 L40S", {SAMPLES: 100_000, COUNT: 4}),
    ("两台8卡H20微调qwen3 14b，数据10万条，平均每条600 token", {SAMPLES: 100_000, EACH: 600, COUNT: 16, NODE: 8}),
    ("两机16卡H100训qwen3 14b，三轮", {COUNT: 16, NODE: 8, "workload.epochs": 3}),
    ("grpo训qwen3 8b，8卡h100，每个prompt采样16条，最长输出2048", {GROUP: 16, "workload.response_len": 2048}),
]
FOLLOW_UPS += [
    ("TP doch lieber auf 8 und PP ganz raus", {"layout.tp": 8, "layout.pp": 1}),
    ("enlève le PP et passe à 16 GPU", {"layout.pp": 1, COUNT: 16}),
    ("quita el PP", {"layout.pp": 1}),
    ("tp改成2，不用pp了", {"layout.tp": 2, "layout.pp": 1}),
    ("ponlo en 2 L40S en vez de las H100", {DEVICE: "l40s", COUNT: 2}),
    ("à la place des H100, 4 L40S", {DEVICE: "l40s", COUNT: 4}),
    ("把H100换成L40S", {DEVICE: "l40s"}),
    ("faut que ce soit fini vendredi soir au plus tard", {"goal.deadline_h": 54.0}),
    ("muss bis Freitag Abend fertig sein", {"goal.deadline_h": 54.0}),
    ("tiene que estar listo para el viernes por la noche", {"goal.deadline_h": 54.0}),
    ("周五晚上之前要跑完", {"goal.deadline_h": 54.0}),
    ("not phi-4 but qwen2.5 14b", {MODEL: "Qwen/Qwen2.5-14B"}),
    ("without pipeline parallelism", {"layout.pp": 1}),
    ("with 2 more nodes", {COUNT: 24}),
]


@pytest.mark.parametrize(("text", "expected"), FIRST_WORDS, ids=[text[:40] for text, _ in FIRST_WORDS])
def test_first_words_give_these_values_and_no_number_is_lost(text: str, expected: dict[str, Any]) -> None:
    found = begun(text)
    given = found.said
    assert {path: given.get(path) for path in expected} == expected
    assert found.reading["needs"] == []
    assert found.reading["lost"] == []


@pytest.mark.parametrize(("text", "expected"), FOLLOW_UPS, ids=[text for text, _ in FOLLOW_UPS])
def test_follow_ups_change_only_what_they_name(text: str, expected: dict[str, Any]) -> None:
    found = begun(text, PLAN)
    # What is said may settle what is beside it: a method its stage, a machine what is in it.
    changes = {path: value for path, value in found.changes.items() if path in expected or path not in SETTLED}
    assert changes == {path: value for path, value in expected.items() if get(PLAN, path) != value}
    assert found.reading["lost"] == []


@pytest.mark.parametrize(
    ("text", "path"), [("take zero1 out again", "layout.zero_stage"), ("drop tp8", "layout.tp"), ("no offload", "x")]
)
def test_what_is_let_go_is_open_again(text: str, path: str) -> None:
    plan = merge(PLAN, {"layout.zero_stage": 1, "layout.tp": 8})
    # ZeRO 1 taken out leaves none of it.
    assert begun(text, plan).changes.get(path, "kept") in (None, "kept", 0)
    assert path == "x" or path in begun(text, plan).changes


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("Will Llama-9-8B fit on 8 H100?", "model", "Llama-9-8B"),
        ("fine-tune llama-3.1-8b on 8 H900", "cluster.accelerator", "H900"),
        ("train Foo-13B on 8 H100", "model", "Foo-13B"),
        ("llama-3.1-8b on 0 H100", "cluster.count", "cannot be"),
    ],
)
def test_what_is_unknown_or_unclear_becomes_a_question_never_a_substitute(text: str, field: str, words: str) -> None:
    found = begun(text)
    questions = {question.partition(":")[0]: question for question in found.asked}
    assert words in questions[field]
    assert found.changes.get(field) is None


@pytest.mark.parametrize(
    ("text", "path", "taken", "words"),
    [
        ("train mixtral on 16 H100", MODEL, "mistralai/Mixtral-8x7B-v0.1", "may also be"),
        ("Llama-3.1-8B on 8xV100", DEVICE, "v100-sxm-32gb", "may also be"),
        ("train a 7B model on 8 H100", MODEL, "Qwen/Qwen2.5-7B", "may also be"),
        ("serve kimi on 16 H100", MODEL, "moonshotai/Kimi-K2.6", "may also be Kimi-K3, "),
    ],
)
def test_what_an_expert_would_assume_is_assumed_and_said(text: str, path: str, taken: str, words: str) -> None:
    found = begun(text)
    assert found.changes[path] == taken
    assert not found.asked
    assert any(words in (edit["note"] or "") for edit in found.reading["edits"])


@pytest.mark.parametrize(
    ("text", "intents"),
    [
        ("does it fit?", ["fit"]),
        ("how long will it take and what does it cost?", ["run", "cost"]),
        ("what's the best layout?", ["layout"]),
        ("how should I split it?", ["layout"]),
        ("write the files", ["write"]),
        ("show me the slurm script", ["render"]),
        ("give me the configs and write them", ["write"]),
    ],
)
def test_intents(text: str, intents: list[str]) -> None:
    assert set(intents) <= set(begun(text, PLAN).topic["intents"])


@pytest.mark.parametrize(
    "text",
    ["What is the weather in Paris?", "Write me a poem", "who won the world cup?", "tell me a joke"],
)
def test_what_is_not_our_business_is_out_of_scope(text: str) -> None:
    for plan in ({}, PLAN):
        found = begun(text, plan)
        assert not found.calls
        assert not found.asked
        assert not found.changes


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("How many parameters does Mixtral 8x7B have?", "describe_model"),
        ("Tell me about DeepSeek-V3", "describe_model"),
        ("What is the memory bandwidth of an H200?", "describe_hardware"),
        ("how much does an H100 cost per hour?", "describe_hardware"),
        ("what does it cost on H200?", None),
        ("train Mixtral 8x7B on 8 H100", None),
    ],
)
def test_questions_about_a_thing(text: str, facts: str | None) -> None:
    call = begun(text, PLAN).calls[0].name
    assert (call if call.startswith("describe") else None) == facts


def test_doubling_is_relative() -> None:
    assert begun("double the GPUs", PLAN).changes == {COUNT: 16}
    assert begun("half the nodes", merge(PLAN, {COUNT: 16, NODE: 8})).changes == {COUNT: 8}


@pytest.mark.parametrize(
    ("text", "plan", "word"),
    [
        ("llama-3.1-8b on 8 H100 and 37", {}, "37"),
        ("use a random seed of 8 with gpt2 on 2 H100", {}, "8"),
        ("is 40 GB enough?", PLAN, "40"),
        ("llama-3.1-8b on 8 H100, -5 epochs", {}, "-5"),
    ],
)
def test_a_number_that_fits_nowhere_is_told(text: str, plan: dict[str, Any], word: str) -> None:
    found = begun(text, plan, {"recent": COUNT})
    told = [*found.reading["lost"], *found.asked]
    assert any(word in part for part in told), told


def test_a_bare_number_means_what_was_changed_last() -> None:
    assert begun("and 64?", PLAN, {"recent": COUNT}).changes == {COUNT: 64}
    assert begun("and 8192?", PLAN, {"recent": SEQ}).changes == {SEQ: 8192}
    assert begun("and 64?").changes == {}


def test_memory_in_gb_is_read_as_vendors_mean_it_and_said() -> None:
    gb, gib = (begun(f"keep 5 {unit} free", PLAN).reading["edits"] for unit in ("GB", "GiB"))
    assert (gb[0]["value"], gib[0]["value"]) == (5, 5)
    assert "read as 5 GiB per device" in gb[0]["note"]
    assert gib[0]["note"] is None


def test_serving_is_seen_but_training_about_serving_is_not() -> None:
    assert not reading("use a colocated vllm", PLAN).serving
    assert reading("serve llama 3.1 8b with vllm at 100 req/s").serving
    assert not reading("fine-tune llama 3.1 8b for inference on 8 H100").serving


@settings(max_examples=examples(150), deadline=None)
@given(st.text(max_size=120))
def test_any_text_is_read_without_an_error(text: str) -> None:
    begun(text, PLAN, {"recent": COUNT})


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 100_000), st.sampled_from(["{} H100s", "{}x H100", "{} x H100", "H100 x{}", "{} H100 GPUs"]))
def test_counts_are_read_in_every_form(count: int, form: str) -> None:
    assert begun(f"llama-3.1-8b on {form.format(count)}").changes[COUNT] == count


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        ("flash attention 2", "workload.attention", "flash2"),
        ("flash attention", "workload.attention", "flash"),
        ("full-iteration CUDA graphs", "workload.cuda_graph", "full"),
        ("without CUDA graphs", "workload.cuda_graph", "none"),
        ("tp comm overlap", "workload.tp_overlap", True),
        ("DeepEP", "workload.moe_dispatcher", "deepep"),
        ("dropless experts", "workload.moe_capacity", False),
    ],
)
def test_kernels_and_overlaps_have_words(words: str, path: str, value: Any) -> None:
    assert begun(f"train Llama-3.1-8B on 8 H100 {words}").changes[path] == value


@pytest.mark.parametrize("had", ["reserved", "spot", "on demand", "preemptible"])
def test_how_devices_are_had_stands_between_them_and_their_number(had: str) -> None:
    found = begun(f"8 {had} H100: train llama-3.1-8b")
    assert found.changes[COUNT] == 8
    assert not any(edit["field"] == "reserve_gib" for edit in found.reading["edits"])
