"""What was pasted is told from what was said beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.grounding.origins import origins
from agent.offline.language.pasted import apart

YAML = "base_model: mistralai/Mistral-7B-v0.3\nadapter: qlora\nlora_target_modules:\n  - q_proj\nmicro_batch_size: 2"
COMMAND = "vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 4 --max-model-len 32768"

LLAMA = "llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -c 65536 -ctk q8_0"
PYTHON = """from trl import SFTConfig

args = SFTConfig(
    per_device_train_batch_size=2,  # (each
    max_length=4096,
)
for seed in range(2):
    train(args)"""
MANIFEST = """kind: Deployment
spec:
  replicas: 2
  template:
    resources:
      limits:
        nvidia.com/gpu: 4"""


@pytest.mark.parametrize(
    ("text", "config", "beside"),
    [
        (f"does this fit on 2x 3090?\n```yaml\n{YAML}\n```", YAML, "does this fit on 2x 3090?"),
        (f"{YAML}\n\non one L40S please", YAML, "on one L40S please"),
        (f"{COMMAND} -- ok on h100s?", COMMAND, "-- ok on h100s?"),
        (f"is this sane: {COMMAND}", COMMAND, "is this sane:"),
        (f"{COMMAND} on 4x H100?", COMMAND, "on 4x H100?"),
        (f"on a 3090: ./bin/{LLAMA}", f"./bin/{LLAMA}", "on a 3090:"),
        (f"RANKS=4 {COMMAND}, fits?", f"RANKS=4 {COMMAND}", "fits?"),
        (f"will it fit?\n\n{PYTHON}\n\nit is one RTX 4090", PYTHON, "will it fit? it is one RTX 4090"),
        (f"{MANIFEST}\n\nare 80GB H100s enough?", MANIFEST, "are 80GB H100s enough?"),
        ('on 8 h100? {"bf16": {"enabled": true}} thanks', '{"bf16": {"enabled": true}}', "on 8 h100?   thanks"),
    ],
)
def test_the_configuration_and_the_words_beside_it(text: str, config: str, beside: str) -> None:
    found = apart(text)
    assert (found.config, found.said.split()) == (config, beside.split())


@pytest.mark.parametrize(
    "text",
    [
        "can I fine-tune Llama 3.1 8B with deepspeed on 8 H100?",
        "give me the torchrun command for llama-3.1-8b",
        "vllm serve or sglang for qwen2.5-72b?",
        "first: does it fit\nsecond line\nand a third",
    ],
)
def test_plain_questions_are_not_configurations(text: str) -> None:
    assert apart(text).config is None


@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    assert apart(text).config != ""


@pytest.mark.parametrize("memory", [{}, {"per_device_bytes": 1e9}, {"per_device_bytes": 2e9, "capacity_bytes": 8e9}])
def test_memory_without_its_parts_has_origins(memory: dict[str, float]) -> None:
    assert isinstance(origins([{"memory": memory, "time": {"components": {}}}], []), set)


@pytest.mark.parametrize(
    ("pasted", "facts"),
    [
        (
            "index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
            "0, NVIDIA H100 80GB HBM3, 97 %, 71234 MiB, 81559 MiB\n1, NVIDIA H100 80GB HBM3, 98 %, 70 MiB, 81559 MiB",
            "2 x H100 80GB HBM3",
        ),
        # Two devices, watched twice.
        (
            "timestamp, index, name, power.draw [W]\n"
            + "\n".join(
                f"2026/11/20 10:00:0{second}.000, {device}, NVIDIA A100-SXM4-80GB, 399.12 W"
                for second in (1, 2)
                for device in (0, 1)
            ),
            "2 x A100-SXM4-80GB",
        ),
        (
            "$ nvidia-smi --query-gpu=name,memory.total --format=csv,noheader\n" + "NVIDIA L4, 23034 MiB\n" * 4,
            "4 x L4",
        ),
        ("0, NVIDIA GeForce RTX 4090, 24564 MiB\n1, NVIDIA GeForce RTX 4090, 24564 MiB", "2 x GeForce RTX 4090"),
    ],
)
def test_rows_of_nvidia_smi_are_the_machine(pasted: str, facts: str) -> None:
    told = apart(f"{pasted}\nwill llama-3.1-8b fit?")
    assert told.data == facts
    assert told.said == "will llama-3.1-8b fit?"
    assert told.config is None
    assert not told.rows


def test_a_sentence_about_a_card_is_none_of_its_rows() -> None:
    said = "My NVIDIA H100, which I rent, is at 97 %, is that good?"
    assert apart(said).said == said


@pytest.mark.parametrize(
    ("inside", "facts"),
    [
        ("GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X\nGPU[1]\t\t: Card Series: \t\tAMD Instinct MI300X",
         "2 x AMD Instinct MI300X"),
        ("GPU[0]\t\t: VRAM Total Memory (B): 206158430208\nGPU[0]\t\t: VRAM Total Used Memory (B): 297",
         "vram: 192 GiB"),
        ("== Concise Info ==\n0       2     0x74a1,   28851  41.0°C      131.0W    NPS1, SPX, 0        132Mhz", ""),
    ],
)  # fmt: skip
def test_what_rocm_smi_prints_is_the_machine(inside: str, facts: str) -> None:
    report = f"== ROCm System Management Interface ==\n{inside}\n== End of ROCm SMI Log =="
    told = apart(f"{report}\nwill llama-3.1-8b fit?")
    assert (told.data, told.said, told.config) == (facts, "will llama-3.1-8b fit?", None)
