"""What each assistant needs to start the server: its file, and the entry in it.

Files are JSON, but Codex's is TOML and Goose's YAML: there the entry is added as text, so that comments stay, and only
where the file then reads as it did, with this entry more.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from estimator.errors import PlanError, nearest, unreadable
from knowledge.own.files import read_text, working_folder
from knowledge.own.home import home


@dataclass(frozen=True)
class Client:
    """An assistant: where it reads its servers from, under which key, and whether it wants the transport named.

    `form` is that of the file, `more` what else an entry has to say.
    """

    name: str
    key: str
    file: Callable[[], Path]
    source: str
    typed: bool = False
    form: str = "json"
    more: Mapping[str, Any] = field(default_factory=dict)


# What the Gemini CLI waits for a call unasked; for a server to start it would wait 5 s, in which a busy machine has
# started none.
_GEMINI_MS = 600_000


def _claude_desktop() -> Path:
    if sys.platform == "darwin":
        folder = home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("APPDATA", home() / "AppData" / "Roaming"))
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def _settings(folder: str, file: str) -> Path:
    """A file of a program that keeps its settings where the system has them."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", home() / "AppData" / "Roaming")) / folder / file
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / folder.rpartition("/")[2].lower() / file


def _goose() -> Path:
    if sys.platform == "win32":
        return _settings("Block/goose/config", "config.yaml")
    return home() / ".config" / "goose" / "config.yaml"


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "mcpServers", lambda: working_folder() / ".mcp.json",
               "https://code.claude.com/docs/en/mcp", typed=True),
        Client("claude-desktop", "mcpServers", _claude_desktop,
               "https://modelcontextprotocol.io/docs/develop/connect-local-servers"),
        Client("codex", "mcp_servers", lambda: Path(os.environ.get("CODEX_HOME") or home() / ".codex")
               / "config.toml", "https://developers.openai.com/codex/mcp", form="toml"),
        Client("cursor", "mcpServers", lambda: home() / ".cursor" / "mcp.json",
               "https://cursor.com/docs/context/mcp"),
        Client("gemini-cli", "mcpServers", lambda: home() / ".gemini" / "settings.json",
               "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
               more={"timeout": _GEMINI_MS}),
        Client("goose", "extensions", _goose, "https://block.github.io/goose/docs/guides/config-files", form="yaml",
               more={"enabled": True, "timeout": 300}),
        Client("openhands", "mcpServers", lambda: home() / ".openhands" / "mcp.json",
               "https://docs.openhands.dev/openhands/usage/cli/mcp-servers"),
        Client("vscode", "servers", lambda: working_folder() / ".vscode" / "mcp.json",
               "https://code.visualstudio.com/docs/copilot/customization/mcp-servers", typed=True),
        Client("windsurf", "mcpServers", lambda: home() / ".codeium" / "windsurf" / "mcp_config.json",
               "https://docs.windsurf.com/windsurf/cascade/mcp"),
        Client("zed", "context_servers", lambda: _settings("Zed", "settings.json"), "https://zed.dev/docs/ai/mcp"),
    )
}  # fmt: skip


def client(name: str) -> Client:
    if name not in CLIENTS:
        raise PlanError("--client", f"{name!r} is not known", nearest(name, CLIENTS, limit=len(CLIENTS)))
    return CLIENTS[name]


def snippet(client: Client, command: list[str], root: Path | None) -> dict[str, Any]:
    """The whole content that the client's file needs, with this one server."""
    arguments = [*command[1:], "mcp", *(["--root", str(root)] if root else [])]
    if client.form == "yaml":
        entry = {"type": "stdio", "name": "shardwise", "cmd": command[0], "args": arguments}
    else:
        entry = {"command": command[0], "args": arguments}
    entry |= client.more
    return {client.key: {"shardwise": {"type": "stdio", **entry} if client.typed else entry}}


def written(client: Client, wanted: dict[str, Any]) -> str:
    """The snippet as the client's file has it, a line end behind it."""
    if client.form == "yaml":
        return yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)
    if client.form == "json":
        return json.dumps(wanted, indent=2, ensure_ascii=False) + "\n"
    # Texts and lists of texts are in TOML as they are in JSON.
    entry = wanted[client.key]["shardwise"]
    lines = [f"[{client.key}.shardwise]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def own_command() -> list[str]:
    """How an assistant, which has another PATH and working folder, starts this very installation."""
    beside = Path(sys.executable).with_name("shardwise.exe" if sys.platform == "win32" else "shardwise")
    if beside.is_file():
        return [str(beside)]
    program = shutil.which("shardwise")
    return [str(Path(program).absolute())] if program else [sys.executable, "-m", "tui.cli"]


def merged(client: Client, wanted: dict[str, Any]) -> tuple[str, str | None]:
    """The text that the client's file should have, and what it has now (None: there is no file).

    Everything else in the file stays. Raises PlanError when it cannot be read as plain JSON.
    """
    path = client.file()
    now = read_text(path, "--install") if path.exists() else None
    try:
        content = _read(client, now or "")
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        kind, why = client.form.upper(), unreadable(error)
        raise PlanError("--install", f"{path} is not plain {kind} ({why}); add the snippet by hand") from None
    servers = content.setdefault(client.key, {}) if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise PlanError("--install", f"{path} has no place for {client.key}; add the snippet by hand")
    if client.form != "json":
        return _added(client, wanted, now or "", path), now
    servers |= wanted[client.key]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n", now


def _read(client: Client, text: str) -> Any:
    read = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}[client.form]
    content = read(text) if text.strip() else None
    return {} if content is None else content


def _added(client: Client, wanted: dict[str, Any], now: str, path: Path) -> str:
    """The text with the entry added, and all else as it was. Raises PlanError where it has another already."""
    content = _read(client, now)
    entry = wanted[client.key]["shardwise"]
    if (there := content.get(client.key, {}).get("shardwise")) is not None:
        if there == entry:
            return now
        raise PlanError("--install", f"{path} has another shardwise already; change it by hand")
    text = now if not now or now.endswith("\n") else now + "\n"
    snippet = written(client, wanted)
    head = re.search(rf"^{client.key}:[ \t]*(?:#.*)?\n", text, re.MULTILINE)
    if client.form == "yaml" and head:
        text = text[: head.end()] + snippet.partition("\n")[2] + text[head.end() :]
    else:
        text += ("\n" if text else "") + snippet
    expected = {**content, client.key: {**(content.get(client.key) or {}), "shardwise": entry}}
    try:
        is_right = _read(client, text) == expected
    except (ValueError, yaml.YAMLError):
        is_right = False
    if not is_right:
        raise PlanError("--install", f"{path} has no plain place for {client.key}; add the snippet by hand")
    return text


def install(path: Path, text: str) -> None:
    """Replaces the file in one step, through a link if it is one, and keeps its mode. Raises PlanError."""
    place = path.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o600
        handle, staged = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(staged, mode)
            os.replace(staged, place)
        except BaseException:
            os.unlink(staged)
            raise
    except OSError as error:
        raise PlanError("--install", f"{path} cannot be written: {error.strerror or error}") from None
