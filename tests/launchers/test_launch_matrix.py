"""A benchmark matrix: its folders and manifest, and the script that runs its cells one after another."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_plans import PREDICTION, complete, devices
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.matrix import MANIFEST, NO_SCHEDULER, SCHEDULERS, SCRIPT, WAITS, Cell, matrix_files
from launchers.site import Site
from launchers.targets import TARGETS
from launchers.writing import write

HOSTILE = 'it\'s $(touch owned) `touch owned` "b" ${HOME} ../../x\n#\u202e'
# What stands for a scheduler: it says what it was given and where, and fails where the folder holds a `fail`.
FAKE = """#!/bin/bash
echo "$(basename "$PWD")|${0##*/} $*" >>"$TOLD"
cat >/dev/null
[[ ! -e fail ]] || exit 7
"""


def cell(
    model: str = "meta-llama/Llama-3.1-8B", platform: str = "h100-sxm", strategy: str = "balanced", **more: Any
) -> Cell:
    changes = {"cluster.accelerator": platform, **more.pop("changes", {})}
    given: dict[str, Any] = {"plan": complete(changes), "why": None, "facts": {"fits": True}, "prediction": PREDICTION}
    return Cell(model, platform, strategy, **{**given, **more})


CELLS = [
    cell(strategy="maximum_performance"),
    cell(platform="mi300x", strategy="maximum_performance"),
    cell(strategy="memory_optimized", changes={"layout.zero_stage": 3}),
    cell(platform="mi300x", strategy="memory_optimized", why="nothing fits: it's too $(large)"),
    cell(strategy="tp", plan=None, why="layout.tp: tp=8 does not divide the 28 attention heads", facts={}),
    cell(strategy="tp", platform="mi300x", changes={"layout": {"tp": 8, "dp": 1}}),
]
RUN = ["00-maximum_performance/h100-sxm-Llama-3.1-8B", "00-maximum_performance/mi300x-Llama-3.1-8B"]
RUN += ["01-memory_optimized/h100-sxm-Llama-3.1-8B"]


def written(folder: Path, cells: list[Cell] = CELLS, scheduler: str = "slurm") -> dict[str, Any]:
    rendered, rows = matrix_files(cells, scheduler, 0, {"name": "bench"})
    write(rendered, folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["cells"] == json.loads(json.dumps(rows))
    return manifest


def run(folder: Path, *words: str, **variables: str) -> tuple[int, str, list[str]]:
    """Exit status, output and what the fake schedulers were told."""
    fakes, told = folder.parent / "fakes", folder.parent / "told"
    fakes.mkdir(exist_ok=True)
    for name in ("sbatch", "ssh", "docker", "sky", "llamafactory-cli"):
        if not (fakes / name).exists():
            (fakes / name).write_text(FAKE)
            (fakes / name).chmod(0o755)
    told.write_text("")
    environment = {"PATH": f"{fakes}:{os.environ['PATH']}", "TOLD": str(told), "POLL_S": "0"} | variables
    done = subprocess.run(
        ["bash", str(folder / SCRIPT), *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout + done.stderr, told.read_text().splitlines()


def test_the_manifest_says_what_each_cell_is(tmp_path: Path) -> None:
    manifest = written(tmp_path / "m")
    assert [row["id"] for row in manifest["cells"] if row["runs"]] == RUN
    for row in manifest["cells"]:
        assert row["runs"] == (row["skip_reason"] is None)
        if row["runs"]:
            plan = Plan.parse(json.loads((tmp_path / "m" / row["plan"]).read_text()))
            assert plan.cluster.accelerator == row["platform"]
            assert row["targets"][-1] == "slurm"
            assert (tmp_path / "m" / row["id"] / "job.sbatch").exists()
    reasons = [row["skip_reason"] for row in manifest["cells"] if not row["runs"]]
    assert "too $(large)" in reasons[0]
    assert "28 attention heads" in reasons[1]
    assert "tensor parallelism" in reasons[2]
    names = [json.loads(path.read_text())["name"] for path in (tmp_path / "m").rglob("plan.json")]
    assert len(set(names)) == len(names) == 5


def test_cells_run_one_after_another_and_a_failure_stops_none(tmp_path: Path) -> None:
    written(tmp_path / "m")
    (tmp_path / "m" / RUN[0] / "fail").touch()
    code, output, told = run(tmp_path / "m")
    assert code == 1
    assert told == [f"{Path(name).name}|sbatch --wait job.sbatch" for name in RUN]
    summary = output[output.rindex("\n\n") :]
    assert "FAILED (  7)" in summary.split(RUN[0])[0]
    assert summary.count("left out") == 3
    assert "3 run, 1 of them failed" in summary
    assert all((tmp_path / "m" / name / "run.log").exists() for name in RUN)


def test_what_is_done_is_not_run_again_unless_told(tmp_path: Path) -> None:
    written(tmp_path / "m")
    (tmp_path / "m" / RUN[1] / "fail").touch()
    assert run(tmp_path / "m")[0] == 1
    (tmp_path / "m" / RUN[1] / "fail").unlink()
    code, output, told = run(tmp_path / "m")
    assert (code, len(told), output.count("done before")) == (0, 1, 2)
    (tmp_path / "m" / RUN[0] / "result.json").write_text("{}")
    assert len(run(tmp_path / "m", AGAIN="1")[2]) == 3
    # What the runs before left is kept: of the one that had failed both.
    folders = [tmp_path / "m" / name for name in RUN[:2]]
    before = [sorted(str(path.relative_to(folder)) for path in folder.glob("before-*/*")) for folder in folders]
    assert before == [["before-1/result.json", "before-1/run.log"], ["before-1/run.log", "before-2/run.log"]]
    changed = [cell(strategy="maximum_performance", changes={"workload.global_batch": 64}), *CELLS[1:]]
    write(matrix_files(changed, "slurm", 0, {"name": "bench"})[0], tmp_path / "m", overwrite=True)
    assert [line.split("|")[0] for line in run(tmp_path / "m")[2]] == [Path(RUN[0]).name]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [(["*/mi300x-*"], RUN[1:2]), (["00-*"], RUN[:2]), ([RUN[2], "*/mi300x-*"], RUN[1:]), (["02-*"], [])],
)
def test_patterns_choose_cells(patterns: list[str], chosen: list[str], tmp_path: Path) -> None:
    written(tmp_path / "m")
    code, _, told = run(tmp_path / "m", *patterns)
    assert code == 0
    assert [line.split("|")[0] for line in told] == [Path(name).name for name in chosen]


def test_listing_and_help_run_nothing(tmp_path: Path) -> None:
    written(tmp_path / "m")
    code, output, told = run(tmp_path / "m", "--list")
    assert (code, told) == (0, [])
    assert output.count("== ") == 3
    assert output.count("left out") == 3
    code, output, told = run(tmp_path / "m", "--help")
    assert (code, told) == (0, [])
    assert "PATTERN" in output
    code, output, told = run(tmp_path / "m", "nothing*")
    assert (code, told) == (2, [])
    assert "no cell is called nothing*" in output


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_runs_its_own_file(scheduler: str, tmp_path: Path) -> None:
    made = cell(site=Site(image="registry/x:1"))
    (row,) = written(tmp_path / "m", [made], scheduler)["cells"]
    assert row["runs"]
    if scheduler == NO_SCHEDULER:
        assert "llamafactory-cli train" in row["command"]
        assert run(tmp_path / "m")[2] == [f"{Path(row['id']).name}|llamafactory-cli train llamafactory.yaml"]
        return
    assert row["targets"][-1] == scheduler
    # Compose looks for its file by its usual name.
    file = "compose.yaml" if scheduler == "compose" else WAITS[scheduler].split()[-1]
    assert (tmp_path / "m" / row["id"] / file).exists()
    assert scheduler == "compose" or TARGETS[scheduler].launch.split()[-1] == file


KUBECTL = """#!/bin/bash
echo "$*" >>"$TOLD"
if [[ $1 == get && $2 == -f ]]; then
  state=$(sed -n 1p "$STATES")
  sed -i 1d "$STATES"
  [[ $state != error ]] || exit 1
  echo "$state"
fi
"""


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["", "error", "Suspended Running", "Complete"], 0),
        (["Created", "StartupPolicyCompleted", "Completed"], 0),
        (["Running", "Succeeded"], 0),
        (["FailureTargetSeen", "Failed"], 1),
        (["error"] * 20, 1),
    ],
)
def test_a_manifest_is_waited_for(states: list[str], code: int, tmp_path: Path) -> None:
    written(tmp_path / "m", [cell()], "kubernetes-jobset")
    (tmp_path / "fakes").mkdir()
    (tmp_path / "fakes" / "kubectl").write_text(KUBECTL)
    (tmp_path / "fakes" / "kubectl").chmod(0o755)
    (tmp_path / "states").write_text("".join(f"{state}\n" for state in states))
    found, output, told = run(tmp_path / "m", STATES=str(tmp_path / "states"))
    assert found == code, output
    assert told[0] == "delete --ignore-not-found -f jobset.yaml"
    assert told[1] == "apply -f jobset.yaml"
    assert len([line for line in told if line.startswith("get -f")]) == len(states)


def test_several_nodes_need_a_scheduler(tmp_path: Path) -> None:
    many = cell(changes=devices(16))
    row = written(tmp_path / "none", [many], NO_SCHEDULER)["cells"][0]
    assert not row["runs"]
    assert "several nodes" in row["skip_reason"]
    assert written(tmp_path / "slurm", [many])["cells"][0]["runs"]


def test_a_scheduler_that_does_not_wait_is_refused() -> None:
    for name in ("torchx", "cron", ""):
        with pytest.raises(PlanError) as raised:
            matrix_files(CELLS, name, 0, {})
        assert raised.value.field == "scheduler"
        assert "slurm" in raised.value.valid


def test_hostile_names_stay_inert(tmp_path: Path) -> None:
    cells = [
        cell(model=HOSTILE, strategy=HOSTILE, why=HOSTILE),
        cell(model=HOSTILE, strategy=HOSTILE, changes={"name": HOSTILE}),
        cell(model="a/../..", strategy="x"),
        cell(model="/", strategy="x"),
    ]
    rendered, _ = matrix_files(cells, "slurm", 0, {"name": HOSTILE})
    write(rendered, tmp_path / "m")
    code, output, told = run(tmp_path / "m")
    assert code == 0, output
    assert len(told) == 3
    assert not list(tmp_path.rglob("owned"))
    assert {path.name for path in tmp_path.iterdir()} == {"m", "fakes", "told"}


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text("aAbB/é ", max_size=4),
            st.sampled_from(["h100-sxm", "mi300x", "h100-pcie"]),
            st.sampled_from(["a", "B", "tp4.pp2"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_every_cell_has_a_folder_of_its_own(named: list[tuple[str, str, str]]) -> None:
    cells = [Cell(model, platform, strategy, None, "no", {}) for model, platform, strategy in named]
    rendered, rows = matrix_files(cells, "slurm", 20, {})
    ids = [row["id"] for row in rows]
    assert len({id.lower() for id in ids}) == len(ids)
    assert [(row["model"], row["platform"], row["strategy"]) for row in rows] == named
    text = next(file.text for file in rendered.files if file.path == SCRIPT)
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
