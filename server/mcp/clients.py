"""What each assistant needs to start the server: its file, and the entry in it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator.errors import PlanError, nearest
from knowledge.own.files import read_text, working_folder


@dataclass(frozen=True)
class Client:
    """An assistant: where it reads its servers from, under which key, and whether it wants the transport named.

    `per_project` files lie in the working folder, the others in the home folder.
    """

    name: str
    key: str
    file: Callable[[], Path]
    typed: bool
    per_project: bool
    source: str


def _claude_desktop() -> Path:
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "mcpServers", lambda: working_folder() / ".mcp.json", True, True,
               "https://code.claude.com/docs/en/mcp"),
        Client("claude-desktop", "mcpServers", _claude_desktop, False, False,
               "https://modelcontextprotocol.io/docs/develop/connect-local-servers"),
        Client("cursor", "mcpServers", lambda: Path.home() / ".cursor" / "mcp.json", False, False,
               "https://cursor.com/docs/context/mcp"),
        Client("gemini-cli", "mcpServers", lambda: Path.home() / ".gemini" / "settings.json", False, False,
               "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md"),
        Client("vscode", "servers", lambda: working_folder() / ".vscode" / "mcp.json", True, True,
               "https://code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    )
}  # fmt: skip


def client(name: str) -> Client:
    if name not in CLIENTS:
        raise PlanError("--client", f"{name!r} is not known", nearest(name, CLIENTS, limit=len(CLIENTS)))
    return CLIENTS[name]


def snippet(client: Client, command: list[str], root: Path | None) -> dict[str, Any]:
    """The whole content that the client's file needs, with this one server."""
    arguments = [*command[1:], "mcp", *(["--root", str(root)] if root else [])]
    entry = {"command": command[0], "args": arguments}
    return {client.key: {"shardwise": {"type": "stdio", **entry} if client.typed else entry}}


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
        content = json.loads(now) if now and now.strip() else {}
    except (ValueError, RecursionError) as error:
        raise PlanError("--install", f"{path} is not plain JSON ({error}); add the snippet by hand") from None
    servers = content.setdefault(client.key, {}) if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise PlanError("--install", f"{path} has no place for {client.key}; add the snippet by hand")
    servers |= wanted[client.key]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n", now


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
