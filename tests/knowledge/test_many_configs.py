"""Configs as they stand on huggingface.co: counted whole, and refused with a sentence where they are broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture

_FILE = Path(__file__).parents[1] / "data" / "raw_configs.jsonl"
_ROWS: list[dict[str, Any]] = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()[1:]]
_DEFAULTS = [
    json.loads(line) for line in (_FILE.parent / "default_configs.jsonl").read_text(encoding="utf-8").splitlines()[1:]
]
# Families that look positions up in a table, whose size is then part of the model's.
_LEARNED = {"gpt2", "opt", "gpt_bigcode"}
# Corrections of routers, an expert and layer each, are weights of checkpoints and buffers of transformers.
_CORRECTIONS = 1e-6
_JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**70), st.floats(), st.text(max_size=5),
    st.lists(st.one_of(st.integers(-1, 3), st.text(max_size=3)), max_size=3), st.just({"a": None}),
)  # fmt: skip


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row["id"])
def test_a_config_of_the_hub_is_counted_whole(row: dict[str, Any]) -> None:
    assert architecture(row["config"]).parameters == pytest.approx(row["parameters"], rel=_CORRECTIONS)


@pytest.mark.parametrize("row", _DEFAULTS, ids=lambda row: row["class"])
def test_a_class_of_transformers_is_counted_whole(row: dict[str, Any]) -> None:
    """Of what a class adds that is said to be left out, less than a thousandth."""
    built = architecture(row["config"])
    close = 1e-3 if any(note.startswith("approximate") for note in built.notes) else 2e-4
    assert built.parameters == pytest.approx(row["parameters"], rel=close)


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row["id"])
def test_only_learned_positions_need_their_number(row: dict[str, Any]) -> None:
    fields = {
        name: value for name, value in row["config"].items() if name not in ("max_position_embeddings", "n_positions")
    }
    if row["config"].get("model_type") in _LEARNED:
        with pytest.raises(PlanError, match="max_position_embeddings"):
            architecture(fields)
        return
    assert architecture(fields).parameters == architecture(row["config"]).parameters


def test_the_number_of_layers_may_be_that_of_their_list() -> None:
    """These were counted whole above."""
    names = ("hybrid_override_pattern", "layer_types", "layers_block_type", "mlp_layer_types")
    listed = [row["config"] for row in _ROWS if any(name in row["config"] for name in names)]
    assert sum("num_hidden_layers" not in config for config in listed) > 3


@given(st.data())
def test_a_broken_field_is_a_sentence_never_a_traceback(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(_ROWS))
    name = data.draw(st.sampled_from(sorted(row["config"])))
    try:
        built = architecture(row["config"] | {name: data.draw(_JUNK)})
    except PlanError:
        return
    assert built.parameters > 0


_PLAIN: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
    "max_position_embeddings": 128,
}  # fmt: skip


def test_an_unknown_kind_with_layers_that_are_no_attention_is_not_taken_for_llama() -> None:
    """Zamba2 was counted as Llama, 131 % too large."""
    config = _PLAIN | {"model_type": "zamba3", "mamba_d_state": 64, "n_mamba_heads": 2}
    with pytest.raises(PlanError, match=r"'zamba3' is not known.*no attention \(mamba_d_state, n_mamba_heads\)"):
        architecture(config)


def test_an_unknown_kind_with_squared_relu_has_no_gate() -> None:
    """As NanoChat and Persimmon have none (transformers 5.23, counted on the meta device)."""
    one, gated = (architecture(_PLAIN | {"model_type": "nova", "hidden_act": act}) for act in ("relu2", "silu"))
    assert gated.parameters - one.parameters == 2 * 64 * 128
    assert any("without a gate" in note for note in one.notes)


def test_how_wide_experts_of_an_unknown_kind_are_is_asked() -> None:
    """Doge's 16,384 experts of one column each were counted as wide as its MLP: 3.3e12 weights for 2e7."""
    config = _PLAIN | {"model_type": "doge", "num_experts": 16384, "num_experts_per_tok": 64}
    with pytest.raises(PlanError, match=r"'doge' is not known.*says num_experts, but not how wide"):
        architecture(config)
    narrow = architecture(config | {"moe_intermediate_size": 1})
    assert narrow.parameters < 1e8
    assert architecture(_PLAIN | {"model_type": "doge", "num_experts": 1}).parameters < 1e6


def test_biogpt_is_no_llama() -> None:
    config = {
        "model_type": "biogpt", "vocab_size": 42384, "hidden_size": 1024, "num_hidden_layers": 24,
        "num_attention_heads": 16, "intermediate_size": 4096, "hidden_act": "gelu", "max_position_embeddings": 1024,
    }  # fmt: skip
    assert architecture(config).parameters == 346_763_264


@pytest.mark.parametrize("outer", [True, False, None])
@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("version", ["5.24.0", "4.57.1", None])
def test_what_holds_the_text_model_says_whether_its_head_is_tied(
    outer: bool | None, inner: bool, version: str | None
) -> None:
    """As transformers 5 does (InternVL, Mistral3, Janus: on the meta device); transformers 4 asked the text model."""
    text = _PLAIN | {"model_type": "qwen3", "tie_word_embeddings": inner}
    config = {"model_type": "internvl", "text_config": text, "vision_config": {}, "transformers_version": version}
    if outer is not None:
        config["tie_word_embeddings"] = outer
    tied = inner if outer is None or (outer and version != "5.24.0") else outer
    assert architecture(config).head_parameters == (0 if tied else 100 * 64)


def test_an_unknown_kind_of_a_known_class_says_what_it_was_taken_as() -> None:
    known, new = (
        architecture(_PLAIN | {"model_type": kind, "architectures": ["Qwen3ForCausalLM"]})
        for kind in ("qwen3", "qwen9")
    )
    assert new.parameters == known.parameters
    assert any("'qwen9' is not known: taken as qwen3" in note for note in new.notes)
    assert not any("taken as" in note for note in known.notes)


def test_a_drafter_and_what_makes_music_are_no_language_models() -> None:
    """They hold a text_config of a kind that is known."""
    text = _PLAIN | {"model_type": "gemma4_text"}
    with pytest.raises(PlanError, match="a drafter"):
        architecture({"model_type": "gemma4_unified_assistant", "text_config": text})
    with pytest.raises(PlanError, match="a speech model"):
        architecture(_PLAIN | {"model_type": "musicgen_decoder"})


def test_a_shared_expert_of_hunyuan_is_in_every_layer() -> None:
    """HunYuanMoEV1ForCausalLM of 8 experts on the meta device."""
    config = {
        "model_type": "hunyuan_v1_moe", "vocab_size": 290943, "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
        "num_experts": 8, "moe_topk": 2, "max_position_embeddings": 2048, "tie_word_embeddings": False,
    }  # fmt: skip
    assert architecture(config).parameters == 43_488_907_264


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"model_type": "new-bert", "type_vocab_size": 2}, "an encoder"),
        ({"model_type": "new-t5", "is_encoder_decoder": True}, "an encoder-decoder"),
        ({"_class_name": "NewTransformer2DModel", "_diffusers_version": "0.40"}, "a part of a diffusion model"),
    ],
)
def test_an_unknown_kind_that_is_no_decoder_is_refused_by_its_fields(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(PlanError, match=f"is {what}: only decoder-only"):
        architecture(_PLAIN | fields)


def test_an_unknown_kind_says_which_of_its_fields_are_not_read() -> None:
    """HRM runs its layers in cycles: taken for Llama it was 183 % too large, and nothing said why."""
    config = _PLAIN | {"model_type": "nova", "L_cycles": 3, "rms_norm_eps": 1e-6, "eos_token_id": 2, "rope_theta": 1e4}
    told = [note for note in architecture(config).notes if "nothing here reads" in note]
    assert [note.partition(":")[2].partition(";")[0].strip() for note in told] == ["L_cycles"]
    assert not any("nothing here reads" in note for note in architecture(config | {"L_cycles": None}).notes)


def test_layers_of_one_kind_may_have_sizes_of_their_own() -> None:
    kinds = ["sliding_attention", "full_attention"] * 2
    layers = _PLAIN | {"num_hidden_layers": 4, "layer_types": kinds, "sliding_window": 8, "model_type": "gemma3_text"}
    full = {"1": {"head_dim": 32}, "3": {"head_dim": 32}}
    more = [architecture(layers | {"head_dim": 16, "per_layer_config": told}).parameters for told in (None, full)]
    each = 64 * 16 * (4 + 4 + 4 + 4) + 2 * 16  # queries, keys, values, the output, and norms of both
    assert more[1] - more[0] == 2 * each
    with pytest.raises(PlanError, match="per_layer_config"):
        architecture(layers | {"head_dim": 16, "per_layer_config": {"1": {"head_dim": 32}}})
