"""The form that every turn becomes before anything happens: reading fills it, one executor acts on it, tests read
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# Quantities that people say and that become Plan fields only together with others.
BESIDE = (
    "batch",  # sequences, of a device or of a step: whichever the plan makes likely
    "batch_tokens",  # tokens of an optimizer step
    "accumulation",  # micro-batches summed before a step
    "nodes",  # machines
    "recompute_block",  # layers that are recomputed
    "prompt_len",  # tokens of a prompt where responses follow in the same sequence (RL)
    "total_tokens",  # of serving: tokens of all requests of a job
    "token_rate",  # of serving: (tokens a second, "output" | "input" | "total"), or (of answers, "both", of prompts)
    "prefix_tokens",  # of serving: tokens that prompts share
    "replicas",  # of serving: copies of the model
    "expert_parallel",  # experts dealt over all devices
    "device_links",  # what joins the devices of a machine: "own" (NVLink), or "host" (without it)
    "load",  # of serving: clients or requests a second, whichever the plan has
    "length",  # of serving: a context whose use the rest of the plan decides
)


@dataclass(frozen=True)
class Edit:
    """One thing said of the plan. `field` is a flat name of `planner.requests.ALL_PATHS` or one of BESIDE.

    `op`: set to `value`; times or plus `value` what it is; drop (leave it open again); refuse `value` (anything but
    it). `span` is where it was said, in characters of the turn; (0, 0) where it was concluded. `note` is what had to be
    assumed to read it so, as a sentence. `settled` in a turn that only supposes the rest: it is said for good ('we have
    16 now. Should I use LoRA?').
    """

    field: str
    op: str
    value: Any
    span: tuple[int, int] = (0, 0)
    note: str | None = None
    settled: bool = False


@dataclass(frozen=True)
class Reference:
    """A span that means something said or answered before: `to` is "before" or "first" (an earlier plan), "offer"
    (`place` counts from 0; None: the best), "supposed" (what was only supposed), "also" (what was compared before,
    with this beside it)."""

    to: str
    span: tuple[int, int] = (0, 0)
    place: int | None = None


@dataclass(frozen=True)
class Need:
    """Something that only the person can settle: `field` is a Plan path, `text` the question."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


@dataclass(frozen=True)
class Reading:
    """A turn as it was understood.

    `act` is what kind of turn it is: ask, change, compare, why, what_if, write, recall or control.

    `tool` is the tool that answers it best (None: none does) and `shares` how likely each was; `focus` the figures that
    are asked for, the first first (fit, memory, need, time, run, cost, cheaper, device_hours, layout, faster, why,
    files, latency, throughput, size); `figures` those that were named, as paths in a result; `serving` whether it is
    about serving (None: the words do not say); `options` what is to be set side by side, each a list of edits; `own`
    the arguments of the tool that no Plan holds; `pricing` what was said of prices; `new` whether it begins anew;
    `unread` the words that no meaning was found for, and `lost` those of them that may change the answer: numbers,
    refusals, comparisons; `then` a second question of the turn that another tool answers, to be read by itself.
    """

    text: str
    act: str = "ask"
    tool: str | None = None
    shares: dict[str, float] = field(default_factory=dict)
    focus: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    serving: bool | None = None
    edits: list[Edit] = field(default_factory=list)
    options: list[list[Edit]] = field(default_factory=list)
    own: dict[str, Any] = field(default_factory=dict)
    pricing: dict[str, Any] = field(default_factory=dict)
    scope: str = "assert"
    refs: list[Reference] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    new: bool = False
    then: str = ""

    @property
    def compares_what_was(self) -> bool:
        """Whether a comparison names nothing: it is of what was said before."""
        return self.tool == "compare" and not (self.edits or self.options or self.refs)

    def values(self, name: str) -> list[Any]:
        """What a field is set to, in the order of the words."""
        return [edit.value for edit in self.edits if edit.field == name and edit.op == "set"]


def set_apart(edits: Sequence[Edit]) -> list[Edit]:
    """What is set in words of its own: a machine's name says how many devices it has, not how many there are."""
    sets = [edit for edit in edits if edit.op == "set"]
    machines = [edit.span for edit in sets if edit.field == "accelerator"]
    return [edit for edit in sets if edit.field == "accelerator" or edit.span not in machines]
