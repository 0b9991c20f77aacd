"""Devices that are announced and not sold yet."""

from __future__ import annotations

from estimator.machine.hardware import Accelerator


def before_release(device: Accelerator) -> list[str]:
    """What to beware of in figures of a device that nobody has yet."""
    if not device.announced:
        return []
    return [f"{device.name.removesuffix(' (announced)')} is announced: its figures are from before release"]
