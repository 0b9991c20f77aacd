"""What is said of serving and becomes a Plan field only together with others, or is no Plan field at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.slots import Question, Slot
from estimator.plan.schema import Inference

# Arguments of the tools, and limits that only the answer compares with.
ASKED = ("slo_statistic", "e2e_limit_s", "usd_per_million")
COMBINED = ("token_rate", "total_tokens", "prefix_tokens", "replicas", "expert_parallel", "note", *ASKED)
_LOADS = {"workload.concurrency", "workload.request_rate"}
_ALL_AT_ONCE = ("offline", "single-stream", "static-batch")


def loads_agree(workload: Mapping[str, Any], said: set[str]) -> tuple[dict[str, Any], list[str]]:
    """(Changes, notes): clients and a rate stand for each other, and a scenario without clients for both."""
    changes: dict[str, Any] = {}
    notes: list[str] = []
    loads = (said & _LOADS) | ({"workload.request_rate"} if "token_rate" in said else set())
    if len(loads) == 1:
        other = next(iter(_LOADS - loads)).rpartition(".")[2]
        if workload.get(other) is not None:
            changes[f"workload.{other}"] = None
    scenario = workload.get("scenario")
    if loads and scenario in _ALL_AT_ONCE and "workload.scenario" not in said:
        changes["workload.scenario"] = None
        notes.append(f"scenario {scenario} is left, since clients come at their own time")
    if "workload.scenario" in said and scenario in _ALL_AT_ONCE and not loads:
        changes |= {path: None for path in _LOADS if workload.get(path.rpartition(".")[2]) is not None}
    counted = said & {"workload.requests", "total_tokens"} and "workload.scenario" not in said
    loaded = loads or any(workload.get(name) for name in ("concurrency", "request_rate"))
    if counted and not loaded and scenario != "offline":
        changes["workload.scenario"] = "offline"
        notes.append("all of these requests taken as sent at once (offline)")
    if "workload.weight_dtype" in said and workload.get("weight_bits") and "workload.weight_bits" not in said:
        changes["workload.weight_bits"] = None
    kind = {"exllamav2": "exl2", "llamacpp": "gguf"}.get(str(workload.get("engine")))
    if "workload.weight_bits" in said and kind and workload.get("weight_dtype") is None:
        changes["workload.weight_dtype"] = kind
    if "workload.engine" in said and workload.get("software_version") and "workload.software_version" not in said:
        changes["workload.software_version"] = None
    return changes, notes


def combine(plan: Mapping[str, Any], slot: Slot) -> tuple[dict[str, Any], list[str], list[Question]]:
    """(Changes, notes, questions) of a slot that needs other fields of the plan to be read."""
    workload: Mapping[str, Any] = plan.get("workload") or {}
    layout: Mapping[str, Any] = plan.get("layout") or {}
    notes = [slot.note] if slot.note else []
    prompt, answer = (
        workload.get(name) or Inference.model_fields[name].default for name in ("input_len", "output_len")
    )
    tokens = {"output": answer, "input": prompt, "total": prompt + answer}
    match slot.path:
        case "token_rate":
            rate, side = slot.value
            found = rate / tokens[side]
            said = f"{slot.words!r} read as {found:.4g} requests/s, each with {tokens[side]:,} {_SIDES[side]}"
            return {"workload.request_rate": found}, [said], []
        case "total_tokens":
            number = max(round(slot.value / tokens["total"]), 1)
            said = f"{slot.words!r} read as {number:,} requests of {tokens['total']:,} {_SIDES['total']}"
            return {"workload.requests": number}, [said], []
        case "prefix_tokens" if workload.get("input_len") is None:
            question = Question("workload.input_len", f"how long are prompts? ({slot.words} needs it)")
            return {}, notes, [question]
        case "prefix_tokens":
            share = min(slot.value / prompt, 0.999)
            said = f"{slot.words!r} read as {100 * share:.1f} % of each prompt, found in the prefix cache"
            return {"workload.prefix_hit": share}, [said], []
        case "replicas":
            each = (layout.get("tp") or 1) * (layout.get("pp") or 1) * (layout.get("dp") or 1)
            if "tp" not in layout and "pp" not in layout:
                question = Question("layout.tp", f"over how many devices is each of {slot.words} (tensor parallel)?")
                return {}, notes, [question]
            said = f"{slot.words} of {each} device{'s' if each > 1 else ''} read as {slot.value * each} devices"
            return {"cluster.count": slot.value * each}, [said], []
        case "expert_parallel":
            size = (layout.get("tp") or 0) * (layout.get("dp") or 1) or (plan.get("cluster") or {}).get("count")
            if not size:
                return {}, ["expert parallel sizes are searched, since no number of devices was said"], []
            return {"layout.ep": size}, [f"{slot.words!r} read as experts dealt over {size} devices"], []
    return {}, notes, []


_SIDES = {"output": "generated tokens", "input": "prompt tokens", "total": "tokens of prompt and answer"}
