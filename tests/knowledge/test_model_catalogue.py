from __future__ import annotations

import pytest

from estimator.errors import PlanError
from knowledge.models.catalogue import ModelFacts, architecture, models
from knowledge.models.fields import canonical

ROWS = models()
# published figures that count something the text decoder's fields do not (see the notes in the catalogue)
ROUNDED_OR_WIDER = {
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "vision tower",
    "google/gemma-3-4b-pt": "vision tower",
    "google/gemma-3-12b-pt": "vision tower",
    "google/gemma-3-27b-pt": "vision tower",
    "nvidia/Nemotron-4-15B": "rounded down",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "rounded down",
    "XiaomiMiMo/MiMo-7B-Base": "multi-token-prediction layer",
}


def test_the_catalogue_is_whole() -> None:
    assert len(ROWS) == 219
    assert len({row.id.casefold() for row in ROWS}) == 219
    assert sum(row.parameters is not None for row in ROWS) == 197


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_counts_are_exact(row: ModelFacts) -> None:
    built = architecture(row.id)
    if row.parameters is not None:
        assert built.parameters == row.parameters
    if row.active_parameters is not None:
        assert built.active_parameters == row.active_parameters
    assert built.layers == len(built.pattern)
    assert built.family == row.family
    assert row.source
    if row.context:
        assert built.context == row.context or row.id.startswith(("Qwen/Qwen-", "nvidia/"))
    if row.published_parameters and row.id not in ROUNDED_OR_WIDER:
        assert built.parameters == pytest.approx(row.published_parameters, rel=0.01)


def test_approximated_models_say_so() -> None:
    for row in ROWS:
        notes = " ".join(architecture(row.id).notes)
        uncounted = row.parameters is None
        exact_by_kin = row.id.startswith(("Qwen/Qwen3-VL", "moonshotai/Kimi-K2.5", "deepseek-ai/DeepSeek-V3.2"))
        if uncounted and not exact_by_kin and row.id not in EXACT_FIELDS:
            assert "approximate" in notes, row.id


EXACT_FIELDS = {
    "MiniMaxAI/MiniMax-M2.7",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
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
    with pytest.raises(PlanError, match="cannot be read"):
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
