"""Files that come from anybody are read within bounds, and what is wrong with them is an error of input."""

from __future__ import annotations

import json
import math
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from pace import within
from weight_files import gguf, llama_metadata, llama_tensors

from estimator.errors import PlanError, told
from knowledge.models.catalogue import find_architecture
from knowledge.models.gguf import read_gguf
from knowledge.own.files import read_text
from knowledge.own.mappings import csv_records, csv_rows, json_value
from measure.history import exchange
from measure.logs.reading import read
from measure.logs.wandb import records
from pages.rendering.clean import clean
from planner.files.beside import texts_of
from planner.records.price_lists import update_prices
from tui.jsonout import to_json

HUGE = "9" * 400
UNSEEN = "\x1b\u061c\u200f\u202e\u2066\u2028\ufeff\ud800\U000e0041"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" + "[]," * 3_000_000 + "[]]", "", "nothing"])
def test_json_that_cannot_be_read_within_bounds_is_a_wrong_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_value(text)


def test_a_whole_number_that_no_float_holds_is_infinite() -> None:
    assert json_value(f"[{HUGE}, -{HUGE}, 12, {'1' * 5000}]") == [math.inf, -math.inf, 12, math.inf]
    assert float(json_value("1" * 308)) == pytest.approx(1.1111e307, rel=1e-3)


@pytest.mark.parametrize("text", ["x" * 200_000, 'a"b\rc,d\r"'])
def test_a_table_that_is_none_is_a_wrong_value(text: str) -> None:
    for rows in (csv_rows, csv_records):
        with pytest.raises(ValueError, match=r"field|new-line"):
            list(rows(["a,b\n", text]))


def test_what_steers_or_is_not_seen_is_shown_by_no_face() -> None:
    shown = clean(f"a{UNSEEN}b"), told(f"a{UNSEEN}b"), to_json([f"a{UNSEEN}b"])
    assert not any(letter in text for text in shown for letter in UNSEEN)
    assert json.loads(shown[2]) == [f"a{UNSEEN}b"]


@pytest.mark.parametrize("kind", [[1, 2], ["a"], "1" * 5000, 2**32 - 1])
def test_a_gguf_file_may_say_anything_of_its_type(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(gguf(llama_metadata(file_type=kind), llama_tensors()))
    assert read_gguf(tmp_path / "x.gguf").weight_format == "q4_k_m"


def test_a_gguf_file_of_many_tensors_is_read_soon_and_names_are_no_numbers_without_end(tmp_path: Path) -> None:
    more = [(f"blk.{'1' * 5000}.attn_q.weight", (256, 320), 12)] + [("x", (256,), 12)] * 20_000
    (tmp_path / "x.gguf").write_bytes(gguf(llama_metadata(), [*llama_tensors(), *more]))
    with within(2.0):
        assert read_gguf(tmp_path / "x.gguf").bytes_of["vector"] > 20_000 * 144


def test_a_gguf_file_of_endless_lists_is_refused(tmp_path: Path) -> None:
    item = struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 500_000) + bytes(8) * 500_000
    (tmp_path / "x.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 9) + item * 9)
    with pytest.raises(PlanError, match="lists of more than"):
        read_gguf(tmp_path / "x.gguf")


def test_a_config_of_more_parameters_than_any_model_is_refused() -> None:
    sizes = {"model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    with pytest.raises(PlanError, match="no model has as many"):
        find_architecture(sizes | {"hidden_size": 10**9, "intermediate_size": 10**9})


def test_an_index_may_name_files_that_cannot_be(tmp_path: Path) -> None:
    sizes = {"model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000,
             "hidden_size": 64, "intermediate_size": 128}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    index = {"metadata": {"total_size": 10**6}, "weight_map": {"a": "9" * 5000, "b": "\0"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    find_architecture(str(tmp_path))


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="a file system of Linux")
@pytest.mark.parametrize("place", ["/proc/self/pagemap", "/proc/kmsg", "/proc/self/environ"])
def test_files_of_the_kernel_never_end_and_are_none(place: str) -> None:
    for reading in (lambda: read_text(Path(place)), lambda: read(Path(place))):
        with pytest.raises(PlanError, match=r"not a regular file|Permission denied"):
            reading()


@pytest.mark.parametrize("key", ["step", "loss", "epoch", "train_tokens_per_second"])
@pytest.mark.parametrize("value", [HUGE, "Infinity", "NaN", "-1e308"])
def test_a_state_of_the_trainer_may_hold_any_number(key: str, value: str, tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 2.0, "train_tokens_per_second": 9.0} for step in (1, 2, 3)]
    text = json.dumps({"log_history": [*rows, {**rows[0], key: "HERE"}]}).replace('"HERE"', value)
    (tmp_path / "trainer_state.json").write_text(text)
    (run,) = read(tmp_path)
    assert all(math.isfinite(figure) for figure in run.figures.values())


def test_a_metric_of_mlflow_may_have_any_step(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "meta.yaml").write_text("a: b\n")
    (tmp_path / "metrics" / "loss").write_text(f"1 2.0 1\n1 2.0 {HUGE}\n1 nan 2\n2 2.0 3\n")
    (run,) = read(tmp_path)
    assert run.series.step[-1] == 3


def test_a_record_of_wandb_in_many_pieces_is_put_together_in_linear_time(tmp_path: Path) -> None:
    head, block = b":W&B\xe1\xbe\x00", b""
    pieces = [struct.pack("<IHB", 0, 1, 2) + b"x"] + [struct.pack("<IHB", 0, 1, 3) + b"x"] * 400_000
    file = bytearray(head)
    for piece in pieces:
        if (left := 32_768 - len(file) % 32_768) < 8:
            file += bytes(left) if left < 7 else struct.pack("<IHB", 0, 0, 3)
        file += piece
    file += struct.pack("<IHB", 0, 0, 4)
    (tmp_path / "x.wandb").write_bytes(file)
    with within(2.0), (tmp_path / "x.wandb").open("rb") as stream:
        block = next(records(stream))
    assert block == b"x" * 400_001


@pytest.mark.parametrize("text", [
    '{"skus": [{"category": {"resourceGroup": "GPU", "usageType": "OnDemand"}, "pricingInfo": 3, "serviceRegions": 5'
    '}]}',
    '{"skus": [{"category": {"resourceGroup": "GPU", "usageType": "OnDemand"}, "pricingInfo": [{"pricingExpression": '
    '{"tieredRates": 7}}]}]}',
    '"' + "x" * 200_000 + '",b\n1,2\n', '"FormatVersion","v1"\n' + f'"{"x" * 200_000}",1\n' * 6,
])  # fmt: skip
def test_a_price_list_may_be_anything(text: str, tmp_path: Path) -> None:
    (tmp_path / ("list.json" if text[0] == "{" else "list.csv")).write_text(text)
    with pytest.raises(PlanError, match=r"^prices"):
        update_prices(str(next(tmp_path.iterdir())), write=False)


@pytest.mark.parametrize("head", ["source,plan.a,plan.a.b", f"source,plan.{'a.' * 5000}b,plan.c", "source,plan.a.b,x"])
def test_columns_of_a_history_that_contradict_each_other_are_refused(head: str) -> None:
    if len(head) > sys.getrecursionlimit():
        assert exchange.read(f"{head}\nx,1,2\n")[0].plan["c"] == 2
        return
    with pytest.raises(PlanError, match=r"^file"):
        exchange.read(f"{head}\nx,1,2\n")


@pytest.mark.parametrize("name", ["a" * 300 + ".json", "a/" * 3000 + "x.json", "a\\0b.json", "\\ud800.json"])
def test_a_config_may_name_a_file_that_cannot_be(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.yaml").write_text(f'model_name_or_path: gpt2\nstage: sft\nfinetuning_type: full\ndeepspeed: "{name}"\n')
    assert [*texts_of(["t.yaml"], {})] == ["t.yaml"]
