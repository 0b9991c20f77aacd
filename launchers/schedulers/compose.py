"""Docker Compose file for one node: the run, or each replica of a served model with its own devices and port.

Compose expands $NAME in every value, so each dollar sign is doubled (Compose specification, Interpolation).
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers import File, Piece, Start
from launchers.devices import visible, word_of
from launchers.engines.job import ServingJob
from launchers.job import Job, own_heading
from launchers.schedulers import node
from launchers.yaml_text import Note, Tree, tree

PATH = "compose.yaml"
_FOLDER = "/work"


def render(job: Job | ServingJob, start: Start, files: Sequence[File] = ()) -> Piece:
    """The file and what a site must fill in. Raises PlanError where containers cannot be given the plan's devices."""
    needs: list[str] = []
    image = node.container_image(job, start, PATH, needs)
    names = [f"replica-{index}" for index in range(job.replicas)] if job.replicas > 1 else ["run"]
    services = {name: _service(job, start, image, index) for index, name in enumerate(names)}
    document = {"name": node.plain_name(job), "services": services}
    text = [*(f"# {line}" for line in own_heading(job, "docker compose up")), *tree(document), ""]
    return Piece((File(PATH, "compose", "\n".join(text)),), tuple(needs))


def _service(job: Job | ServingJob, start: Start, image: str, index: int) -> dict[str, Tree]:
    environment: dict[str, Tree] = {Note("from your own environment, where it is set"): "", "HF_TOKEN": "${HF_TOKEN:-}"}
    environment |= {name: _literal(value) for name, value in start.environment.items()}
    service: dict[str, Tree] = {
        "image": image,
        "working_dir": _FOLDER,
        "volumes": [f".:{_FOLDER}"],
        # The entry point and not the command: images of engines bring an entry point of their own.
        "entrypoint": ["sh", "-c", _literal(f"exec env {start.command}")],
        "environment": environment,
        "ipc": "host",
        "ulimits": {"memlock": -1, "stack": 67108864},
    }
    if start.port is not None:
        service["ports"] = [f"{start.port + index}:{start.port}"]
        service["restart"] = "unless-stopped"
    first = index * job.node_devices
    mine = range(first, first + job.node_devices)
    means = word_of(job, "compose")
    if means == "nvidia":
        device: dict[str, Tree] = {"driver": "nvidia", "capabilities": ["gpu"]}
        device |= {"device_ids": [str(number) for number in mine]} if job.replicas > 1 else {"count": job.node_devices}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    elif means == "files":
        service["devices"] = ["/dev/kfd", "/dev/dri"]
        service["group_add"] = ["video"]
        service["security_opt"] = ["seccomp=unconfined"]
        environment[visible(job)] = ",".join(map(str, mine))
    return service


def _literal(text: str) -> str:
    return text.replace("$", "$$")
