"""What this machine is: its accelerators by their drivers' programs, its host, and what PyTorch sees of it."""

from __future__ import annotations

from dataclasses import dataclass

from measure.machine import amd, apple, nvidia
from measure.machine.devices import Device, DeviceGroup
from measure.machine.host import Host, host
from measure.machine.torch_here import Torch, torch_here


@dataclass(frozen=True)
class Inventory:
    accelerators: tuple[DeviceGroup, ...]
    host: Host
    torch: Torch | None

    @property
    def devices(self) -> tuple[Device, ...]:
        """Those that drivers speak of, else those that PyTorch sees."""
        named = tuple(device for group in self.accelerators for device in group.devices)
        return named or (self.torch.devices if self.torch else ())

    @property
    def links(self) -> dict[tuple[int, int], str]:
        return self.accelerators[0].links if self.accelerators else {}


def inventory(with_torch: bool = True) -> Inventory:
    """Asks every program once; none of them is needed."""
    vendors = (nvidia.devices(), amd.devices(), apple.devices())
    return Inventory(
        accelerators=tuple(group for group in vendors if group),
        host=host(),
        torch=torch_here() if with_torch else None,
    )
