"""The GitHub Action and the pre-commit hook as a repository runs them: the steps of action.yml by bash, with GitHub's
variables and a `gh` that keeps what it is told, and the hook by pre-commit itself, which clones and installs us."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import python_of

ROOT = Path(__file__).parent.parent
FITS = """\
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: lora
cutoff_len: 2048
per_device_train_batch_size: 1
bf16: true
"""
DOES_NOT = FITS.replace("Llama-3.1-8B", "Llama-3.1-70B").replace("lora", "full")
FLAGS = ["--accelerator", "h100", "--count", "1"]
_GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$GH_LOG"
case "$*" in *--paginate*) cat "$GH_COMMENTS";; esac
"""


def git(folder: Path, *words: str) -> str:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | names).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Its main branch has a config that fits; the working tree a later commit with one that does not."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "sft.yaml").write_text(FITS)
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    (folder / "large.yaml").write_text(DOES_NOT)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "second")
    return folder


@pytest.fixture
def packaged(tmp_path: Path) -> Path:
    """What is committed here, as a repository that an action or a hook is taken from."""
    folder = tmp_path / "shardwise"
    git(ROOT, "clone", "--quiet", str(ROOT), str(folder))
    return folder


def filled(text: str, known: dict[str, str]) -> str:
    """The text with GitHub's expressions replaced by what they come to."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)


def steps_run(packaged: Path, repository: Path, place: Path, inputs: dict[str, str]) -> tuple[int, dict[str, str]]:
    """The exit code of the last of the action's steps, and the outputs of its check."""
    place.mkdir(exist_ok=True)
    action = yaml.safe_load((packaged / "action.yml").read_text())
    known = {"github.event.pull_request.base.sha": git(repository, "rev-parse", "HEAD~1"), "github.token": "a-token",
             "github.event.pull_request.number": "7", "github.action_path": str(packaged)}  # fmt: skip
    known |= {f"inputs.{name}": filled(str(inputs.get(name, each["default"])), known)
              for name, each in action["inputs"].items()}  # fmt: skip
    env = os.environ | {name: str(place / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GH_LOG")}
    env |= {"RUNNER_TEMP": str(place), "GITHUB_REPOSITORY": "us/ours", "GH_COMMENTS": str(place / "comments")}
    env |= {"PATH": f"{place / 'bin'}:{env['PATH']}"}
    (place / "comments").touch()
    (place / "bin").mkdir(exist_ok=True)
    gh = place / "bin" / "gh"
    gh.write_text(_GH)
    gh.chmod(0o755)
    env.pop("PYTHONPATH", None)
    code = 0
    for step in (each for each in action["runs"]["steps"] if "run" in each):
        if "if" in step:
            assert known["inputs.comment"] == "true"
        own = {name: filled(str(value), known) for name, value in step.get("env", {}).items()}
        script = filled(step["run"], known)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=repository, env=env | own, capture_output=True, text=True, check=False)
        code = done.returncode
        assert code == 0 or step["name"] == "Result", f"{step['name']}: {done.stderr[-2000:]}"
        if step.get("id") == "check":
            said = dict(line.split("=", 1) for line in (place / "GITHUB_OUTPUT").read_text().splitlines())
            known |= {f"steps.check.outputs.{name}": value for name, value in said.items()}
    return code, {name: known[f"steps.check.outputs.{name}"] for name in action["outputs"]}


def test_the_action_says_what_a_pull_request_breaks(packaged: Path, repository: Path, tmp_path: Path) -> None:
    place = tmp_path / "runner"
    code, said = steps_run(packaged, repository, place, {"flags": " ".join(FLAGS)})
    report = Path(said["report"]).read_text()
    assert (code, said["code"]) == (1, "1"), report
    assert report.startswith("<!-- shardwise -->")
    assert "large.yaml" in report
    assert "sft.yaml" not in report
    assert report in (place / "GITHUB_STEP_SUMMARY").read_text()
    posted = (place / "GH_LOG").read_text().splitlines()[-1]
    assert posted.startswith("api --method POST repos/us/ours/issues/7/comments"), posted
    # A second run rewrites the comment that it finds.
    (place / "comments").write_text("123\n")
    for left in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        (place / left).unlink()
    (repository / "large.yaml").write_text(FITS)
    code, said = steps_run(packaged, repository, place, {"flags": " ".join(FLAGS)})
    assert (code, said["code"]) == (0, "0"), Path(said["report"]).read_text()
    assert "PATCH repos/us/ours/issues/comments/123" in (place / "GH_LOG").read_text()


def test_pre_commit_runs_the_hook(packaged: Path, repository: Path, tmp_path: Path) -> None:
    hook = {"id": "shardwise-check", "args": [".", *FLAGS]}
    settings: dict[str, Any] = {
        "repos": [{"repo": str(packaged), "rev": git(packaged, "rev-parse", "HEAD"), "hooks": [hook]}]
    }
    (repository / ".pre-commit-config.yaml").write_text(json.dumps(settings))
    git(repository, "add", ".")
    program = python_of("manifests").with_name("pre-commit")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"PRE_COMMIT_HOME": str(tmp_path / "home")}

    def run() -> subprocess.CompletedProcess[str]:
        command = [str(program), "run", "--all-files"]
        return subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, check=False)

    stopped = run()
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    assert "large.yaml" in stopped.stdout
    (repository / "large.yaml").write_text(FITS)
    git(repository, "add", ".")
    passed = run()
    assert passed.returncode == 0, passed.stdout + passed.stderr
