"""The wheel in environments of its own, as `pip install` makes them: what the core does, what it says where an extra is
missing, and what each extra then does. Versions are those of the lock."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
import throwaway_postgres

ROOT = Path(__file__).parent.parent
EXTRAS = [
    extra
    for extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if extra != "dev"
]
RUN = ("gpt2", "h100")
TOKEN = "a-token-of-some-length"
# What needs an extra, with what it does without.
WITHOUT = {
    "serve": ("serve", "--port", "0"),
    "web": ("web",),
    "pdf": ("report", *RUN, "--write", "report.pdf"),
    "openai": ("models", "test"),
    "team": ("database", "list", "--database", "postgresql:///x"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheel, which is built from the sdist as `python -m build` does it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    done(command, ROOT)
    (sdist,) = folder.glob("shardwise-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done(command, folder / sdist.name.removesuffix(".tar.gz"))
    return folder


@pytest.fixture(scope="module")
def constraints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The versions of the lock alone: pip takes no hashes where it is to resolve."""
    path = tmp_path_factory.mktemp("lock") / "constraints.txt"
    locked = (ROOT / "requirements-dev.lock").read_text()
    path.write_text("\n".join(re.findall(r"^[\w.-]+==[^\s;\\]+(?: ; [^\\\n]+)?", locked, re.M)))
    return path


Installed = Callable[..., Path]


@pytest.fixture(scope="module")
def installed(built: Path, constraints: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The programs of a new environment with the wheel and these extras in it."""

    def made(*extras: str) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        done([sys.executable, "-m", "venv", str(folder)], folder)
        (wheel,) = built.glob("*.whl")
        what = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        done([*pip, "--constraint", str(constraints), what], folder)
        done([str(folder / "bin" / "pip"), "check", "--disable-pip-version-check"], folder)
        return folder / "bin"

    return made


def environment(home: Path) -> dict[str, str]:
    """One that knows nothing of this checkout."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    own = {"HOME": str(home), "SHARDWISE_HOME": str(home), "SHARDWISE_CONFIG": str(home), "SHARDWISE_TOKEN": TOKEN}
    return kept | own


def done(command: list[str], folder: Path) -> str:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, f"{' '.join(command)}: {(result.stdout + result.stderr)[-2000:]}"
    return result.stdout


def shardwise(programs: Path, home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command, env = [str(programs / "shardwise"), *words], environment(home) | variables
    return subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=120, check=False)


def said(programs: Path, home: Path, *words: str, **variables: str) -> str:
    result = shardwise(programs, home, *words, **variables)
    assert result.returncode == 0, result.stderr
    return result.stdout


def python(programs: Path, home: Path, code: str) -> str:
    command = [str(programs / "python"), "-I", "-c", code]
    result = subprocess.run(command, cwd=home, env=environment(home), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def conversation(programs: Path, home: Path) -> list[str]:
    """The tools that `shardwise mcp` lists over standard input and output."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [str(programs / "shardwise"), "mcp"], cwd=home, env=environment(home), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        for message in asked:
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
    return [tool["name"] for tool in answers[1]["result"]["tools"]]


@contextmanager
def serving(programs: Path, home: Path, *words: str, **variables: str) -> Iterator[str]:
    """The address that the command says it serves at."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command, env = [str(programs / "shardwise"), *words, "--port", port], environment(home) | variables
    with subprocess.Popen(command, cwd=home, env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = re.search(r"http://[\d.:]+", line := server.stderr.readline())
            assert found, line
            yield found[0]
        finally:
            server.terminate()


def test_the_wheel_comes_of_the_sdist_and_both_hold_their_licence(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"shardwise/py.typed", "shardwise/__init__.pyi", "knowledge/data/models.jsonl"} <= {*names}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert len(EXTRAS) == len(WITHOUT)


def test_the_core_plans_alone_and_says_which_extra_a_command_needs(installed: Installed, tmp_path: Path) -> None:
    programs = installed()
    assert said(programs, tmp_path, "--version").split()[-1].count(".") == 2
    code = (
        "import shardwise; estimate = shardwise.estimate_training('llama-3.1-8b', '8xh100', dataset_tokens='1B'); "
        "print(estimate.memory.fits, '<' in estimate._repr_html_())"
    )
    assert python(programs, tmp_path, code).split() == ["True", "True"]
    assert "fits" in said(programs, tmp_path, "fit", *RUN)
    answer = json.loads(said(programs, tmp_path, "ask", "--json", "does gpt2 fit on one H100?"))
    assert "check_fit" in [call["name"] for call in answer["tool_calls"]]
    assert {"check_fit", "estimate_training", "advise"} <= {*conversation(programs, tmp_path)}
    assert "mcpServers" in said(programs, tmp_path, "mcp", "config", "--client", "cursor")
    said(programs, tmp_path, "report", *RUN, "--write", "report.html")
    for extra, words in WITHOUT.items():
        model = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "SHARDWISE_OPENAI_MODEL": "x"}
        result = shardwise(programs, tmp_path, *words, **(model if extra == "openai" else {}))
        sentence = result.stderr.strip()
        assert (result.returncode, sentence.count("\n")) == (2, 0), f"{extra}: {result.returncode} {result.stderr}"
        assert f"pip install 'shardwise[{extra}]'" in sentence, sentence
    assert not (tmp_path / "report.pdf").exists()


def test_with_its_extras_each_command_does_its_work(installed: Installed, tmp_path: Path) -> None:
    programs = installed(*EXTRAS)
    shown = {"Authorization": f"Bearer {TOKEN}"}
    with serving(programs, tmp_path, "serve") as url:
        answer = httpx.post(
            f"{url}/v1/tools/check_fit", json={"model": "gpt2", "accelerator": "h100"}, headers=shown, timeout=60
        )
        assert answer.json()["fits"] is True
    with serving(programs, tmp_path, "web") as url:
        until = time.monotonic() + 30
        while (page := httpx.get(url, headers=shown, follow_redirects=True, timeout=60)).status_code >= 500:
            assert time.monotonic() < until, page.text
    said(programs, tmp_path, "report", *RUN, "--write", "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
    model = {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "SHARDWISE_OPENAI_MODEL": "x",
        "SHARDWISE_GEMINI_ATTEMPTS": "1",
    }
    tried = shardwise(programs, tmp_path, "models", "test", **model)
    assert "could not be reached" in tried.stdout
    with throwaway_postgres.running() as address:
        database = {"SHARDWISE_DATABASE": address}
        said(programs, tmp_path, "database", "upgrade", **database)
        with serving(programs, tmp_path, "serve", **database) as url:
            answer = httpx.post(f"{url}/v1/ask", json={"text": "does gpt2 fit on a T4?"}, headers=shown, timeout=60)
            assert answer.status_code == 200, answer.text
            assert httpx.get(f"{url}/readyz").status_code == 200
