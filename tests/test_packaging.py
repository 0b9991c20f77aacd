"""The wheel: everything that runs is in it, and the command works from it in another folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
ROOMS = ("agent", "estimator", "knowledge", "launchers", "measure", "pages", "planner", "server", "shardwise",
         "tools", "tui")  # fmt: skip


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """What a command prints; its errors are shown when it fails."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=os.environ | env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    (built,) = folder.glob("shardwise-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel installed into a folder of its own; what it depends on stays where it is."""
    target = tmp_path_factory.mktemp("installed")
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
    run(*command, cwd=target)
    return target


def test_the_wheel_holds_every_file_of_every_room_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == wanted
    assert "knowledge/data/models.jsonl" in names
    assert "knowledge/calibration.yaml" in names
    assert "tui/app.tcss" in names
    assert {"shardwise/py.typed", "shardwise/__init__.pyi"} <= names


def test_the_wheel_says_what_it_needs_and_which_command_it_brings(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        about = [name for name in archive.namelist() if ".dist-info/" in name]
        texts = {name.rpartition("/")[2]: archive.read(name).decode() for name in about}
    assert "shardwise = tui.cli:main" in texts["entry_points.txt"]
    needed = [line for line in texts["METADATA"].splitlines() if line.startswith("Requires-Dist:")]
    assert any("pydantic" in line for line in needed)
    assert not any("pytest" in line and "extra ==" not in line for line in needed)
    assert "Apache License" in texts["LICENSE"]


def test_the_command_runs_from_the_wheel_in_another_folder(installed: Path, tmp_path: Path) -> None:
    where = run(sys.executable, "-c", "import tools; print(tools.__file__)", cwd=tmp_path, PYTHONPATH=str(installed))
    assert Path(where.strip()).is_relative_to(installed)
    code = "import shardwise; print(shardwise.__file__, shardwise.describe_model('gpt2').parameters)"
    file, parameters = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(installed)).split()
    assert Path(file).is_relative_to(installed)
    assert int(parameters) == 124_439_808
    command = installed / "bin" / "shardwise"
    said = run(sys.executable, command, "call", "describe_model", '{"model": "gpt2"}', cwd=tmp_path,
               PYTHONPATH=str(installed))  # fmt: skip
    assert json.loads(said)["parameters"] == 124_439_808
    plan = json.dumps({"model": "gpt2", "accelerator": "h100-sxm", "folder": "runs/a"})
    said = run(sys.executable, command, "call", "write_configs", plan, cwd=tmp_path, PYTHONPATH=str(installed))
    for file in json.loads(said)["files"]:
        assert (tmp_path / file["path"]).is_file()


def brought_by(requirements: list[str]) -> set[str]:
    """The packages that an installation of these brings here, with all that they need in turn."""
    found: set[tuple[str, str]] = set()
    left = [(Requirement(each), "") for each in requirements]
    while left:
        one, asked = left.pop()
        if one.marker and not one.marker.evaluate({"extra": asked}):
            continue
        for extra in ("", *one.extras):
            if (key := (canonicalize_name(one.name), extra)) not in found:
                found.add(key)
                left += [(Requirement(each), extra) for each in metadata.requires(one.name) or []]
    return {name for name, _ in found}


def test_the_core_is_small_and_what_few_commands_need_is_an_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = brought_by(project["dependencies"])
    assert len(core) <= 120, sorted(core)
    assert core.isdisjoint({"httptools", "uvloop", "aiohttp", "textual-serve", "fpdf2", "openai", "psycopg", "alembic"})
    assert "fastmcp" in core
    said = re.search(r"The core is (\d+) packages", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert said
    assert abs(int(said[1]) - len(core)) <= 3


CORE_ALONE = """
import sys
for name in "httptools uvloop aiohttp textual_serve fpdf openai psycopg".split():
    sys.modules[name] = None
from tui.cli import main
import tui.app
commands = ("fit gpt2 h100", "serve --port 0", "web --port 8999", "report gpt2 h100 --write r.pdf",
            "models test openai", "database list --database postgresql:///x")
print([main(words.split()) for words in commands], file=sys.stderr)
"""


def test_without_the_extras_commands_say_which_brings_what_they_need(tmp_path: Path) -> None:
    model = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "SHARDWISE_OPENAI_MODEL": "x"}
    done = subprocess.run([sys.executable, "-c", CORE_ALONE], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env=os.environ | {"PYTHONPATH": str(ROOT)} | model)  # fmt: skip
    *said, codes = done.stderr.splitlines()
    assert codes == "[0, 2, 2, 2, 2, 2]", done.stderr
    named = [line.partition("shardwise[")[2].partition("]")[0] for line in said]
    assert named == ["serve", "web", "pdf", "openai", "team"]
