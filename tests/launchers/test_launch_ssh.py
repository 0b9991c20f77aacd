"""The ssh script under bash, with an ssh that runs on this machine what it is told to run elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from launch_plans import complete, devices
from scheduler_starts import CONFIG, ENGINE, WHO, scheduled, serving

from launchers.pieces import Piece

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")

# Drops options and takes the host; a host's home is a folder of its name.
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
mkdir -p "$HOMES/$1" && cd "$HOMES/$1" && exec bash -c "$2"
"""
# Written at once, since all hosts write at the same time.
TOLD = 'printf -v line "<%s>" "$@"; echo "$line $FLAG" >>"$HOMES/told"'


def run(
    piece: Piece, folder: Path, hosts: list[str], program: str, name: str = "who"
) -> subprocess.CompletedProcess[str]:
    """The set in `folder`, run with `hosts` and a `program` of that name on the PATH."""
    for file in (*piece.files, CONFIG):
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_text(file.text)
    (folder / "hosts").write_text("".join(f"{host}\n" for host in ("# hosts", "", *hosts)))
    for stub, body in (("ssh", SSH), (name, f"#!/bin/bash\n{program}\n")):
        path = folder / "bin" / stub
        path.parent.mkdir(exist_ok=True)
        path.write_text(body)
        path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOMES": str(folder / "homes")}
    return subprocess.run(
        ["bash", "ssh.sh"], cwd=folder, env=environment, capture_output=True, text=True, timeout=30, check=False
    )


def test_every_node_is_told_its_rank_and_where_to_meet(tmp_path: Path):
    done = run(scheduled("ssh", complete(devices(16)), WHO), tmp_path, ["me@one 10.0.0.1", "two"], TOLD)
    assert done.returncode == 0, done.stderr
    told = sorted((tmp_path / "homes" / "told").read_text().splitlines())
    rest = "<29500><$(touch owned)><it's $HOME ${x} $$> a b$c"
    assert told == [f"<0><10.0.0.1>{rest}", f"<1><10.0.0.1>{rest}"]
    for host in ("me@one", "two"):
        brought = tmp_path / "homes" / host / "shardwise" / "Llama-3.1-8B-sft-full" / CONFIG.path
        assert brought.read_text() == CONFIG.text
    assert not list(tmp_path.rglob("owned"))


def test_all_are_stopped_when_one_fails(tmp_path: Path):
    program = '[[ $1 == 1 ]] && { sleep 0.2; exit 7; }; sleep 60 & echo $! >"$HOMES/pid"; echo waiting; wait'
    started = time.monotonic()
    done = run(scheduled("ssh", complete(devices(16)), WHO), tmp_path, ["one", "two"], program)
    assert done.returncode == 7
    assert time.monotonic() - started < 20
    assert "[0-0] waiting" in done.stdout
    pid = int((tmp_path / "homes" / "pid").read_text())
    for _ in range(50):
        if not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
            break
        time.sleep(0.1)
    else:
        pytest.fail("a node went on")


def test_replicas_share_hosts_with_devices_and_ports_of_their_own(tmp_path: Path):
    piece = scheduled("ssh", serving(count=16, tp=4), ENGINE)
    program = 'echo "$CUDA_VISIBLE_DEVICES $* $PWD" >>"$HOMES/told"'
    done = run(piece, tmp_path, ["one", "two"], program, "serve")
    assert done.returncode == 0, done.stderr
    told = sorted((tmp_path / "homes" / "told").read_text().splitlines())
    end = "shardwise/Llama-3.1-8B-vllm"
    half = ["0,1,2,3 --port 8000", "4,5,6,7 --port 8001"]
    assert told == sorted(f"{said} {tmp_path}/homes/{host}/{end}" for host in ("one", "two") for said in half)


@pytest.mark.parametrize(
    "hosts", [["one"], ["one", "two", "three"], ["one", "SET_ME_HOST_1"], ["one", "$(touch owned)"]]
)
def test_wrong_hosts_start_nothing(tmp_path: Path, hosts: list[str]):
    done = run(scheduled("ssh", complete(devices(16)), WHO), tmp_path, hosts, TOLD)
    assert done.returncode == 2
    assert "hosts: " in done.stderr
    assert not (tmp_path / "homes").exists()
    assert not list(tmp_path.rglob("owned"))
