"""Docker Compose file for one node: the run, or each replica of a served model with its own devices and port.

Compose expands $NAME in every value, so each dollar sign is doubled (Compose specification, Interpolation).
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.devices import visible, word_of
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import LOADING_S
from launchers.yaml_text import Tree, YamlNote, tree

PATH = "compose.yaml"
_FOLDER = "/work"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The file and what a site must fill in. Raises PlanError where containers cannot be given the plan's devices."""
    needs: list[str] = []
    image = node.container_image(launch, start, PATH, needs)
    names = [f"replica-{index}" for index in range(launch.replicas)] if launch.replicas > 1 else ["run"]
    services = {name: _service(launch, start, image, index) for index, name in enumerate(names)}
    document = {"name": node.plain_name(launch), "services": services}
    text = [*(f"# {line}" for line in scheduler_heading(launch, "docker compose up")), *tree(document), ""]
    return Piece((File(PATH, "compose", "\n".join(text)),), tuple(needs))


def _service(launch: Launch, start: Start, image: str, index: int) -> dict[str, Tree]:
    environment: dict[str, Tree] = {
        YamlNote("from your own environment, where it is set"): "",
        "HF_TOKEN": "${HF_TOKEN:-}",
        # Weights outlive the container.
        "HF_HOME": f"{_FOLDER}/cache",
    }
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
        environment["HOST"] = "0.0.0.0"
        if start.key_variable is not None:
            environment[start.key_variable] = f"${{{start.key_variable}:-}}"
        service["ports"] = [f"127.0.0.1:{start.port + index}:{start.port}"]
        service["restart"] = "unless-stopped"
        service["healthcheck"] = _health(start, start.port)
    first = index * launch.node_devices
    mine = range(first, first + launch.node_devices)
    means = word_of(launch, "compose")
    # No cores: Docker starts nothing that has a limit of more cores than the machine.
    memory: dict[str, Tree] = {"memory": f"{node.host_gib(launch)}g"}
    if means == "nvidia":
        device: dict[str, Tree] = {"driver": "nvidia", "capabilities": ["gpu"]}
        device |= (
            {"device_ids": [str(number) for number in mine]} if launch.replicas > 1 else {"count": launch.node_devices}
        )
        service["deploy"] = {"resources": {"limits": memory, "reservations": memory | {"devices": [device]}}}
    elif means == "files":
        service["deploy"] = {"resources": {"limits": memory, "reservations": memory}}
        service["devices"] = ["/dev/kfd", "/dev/dri"]
        service["group_add"] = ["video"]
        service["security_opt"] = ["seccomp=unconfined"]
        environment[visible(launch)] = ",".join(map(str, mine))
    return service


def _health(start: Start, port: int) -> dict[str, Tree]:
    """The engine's own answer, over what its image has; llama.cpp's asks at another port than this one (its
    .devops/*.Dockerfile)."""
    url = f"http://127.0.0.1:{port}/health"
    ask: list[Tree] = ["python3", "-c", f"import urllib.request as ask; ask.urlopen('{url}', timeout=5)"]
    if "llama.cpp" in start.programs:
        ask = ["curl", "-f", url]
    return {"test": ["CMD", *ask], "interval": "30s", "timeout": "10s", "retries": 3, "start_period": f"{LOADING_S}s"}


def _literal(text: str) -> str:
    return text.replace("$", "$$")
