"""Builds the documentation as a site: `make docs`, or `PYTHONPATH=. python docs/site.py` for its pages alone.

The pages are those of docs/, and one for each command and each tool, made from the command line and the registry.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from shardwise.functions import places_of
from shardwise.stub import type_text
from tools.registry import Tool, registry
from tui.arguments.top import parser
from tui.usage import GROUPS

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "docs"
_LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^)\s]+)\)")
# Wide enough that usage stands as in a terminal.
_COLUMNS = "100"
_START = ("index.md", "cli.md", "app.md", "python.md", "mcp.md", "ci.md", "settings.md", "catalogue.md", "accuracy.md")
_CONFIG: dict[str, Any] = {
    "site_name": "Shardwise",
    "docs_dir": "pages",
    "site_dir": "site",
    "use_directory_urls": False,
    "theme": {"name": "material", "font": False, "features": ["navigation.indexes", "content.code.copy"]},
    "plugins": ["search"],
    "markdown_extensions": ["admonition", "tables", "toc", "pymdownx.superfences"],
    "validation": {"anchors": "warn", "unrecognized_links": "warn", "absolute_links": "warn"},
}


def pages() -> dict[str, str]:
    """Every page by its path."""
    written = {path.relative_to(ROOT / "docs").as_posix(): path for path in sorted((ROOT / "docs").rglob("*.md"))}
    texts = {"index.md": _linked(ROOT / "README.md", ROOT, {"index.md", *written})}
    texts |= {name: _linked(path, path.parent, {"index.md", *written}) for name, path in written.items()}
    return texts | dict(_commands()) | dict(_tools())


def _linked(path: Path, folder: Path, known: set[str]) -> str:
    """A document whose links lead to pages; what lies elsewhere in the repository is named without one."""

    def link(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match[0]
        place, sharp, anchor = target.partition("#")
        whole = (folder / place).resolve()
        if whole == ROOT / "README.md":
            name = "index.md"
        elif whole.is_relative_to(ROOT / "docs"):
            name = whole.relative_to(ROOT / "docs").as_posix()
        else:
            return words
        if name not in known and not whole.is_file():
            return words
        here = Path("index.md") if path.name == "README.md" else path.relative_to(ROOT / "docs")
        return f"{mark}[{words}]({os.path.relpath(name, here.parent)}{sharp}{anchor})"

    return _LINK.sub(link, path.read_text(encoding="utf-8"))


def _commands() -> Iterator[tuple[str, str]]:
    """A page for each command, with those below it."""
    commands = dict(_below(parser(every_flag=True)))
    grouped = [f"## {title}\n\n{_list(names)}" for title, names in GROUPS.items()]
    yield "commands/index.md", "\n\n".join(["# Commands", *grouped, ""])
    for name, command in commands.items():
        parts = [f"# shardwise {name}", _help(command)]
        parts += [f"## {name} {inner}\n\n{_help(below)}" for inner, below in _below(command)]
        yield f"commands/{name}.md", "\n\n".join(parts) + "\n"


def _below(command: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _list(names: tuple[str, ...]) -> str:
    return "\n".join(f"- [{name}]({name}.md)" for name in names)


def _help(command: argparse.ArgumentParser) -> str:
    return f"```text\n{command.format_help().rstrip()}\n```"


def _tools() -> Iterator[tuple[str, str]]:
    tools = registry()
    rows = [
        f"| [{name}]({name}.md) | {tool.title} | {'no' if tool.read_only else 'yes'} |" for name, tool in tools.items()
    ]
    yield "tools/index.md", "\n".join(["# Tools", "", "| tool | | writes |", "| --- | --- | --- |", *rows, ""])
    for name, tool in tools.items():
        yield f"tools/{name}.md", _tool(tool)


def _tool(tool: Tool) -> str:
    needed = [f"`{name}`" for name in places_of(tool.request)]
    return "\n\n".join(
        [
            f"# {tool.name}",
            _cell(tool.description),
            f"In Python {', '.join(needed)} may be given by place." if needed else "All arguments are given by name.",
            "## Arguments",
            _fields(tool.request, True),
            f"## {tool.response.__name__}",
            _fields(tool.response, False),
            "",
        ]
    )


def _fields(model: type[BaseModel], are_given: bool) -> str:
    rows = ["| name | type | meaning |", "| --- | --- | --- |"]
    for name, field in model.model_fields.items():
        needed = " (needed)" if are_given and field.is_required() else ""
        kind = type_text(field.annotation, field.metadata)
        rows.append(f"| `{name}`{needed} | `{_cell(kind)}` | {_cell(field.description or '')} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def main() -> None:
    os.environ["COLUMNS"] = _COLUMNS
    shutil.rmtree(BUILD, ignore_errors=True)
    texts = pages()
    for name, text in texts.items():
        path = BUILD / "pages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for picture in (ROOT / "docs").glob("*.svg"):
        shutil.copy(picture, BUILD / "pages")
    (BUILD / "mkdocs.yml").write_text(yaml.safe_dump(_CONFIG | {"nav": _navigation(texts)}), encoding="utf-8")
    print(f"{len(texts)} pages in {BUILD / 'pages'}")


def _navigation(texts: dict[str, str]) -> list[Any]:
    def folder(name: str) -> list[str]:
        return sorted(
            (page for page in texts if page.startswith(f"{name}/")),
            key=lambda page: (not page.endswith("index.md"), page),
        )

    rest = [page for page in texts if "/" not in page and page not in _START]
    folders = {"Commands": "commands", "Tools": "tools", "How-tos": "how-to", "Decisions": "decisions"}
    return [*_START, *({title: folder(name)} for title, name in folders.items()), {"More": rest}]


if __name__ == "__main__":
    main()
