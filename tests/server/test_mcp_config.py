"""`shardwise mcp config`: the snippet of each assistant, and adding it without touching the rest of the file."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastmcp.mcp_config import MCPConfig, StdioMCPServer

from estimator.errors import PlanError
from server.mcp import clients as mcp_clients
from tui.cli import main

NAMES = list(mcp_clients.CLIENTS)
JSON = [name for name in NAMES if name not in ("codex", "goose")]
# As each program's own documentation has them; all others have mcpServers.
KEYS = {"vscode": "servers", "codex": "mcp_servers", "goose": "extensions", "zed": "context_servers"}


def parsed(name: str, text: str) -> dict[str, Any]:
    return {"codex": tomllib.loads, "goose": yaml.safe_load}.get(name, json.loads)(text)


# What an entry may hold besides the command, and whether anything else is refused, as the programs' own sources have it
# (microsoft/vscode mcpConfiguration.ts, block/goose extension.rs, zed-industries/zed settings_content/src/project.rs,
# openai/codex config.schema.json, google-gemini/gemini-cli docs/tools/mcp-server.md; read in November
# 2026). Checks ask Codex and the Gemini CLI themselves.
ENTRIES = {
    "vscode": {"type", "args", "cwd", "env", "envFile", "dev"},
    "goose": {"type", "name", "enabled", "args", "timeout", "description", "envs", "env_keys", "bundled",
              "available_tools"},
    "zed": {"enabled", "remote", "args", "env", "timeout"},
    "gemini-cli": {"args", "env", "cwd", "timeout", "trust", "description", "includeTools", "excludeTools"},
    "codex": {"args", "env", "env_vars", "cwd", "enabled", "startup_timeout_sec", "tool_timeout_sec"},
}  # fmt: skip
NEEDED = {"goose": {"type", "name", "enabled", "args"}, "vscode": {"type"}, "gemini-cli": {"timeout"}}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("XDG_CONFIG_HOME", "APPDATA", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_snippet_starts_this_installation(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["mcp", "config", "--client", name, "--root", str(tmp_path)]) == 0
    said = capsys.readouterr()
    snippet = parsed(name, said.out)
    entry = snippet[KEYS.get(name, "mcpServers")]["shardwise"]
    assert entry["args"][-3:] == ["mcp", "--root", str(tmp_path.resolve())]
    assert Path(entry["cmd" if name == "goose" else "command"]).is_file()
    assert entry.get("type") == ("stdio" if name in ("vscode", "claude-code", "goose") else None)
    assert str(mcp_clients.client(name).file()) in said.err
    assert not mcp_clients.client(name).file().exists()


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_holds_what_the_program_reads(name: str) -> None:
    client = mcp_clients.client(name)
    entry = mcp_clients.snippet(client, ["/bin/shardwise"], Path("/work"))[client.key]["shardwise"]
    given = set(entry) - {"command", "cmd"}
    assert NEEDED.get(name, set()) <= given <= ENTRIES[name]


@pytest.mark.parametrize("name", ["claude-code", "claude-desktop", "cursor", "gemini-cli", "openhands", "windsurf"])
def test_an_entry_starts_a_server_as_clients_of_fastmcp_read_it(name: str) -> None:
    """OpenHands reads its file with this class."""
    read = MCPConfig.from_dict(mcp_clients.snippet(mcp_clients.client(name), ["/bin/shardwise"], Path("/work")))
    server = read.mcpServers["shardwise"]
    assert isinstance(server, StdioMCPServer)
    assert (server.command, server.args) == ("/bin/shardwise", ["mcp", "--root", "/work"])


@pytest.mark.parametrize("name", JSON)
def test_installing_adds_one_entry_and_keeps_everything_else(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = mcp_clients.client(name).file()
    path.parent.mkdir(parents=True, exist_ok=True)
    key = mcp_clients.client(name).key
    before = {"theme": "dark", key: {"other": {"command": "x"}}, "größe": [1]}
    path.write_text(json.dumps(before))
    path.chmod(0o640)
    assert main(["mcp", "config", "--client", name, "--install", "--yes"]) == 0
    after = json.loads(path.read_text())
    shown = json.loads(capsys.readouterr().out)
    assert after == before | {key: before[key] | shown[key]}  # type: ignore[operator]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in path.parent.iterdir() if entry.suffix == ".tmp"] == []
    text = path.read_text()
    assert main(["mcp", "config", "--client", name, "--install", "--yes"]) == 0
    assert path.read_text() == text
    assert "already" in capsys.readouterr().err


TEXTS = [
    ("codex", ""),
    ("codex", '# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x"  # keep'),
    ("goose", ""),
    ("goose", "# mine\nGOOSE_MODEL: m\n\nextensions:  # all\n  other:\n    cmd: x  # keep\nlast: 1\n"),
    ("goose", "GOOSE_MODEL: m\n"),
]


@pytest.mark.parametrize(("name", "before"), TEXTS, ids=range(len(TEXTS)))
def test_files_that_are_not_json_keep_every_line(name: str, before: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = mcp_clients.client(name).file()
    path.parent.mkdir(parents=True)
    path.write_text(before)
    command = ["mcp", "config", "--client", name, "--install", "--yes"]
    assert main(command) == 0
    shown, after = parsed(name, capsys.readouterr().out), path.read_text()
    old = parsed(name, before) or {}
    key = KEYS[name]
    assert parsed(name, after) == {**old, key: {**old.get(key, {}), **shown[key]}}
    kept = [line for line in before.splitlines() if line]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert main(command) == 0
    assert path.read_text() == after
    assert main([*command, "--root", "."]) == 2
    assert path.read_text() == after


@pytest.mark.parametrize(("name", "text"), [("goose", "extensions: {a: {cmd: x}}\n"), ("codex", "mcp_servers = {}\n")])
def test_an_entry_that_has_no_plain_place_is_left_to_the_person(name: str, text: str) -> None:
    path = mcp_clients.client(name).file()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert main(["mcp", "config", "--client", name, "--install", "--yes"]) == 2
    assert path.read_text() == text


def test_nobody_to_ask_means_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "config", "--client", "cursor", "--install"]) == 2
    assert "nobody here can be asked" in capsys.readouterr().err
    assert not mcp_clients.client("cursor").file().exists()


@pytest.mark.parametrize("content", ["// comments\n{}", "[]", '{"mcpServers": []}', "\xff", "{"])
def test_a_file_that_is_not_plain_json_is_left_alone(content: str) -> None:
    path = mcp_clients.client("cursor").file()
    path.parent.mkdir()
    path.write_bytes(content.encode("latin-1"))
    assert main(["mcp", "config", "--client", "cursor", "--install", "--yes"]) == 2
    assert path.read_bytes() == content.encode("latin-1")


def test_an_unknown_client_lists_those_that_are_known() -> None:
    with pytest.raises(PlanError) as caught:
        mcp_clients.client("cursr")
    assert caught.value.valid == NAMES
