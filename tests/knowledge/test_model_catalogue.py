from __future__ import annotations

import re

import pytest

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from knowledge.models.fields import canonical
from knowledge.models.known import ModelFacts, models

ROWS = models()
# published figures that the fields do not come to, and why
WIDER = {
    "nvidia/Nemotron-4-15B": "rounded down",
    "XiaomiMiMo/MiMo-7B-Base": "with the multi-token-prediction layer",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "rounded down",
    "deepseek-ai/DeepSeek-V4-Pro": "rounded to two digits",
    "Qwen/Qwen3-VL-30B-A3B-Instruct": "rounded down",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": "rounded down: its report counts 49,122,681,728",
    "mistralai/Mistral-Large-4-1T-A52B": "rounded to one digit",
    "facebook/cwm": "rounded down",
    "Zyphra/ZAYA1-8B": "without the embedding",
    "LiquidAI/LFM2.5-8B-A1B": "of LFM2, which has a smaller vocabulary",
    "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16": "rounded down",
    "Qwen/Qwen3.8-2.4T-A95B": "with the multi-token-prediction layer",
}


def test_the_catalogue_is_whole() -> None:
    assert len(ROWS) == 506
    assert len({row.id.casefold() for row in ROWS}) == 506
    assert sum(row.parameters is not None for row in ROWS) == 501


def test_every_row_has_source_and_date() -> None:
    for row in ROWS:
        assert row.source, row.id
        assert re.fullmatch(r"202[56]-\d\d-\d\d", row.as_of), row.id


def slack(published: float) -> float:
    """Half a unit of the last digit that is published, and a hundredth at least."""
    digits = f"{published / 1e9:g}".partition(".")[2]
    return max(0.01 * published, 0.5e9 * 10.0 ** -len(digits))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_counts_are_exact(row: ModelFacts) -> None:
    built = architecture(row.id)
    if row.parameters is not None:
        assert built.parameters == row.parameters
    if row.active_parameters is not None:
        assert built.active_parameters == row.active_parameters
    assert built.layers == len(built.pattern)
    assert built.family == row.family
    if row.context:
        assert built.context == row.context or row.id.startswith(("Qwen/Qwen-", "nvidia/"))
    if row.published_parameters and row.id not in WIDER:
        most = row.published_parameters + slack(row.published_parameters)
        least = 0.5 * most if built.multimodal else row.published_parameters - slack(row.published_parameters)
        assert least <= built.parameters <= most


def test_models_without_a_count_say_what_they_leave_out() -> None:
    for row in ROWS:
        if row.parameters is None:
            notes = " ".join(architecture(row.id).notes)
            assert "approximate" in notes or row.id in UNCOUNTED, row.id


UNCOUNTED = {
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "exact by its blocks, and no other count exists",
}


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("deepseek-ai/DeepSeek-V4-Flash", 284e9, 13e9),
        ("zai-org/GLM-5", 744e9, 40e9),
        ("google/gemma-4-26B-A4B", 25.2e9, 3.8e9),
        ("XiaomiMiMo/MiMo-V2-Flash", 309e9, 15e9),
        ("stepfun-ai/Step-3.7-Flash", 196e9, 11e9),
        ("Qwen/Qwen3.5-122B-A10B", 122e9, 10e9),
    ],
)
def test_the_newest_models_close_on_their_makers_figures(name: str, total: float, active: float) -> None:
    built = architecture(name)
    assert built.parameters == pytest.approx(total, rel=0.005)
    assert built.active_parameters == pytest.approx(active, rel=0.1)  # makers often leave the embedding out


def test_catalogue_fields_agree_with_the_conventions() -> None:
    """The catalogue keeps the result of `canonical`; a change of the conventions must be carried into it."""
    for row in ROWS:
        raw = {name: value for name, value in row.fields.items() if name not in ("canonical", "notes")}
        if raw.get("model_type") == "qwen":
            raw["intermediate_size"] *= 2
        again = {name: value for name, value in canonical(raw).items() if name != "notes" and value is not None}
        assert again == {k: v for k, v in row.fields.items() if k not in ("canonical", "notes")}, row.id


def test_a_folder_with_a_config_and_the_file_itself_are_read(tmp_path) -> None:
    import json

    config = {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
              "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
              "max_position_embeddings": 32768, "tie_word_embeddings": True}  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert architecture(str(path)).parameters == 494032768
    assert architecture(str(tmp_path)) == architecture(str(path))
    with pytest.raises(PlanError, match=r"no config\.json"):
        architecture(str(tmp_path / "nothing" / "config.json"))
    path.write_text("{not json")
    with pytest.raises(PlanError, match="not JSON"):
        architecture(str(path))
    path.write_text("[1]")
    with pytest.raises(PlanError, match="JSON object"):
        architecture(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="not UTF-8 text"):
        architecture(str(path))


def test_unknown_model_types_follow_llama_and_say_so() -> None:
    fields = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
              "vocab_size": 100, "max_position_embeddings": 64}  # fmt: skip
    built = architecture({**fields, "model_type": "brandnew"})
    assert "brandnew" in built.notes[0]
    assert architecture(fields).notes
    assert built.blocks[0].gated


def test_encoders_are_refused() -> None:
    with pytest.raises(PlanError) as caught:
        architecture({"model_type": "bert", "hidden_size": 768})
    assert caught.value.field == "model.model_type"


def test_specs_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(PlanError):
        architecture(7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(PlanError):
        architecture({1: 2})  # pyright: ignore[reportArgumentType]
