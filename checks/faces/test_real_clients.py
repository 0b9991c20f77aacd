"""`shardwise mcp config` for each assistant, as the assistants that can be had here read it: Claude Code, Codex, the
Gemini CLI and OpenHands themselves, and for most a registry of where their files are and what stands in them (a package
of npm, MIT)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import python_of
from npm_packages import installed

from server.mcp import clients as mcp_clients

_CLAUDE = "@anthropic-ai/claude-code@2.1.328"
_CODEX = "@openai/codex@0.169.0"
_GEMINI = "@google/gemini-cli@0.61.0"
_REGISTRY = "@gleanwork/mcp-config-schema@5.2.0"
_ITS_LIBRARY = """
import asyncio, pathlib
from fastmcp import Client
from fastmcp.mcp_config import MCPConfig
async def count():
    async with Client(MCPConfig.from_file(pathlib.Path.home() / ".openhands" / "mcp.json").to_dict()) as client:
        return len(await client.list_tools())
print(asyncio.run(count()))
"""
# Ours are of a project, the registry's of a person.
_OF_A_PROJECT = {"claude-code": ".mcp.json", "vscode": ".vscode/mcp.json"}
_THEIR_NAMES = {"gemini-cli": "gemini"}
_NOT_THERE = {"openhands", "zed"}


def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose person has no settings yet."""
    left_out = ("XDG_CONFIG_HOME", "CODEX_HOME", "APPDATA")
    return {name: value for name, value in os.environ.items() if name not in left_out} | {"HOME": str(tmp_path)}


def configured(tmp_path: Path, client: str) -> None:
    """Its settings, which of a project are those of the folder."""
    command = [sys.executable, "-m", "tui.cli", "mcp", "config", "--client", client, "--install", "--yes"]
    env = home(tmp_path) | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run(tmp_path: Path, package: str, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program, *words = command
    path = installed(package) / ".bin" / program
    return run_there(tmp_path, [str(path), *words], variables)


def run_there(tmp_path: Path, command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    env = home(tmp_path) | variables
    return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)


def test_claude_code_asks_and_then_connects(tmp_path: Path) -> None:
    configured(tmp_path, "claude-code")
    listed = run(tmp_path, _CLAUDE, "claude", "mcp", "list", MCP_TIMEOUT="60000")
    assert re.search(r"shardwise: .* mcp - .*Pending approval", listed.stdout), listed.stdout + listed.stderr
    # What a person's yes leaves in their settings.
    file = tmp_path / ".claude.json"
    trusted = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["shardwise"]}
    settings = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(settings | {"projects": {str(tmp_path): trusted}}))
    listed = run(tmp_path, _CLAUDE, "claude", "mcp", "list", MCP_TIMEOUT="60000")
    assert re.search(r"shardwise: .* mcp - .*Connected", listed.stdout), listed.stdout + listed.stderr


def test_openhands_reads_the_server_and_connects(tmp_path: Path) -> None:
    configured(tmp_path, "openhands")
    python = python_of("openhands")
    listed = run_there(tmp_path, [str(python.with_name("openhands")), "mcp", "get", "shardwise"], {})
    assert listed.returncode == 0, listed.stderr
    assert "Transport: stdio" in listed.stdout
    # The library by which it reads the file and connects.
    asked = run_there(tmp_path, [str(python), "-c", _ITS_LIBRARY], {})
    assert asked.returncode == 0, asked.stderr[-2000:]
    assert int(asked.stdout.split()[-1]) > 20


def test_codex_reads_the_server(tmp_path: Path) -> None:
    configured(tmp_path, "codex")
    done = run(tmp_path, _CODEX, "codex", "mcp", "list", "--json")
    assert done.returncode == 0, done.stderr
    (server,) = json.loads(done.stdout)
    assert (server["name"], server["enabled"]) == ("shardwise", True)
    assert server["transport"]["type"] == "stdio"
    assert Path(server["transport"]["command"]).is_file()
    assert server["transport"]["args"] == ["mcp"]
    file = tmp_path / ".codex" / "config.toml"
    file.write_text(file.read_text().replace("command", "cmd"))
    assert run(tmp_path, _CODEX, "codex", "mcp", "list", "--json").returncode != 0


def test_gemini_connects(tmp_path: Path) -> None:
    configured(tmp_path, "gemini-cli")
    done = run(tmp_path, _GEMINI, "gemini", "mcp", "list", GEMINI_CLI_TRUST_WORKSPACE="true")
    assert re.search(r"shardwise.*Connected", done.stdout + done.stderr), done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(set(mcp_clients.CLIENTS) - _NOT_THERE))
def test_files_and_entries_are_those_of_the_registry(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = installed(_REGISTRY) / "@gleanwork" / "mcp-config-schema" / "configs"
    known = json.loads((folder / f"{_THEIR_NAMES.get(name, name)}.json").read_text())
    client = mcp_clients.client(name)
    for variable in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    assert client.form == known["configFormat"]
    assert client.key == known["configStructure"]["serversPropertyName"]
    where = known["configPath"][sys.platform].replace("$HOME", str(tmp_path))
    assert client.file() == (tmp_path / _OF_A_PROJECT[name] if name in _OF_A_PROJECT else Path(where))
    words = known["configStructure"]["stdioPropertyMapping"]
    text = mcp_clients.written(client, mcp_clients.snippet(client, ["/bin/shardwise"], None))
    entry = parsed(client.form, text)[client.key]["shardwise"]
    assert (entry[words["commandProperty"]], entry[words["argsProperty"]]) == ("/bin/shardwise", ["mcp"])
    assert entry.get("type", "stdio") == "stdio"
    # Goose names its servers in the entry too.
    assert set(entry) <= {*words.values(), "type", *client.more} or name == "goose"


def parsed(form: str, text: str) -> dict[str, Any]:
    return {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads}[form](text)
