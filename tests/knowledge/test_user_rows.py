"""The user's own accelerators, models and prices: in the catalogue like all others, or left out with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from knowledge.machines.catalogue import accelerators, accelerators_left_out, aliases, find_accelerator, machine
from knowledge.models.catalogue import architecture, find_model
from knowledge.models.known import models, models_left_out
from knowledge.own.files import trust
from knowledge.own.rows import HardwareRow, validated
from knowledge.prices.book import left_out, prices, providers

CHIP = {
    "id": "my-chip", "vendor": "ACME", "memory_gib": 96, "memory_bandwidth_gb_per_s": 4000, "bf16_tflops": 1200,
    "scaleup_gb_per_s": 400, "per_node": 4, "aliases": ["wonder card"],
}  # fmt: skip
CONFIG = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "vocab_size": 32000,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 2816, "max_position_embeddings": 4096,
}  # fmt: skip
RENT = {"provider": "MyCo", "instance": "rack", "accelerator": "H100 SXM", "count": 8, "usd_per_hour": 10}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SHARDWISE_CONFIG", raising=False)
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"


def put(folder: Path, kind: str, name: str, row: object) -> Path:
    path = folder / kind / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(row if isinstance(row, str) else yaml.safe_dump(row))
    return path


def test_an_own_accelerator_is_found_listed_and_made_to_machines(home: Path) -> None:
    before = len(accelerators())
    path = put(home, "hardware", "chip", CHIP)
    assert len(accelerators()) == before + 1
    found = find_accelerator("My Chip")
    device = found.value
    assert (device.id, device.family, device.vendor, device.timed_as) == ("my-chip", "my-chip", "ACME", "my-chip")
    assert device.memory_bytes == 96 * 2**30
    assert device.memory_bandwidth == 4e12
    assert device.peak_flops["bf16"] == 1.2e15
    assert device.scaleup_bandwidth == 4e11
    assert device.source == f"yours ({path})"
    assert found.note
    assert str(path) in found.note
    assert find_accelerator("wonder card").value.id == "my-chip"
    assert aliases("my-chip") == ("wonder card",)
    built, _ = machine("my-chip", 8)
    assert (built.nodes, built.per_node) == (2, 4)
    path.unlink()
    assert len(accelerators()) == before
    with pytest.raises(PlanError, match="there is no accelerator"):
        find_accelerator("my-chip")


def test_like_takes_what_is_left_out_and_its_timings(home: Path) -> None:
    put(home, "hardware", "a", {"id": "big-h100", "like": "h100-sxm", "memory_gib": 141})
    mine, theirs = find_accelerator("big-h100").value, find_accelerator("h100-sxm").value
    assert mine.timed_as == theirs.id
    assert mine.memory_bytes == 141 * 2**30
    assert mine.usable_bytes == pytest.approx(0.985 * 141 * 2**30)
    assert (mine.peak_flops, mine.family, mine.scaleup_bandwidth) == (
        theirs.peak_flops, theirs.family, theirs.scaleup_bandwidth,
    )  # fmt: skip
    put(home, "hardware", "a", {"id": "big-h100", "like": "h100-sxm", "family": "Ampere"})
    assert find_accelerator("big-h100").value.timed_as == "big-h100"
    assert find_accelerator("h100-sxm").value == theirs


def test_the_nearer_file_wins_and_replacing_has_to_be_said(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project" / ".shardwise"
    put(home, "hardware", "a", CHIP)
    put(project, "hardware", "b", CHIP | {"memory_gib": 48})
    trust(project)
    assert find_accelerator("my-chip").value.memory_bytes == 48 * 2**30
    assert not accelerators_left_out()
    real = find_accelerator("h100-sxm").value
    put(project, "hardware", "c", {"id": "h100-sxm", "memory_gib": 40})
    trust(project)
    assert find_accelerator("h100-sxm").value == real
    assert "say replaces: true" in str(accelerators_left_out()[0])
    put(project, "hardware", "c", {"id": "h100-sxm", "memory_gib": 40, "replaces": True})
    trust(project)
    mine = find_accelerator("H100 SXM5 80GB").value
    assert (mine.memory_bytes, mine.peak_flops, mine.name) == (40 * 2**30, real.peak_flops, real.name)
    assert mine.timed_as == "h100-sxm"
    assert not accelerators_left_out()


BAD_HARDWARE = {
    "id: [1": "not readable YAML",
    "just words": "must hold fields",
    "": "must hold fields",
    "- 7": "must hold fields",
    "id: x\nmemory_gib: true": "memory_gib: got true",
    "id: x\nmemory_gib: .nan": "memory_gib: got nan",
    "id: x\nmemory_gib: -1": "greater than 0",
    "id: x\nmemory_gib: 1.0e+300": "less than or equal",
    "id: x\nmemory_gb: 80": "no such field.*memory_gib",
    "id: x\nvendor: A": "memory_gib: is required",
    "id: x\nvendor: A\nmemory_gib: 8\nmemory_bandwidth_gb_per_s: 8": "matrix rate is required",
    "id: ../x\nlike: h100-sxm": "cannot be an id",
    "like: h100-sxm": "id: is required",
    "id: x\nlike: h1000": "like: there is no accelerator",
    "id: x\nlike: h100-sxm\nscaleup_link: PCIe": "scaleup_gb_per_s: is required",
    "id: x\nlike: h100-sxm\ninterconnect: pigeons": "interconnect: 'pigeons'",
    "id: x\nlike: h100-sxm\naliases: [h100-pcie]": "is a name of h100-pcie",
    "id: x\nlike: h100-sxm\nusable_gib: 800": "more than the memory",
    'id: x\nlike: h100-sxm\nname: "a\\eb"': "cannot be printed",
    "id: x\nlike: h100-sxm\nreplaces: true": "no 'x' to replace",
    "- {id: x, like: h100-sxm}\n- {id: x, like: h100-sxm}": "too",
}


@pytest.mark.parametrize(("text", "says"), BAD_HARDWARE.items(), ids=range(len(BAD_HARDWARE)))
def test_a_bad_file_is_left_out_with_the_reason_and_the_others_stay(text: str, says: str, home: Path) -> None:
    put(home, "hardware", "good", CHIP)
    path = put(home, "hardware", "x", text)
    assert find_accelerator("my-chip").value.id == "my-chip"
    lost = accelerators_left_out()
    assert len(lost) == 1
    assert lost[0].path == path
    with pytest.raises(PlanError, match=says):
        raise lost[0].problem
    assert str(path) in str(lost[0])
    if not text.startswith("- {"):
        with pytest.raises(PlanError, match="a file of yours that cannot be used"):
            find_accelerator("x")


@settings(max_examples=examples(60))
@given(st.dictionaries(st.sampled_from(sorted(HardwareRow.model_fields)), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("h100-sxm"),
    lambda inner: st.lists(inner, max_size=3), max_leaves=4), max_size=6))  # fmt: skip
def test_any_data_is_a_row_or_an_error_about_it(data: dict[str, object]) -> None:
    try:
        found = validated(HardwareRow, data, "file").id
    except PlanError as error:
        found = error.field
    assert found == str(data.get("id")).lower() or found.startswith("file: ")


def test_an_own_model_is_counted_from_its_config(home: Path) -> None:
    put(home, "models", "a", {"id": "me/tiny", "config": CONFIG, "aliases": ["tiny one"]})
    built = architecture("me/tiny")
    assert built.parameters == architecture(CONFIG).parameters
    assert find_model("tiny one").value.id == "me/tiny"
    assert find_model("me/tiny").value.source.startswith("yours (")
    assert models()[-1].parameters == built.parameters
    assert any("yours (" in note for note in built.notes)


def test_an_own_model_has_the_tower_and_the_format_of_its_config(home: Path) -> None:
    tower = {"model_type": "clip_vision_model", "hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096}
    held = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    config = CONFIG | {"model_type": "llava_next", "text_config": CONFIG, "vision_config": tower}
    put(home, "models", "a", {"id": "me/seeing", "config": config | {"quantization_config": held}})
    built, given = architecture("me/seeing"), architecture(config | {"quantization_config": held})
    assert built.vision is not None
    assert built.vision == given.vision
    assert built.weight_format == given.weight_format == "fp8_block"


def test_a_changed_config_json_is_noticed(home: Path) -> None:
    put(home, "models", "a", {"id": "me/tiny", "config": "tiny/config.json"})
    assert "cannot be read" in str(models_left_out()[0])
    config = home / "models" / "tiny" / "config.json"
    config.parent.mkdir()
    for layers in (8, 12):
        config.write_text(json.dumps(CONFIG | {"num_hidden_layers": layers}))
        assert architecture("me/tiny").layers == layers
    put(home, "models", "a", {"id": "me/tiny", "config": "tiny"})
    assert architecture("me/tiny").layers == 12


BAD_MODELS = {
    "id: gpt2\nconfig: {}": "names openai-community/gpt2",
    "id: a/b/c\nconfig: {}": "cannot be an id",
    "id: x\nconfig: {hidden_size: many}": "config",
    "id: x\nconfig: {hidden_size: .nan}": "config",
    "id: x": "config: is required",
    "id: x\nconfig: /no/such/config.json": "cannot be read",
    'id: x\nconfig: "a\\0b"': "config",
    "id: x\nconfig: {model_type: bert}": "only decoder-only",
}


@pytest.mark.parametrize(("text", "says"), BAD_MODELS.items(), ids=range(len(BAD_MODELS)))
def test_a_bad_model_is_left_out(text: str, says: str, home: Path) -> None:
    put(home, "models", "x", text)
    with pytest.raises(PlanError, match=says):
        raise models_left_out()[0].problem
    assert architecture("gpt2").layers == 12


def test_own_prices_are_in_the_book(home: Path) -> None:
    assert "MyCo" not in providers()
    path = put(home, "prices", "a", [RENT | {"price_date": "2026-11-01"}, RENT | {"instance": "b", "region": "here"}])
    assert "MyCo" in providers()
    first, second = prices("h100", "myco")
    assert (first.accelerator, first.usd_per_hour, first.price_date) == ("h100-sxm", 10, "2026-11-01")
    assert (second.region, second.price_date, second.source) == ("here", None, f"yours ({path})")
    put(home, "hardware", "c", CHIP | {"usd_per_hour": 2})
    (own,) = prices("my-chip")
    assert (own.count, own.usd_per_hour, own.provider) == (1, 2, "yours")


def test_a_price_replaces_one_of_the_book_only_where_it_says_so(home: Path) -> None:
    listed = next(price for price in prices() if price.usd_per_hour and price.region)
    row = {
        "provider": listed.provider, "instance": listed.instance, "region": listed.region, "count": listed.count,
        "accelerator": listed.accelerator, "usd_per_hour": 1,
    }  # fmt: skip
    put(home, "prices", "a", row)
    assert "say replaces: true" in str(left_out()[0])
    assert listed in prices()
    put(home, "prices", "a", row | {"replaces": True})
    same = [price for price in prices(listed.accelerator) if price.instance == listed.instance]
    assert [price.usd_per_hour for price in same if price.region == listed.region] == [1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"usd_per_hour": None}, "a price is required"),
        ({"usd_per_hour": 0}, "greater than 0"),
        ({"currency": "EUR"}, "USD"),
        ({"accelerator": "zx81"}, "there is no accelerator"),
        ({"count": 2.5}, "count"),
        ({"price_date": "yesterday"}, "price_date"),
        ({"provider": "a\nb"}, "cannot be printed"),
    ],
)
def test_a_bad_price_is_left_out(changes: dict[str, object], says: str, home: Path) -> None:
    put(home, "prices", "a", {key: value for key, value in (RENT | changes).items() if value is not None})
    with pytest.raises(PlanError, match=says):
        raise left_out()[0].problem
    assert "MyCo" not in providers()
