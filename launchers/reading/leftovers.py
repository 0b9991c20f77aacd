"""Keys that no reader took: each is named, with what is known of it (<program>/leftovers.yaml)."""

from __future__ import annotations

import re
from typing import Any

from launchers.reading.documents import Keys
from launchers.reading.findings import Findings
from launchers.tables import table

# Words of keys that speak of something beside the training.
_OTHER_ROLES = ("eval", "val", "validation", "rollout", "inference", "generation", "vllm", "sglang")
NOT_KNOWN = "not known here"
_NEUTRAL = "changes neither memory nor time as estimated"


def leave_rest(keys: Keys, findings: Findings, *tables: str) -> None:
    """Empties `keys`. What changes the run and has no place in a Plan is warned of, or blocks the field it changes."""
    rows = [table(f"{name}/leftovers") for name in tables]
    serves = findings.values.get("workload.kind") == "inference"
    names = table("data/script_names")["model"]
    for item in list(keys.items.values()):
        if not _is_on(item.value):
            continue
        if item.key in names and isinstance(item.value, str):
            findings.named.append(item)
        blocks = next((row["blocks"][item.key] for row in rows if item.key in row.get("blocks", {})), None)
        why = next((row["no_place"][item.key] for row in rows if item.key in row.get("no_place", {})), None)
        if blocks:
            findings.block(blocks["field"], item, blocks["why"])
        elif why:
            findings.leave(item, why)
            findings.warn(f"{item.origin}: {why}, and has no place in a Plan")
        elif any(re.fullmatch(pattern, item.key) for row in rows for pattern in row.get("neutral", ())):
            findings.leave(item, _NEUTRAL)
        elif (field := _field_of(item.key, findings)) is not None and (not serves or field.startswith("layout.")):
            findings.block(field, item, "is not known here, and may change it")
        else:
            findings.leave(item, NOT_KNOWN)
    for name in keys.twice:
        findings.warn(f"{keys.file}: {name} is there twice; the last one counts")
    keys.items = {}


def _field_of(key: str, findings: Findings) -> str | None:
    """The field of a plan that an unknown key's words speak of, and that nothing known says."""
    # The section of verl's that all of a run stands in.
    words = " " + " ".join(re.split(r"[\W_]+", key.lower().removeprefix("actor_rollout_ref."))) + " "
    if any(f" {role} " in words for role in _OTHER_ROLES):
        return None
    fields = dict(table("data/unknown_words"))
    always = fields.pop("always")
    implied = {field for field, _, _ in findings.implied}
    for row, counts in ((always, True), (fields, False)):
        for field, phrases in row.items():
            if any(f" {phrase} " in words for phrase in phrases) and (
                counts or not (findings.has(field) or field in implied)
            ):
                return field
    return None


def _is_on(value: Any) -> bool:
    return value not in (None, False, "", "none", "None") and value not in ([], {})
