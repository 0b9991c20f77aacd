"""Devices that are built unlike their family are fitted by themselves, near it."""

from __future__ import annotations

from knowledge.fitted.training import calibration, device_lineage, factors_node
from knowledge.machines.catalogue import find_accelerator


def test_a_device_built_unlike_its_family_has_factors_of_its_own() -> None:
    older, trillium = (find_accelerator(name).value for name in ("tpu-v5p", "tpu-v6e"))
    assert older.family == trillium.family == factors_node(older)
    assert device_lineage(factors_node(trillium)) == ["tpu-v6e", older.family]
    apart = [calibration(device.family, "maxtext", device).device.matmul for device in (older, trillium)]
    assert apart[0] > apart[1]
