"""No key, token or password ends in a session, an export, a history, an answer, an error or a request to a model."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conversations import say
from fake_openai import Told, serving, words

from agent.export import export_session
from agent.session import ask, open_session
from agent.store import list_sessions
from tools import call
from tui import history
from tui.cli import main

pytest.importorskip("openai")
SECRET = "0f9c4Canary7d21b"
KEYS = {
    "OPENAI_API_KEY": f"sk-{SECRET}-openai",
    "GEMINI_API_KEY": f"AIzaSy{SECRET}{SECRET}xx",
    "SHARDWISE_TOKEN": f"{SECRET}-of-a-server",
    "HF_TOKEN": f"hf_{SECRET}",
}
CONFIG = f"""base_model: Qwen/Qwen2.5-7B
adapter: lora
lora_r: 16
micro_batch_size: 2
sequence_len: 2048
hub_token: hf_{SECRET}
wandb_api_key: {SECRET}
api_key: "{SECRET}"
datasets:
- path: https://me:{SECRET}@host/data
  type: alpaca
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path / "home"))
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    return tmp_path / "home"


def kept(home: Path) -> bytes:
    """All that is on disk, and all sessions as they are exported."""
    assert any(path.is_file() for path in home.rglob("*"))
    exported = [export_session(row.id, form) for row in list_sessions() for form in ("json", "markdown")]
    assert exported
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file()) + "".join(exported).encode()


def test_what_is_said_and_what_is_in_files(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "train.yml"
    file.write_text(CONFIG)
    for text in (
        f"does gpt2 fit on one h100? my key is sk-{SECRET}",
        f"WANDB_API_KEY={SECRET} and --hf-token {SECRET}: fine-tune llama-3.1-8b on 8 h100",
        f"does it fit? {file} on 2 h100",
        f"what is https://me:{SECRET}@huggingface.co/acme/tiny",
    ):
        answer = ask(text, approve=False, model="offline")
        assert SECRET not in json.dumps(answer), text
        history.remember(text)
    assert main(["ask", "--json", "--model", "offline", f"estimate hf_{SECRET} on 8 h100"]) in (0, 2)
    assert SECRET not in "".join(capsys.readouterr())
    assert len(history.read_history()) == 4
    assert SECRET.encode() not in kept(home)


@pytest.mark.parametrize("name", ["config", "run.sh"])
def test_what_a_file_says_is_told_without_its_keys(name: str) -> None:
    text = CONFIG if name == "config" else f"HF_TOKEN=hf_{SECRET} vllm serve Qwen/Qwen2.5-7B --api-key {SECRET}"
    result = json.dumps(call("import_config", {"text": text, "accelerator": "h100", "count": 2}))
    assert "Qwen2.5-7B" in result
    assert "key-left-out" in result
    assert SECRET not in result


def test_a_model_that_is_shown_its_key_again(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers repeat the key that they refuse, and proxies all headers."""
    monkeypatch.setattr("agent.compatible.model._FIRST_DELAY_S", 0.01)
    monkeypatch.setenv("SHARDWISE_OPENAI_MODEL", "some-model")
    key = KEYS["OPENAI_API_KEY"]
    with serving() as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        for status in (400, 401, 403, 404, 429, 500):
            shown = f"Incorrect API key {key}; headers: {{'Authorization': 'Bearer {key}', 'x': '{KEYS['HF_TOKEN']}'}}"
            fake.replies = [Told(status=status, message=shown)]
            main(["ask", "--model", "openai", "Does gpt2 fit on one h100?"])
            assert SECRET not in "".join(capsys.readouterr()), status
        assert any(key in sent for sent in fake.keys)
        fake.replies = [words("It fits.")]
        say(open_session(model="openai"), f"Does gpt2 fit on one h100? My password: {SECRET}")
        assert "Does gpt2 fit" in json.dumps(fake.requests[-1])
        assert SECRET not in json.dumps(fake.requests)
    # An address that has a password, where nobody answers.
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{SECRET}@127.0.0.1:9/v1")
    main(["ask", "--json", "--model", "openai", "Does gpt2 fit on one h100?"])
    main(["config"])
    assert SECRET not in "".join(capsys.readouterr())
    assert SECRET.encode() not in kept(home)
    assert all(os.environ[name] == value for name, value in KEYS.items())
