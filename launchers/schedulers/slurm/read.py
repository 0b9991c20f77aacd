"""Slurm: #SBATCH lines and srun's options, and PBS' -l select. What they say of devices, nodes and copies."""

from __future__ import annotations

import re

from launchers.reading.devices import accelerator
from launchers.reading.documents import Item
from launchers.reading.findings import as_number, is_certain
from launchers.shell.scripts import Word
from launchers.shell.setting import ScriptSetting

_SRUN_VALUES = ("--nodes", "--ntasks", "--ntasks-per-node", "--cpus-per-task", "--gpus", "--gpus-per-node", "--gres",
                "--jobid", "--container-image", "--container-mounts", "--container-workdir", "--nodelist",
                "--output", "--error", "--kill-on-bad-exit", "--mem", "--time", "--partition", "--account",
                "--mpi", "--export", "--job-name", "--gpus-per-task", "--chdir", "--cpu-bind", "--wait")  # fmt: skip


def directives(text: str, setting: ScriptSetting) -> dict[str, str]:
    """#SBATCH and #PBS lines up to the first command, and the variables that Slurm sets from them."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            break
        if stripped.startswith("#SBATCH"):
            words = stripped.removeprefix("#SBATCH").partition(" #")[0]
            for long, short, value in re.findall(r"(?<=\s)(?:--([a-z-]+)(?:=|\s+(?!-))|-([NGC])\s*)(\S+)", words):
                name = long or {"N": "nodes", "G": "gpus", "C": "constraint"}[short]
                _option(name, value.strip("\"'"), number, setting)
        elif match := re.match(r"#PBS\s+-l\s+select=([0-9]+)(?::\S*?ngpus=([0-9]+))?", stripped):
            for fact, value in (("nodes", match[1]), ("per_node", match[2])):
                setting.findings.whole(fact, Item(setting.file, "-l select", value, number) if value else None)
    _tasks(text, setting)
    values = setting.findings.values
    known = {}
    if "nodes" in values:
        known |= {name: str(values["nodes"]) for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")}
    if "per_node" in values:
        known |= {name: str(values["per_node"]) for name in ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE")}
    return known


def _tasks(text: str, setting: ScriptSetting) -> None:
    """Devices of jobs that ask for some for each task."""
    lines = "\n".join(re.findall(r"^#SBATCH\s.*", text, re.MULTILINE))
    counts = dict(re.findall(r"\s--(gpus-per-task|ntasks-per-node|ntasks)[=\s]([0-9]+)", lines))
    if "gpus-per-task" not in counts:
        tasks = int(counts.get("ntasks-per-node", 1))
        if tasks > 1:
            # A process for each device, where nothing counts these.
            setting.findings.imply("per_node", tasks, Item(setting.file, "--ntasks-per-node", tasks))
        return
    for count, fact in (("ntasks-per-node", "per_node"), ("ntasks", "devices")):
        if count in counts and not setting.findings.has(fact):
            number = int(counts[count]) * int(counts["gpus-per-task"])
            setting.findings.put(fact, number, Item(setting.file, f"--{count} x --gpus-per-task", number))
            return


def after_srun(words: list[Word], setting: ScriptSetting) -> list[Word]:
    """srun's own options; those of nodes and devices are counts. What follows the last option is the command."""
    at, short = 0, {"-N": "nodes", "-n": "ntasks", "-G": "gpus", "-c": "cpus", "-p": "partition", "-J": "job-name"}
    while at < len(words) and words[at].text.startswith("-"):
        name, equals, value = words[at].text.partition("=")
        line = words[at].line
        takes = name in _SRUN_VALUES or name in short or re.fullmatch(r"-[A-Z]", name)
        if not equals and takes and at + 1 < len(words):
            at += 1
            value = words[at].text
        at += 1
        _option(name.lstrip("-") if name.startswith("--") else short.get(name, name), value, line, setting, note=True)
    return words[at:]


def _option(name: str, value: str, line: int, setting: ScriptSetting, note: bool = False) -> None:
    """Counts of #SBATCH and srun: nodes, and devices of a node."""
    item = Item(setting.file, f"--{name}", value, line)
    put = setting.findings.note if note else setting.findings.put
    if not is_certain(value):
        return
    if name == "nodes":
        parts = value.split("-")
        if len(parts) == 2 and parts[0] != parts[1]:
            setting.findings.block("nodes", item, "is a range")
        elif (number := as_number(parts[0])) is not None and number >= 1:
            put("nodes", int(number), item)
    elif name == "array":
        parts = [re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part) for part in value.partition("%")[0].split(",")]
        if all(parts):
            tasks = sum(int(part[2] or part[1]) - int(part[1]) + 1 for part in parts if part)
            # Each is a job of its own; of servers they are copies.
            put("copies", max(1, tasks), item)
    elif name == "constraint":
        accelerator(setting.findings, item, value)
    elif name in ("gpus-per-node", "gres", "gpus"):
        match = re.fullmatch(r"(?:gpu:)?(?:([A-Za-z][A-Za-z0-9_.-]*):)?([0-9]+)(\(.*\))?", value)
        if match and int(match[2]) >= 1:
            put("devices" if name == "gpus" else "per_node", int(match[2]), item)
            if match[1] and match[1] != "gpu":
                accelerator(setting.findings, item, match[1])
        elif name != "gres" or value.startswith("gpu"):
            setting.findings.leave(item, "is no number of devices")
