"""A run whose samples come from devices that are not counted is neither faster nor cheaper for that."""

from __future__ import annotations

from tools import call


def test_a_part_of_a_run_wins_nothing() -> None:
    found = call(
        "compare",
        {
            "model": "meta-llama/Llama-3.1-8B",
            "stage": "grpo",
            "accelerator": "h100-sxm",
            "count": 8,
            "over": {"rollout": ["colocated", "separate"]},
        },
    )
    assert set(found["best"].values()) == {"colocated"}
    assert found["conclusions"][0].startswith("separate leaves out")
    assert not any("faster" in text for text in found["conclusions"])
