"""What decides an answer: the assumption that moves its figures most, and by how much another value does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from knowledge import figures
from pages.blocks import DECIDES, Block, Prose, Table
from pages.results.plan import flags
from planner.result import Decisive

# What a field is called, and its value.
_SUBJECTS: dict[str, tuple[str, str]] = {
    "workload.framework": ("framework", "{}"),
    "workload.seq_len": ("sequence length", "{} tokens"),
    "workload.global_batch": ("global batch", "{} sequences"),
    "workload.method": ("method", "{} fine-tuning"),
    "workload.compile": ("torch.compile", "{}"),
    "workload.attention": ("attention kernel", "{}"),
    "cluster.interconnect": ("network between nodes", "{}"),
    "workload.concurrency": ("load", "{} client{s} at once"),
    "workload.input_len": ("prompt length", "{} tokens"),
    "workload.output_len": ("answer length", "{} tokens"),
    "workload.weight_dtype": ("weight format", "{}"),
    "workload.kv_dtype": ("KV cache format", "{}"),
    "workload.prefix_hit": ("prefix caching", "{}"),
    "workload.engine": ("engine", "{}"),
}
NO_FILES = " (no launch files)"
"""Of a framework that Shardwise cannot start."""
_METHODS = {"lora": "LoRA", "full": "full"}
# What people are free to choose; the rest is what they know of their work.
CHOICES = ("workload.framework", "workload.compile", "workload.attention", "workload.method", "workload.engine",
           "workload.weight_dtype", "workload.kv_dtype")  # fmt: skip
_FIGURES = {"ttft_s": "TTFT {}", "tpot_s": "TPOT {}", "output_tokens_per_s": "{} output tokens/s", "hours": "{}",
            "tokens_per_s": "{} tokens/s"}  # fmt: skip
_SERVED = frozenset({"ttft_s", "tpot_s", "output_tokens_per_s"})
# What is asked beside whether it fits.
_OTHERS = frozenset({"time", "run", "cost", "faster", "why", "mfu"})
# Of memory; less is no reason to tell of it.
_LEAST = 0.03
# What moves a figure by as much is told beside what moves it most.
_MUCH = 0.15
# A change to less than a tenth is told by both ends: '100 % less' says nothing.
_WHOLLY = -0.9


def sentence(rows: Sequence[Decisive], asked: Sequence[str] = (), fits: bool = True) -> list[Block]:
    """The one that matters most for what was asked, and in a few words the others that matter much."""
    # Of a deployment it says little: an engine takes a part of the device, whatever it is for.
    served = any(row.figure in _SERVED for row in rows)
    of_memory = fits and not served and "fit" in asked and not _OTHERS & set(asked)
    if not fits:
        # What choice would make it fit is told beside the verdict.
        rows = [row for row in rows if row.field not in CHOICES]
    if of_memory:
        more = [row for row in rows if not row.fits or abs(row.change("per_device_bytes")) >= _LEAST]
        rows = sorted(more, key=lambda row: (row.fits, -abs(row.change("per_device_bytes"))))
    if not rows:
        return []
    row, figure = rows[0], "per_device_bytes" if of_memory or not fits else None
    value, other = _value(row.field, row.value), _other(row)
    assumed = f" ({value})" if value else ""
    other = f"it {other}" if isinstance(row.other, bool) else other
    told = f"{DECIDES}: {_subject(row)}{assumed}; with {other}, {_effect(row, fits, of_memory)}."
    much = [each for each in rows[1:] if each.fits != fits or abs(each.change(figure or each.figure)) >= _MUCH]
    if much:
        others = [f"{_subject(each)} ({_briefly(each, fits, figure or each.figure)})" for each in much]
        told += f" Then {', '.join(others[:-1])}{' and ' * (len(others) > 1)}{others[-1]}."
    return [Prose(told)]


def _subject(row: Decisive) -> str:
    """'sequence length'."""
    return _SUBJECTS[row.field][0]


def table(rows: Sequence[Decisive], fits: bool = True) -> list[Block]:
    """All that were tried and matter, with the flags that set them so."""
    if not rows:
        return []
    told = [
        [_subject(row), _value(row.field, row.value) or figures.NONE,
         _other(row), _effect(row, fits), flags({row.field: row.other})]
        for row in rows
    ]  # fmt: skip
    head = ("what was assumed", "as", "instead", "effect", "flags")
    return [Table(head, told, title="What decides it", optional=("flags",))]


def _value(field: str, value: Any) -> str:
    if value == "auto" or value is None:
        return ""
    if field == "workload.prefix_hit":
        return f"{figures.percent(value)} of each prompt cached" if value else "none"
    if field == "workload.compile":
        return "on" if value else "off"
    return _SUBJECTS[field][1].format(_METHODS.get(value, figures.plain(value)), s="s" * (value != 1))


def _other(row: Decisive) -> str:
    """What it would be instead, and whether it is only an estimate."""
    return f"{_value(row.field, row.other)}{NO_FILES * (not row.started)}"


def _effect(row: Decisive, fits: bool, of_memory: bool = False) -> str:
    """'2.4 hours, 38 % less'."""
    if row.fits != fits:
        return "it fits" if row.fits else "it does not fit"
    takes = f"{figures.gib(row.after.per_device_bytes)} per device"
    # A choice that is offered is told by what it gains.
    gains = row.field in CHOICES and (row.change(row.figure) > 0) == (figures.better(row.figure) == "higher")
    if not fits or (of_memory and not gains):
        return f"{takes}, {_more(row.change('per_device_bytes'))}"
    also = f", at {takes}" if of_memory else ""
    value = _FIGURES[row.figure].format(figures.shown(row.figure, getattr(row.after, row.figure)))
    change = row.change(row.figure)
    if change < _WHOLLY:
        return f"{value} instead of {figures.shown(row.figure, getattr(row.before, row.figure))}{also}"
    return f"{value}, {_more(change)}{also}"


def _briefly(row: Decisive, fits: bool, figure: str) -> str:
    """'LoRA fine-tuning: 24 % more'."""
    effect = _effect(row, fits) if row.fits != fits else _more(row.change(figure))
    return f"{_other(row)}: {effect}"


def _more(change: float) -> str:
    if change >= 2:
        return f"{1 + change:,.1f} times as much"
    return f"{figures.percent(abs(change))} {'more' if change > 0 else 'less'}"
