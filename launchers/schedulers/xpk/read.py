"""xpk workload create: slices and the command that runs on their hosts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from launchers.reading.devices import accelerator
from launchers.reading.documents import Item
from launchers.reading.findings import as_number
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import ScriptSetting
from launchers.tables import table


def command_of(words: Sequence[Word], setting: ScriptSetting) -> Word | None:
    """The command as text, its devices put into the findings; None for what starts nothing."""
    if [word.text for word in words[1:3]] not in (["workload", "create"], ["workload", "create-pathways"]):
        return None
    keys, _ = options(setting.file, words[3:])
    kind = keys.take("device_type") or keys.take("tpu_type")
    slices, nodes = keys.take("num_slices"), keys.take("num_nodes")
    if kind is not None:
        _devices(kind, int(as_number(slices.value) or 1) if slices is not None else 1, setting)
        setting.findings.whole("nodes", nodes)
    text = keys.take("command")
    return None if text is None else Word(str(text.value), text.line or 0)


def _devices(kind: Item, slices: int, setting: ScriptSetting) -> None:
    """`v5p-256` counts cores and `tpu7x-4x4x4` chips, of a slice; `h200-141gb-8` the devices of a node."""
    findings, text = setting.findings, str(kind.value)
    name, _, size = text.rpartition("-")
    for device, row in table("data/devices")["xpk"].items():
        if row["prefix"] == name and re.fullmatch(r"\d+(x\d+)*", size):
            chips = math.prod(map(int, size.split("x"))) if "x" in size else int(size) // row["cores"]
            findings.put("devices", chips * slices, kind)
            accelerator(findings, kind, device)
            if (each := row.get("jax_devices", 1)) > 1:
                why = f"{kind.origin}: sizes count {each} devices a chip, a Plan's one; give the batch of a chip"
                findings.blocked.setdefault("workload.micro_batch", why)
            return
    if size.isdigit():
        findings.put("per_node", int(size), kind)
        accelerator(findings, kind, re.sub(r"-mega", "", name))
