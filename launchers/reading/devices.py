"""Accelerators by the names that schedulers, clouds and node labels give them."""

from __future__ import annotations

import re
from functools import cache

from estimator.errors import PlanError
from knowledge.machines.catalogue import find_accelerator
from launchers.reading.documents import Item
from launchers.reading.findings import Findings
from launchers.tables import table

_FIELD = "cluster.accelerator"
# What clouds write round a name: nvidia-h100-mega-80gb has another network and the same device.
_EXTRA = re.compile(r"^(nvidia|tesla|amd)[-_ ]|[-_](mega|vws)(?=[-_]|$)", re.IGNORECASE)


def accelerator(findings: Findings, item: Item, name: str, scheduler: str = "") -> None:
    """Keeps the accelerator that `name` means to `scheduler` (a list of data/devices.yaml), unless a file is more
    exact. A name that several share stays open."""
    if findings.has(_FIELD):
        return
    matches = [
        id for id, label in table("data/devices").get(scheduler, {}).items() if label.lower() == name.strip().lower()
    ]
    # SkyPilot's A100 is one of two: forms that differ in more than their plug have names of their own.
    known = matches[0] if matches else _known(name)
    if isinstance(known, str):
        findings.imply(_FIELD, known, item)
    elif known:
        findings.leave(item, f"may be any of {', '.join(known)}")


@cache
def _known(name: str) -> str | tuple[str, ...]:
    """An id of the catalogue, or several that share the name; () where there is none."""
    for text in (name.strip(), _EXTRA.sub("", _EXTRA.sub("", name.strip()))):
        try:
            return find_accelerator(text).value.id
        except PlanError as error:
            if "ambiguous" in error.problem:
                return tuple(error.valid)
    return ()
