"""`server.json`, by which the MCP registry knows the server: it says what the package and the command do.

`checks/test_real_manifests.py` holds it against the registry's published schema.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from tui.cli import parsed

ROOT = Path(__file__).parent.parent.parent


def test_it_names_the_package_and_starts_the_server() -> None:
    told = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (package,) = told["packages"]
    assert package["identifier"] == project["name"]
    assert told["version"] == package["version"] == project["version"]
    assert len(told["description"]) <= 100
    positional = [argument["value"] for argument in package["packageArguments"] if argument["type"] == "positional"]
    named = [argument["name"] for argument in package["packageArguments"] if argument["type"] == "named"]
    started = parsed([*positional, *(word for name in named for word in (name, "."))])
    assert started.run == "tui.commands.mcp"
    # The registry looks for this in what a package says of itself.
    assert f"<!-- mcp-name: {told['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")
