"""A Slurm cluster of several nodes on this machine: real slurmctld, slurmd and munged, as root, devices made up.

Everything lies in one folder and is gone at the end: keys, sockets, state, logs; only /etc/hosts has the nodes' names
for as long as the cluster is up. Several clusters may be up at a time: each takes away the names that it wrote alone,
and numbers its jobs from elsewhere, so that the ports that follow from a job's number are its own. What makes it work
on one machine: several slurmd of one host tell themselves apart by name and port (Debian builds with MULTIPLE_SLURMD);
gres.conf has to name device files, for which character devices with the numbers of /dev/null do;
SlurmdParameters=config_overrides lets a small machine stand for a large one; without cgroups and systemd processes are
tracked by proctrack/linuxproc. A job that is put back waits until the credentials of its first start have ended
(cred_expire), as Slurm has it: started sooner, its steps are refused as revoked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

MARK = "# shardwise checks"
HOSTS = Path("/etc/hosts")
PACKAGES = ("slurm-wlm", "munge")
_ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"}

_CONF = """ClusterName=shardwise
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge/run/munge.sock,cred_expire=20
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/run/slurmctld.pid
SlurmdPidFile={base}/run/slurmd.%n.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd.%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=2
EnforcePartLimits=ALL
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
SlurmdParameters=config_overrides
GresTypes=gpu
KillWait=2
MinJobAge=600
FirstJobId={first}
"""


@dataclass(frozen=True)
class Cluster:
    """A running cluster; `environment` is what Slurm's commands need."""

    base: Path
    nodes: int
    environment: dict[str, str]

    def run(self, *words: str, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """One command of Slurm."""
        return subprocess.run(
            words, cwd=folder, env=self.environment | variables, capture_output=True, text=True, timeout=60, check=False
        )

    def submit(self, folder: Path, script: str, *options: str, path: Path | None = None) -> str:
        """Runs sbatch on `script` with the programs of `path` first; its state at the end. Raises TimeoutError."""
        variables = {"PATH": f"{path}:{self.environment['PATH']}"} if path else {}
        given = self.run("sbatch", "--parsable", *options, script, folder=folder, **variables)
        assert given.returncode == 0, given.stderr
        job = given.stdout.strip().split(";")[0]
        end, states = time.monotonic() + 120, [""]
        while time.monotonic() < end:
            states = [
                word.partition("=")[2]
                for word in self.run("scontrol", "show", "job", job).stdout.split()
                if word.startswith("JobState=")
            ]
            if states and all(state in _ENDED for state in states):
                return " ".join(sorted(set(states)))
            time.sleep(0.3)
        self.run("scancel", job)
        raise TimeoutError(f"job {job}: {states}")

    def wait(
        self, holds: Callable[[], bool], seconds: float, job: str, doing: Callable[[], object] = lambda: None
    ) -> None:
        """Until `holds`, for as long as what the job is `doing` changes every so many seconds: a loaded machine is
        slow, and a job that hangs is still. Raises TimeoutError with the job, which is cancelled, its output and what
        runs."""
        end, before = time.monotonic() + seconds, doing()
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.2)
            if (now := doing()) != before:
                end, before = time.monotonic() + seconds, now
        state = self.run("scontrol", "show", "job", job).stdout
        running = subprocess.run(
            ["ps", "-eo", "pid,ppid,etimes,stat,args"], capture_output=True, text=True, check=False
        )
        self.run("scancel", job)
        (output,) = re.findall(r"StdOut=(.+)", state)
        said = Path(output).read_text() if Path(output).exists() else "no output"
        raise TimeoutError("\n".join((state[-1500:], said[-4000:], running.stdout[-6000:])))


@contextlib.contextmanager
def cluster(base: Path, nodes: int = 2, devices: int = 8, cores: int = 64) -> Iterator[Cluster]:
    """A cluster of `nodes` x `devices` in the new folder `base`, which other users have to be able to reach.

    Raises RuntimeError with the reason where none starts.
    """
    _install()
    environment = {"PATH": os.environ["PATH"], "HOME": str(base), "LANG": "C", "SLURM_CONF": f"{base}/etc/slurm.conf"}
    found = Cluster(base, nodes, environment)
    try:
        _make_folders(base, nodes)
        _start_munge(base)
        _configure(base, nodes, devices, cores)
        _name_nodes(base, nodes)
        _call(environment, "slurmctld", "-c", "-f", f"{base}/etc/slurm.conf")
        for index in range(1, nodes + 1):
            _call(environment, "slurmd", "-N", f"node{index}", "-f", f"{base}/etc/slurm.conf")
        _await_idle(found)
        yield found
    finally:
        _stop(base)


def _install() -> None:
    if os.geteuid() != 0:
        raise RuntimeError("a cluster can be started by root only")
    if shutil.which("slurmctld") and shutil.which("munged"):
        return
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(["apt-get", *words], env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"apt-get install {' '.join(PACKAGES)}: {done.stderr[-500:]}")


def _call(environment: dict[str, str], *words: str) -> None:
    """Starts a daemon, which puts itself into the background."""
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:3])}: {(done.stderr or done.stdout)[-500:]}")


def _make_folders(base: Path, nodes: int) -> None:
    for name in ("etc", "state", "log", "run", "dev", "munge/etc", "munge/run", "munge/log", "munge/lib"):
        (base / name).mkdir(parents=True)
    for index in range(1, nodes + 1):
        (base / "spool" / f"node{index}").mkdir(parents=True)
    base.chmod(0o755)


def _start_munge(base: Path) -> None:
    home = base / "munge"
    key = home / "etc" / "munge.key"
    key.write_bytes(os.urandom(1024))
    for folder in (home, *home.rglob("*")):
        shutil.chown(folder, "munge", "munge")
    for name in ("etc", "log", "lib"):
        (home / name).chmod(0o700)
    (home / "run").chmod(0o755)
    key.chmod(0o400)
    options = {
        "key-file": key,
        "socket": home / "run" / "munge.sock",
        "pid-file": home / "run" / "munged.pid",
        "log-file": home / "log" / "munged.log",
        "seed-file": home / "lib" / "seed",
    }
    words = [f"--{name}={path}" for name, path in options.items()]
    _call(dict(os.environ), "runuser", "-u", "munge", "--", "munged", *words)


def _configure(base: Path, nodes: int, devices: int, cores: int) -> None:
    for index in range(devices):
        os.mknod(base / "dev" / f"gpu{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    ports = _free_ports(nodes + 1)
    lines = [_CONF.format(base=base, port=ports[0], first=1 + 100 * secrets.randbelow(99))]
    for index in range(1, nodes + 1):
        lines.append(
            f"NodeName=node{index} NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[index]} CPUs={cores} "
            f"Boards=1 SocketsPerBoard=2 CoresPerSocket={cores // 2} ThreadsPerCore=1 RealMemory=1000000 "
            f"Gres=gpu:h100:{devices} State=UNKNOWN\n"
        )
    lines.append(
        f"PartitionName=gpu Nodes=node[1-{nodes}] Default=YES MaxTime=7-00:00:00 DefaultTime=1:00:00 State=UP\n"
    )
    (base / "etc" / "slurm.conf").write_text("".join(lines))
    gres = f"NodeName=node[1-{nodes}] Name=gpu Type=h100 File={base}/dev/gpu[0-{devices - 1}]\n"
    (base / "etc" / "gres.conf").write_text(gres)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _name_nodes(base: Path, nodes: int) -> None:
    """The nodes' names in /etc/hosts, written in place: it may be mounted into a container as a file."""
    with _hosts() as hosts:
        hosts.seek(0, os.SEEK_END)
        hosts.writelines(f"127.0.0.1 node{index} {MARK} {base.name}\n" for index in range(1, nodes + 1))


def _forget_names(base: Path) -> None:
    with _hosts() as hosts:
        lines = hosts.readlines()
        kept = [line for line in lines if not line.endswith(f"{MARK} {base.name}\n")]
        if kept != lines:
            hosts.seek(0)
            hosts.truncate()
            hosts.writelines(kept)


@contextlib.contextmanager
def _hosts() -> Iterator[TextIO]:
    with HOSTS.open("r+") as hosts:
        fcntl.flock(hosts, fcntl.LOCK_EX)
        yield hosts


def _await_idle(found: Cluster) -> None:
    end = time.monotonic() + 30
    states = ""
    while time.monotonic() < end:
        states = found.run("sinfo", "-h", "-N", "-o", "%T").stdout
        if states.split() == ["idle"] * found.nodes:
            return
        time.sleep(0.3)
    raise RuntimeError(f"nodes are not idle: {states or found.run('sinfo').stderr}")


def _stop(base: Path) -> None:
    """Ends the daemons of this cluster, by the process ids that they wrote, and takes everything away."""
    pids = [
        int(path.read_text()) for path in (*base.glob("run/*.pid"), *base.glob("munge/run/*.pid")) if path.read_text()
    ]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 10
    while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.1)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _forget_names(base)
    shutil.rmtree(base, ignore_errors=True)
