"""The documentation as a site: a page for every command and tool, and every link within it leads to a page."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType

import pytest

from tools.registry import registry
from tui.usage import GROUPS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_of_docs", ROOT / "docs" / "site.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(site: ModuleType) -> dict[str, str]:
    return site.pages()


def test_every_command_and_tool_has_a_page(pages: dict[str, str]) -> None:
    assert {f"commands/{name}.md" for names in GROUPS.values() for name in names} <= pages.keys()
    for name, tool in registry().items():
        assert all(f"| `{argument}`" in pages[f"tools/{name}.md"] for argument in tool.request.model_fields)
        assert all(f"| `{field}`" in pages[f"tools/{name}.md"] for field in tool.response.model_fields)
    assert "--against REF" in pages["commands/check.md"]
    assert "## mcp config" in pages["commands/mcp.md"]


def test_every_link_leads_to_a_page_or_a_picture(pages: dict[str, str]) -> None:
    lost = [
        f"{name}: {target}"
        for name, text in pages.items()
        for target in re.findall(r"\]\(([^)#\s]+)", text)
        if "://" not in target
        and (place := os.path.normpath(Path(name).parent / target)) not in pages
        and not (ROOT / "docs" / place).is_file()
    ]
    assert lost == []


def test_every_page_is_in_the_navigation(site: ModuleType, pages: dict[str, str]) -> None:
    listed: list[str] = []
    for entry in site._navigation(pages):
        listed += [entry] if isinstance(entry, str) else [name for names in entry.values() for name in names]
    assert sorted(listed) == sorted(pages)
