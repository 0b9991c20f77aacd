"""The house keeps its shape: small rooms, no circles, imports at the top, short functions, typed results."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("estimator", "knowledge", "launchers", "measure", "planner", "pages", "tools", "agent", "server", "shardwise",
         "tui")  # fmt: skip
MOST_MODULES, MOST_LINES, MOST_DEFERRED = 25, 60, 60
# What is left reads partial Plans and arguments, which share names with results; it is to go down, never up.
MOST_KEY_READS = 225
# What stands for a thing has the thing's name. Of those left most stand above the planner; to go down, never up.
PRONOUNS = {"found", "one", "said", "given"}
MOST_PRONOUNS = 22
# The reader of words has most of its own still; as above.
LANGUAGE, MOST_OF_LANGUAGE = "agent.offline.language", 311
LOWER_ROOMS = ("estimator", "knowledge", "launchers", "measure")

Import = ast.Import | ast.ImportFrom


@cache
def modules() -> dict[str, Path]:
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def targets(node: Import) -> list[str]:
    """The modules of the house that an import names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = node.module or ""
        names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules() else base for alias in node.names]
    return [name for name in names if name.split(".")[0] in ROOMS]


@cache
def imports_of(module: str) -> tuple[list[Import], list[Import]]:
    """Imports at the top of a module, and those inside functions. Those for type checkers alone are neither."""
    tree = tree_of(module)
    checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    inside = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in checking and targets(node)
    ]
    return [node for node in nodes if id(node) not in inside], [node for node in nodes if id(node) in inside]


def test_no_folder_holds_more_than_a_person_can_keep_in_mind() -> None:
    sizes = Counter(
        path.parent.relative_to(ROOT) for path in modules().values() if path.name != "__init__.py"
    )  # fmt: skip
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_no_file_name_carries_its_folder_as_a_prefix() -> None:
    """What starts with a folder's name belongs into that folder, whether it is its own or one beside it."""
    folders: dict[Path, set[str]] = defaultdict(lambda: {"serving", "training"})
    for path in modules().values():
        folders[path.parent].add(path.parent.name)
        folders[path.parent.parent].add(path.parent.name)
    prefixed = [
        str(path.relative_to(ROOT))
        for module, path in modules().items()
        if "_" in path.stem.strip("_") and path.stem.split("_")[0] in folders[path.parent]
    ]
    assert prefixed == []


def test_nothing_imports_in_circles() -> None:
    graph: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        top, inside = imports_of(module)
        graph[module] = {name for node in top + inside for name in targets(node) if name in modules()} - {module}
    assert circles(graph) == []


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected parts of more than one module."""
    below: dict[str, set[str]] = {}

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for name in graph[waiting.pop()]:
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
        return seen

    for module in graph:
        below[module] = reachable(module)
    parts = {tuple(sorted({module} | {name for name in below[module] if module in below[name]})) for module in graph}
    return sorted(list(part) for part in parts if len(part) > 1)


def test_the_search_for_circles_finds_one() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_few_imports_are_deferred_and_each_says_why() -> None:
    deferred, silent = 0, []
    for module, path in modules().items():
        lines = path.read_text(encoding="utf-8").split("\n")
        for node in imports_of(module)[1]:
            deferred += 1
            text = " ".join(lines[node.lineno - 1 : node.end_lineno])
            if "#" not in text:
                silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert deferred <= MOST_DEFERRED
    assert silent == []


def test_functions_can_be_read_at_once() -> None:
    """Complexity and the number of parameters are ruff's to check."""
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for module, path in modules().items()
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > MOST_LINES
    ]
    assert long == []


def result_fields() -> set[str]:
    """Names of the fields of everything that the planner returns."""
    return {
        statement.target.id
        for module in modules()
        if module.split(".")[0] in ("planner", "pages")
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ClassDef) and any("Result" in ast.unparse(base) for base in node.bases)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def key_reads(tree: ast.Module, fields: set[str]) -> int:
    """How often something is read by a string key that is the name of a result's field."""

    def key(node: ast.AST) -> object:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant):
            return node.slice.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            return node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        return None

    return sum(key(node) in fields for node in ast.walk(tree))


@pytest.mark.parametrize(
    ("source", "reads"), [("a['mfu']", 1), ("a.get('mfu')", 1), ("a['mfu'] = 1", 0), ("a.mfu", 0), ("a['x']", 0)]
)
def test_reads_by_key_are_counted(source: str, reads: int) -> None:
    assert key_reads(ast.parse(source), {"mfu"}) == reads


def test_results_keep_their_types() -> None:
    """The wire of the models sees plain data; everything else reads attributes."""
    fields = result_fields()
    assert {"mfu", "step_s", "per_device_bytes"} <= fields
    wire = re.compile(r"^agent\.(compatible|gemini|outgoing|wire)|^tools\.(brief|schemas)")
    reads = {
        module: key_reads(tree_of(module), fields)
        for module in modules()
        if module.split(".")[0] in ("planner", "pages", "tools", "agent", "tui") and not wire.match(module)
    }
    assert sum(reads.values()) <= MOST_KEY_READS, Counter(reads).most_common(10)


def bound_names(tree: ast.Module) -> list[str]:
    """What a module gives a name to: variables, parameters and functions."""
    return [
        name
        for node in ast.walk(tree)
        for name in (
            node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None,
            node.arg if isinstance(node, ast.arg) else None,
            node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None,
        )
        if name
    ]


def test_bound_names_are_those_that_a_reader_meets() -> None:
    source = "def given(said):\n    for found in said:\n        one = found.it\n    return [one for one in said]"
    assert sorted(bound_names(ast.parse(source))) == ["found", "given", "one", "one", "said"]


def test_names_are_nouns_of_what_they_hold() -> None:
    counts = {module: sum(name in PRONOUNS for name in bound_names(tree_of(module))) for module in modules()}
    counts = Counter({module: count for module, count in counts.items() if count})
    language = Counter({module: count for module, count in counts.items() if module.startswith(LANGUAGE)})
    assert language.total() <= MOST_OF_LANGUAGE, language.most_common(10)
    assert (counts - language).total() <= MOST_PRONOUNS, (counts - language).most_common(10)
    # `Plan.given` is what a person gave of a plan, `found` a key of what a benchmark prints.
    lower = {module: count for module, count in counts.items() if module.split(".")[0] in LOWER_ROOMS}
    assert lower == {"estimator.plan.schema": 1, "measure.history.order": 1}


def test_one_meaning_for_each_class_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    # A result's assumption is the estimator's as it leaves the house.
    assert shared.pop("Assumption") == ["estimator.plan.assumptions", "planner.result"]
    assert shared == {}


def test_home_folders_are_looked_up_in_one_place() -> None:
    """Not every user has one, and of the others not every name that somebody types."""
    asks = re.compile(r"\bPath\.home\(|\.expanduser\(\)")
    found = [str(path) for path in modules().values() if asks.search(path.read_text(encoding="utf-8"))]
    assert [path for path in found if not path.endswith("knowledge/own/home.py")] == []
