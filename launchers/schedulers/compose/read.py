"""Docker Compose files, read into devices and commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from launchers.reading.documents import Item
from launchers.reading.findings import Findings, as_number
from launchers.schedulers.containers import Data, Jobs, command_line, list_at, mapping_at, variables_of
from launchers.shell.scripts import UNKNOWN


def read(name: str, services: Data, findings: Findings) -> Jobs:
    jobs, total, unsure = Jobs("Compose file"), 0, False
    item = Item(name, "devices", None)
    for label, service in services.items():
        if not isinstance(service, Mapping):
            continue
        visible: set[str] = set()
        counted = 0
        environment = variables_of(service.get("environment"))
        for row in list_at(mapping_at(service, "deploy", "resources", "reservations"), "devices"):
            row = row if isinstance(row, Mapping) else {}
            ids, count = row.get("device_ids"), row.get("count", "all")
            item = Item(name, f"{label} devices", ids or count)
            if isinstance(ids, list):
                visible |= set(map(str, ids))
            elif as_number(count):
                counted += int(as_number(count) or 0)
            else:
                unsure = True
        for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
            numbers = environment.get(variable, "")
            if not visible and not counted and re.fullmatch(r"[0-9]+(,[0-9]+)*", numbers):
                visible, item = set(numbers.split(",")), Item(name, f"{label} {variable}", numbers)
        total += counted + len(visible)
        fields = {key: _single(value) for key, value in service.items()}
        # The command of a service is what its image's entry point is given.
        fields = {"image": fields.get("image", ""), "args": fields.get("command")} | (
            {"command": fields["entrypoint"]} if fields.get("entrypoint") else {}
        )
        if script := command_line(fields, environment):
            jobs.scripts.append((script, environment))
    if total and not unsure:
        findings.put("devices", total, Item(name, "devices", total) if len(services) > 1 else item)
    elif unsure:
        findings.leave(item, "as many as the machine has")
    return jobs


def _single(value: Any) -> Any:
    """Words as Compose leaves them: a dollar sign is doubled, and variables of the environment have defaults."""
    if isinstance(value, list):
        return [_single(part) for part in value]
    if not isinstance(value, str):
        return value
    text = re.sub(r"(?<!\$)\$\{\w+:?-([^}]*)\}", r"\1", value)
    text = re.sub(r"(?<!\$)\$(\{\w+[^}]*\}|\w+)", UNKNOWN, text)
    return text.replace("$$", "$")
