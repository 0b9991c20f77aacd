"""A launch target is one folder and one row: the one of docs/how-to/add-a-launch-target.md, made from that page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch_plans import complete

import launchers
from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.pieces import Rendered
from launchers.reading import programs
from launchers.reading.sets import read
from launchers.render import render
from launchers.targets import TARGETS, Target

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add-a-launch-target.md").read_text(encoding="utf-8")
# A step's file, and the block of code that is in it.
STEPS = dict(re.findall(r"^## \d+\. `(picotrain/[\w.]+)`.*?^```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
ROW = re.search(r"^## \d+\. The row in `([\w/.]+)`\n+```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PLAN = {"workload.framework": "pytorch", "layout.zero_stage": 0}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The target of the page, in a folder of its own that counts as one below launchers."""
    for path, content in STEPS.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    (tmp_path / "picotrain/__init__.py").touch()
    monkeypatch.setattr(launchers, "__path__", [*launchers.__path__, str(tmp_path)])
    assert ROW is not None
    for name, row in eval(f"{{{ROW[2]}}}", {"Target": Target}).items():
        monkeypatch.setitem(TARGETS, name, row)
    programs._offered.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield
    programs._offered.cache_clear()  # pyright: ignore[reportPrivateUsage]
    for name in [name for name in sys.modules if name.startswith("launchers.picotrain")]:
        monkeypatch.delitem(sys.modules, name)


def rendered(plan: Plan) -> Rendered:
    return render(plan, ["picotrain", "slurm"])


def test_the_page_names_the_files_that_every_program_has() -> None:
    files = {path.removeprefix("picotrain/") for path in STEPS}
    assert files == {"write.py", "read.py", "fields.yaml", "refusals.yaml", "leftovers.yaml"}
    assert files <= {path.name for path in (ROOT / "launchers/axolotl").iterdir()}
    assert ROW is not None
    assert (ROOT / ROW[1]).is_file()
    for path in re.findall(r"`(launchers/[\w/]+\.\w+|tests/launchers/\w+/)`", PAGE):
        assert (ROOT / path).exists(), path


@pytest.mark.usefixtures("toy")
def test_a_plan_is_written_and_started() -> None:
    files = {file.path: file.text for file in rendered(complete(PLAN)).files}
    assert set(files) == {"picotrain.yaml", "job.sbatch"}
    assert "checkpoint: meta-llama/Llama-3.1-8B\nprecision: bfloat16\n" in files["picotrain.yaml"].replace('"', "")
    assert "exec env picotrain picotrain.yaml" in files["job.sbatch"]


@pytest.mark.usefixtures("toy")
def test_the_files_are_read_back() -> None:
    plan = complete(PLAN)
    reading = read({file.path: file.text for file in rendered(plan).files})
    assert reading.formats["picotrain.yaml"] == "picotrain YAML"
    assert reading.plan["model"] == plan.model
    workload = reading.plan["workload"]
    assert (workload["precision"], workload["seq_len"], workload["micro_batch"]) == ("bf16", 4096, 1)
    assert reading.plan["cluster"]["count"] == 8


@pytest.mark.usefixtures("toy")
def test_a_command_line_wins_over_the_file() -> None:
    config = "checkpoint: gpt2\nsequence_length: 512\nnoise: 0.1\n"
    reading = read({"run.sh": "picotrain own.yaml sequence_length=1024\n", "own.yaml": config})
    assert reading.plan["workload"]["seq_len"] == 1024
    assert any("adds noise to embeddings" in warning for warning in reading.warnings)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"workload.framework": "axolotl"}, "not started by picotrain files"),
        ({"workload.precision": "fp8"}, "computes in bf16 or fp32"),
        ({"cluster.count": 16, "layout.tp": 2, "workload.global_batch": 32}, "cannot express tensor parallelism"),
    ],
)
def test_what_it_cannot_say_is_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        rendered(complete(PLAN).patch(changes))


def test_the_page_holds_code_as_it_is_formatted_here() -> None:
    for path, content in STEPS.items():
        if path.endswith(".py"):
            command = [sys.executable, "-m", "ruff", "format", "--check", "--stdin-filename", path, "-"]
            done = subprocess.run(command, input=content, text=True, capture_output=True, check=False, cwd=ROOT)
            assert done.returncode == 0, done.stderr
