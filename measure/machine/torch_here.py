"""What PyTorch sees, where it is installed; asked in a process of its own, as importing it takes seconds."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from measure.machine.devices import Device
from measure.machine.programs import Ask, printed

_PATIENCE_S = 120.0
_ASK = """
import json, torch
kind = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
devices = []
if kind == "cuda":
    for place in range(torch.cuda.device_count()):
        one = torch.cuda.get_device_properties(place)
        devices.append([one.name, one.total_memory])
backends = [name for name in ("nccl", "gloo", "mpi") if torch.distributed.is_available()
            and getattr(torch.distributed, f"is_{name}_available")()]
print(json.dumps({"version": torch.__version__, "kind": kind, "devices": devices, "backends": backends,
                  "cuda": torch.version.cuda, "hip": torch.version.hip}))
"""


@dataclass(frozen=True)
class Torch:
    """`kind` is the device type that it would compute on: cuda (also of ROCm), mps or cpu."""

    version: str
    kind: str
    devices: tuple[Device, ...]
    backends: tuple[str, ...]
    runtime: str | None


def python_has_torch() -> bool:
    return find_spec("torch") is not None


def torch_here(python: str | None = None, ask: Ask | None = None) -> Torch | None:
    """None where PyTorch is not installed for `python` (this one) or does not start."""
    if python is None and not python_has_torch():
        return None
    command = (python or sys.executable, "-c", _ASK)
    text = ask(command) if ask else printed(command, _PATIENCE_S)
    try:
        answer = json.loads(text.strip().splitlines()[-1]) if text and text.strip() else None
    except ValueError:
        return None
    if answer is None:
        return None
    vendor = "AMD" if answer["hip"] else "NVIDIA"
    runtime = f"ROCm {answer['hip']}" if answer["hip"] else f"CUDA {answer['cuda']}" if answer["cuda"] else None
    devices = tuple(Device(name=name, vendor=vendor, memory_bytes=float(memory)) for name, memory in answer["devices"])
    return Torch(answer["version"], answer["kind"], devices, tuple(answer["backends"]), runtime)
