"""Reports in a real browser: no console message, no request to any network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.registry import find

REPORTS: dict[str, dict[str, Any]] = {
    "training": {"model": "llama-3.1-70b", "accelerator": "h100", "count": 64, "dataset_tokens": "1B"},
    "serving": {"model": "llama-3.1-8b", "accelerator": "h100", "count": 2, "engine": "vllm", "request_rate": 4},
    "comparison": {"model": "llama-3.1-8b", "count": 8, "over": {"accelerator": ["h100", "mi300x"]}},
    "hostile": {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "title": "<script>console.log(1)</script>"},
}
_OWN = "not an origin"
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")


@pytest.fixture(scope="session")
def browser() -> str:
    """Chromium, installed where this may be done."""
    if not shutil.which("chromium"):
        assert os.geteuid() == 0, "Chromium is not installed, and only root may install it"
        install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        for command in (["apt-get", "update"], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})  # fmt: skip
        assert done.returncode == 0, f"apt-get could not install Chromium: {done.stderr[-500:]}"
    return str(shutil.which("chromium"))


def opened(browser: str, page: Path) -> tuple[str, list[str], list[str]]:
    """(The page as the browser has it, what the console said, requests that left the machine)."""
    log = page.with_suffix(".netlog")
    command = [browser, "--headless", "--disable-gpu", *QUIET, f"--user-data-dir={page.parent / 'profile'}",
               "--enable-logging=stderr", "--log-level=0", f"--log-net-log={log}", "--dump-dom"]  # fmt: skip
    if os.geteuid() == 0:
        command.append("--no-sandbox")
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    events = json.loads(log.read_text())["events"]
    # What the browser asks for itself, updates and the time, has no page behind it.
    asked = {event["params"]["url"] for event in events if event.get("params", {}).get("initiator", _OWN) != _OWN}
    return done.stdout, said, sorted(url for url in asked if url.startswith(("http", "ws", "ftp")))


def test_the_check_sees_what_it_looks_for(browser: str, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<script>console.error('no')</script><img src='http://127.0.0.1:9/x.png'><p>here</p>")
    text, said, asked = opened(browser, page)
    assert "here" in text
    assert said
    assert asked


@pytest.mark.parametrize("name", REPORTS)
def test_page_is_quiet_and_keeps_to_itself(browser: str, name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    found = find("report")({**REPORTS[name], "file": f"{name}.html"})
    text, said, asked = opened(browser, tmp_path / found["file"])
    assert found["verdict"] in text
    assert text.count("<svg") >= 2
    assert said == []
    assert asked == []
