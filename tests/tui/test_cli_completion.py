"""Completion scripts: made from the command line, accepted by their shells, and of use there."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tui.cli import commands_of, main, parser
from tui.commands import completion
from tui.planning import PLANNING

script = cache(completion.script)


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    path = tmp_path_factory.mktemp("completion") / f"shardwise.{request.param}"
    path.write_text(script(request.param))
    return request.param, path


def test_every_command_and_flag_is_in_it(made: tuple[str, Path]) -> None:
    shell, path = made
    text = path.read_text()
    for name, command in commands_of(parser(every_flag=True)).items():
        assert name in text
        for flag in command._option_string_actions:
            if flag.startswith("--"):
                assert (f"-l {flag[2:]}" if shell == "fish" else flag) in text
    assert "meta-llama/Llama-3.1-8B" in text
    assert "h100-sxm" in text


def test_its_shell_accepts_it(made: tuple[str, Path]) -> None:
    shell, path = made
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    process = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("sc", {"scaling", "scenarios"}),
        ("fit --meth", {"--method"}),
        ("fit --method q", {"qlora"}),
        ("fit --model llama-3.1-40", {"meta-llama/Llama-3.1-405B"}),
        ("fit llama-3.1-405b H100-s", {"h100-sxm", "h100-sxm-96gb-hbm2e"}),
        ("completion z", {"zsh"}),
        ("scenarios di", {"diff"}),
    ],
)
def test_bash_completes(tmp_path: Path, typed: str, found: set[str]) -> None:
    (tmp_path / "made").write_text(script("bash"))
    words = ["shardwise", *typed.split()]
    line = (
        f"source {tmp_path / 'made'}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_shardwise; "
    )
    process = subprocess.run(["bash", "-c", line + 'printf "%s\\n" "${COMPREPLY[@]}"'], capture_output=True, text=True)
    assert set(process.stdout.split()) == found


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (script("bash"), "")
    assert set(PLANNING) <= set(commands_of(parser()))
