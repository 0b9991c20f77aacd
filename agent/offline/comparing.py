"""What is to be set side by side: the words that show it, and a change that is set beside the session's plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.offline.page import compiled
from agent.offline.slots import Relative, Slot
from estimator.plan.schema import Inference, Training
from planner.partial import get
from planner.requests import ALL_PATHS

_THAN = (
    r"(?:better|worse|faster|slower|quicker|cheaper|dearer|(?:more|less) (?:expensive|costly|efficient|memory|power)|"
    r"higher|lower)"
)
# Between or beside things that are named.
COMPARES = (
    r"\b(?:vs\.?|versus|or|compare[ds]?|comparing|comparison|against|side by side|next to each other|both|than|better|"
    r"differ\w*|beats?|out-?performs?|(?:choos\w+|decid\w+|choice|torn|pick\w*) between)(?!\w)"
)
# The plans of this conversation beside each other.
BOTH = (
    r"\b(?:show (?:me )?both|both (?:of them|side by side|please)|compare (?:the two|both|them|"
    r"with (?:the )?(?:previous|"
    r"last|before))|side by side|next to each other|what(?:'s| is) the difference(?=\W*$)|"
    rf"how (?:much|big) (?:of a|is the) difference|how much {_THAN} is (?:that|it|this)(?: now| then)?(?=\W*$)|"
    r"what difference does (?:it|that|this) make|"
    r"which (?:(?:one )?of (?:the |these |those |them)(?:\w+ )?|one |setup |option )?(?:is|was|would be|comes out) "
    r"(?:the )?(?:cheap|fast|quick|slow|better|best)\w*(?=\W*$))(?!\w)"
)
# Beside what the session has.
_AGAINST = (
    rf"\b(?:vs\.?|versus|against|compared? (?:it |this |that |these |the (?:plan|run|result) )?(?:to|with|against)|"
    rf"stacks? up|{_THAN} than|relative to|in comparison)(?!\w)|"
    r"\bhow (?:do|does|would|will) (?=[^?.!]{1,40} compare\b)"
)
_ANY = r"[^?.!]{1,60}?"
# What a change does to it; each covers the words of the change.
_EFFECT = (
    rf"\bwhat (?:do|does|would|will|did|could|can) {_ANY} (?:buy|gain|give (?:me|us)|save|bring|win|earn|change)\b|"
    r"\bwhat (?:do|does|would|will|did) (?:(?!\b(?:run|job|training|project|epoch|that|this|it)\b)[^?.!]){1,60}? "
    r"cost us\b|"
    rf"\bhow much (?:\w+ ){{0,3}}?(?:{_THAN}|less|more|gain|speed-?up|savings?)\b[^?!]*|"
    rf"\bhow much (?:\w+ ){{0,2}}?(?:does|would|do|will|can|could|did) {_ANY} (?:gain|save|speed|help|buy|bring|slow|"
    rf"add|"
    rf"reduce|cut|hurt)\b|"
    rf"\b(?:is|are|would|will) {_ANY} (?:be )?worth\b|\bworth (?:using|going|switching|upgrading|moving|the)\b[^?!]*|"
    rf"\b(?:gain|benefit|impact|effect|penalty|overhead|savings?|speed-?up|slow-?down|advantage|downside)s? (?:of|"
    rf"from|by|"
    rf"if|with|when)\b[^?!]*|"
    rf"\bwhat difference (?:does|would|do|will) {_ANY} make\b|"
    rf"\b(?:does|would|will|do|could) {_ANY} (?:help|pay off|matter|change (?:anything|much|a lot)|"
    rf"make (?:it |things |this |that |a |much |any )*(?:{_THAN}|difference))\b|"
    rf"\b(?:would|is|are|will) (?:it |that |this |they )?(?:{_ANY} )?(?:be )?(?:much |any |a lot |"
    rf"really )?{_THAN}\b[^?!]*"
)
# What can be on or off: with it, and what it is set beside where the plan does not say.
_WITHOUT: Mapping[str, Any] = {"layout.recompute": "none", "layout.offload": "none", "workload.weight_dtype": "bf16"}
_FEATURES = (
    "workload.method", "workload.precision", "workload.optimizer", "workload.attention", "workload.packing",
    "workload.compile", "workload.fused_loss", "workload.cuda_graph", "workload.tp_overlap", "workload.weight_dtype",
    "workload.kv_dtype", "workload.chunked_prefill", "workload.speculative_tokens", "layout.recompute",
    "layout.offload", "layout.sequence_parallel",
)  # fmt: skip
_OPEN = ("layout.tp", "layout.pp", "layout.cp", "layout.ep", "layout.zero_stage")
_FLAT = {path: name for name, path in ALL_PATHS.items()}
_DEVICES = ("cluster.accelerator", "cluster.count", "cluster.per_node")
_NOT_COMPARED = ("goal.", "workload.dataset", "workload.sample", "workload.epochs", "workload.steps")


@dataclass(frozen=True)
class Beside:
    """compare's own arguments, the slots that stay for the plan, and whether the question is what one change does."""

    own: dict[str, Any]
    slots: list[Slot | Relative]
    once: bool


def beside_the_plan(
    named: str, text: str, plan: Mapping[str, Any], slots: Sequence[Slot | Relative], model: bool
) -> Beside | None:
    """'Is it cheaper than 16 H100s?', 'what does fp8 buy me?': what was said beside what the session has.

    `named` is the lower-case text with names blanked, as long as `text`. Without a plan only what can be on or off is
    set beside the run that the same words describe (`model`: they name one).
    """
    effect = compiled(_EFFECT).search(named)
    against = compiled(_AGAINST).search(named) if plan else None
    if not (effect or against) or not (get(plan, "cluster.accelerator") or (effect and not plan and model)):
        return None
    start, end = (against.start(), len(named)) if against else effect.span() if effect else (0, 0)
    changed = [slot for slot in slots if _value(slot, plan) not in (None, get(plan, slot.path))]
    changed = [slot for slot in changed if slot.path in _FLAT and not slot.path.startswith(_NOT_COMPARED)]
    within = [slot for slot in changed if start <= text.find(slot.words.strip()) < end]
    if against and not within:
        within = changed
    if not plan:
        within = [slot for slot in within if slot.path in _FEATURES][:1]
    if not within:
        return None
    values = {slot.path: _value(slot, plan) for slot in within}
    words = " ".join(dict.fromkeys(slot.words.strip() for slot in within))
    taken = {id(slot) for slot in slots if slot in within or (slot.path in _DEVICES and set(values) & set(_DEVICES))}
    return Beside(_own(plan, values, words, slots), [slot for slot in slots if id(slot) not in taken], not against)


def _own(
    plan: Mapping[str, Any], values: dict[str, Any], words: str, slots: Sequence[Slot | Relative]
) -> dict[str, Any]:
    if len(values) == 1:
        ((path, value),) = values.items()
        before = get(plan, path)
        before = _usual(path, plan) if before is None else before
        if before not in (None, value, "auto"):
            return {"over": {_FLAT[path]: [before, value]}}
    if {"cluster.accelerator", "cluster.count"} & set(values):
        here = {path: get(plan, path) for path in _DEVICES[:2]}
        there = here | {path: value for path, value in values.items() if path in _DEVICES[:2]}
        rest = {_FLAT[path]: value for path, value in values.items() if path not in _DEVICES}
        return {"scenarios": [_on(here, {}), _on(there, rest)]}
    changes: dict[str, Any] = {_FLAT[path]: value for path, value in values.items()}
    if "workload.framework" in values:
        # How the other program shards is its own business.
        sized = {path for path in _OPEN if get(plan, path)} | {slot.path for slot in slots if slot.path in _OPEN}
        changes |= {_FLAT[path]: None for path in _OPEN if path in sized and path not in values}
    return {"scenarios": [{"name": words, **changes}]}


def _on(devices: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    found = {_FLAT[path]: value for path, value in devices.items() if value is not None}
    name = " x ".join(str(found[key]) for key in ("count", "accelerator") if key in found)
    return {"name": ", ".join([name, *map(str, rest.values())])} | found | dict(rest)


def _usual(path: str, plan: Mapping[str, Any]) -> Any:
    """What a field is where nothing was said: off, or the Plan's default."""
    if path in _WITHOUT:
        return _WITHOUT[path]
    room, _, name = path.partition(".")
    serving = (plan.get("workload") or {}).get("kind") == "inference"
    fields = (Inference if serving else Training).model_fields
    return fields[name].default if room == "workload" and name in fields else None


def _value(slot: Slot | Relative, plan: Mapping[str, Any]) -> Any:
    if isinstance(slot, Slot):
        return slot.value
    before = get(plan, slot.path)
    return None if not isinstance(before, int | float) else max(int(before * slot.factor), 1)
