"""The image that deploy/Dockerfile makes, built and run by buildah, which needs no daemon, beside a real PostgreSQL.

Registries of images are not asked: Debian's own Python stands for the base. Takes minutes, and 3 GB meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
import throwaway_postgres
from conftest import HOME

ROOT = Path(__file__).parents[2]
TOKEN = "alice-secret-of-some-length"
SHOWN = {"Authorization": f"Bearer {TOKEN}"}
_BASE = "docker.io/library/python:3.12-slim"
_IMAGE = "localhost/shardwise:check"
_PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"


def run(*command: str | Path, **more: str | Path) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=more.get("cwd"))
    assert done.returncode == 0, f"{' '.join(words[:6])}: {done.stderr[-2000:]}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def base() -> Path:
    """A tar of Debian with Python, made on first use."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("buildah and mmdebstrap come of Debian's packages here, which takes root and apt-get")
    if not (shutil.which("buildah") and shutil.which("mmdebstrap")):
        run("apt-get", "update")
        run("apt-get", "install", "-y", "--no-install-recommends", "buildah", "mmdebstrap")
    path = HOME / "image" / "base.tar"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name("half.tar")
        run("mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", made)
        made.rename(path)
    return path


@pytest.fixture(scope="module")
def buildah(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """buildah with the image in a place of its own."""
    place = tmp_path_factory.mktemp("image")
    command = ["buildah", "--root", str(place / "root"), "--runroot", str(place / "run"), "--storage-driver", "vfs"]
    (place / "Dockerfile").write_text(f"FROM scratch\nADD {base.name} /\n")
    build = [*command, "build", "--isolation", "chroot", "--pull-never", "--quiet"]
    run(*build, "-f", place / "Dockerfile", "-t", _BASE, base.parent)
    certificates = ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]
    if path := os.environ.get("PIP_CERT"):
        certificates += ["--env", f"PIP_CERT={path}"]
    dockerfile = ROOT / "deploy" / "Dockerfile"
    run(*build, "--network", "host", *certificates, "--format", "docker", "-f", dockerfile, "-t", _IMAGE, ROOT)
    yield command
    shutil.rmtree(place, ignore_errors=True)


def test_the_image_serves_a_team(buildah: list[str], tmp_path: Path) -> None:
    container = run(*buildah, "from", "--pull-never", _IMAGE)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice write {TOKEN}\n")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with throwaway_postgres.running() as address:
        place = address.partition("host=")[2]
        os.chmod(place, 0o755)
        shared = [f"{place}:/database", f"{tokens}:/run/secrets/tokens:ro"]
        there = [word for each in shared for word in ("--volume", each)]
        there += ["--env", "SHARDWISE_DATABASE=postgresql://shardwise@/postgres?host=/database"]
        inside = [*buildah, "run", "--isolation", "chroot", "--network", "host", *there, container, "--"]
        assert run(*inside, "id", "-u") == "10001"
        assert "has the tables" in run(*inside, "shardwise", "database", "upgrade")
        words = ["--host", "127.0.0.1", "--port", str(port), "--workers", "2", "--tokens", "/run/secrets/tokens"]
        with started([*inside, "shardwise", "serve", *words]):
            url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + 120
            while not is_ready(url):
                assert time.monotonic() < until
                time.sleep(0.3)
            run(*inside, *(word.replace("8000", str(port)) for word in health_check()))
            answer = httpx.post(f"{url}/v1/ask", json={"text": "does gpt2 fit on a T4?"}, headers=SHOWN, timeout=60)
            assert answer.status_code == 200, answer.text
            assert "fits" in answer.json()["answer"]


def health_check() -> list[str]:
    """The command of the Dockerfile by which Docker sees whether a container is well."""
    found = re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", (ROOT / "deploy" / "Dockerfile").read_text(), re.M)
    assert found
    return json.loads(found[1])


@contextmanager
def started(command: list[str]) -> Iterator[None]:
    """What a container runs, ended with all that it started."""
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False
