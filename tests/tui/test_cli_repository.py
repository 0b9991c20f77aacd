"""`shardwise check --each` and `--against`: the configs of a repository, for people, comments and gates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tui.cli import main, parsed

ROOT = Path(__file__).parent.parent.parent
Capture = pytest.CaptureFixture[str]
SFT = """\
model_name_or_path: gpt2
stage: sft
finetuning_type: full
cutoff_len: 512
per_device_train_batch_size: 1
bf16: true
"""
JOB = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:h100:8\nsrun llamafactory-cli train configs/sft.yaml\n"


def git(*words: str) -> None:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["git", *words], check=True, capture_output=True, env=os.environ | names)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "sft.yaml").write_text(SFT)
    (folder / "job.sbatch").write_text(JOB)
    (folder / "package.json").write_text('{"name": "x"}')
    (folder / "broken.yaml").write_text("a: [1,\n")
    (folder / "ignored.sbatch").write_text(JOB)
    (folder / ".gitignore").write_text("ignored*\n")
    monkeypatch.chdir(folder)
    git("init", "--quiet", ".")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    return folder


def test_a_config_and_what_it_names_are_one_and_other_files_are_none(repository: Path, capsys: Capture) -> None:
    assert main(["check", "--each", "."]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("The config fits.\n")
    assert "job.sbatch" in shown
    assert not any(name in shown for name in ("sft.yaml", "package.json", "broken.yaml", "ignored"))


def test_flags_say_only_what_a_config_leaves_open(repository: Path, capsys: Capture) -> None:
    (repository / "alone.yaml").write_text(SFT.replace("gpt2", "meta-llama/Llama-3.1-70B"))
    assert main(["check", "--each", ".", "--json"]) == 0
    by_name = {row["config"]: row for row in json.loads(capsys.readouterr().out)["configs"]}
    assert {name: row["status"] for name, row in by_name.items()} == {"alone.yaml": "not known", "job.sbatch": "fits"}
    assert main(["check", "--each", ".", "--json", "--accelerator", "1xrtx-4090"]) == 1
    by_name = {row["config"]: row for row in json.loads(capsys.readouterr().out)["configs"]}
    assert by_name["alone.yaml"]["status"] == "will not fit"
    assert by_name["job.sbatch"]["result"]["plan"]["cluster"] == {"accelerator": "h100-sxm", "count": 8}


def test_settings_of_a_repository_run_nothing(repository: Path, capsys: Capture) -> None:
    program, ran = repository / "program.sh", repository.parent / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    asked = ["check", "--each", ".", "--against", "HEAD"]
    git("config", "core.fsmonitor", str(program))
    assert main(asked) == 0
    # A file that is missing would be fetched by a program of the repository's choice.
    git("config", "--unset", "core.fsmonitor")
    git("config", "core.repositoryformatversion", "1")
    git("config", "extensions.partialClone", "origin")
    settings = {"promisor": "true", "url": str(repository), "uploadpack": str(program)}
    for name, value in settings.items():
        git("config", f"remote.origin.{name}", value)
    blob = subprocess.run(["git", "rev-parse", "HEAD:job.sbatch"], capture_output=True, text=True).stdout.strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    main(asked)
    assert not ran.exists()


def test_against_a_revision_what_changed_is_told_and_what_broke_fails(repository: Path, capsys: Capture) -> None:
    assert main(["check", "--against", "HEAD", "."]) == 0
    assert capsys.readouterr().out == "The config fits.\n\n- 1 config as in HEAD.\n"
    text = SFT.replace("gpt2", "meta-llama/Llama-3.1-70B").replace("512", "4096")
    (repository / "configs" / "sft.yaml").write_text(text)
    (repository / "job.sbatch").write_text(JOB.replace("h100:8", "h100:1"))
    assert main(["check", "--against", "HEAD", ".", "--md"]) == 1
    report = capsys.readouterr().out
    assert "will not fit (was: fits)" in report
    assert "seq_len 512 → 4096" in report
    assert "Would fit: " in report
    git("commit", "--quiet", "--all", "-m", "second")
    assert main(["check", "--against", "HEAD", "."]) == 0
    assert "does not fit" in capsys.readouterr().out
    (repository / "job.sbatch").rename(repository / "moved.sbatch")
    (repository / "configs" / "sft.yaml").write_text(SFT)
    assert main(["check", "--against", "HEAD", ".", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["configs"]
    assert [(row["config"], row["status"], row["before"]) for row in rows] == [
        ("moved.sbatch", "fits", None), ("job.sbatch", "removed", "will not fit"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["no-such", "--output=x"])
def test_a_revision_that_is_none_is_refused(repository: Path, name: str, capsys: Capture) -> None:
    assert main(["check", f"--against={name}", "."]) == 2
    assert "git knows no revision" in capsys.readouterr().err
    assert not (repository / "x").exists()


def test_without_git_every_file_that_is_not_hidden_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "plain" / ".venv").mkdir(parents=True)
    for place in ("job.sbatch", ".venv/job.sbatch"):
        (tmp_path / "plain" / place).write_text(JOB.replace("configs/sft.yaml", "--model_name_or_path gpt2"))
    monkeypatch.chdir(tmp_path / "plain")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert main(["check", "--each", ".", "--json"]) in (0, 1)
    assert [row["config"] for row in json.loads(capsys.readouterr().out)["configs"]] == ["job.sbatch"]


def test_the_action_reports_and_leaves_the_exit_code(repository: Path, tmp_path: Path) -> None:
    program = tmp_path / "shardwise"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from tui.cli import main; exit(main())' \"$@\"\n")
    program.chmod(0o755)
    (repository / "job.sbatch").write_text(JOB.replace("configs/sft.yaml", "configs/gone.yaml"))
    files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    where = {"RUNNER_TEMP": str(tmp_path), "SHARDWISE": str(program), "PYTHONPATH": str(ROOT)}
    inputs = {"PATHS": ". configs", "FLAGS": "--accelerator 8xh100", "AGAINST": "HEAD"}
    done = subprocess.run(["bash", ROOT / ".ci" / "check"], env=os.environ | files | where | inputs, timeout=60)
    assert done.returncode == 0
    output = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert output["code"] == "0"
    assert Path(output["report"]).read_text().startswith("<!-- shardwise -->\n")
    assert (tmp_path / "summary").read_text() == Path(output["report"]).read_text()


def test_the_hook_and_the_action_name_what_is_there() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    words = [*hook["entry"].split(), *hook["args"]]
    assert words[0] == "shardwise"
    assert parsed(words[1:]).each
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    scripts = [step["run"] for step in action["runs"]["steps"] if "/.ci/" in step.get("run", "")]
    assert [(ROOT / script.split("$ACTION/")[1].strip('"')).is_file() for script in scripts] == [True, True]
    assert set(action["inputs"]) == {"paths", "flags", "against", "comment", "token"}
