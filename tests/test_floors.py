"""The rooms stand on floors: nothing imports a higher room or a neighbour, and the estimator touches no file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = {
    "estimator": 1,
    "knowledge": 2,
    "launchers": 3,
    "measure": 3,
    "planner": 4,
    "pages": 5,
    "tools": 6,
    "agent": 7,
    "server": 7,
    "shardwise": 7,
    "tui": 8,
}
# What an assistant waits for before its person has typed a word.
LISTING = "import tools.brief, tools.registry; tools.brief.assistants(tools.registry.OnDemand())"
OUTSIDE_ESTIMATOR = {"os", "io", "pathlib", "shutil", "tempfile", "subprocess", "socket", "urllib", "sys", "logging"}


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Top-level packages that a module imports, deferred imports included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    assert modules(room)
    for path in modules(room):
        for other in imports(path) & FLOORS.keys() - {room}:
            assert FLOORS[other] < FLOORS[room], f"{path.relative_to(ROOT)} imports {other}"


def test_the_estimator_reads_no_file_and_prints_nothing() -> None:
    for path in modules("estimator"):
        assert not imports(path) & OUTSIDE_ESTIMATOR, path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("open", "print", "input"), f"{path}:{node.lineno}"


def test_the_folders_of_the_estimator_stand_on_floors_too() -> None:
    floors = ["machine", "model", "plan", "kernels", "serving", "rl", "training", "search"]
    for path in modules("estimator"):
        folder = path.relative_to(ROOT / "estimator").parts[0]
        below = {"machine"} if folder == "money" else set(floors[: floors.index(folder)] if folder in floors else ())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("estimator."):
                other = node.module.split(".")[1]
                assert other in below | {folder} or other not in (*floors, "money"), f"{path} imports {node.module}"


def test_no_module_is_called_a_drawer() -> None:
    for room in FLOORS:
        for path in modules(room):
            assert not {"utils", "helpers", "manager", "base", "common", "misc"} & set(path.stem.split("_")), path


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        (
            "import tools; tools.call('describe_model', {'model': 'gpt2'})",
            ("langgraph", "google.genai", "fastmcp", "textual", "psycopg", "sqlalchemy"),
        ),
        (
            "import knowledge.models.catalogue; knowledge.models.catalogue.find_model('gpt2')",
            ("langgraph", "textual", "rich"),
        ),
        ("import estimator.plan.schema", ("numpy", "yaml")),
        ("import tui.cli", ("pydantic", "numpy", "textual", "langgraph", "rich")),
        ("import shardwise", ("numpy", "pydantic")),
        (LISTING, ("numpy", "yaml", "rich", "planner.training")),
        ("import server.mcp.server", ("numpy", "planner.training")),
    ],
)
def test_heavy_libraries_load_only_where_they_are_used(statement: str, unwanted: tuple[str, ...]) -> None:
    code = f"import sys\n{statement}\nprint([m for m in {unwanted!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
