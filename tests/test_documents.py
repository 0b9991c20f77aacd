"""Every path, module, function, link and make target that a document names is there.

A name in backticks is looked up when it is a path whose first folder is one of the repository's (`*` stands for any
name), or a dotted name whose first part is a room. Whoever renames a thing finds here the lines that say its old name.
"""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import pytest
import yaml
from test_floors import FLOORS, ROOT

from estimator.plan.schema import Layout
from tui.cli import main

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "knowledge").rglob("*.md")])
FOLDERS = {*FLOORS, "tests", "docs", "checks", "benchmarks"}
MADE_UP = ("picotrain", "acme")  # what how-tos add is not there
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_BEGUN = re.compile(r"Write `([^`]+)`:\n")
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")
_DOTTED = re.compile(r"[a-z_]+(\.\w+)+")


def names(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """(line, what `pattern` captures) outside of fenced blocks."""
    prose = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    for number, line in enumerate(prose.splitlines(), 1):
        for found in pattern.finditer(line):
            yield number, found[1]


@cache
def defined(module: Path) -> dict[str, ast.AST]:
    """Names at the top of a module, with what defines them."""
    return dict(_bound(ast.parse(module.read_text(encoding="utf-8")).body))


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, node) for alias in node.names)


def missing_part(name: str) -> str | None:
    """What of a dotted name is not there, None where all is."""
    parts = name.split(".")
    place = ROOT
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    module = place / f"{parts[0]}.py" if parts else None
    if module and module.exists():
        parts.pop(0)
    else:
        module = place / "__init__.py"
    body = defined(module)
    for part in parts:
        if part not in body:
            return f"{module.relative_to(ROOT)} has no {part!r}{where(part)}"
        owner = body[part]
        body = dict(_bound(owner.body)) if isinstance(owner, ast.ClassDef) else {}
    return None


def where(part: str) -> str:
    """Where else in the rooms a thing of that name is."""
    modules = [path for room in FLOORS for path in sorted((ROOT / room).rglob("*.py"))]
    here = [path for path in modules if path.stem == part or isinstance(defined(path).get(part), ast.FunctionDef)]
    return f" (there is {', '.join(str(path.relative_to(ROOT)) for path in here[:3])})" if here else ""


def wrong(document: Path) -> Iterator[str]:
    text = document.read_text(encoding="utf-8")
    begun = set(_BEGUN.findall(text))
    for line, name in names(text, _CODE):
        first = re.split(r"[/.]", name)[0]
        if first not in FOLDERS or name in begun or any(made_up in name for made_up in MADE_UP):
            continue
        problem = None
        if "/" in name and _PATH.fullmatch(name):
            problem = None if any(ROOT.glob(name.rstrip("/"))) else f"no such path{where(Path(name).stem)}"
        elif first in FLOORS and _DOTTED.fullmatch(name):
            problem = missing_part(name)
        if problem:
            yield f"{document.relative_to(ROOT)}:{line}: `{name}`: {problem}"
    for line, target in names(text, _LINK):
        path = target.partition("#")[0]
        if path and "://" not in path and not (document.parent / path).exists():
            yield f"{document.relative_to(ROOT)}:{line}: the link to {target} leads nowhere"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line, code in names(text, _CODE):
        for target in re.findall(r"^make ([a-z-]+)", code):
            if f"\n{target}:" not in makefile:
                yield f"{document.relative_to(ROOT)}:{line}: there is no `make {target}`"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_is_there(document: Path) -> None:
    problems = list(wrong(document))
    assert not problems, "\n".join(problems)


def test_what_is_not_there_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("def call(): ...\nclass Tool:\n    name: str\n")
    (tmp_path / "Makefile").write_text("# \ntest:\n")
    document = tmp_path / "a.md"
    document.write_text(
        "`tools.call` `tools.Tool.name` `tools/__init__.py` `tools/*.py` `tool/x.py` `meta-llama/x.py` `make test`\n"
        "[here](a.md#part) [away](https://example.org)\n```\n`tools.gone`\n```\n"
        "`tools.gone` `tools.Tool.gone` `tools/gone.py` `make gone` [there](gone.md)\n"
    )
    defined.cache_clear()
    for room in FLOORS:
        (tmp_path / room).mkdir(exist_ok=True)
    problems = list(wrong(document))
    assert len(problems) == 5
    assert all(problem.startswith("a.md:6: ") and "gone" in problem for problem in problems)


def test_the_glossary_is_in_order_and_has_every_field_of_a_layout() -> None:
    terms = re.findall(
        r"^- \*\*(.+?)\*\*: .", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert terms == sorted(set(terms), key=str.casefold)
    known = {term.casefold().replace("parallelism", "parallel").replace(" ", "_") for term in terms}
    assert known >= set(Layout.model_fields)


def test_the_plan_of_the_walk_passes_every_function_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    walk = document.partition("## One plan")[2].partition("\n## ")[0]
    (question,) = re.findall(r"^    shardwise ask \"(.+)\"$", walk, re.MULTILINE)
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path))
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path))
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        assert main(["ask", "--yes", "--model", "offline", "--output", str(tmp_path / "run"), question]) == 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert "It fits" in capsys.readouterr().out
    assert (tmp_path / "run" / "job.sbatch").exists()
    functions = {name: pydoc.locate(name) for _, name in names(walk, _CODE) if name.split(".")[0] in FLOORS}
    named = {name: each.__code__ for name, each in functions.items() if inspect.isfunction(each)}
    assert len(named) > 15
    assert [name for name, code in named.items() if code not in called] == []


def test_the_accuracy_that_is_told_is_the_one_that_was_measured() -> None:
    """The playbook's answer to "how accurate are you?" says the means of docs/accuracy.md."""
    entries = yaml.safe_load((ROOT / "knowledge/data/playbook/checklist.yaml").read_text())
    told = " ".join(next(entry for entry in entries if entry["id"] == "check-accuracy")["advice"].split())
    means = [line.split("|") for line in (ROOT / "docs/accuracy.md").read_text().splitlines() if "mean of" in line]
    assert len(means) == 5
    for row in means:
        assert row[3].strip() in told, row[1]
    for row in means[:2]:
        assert f"({row[2].strip()} runs)" in told
        assert row[-3].strip() in told
