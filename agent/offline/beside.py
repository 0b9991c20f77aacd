"""What is said beside the Plan's fields ('2 nodes', 'batches of 4M tokens', '3 replicas') as the fields that it makes
together with the rest of the plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.offline.catalogue import Catalogue
from agent.offline.form import Need
from estimator.plan.schema import Inference, merge
from estimator.units import BYTES_PER_GB
from knowledge.machines.catalogue import find_accelerator
from planner.partial import get, is_serving

# What one device takes at a time is no more than that; beside a micro-batch, one of about its size is one again.
_MOST_AT_ONCE, _OF_ITS_SIZE = 16, 4
_USUAL_LENGTH = 4096
_OWN_LINKS = ("NVLink", "Infinity Fabric", "xGMI")
_SIDES = {"output": "generated tokens", "input": "prompt tokens", "total": "tokens of prompt and answer"}
# The fields that a quantity may stand for: the one that the plan has, else the first. The last are of serving.
MEANT: Mapping[str, tuple[str, ...]] = {
    "batch": ("global_batch", "micro_batch", "concurrency"),
    "batch_tokens": ("global_batch",),
    "accumulation": ("global_batch",),
    "nodes": ("count",),
    "replicas": ("count",),
    "recompute_block": ("recompute",),
    "prompt_len": ("seq_len",),
    "total_tokens": ("requests",),
    "token_rate": ("request_rate",),
    "prefix_tokens": ("prefix_hit",),
    "expert_parallel": ("ep",),
    "device_links": ("overrides",),
    "load": ("concurrency", "request_rate"),
    "length": ("seq_len", "input_len", "max_context"),
}


@dataclass
class Patch:
    """A plan as it is being changed: `paths` are those that are said, `notes` say how words were read, `refusals`
    what is left out, `needs` ask, `recent` is the path that changed last, `nodes` a number of nodes of unknown size."""

    plan: dict[str, Any]
    catalogue: Catalogue
    paths: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    recent: str | None = None
    nodes: int | None = None

    def put(self, changes: Mapping[str, Any], *notes: str) -> None:
        self.plan = merge(self.plan, changes)
        self.notes += notes
        self.recent = next((path for path, value in changes.items() if value is not None), self.recent)

    def ask(self, path: str, text: str) -> None:
        self.needs.append(Need(path, text))


def combined(patch: Patch, name: str, value: Any, words: str) -> None:
    """Lays one quantity of form.BESIDE over the plan."""
    _COMBINED[name](patch, value, words)


def _batch(patch: Patch, value: int, words: str) -> None:
    if is_serving(patch.plan):
        patch.put({"workload.concurrency": value}, f"{words} read as that many requests at once")
        return
    own = get(patch.plan, "workload.micro_batch")
    again = own is not None and value <= _OF_ITS_SIZE * own and not get(patch.plan, "workload.global_batch")
    count = get(patch.plan, "cluster.count") or 0
    of_one = (count == 1 and value <= _MOST_AT_ONCE) or (value < count and _split(patch.plan) == 1)
    if again or of_one:
        patch.put({"workload.micro_batch": value}, f"{words} read as the batch of each device")
    else:
        patch.put({"workload.global_batch": value})


def _split(plan: Mapping[str, Any]) -> int:
    """Devices that share one micro-batch."""
    return math.prod(get(plan, f"layout.{name}") or 1 for name in ("tp", "pp", "cp"))


def _batch_tokens(patch: Patch, value: float, words: str) -> None:
    seq_len = get(patch.plan, "workload.seq_len")
    if seq_len is None:
        seq_len = _USUAL_LENGTH
        patch.put(
            {"workload.seq_len": seq_len},
            f"sequences of {seq_len:,} tokens taken, since the batch is given in tokens",
        )
    sequences = max(round(value / seq_len), 1)
    note = f"{words} read as a global batch of {sequences:,} sequences of {seq_len:,} tokens"
    patch.put({"workload.global_batch": sequences}, note)


def _accumulation(patch: Patch, value: int, words: str) -> None:
    """Micro-batches that are summed before a step, as the global batch that they make on the devices there are."""
    micro, devices = get(patch.plan, "workload.micro_batch") or 1, get(patch.plan, "cluster.count")
    if not devices and get(patch.plan, "cluster.accelerator"):
        devices = 1
        patch.put({"cluster.count": 1}, f"one device taken, which {words} depends on")
    if not devices:
        patch.ask("cluster.count", f"how many devices are there? ({words} depends on it)")
        return
    batch = micro * value * max(devices // _split(patch.plan), 1)
    note = f"{words} with micro-batches of {micro} read as a global batch of {batch:,}"
    patch.put({"workload.micro_batch": micro, "workload.global_batch": batch}, note)


def _prompt(patch: Patch, value: int, words: str) -> None:
    """The length of prompts, beside that of the answers, of whole sequences, or alone."""
    whole, answer = get(patch.plan, "workload.seq_len"), get(patch.plan, "workload.response_len")
    if answer and ("workload.seq_len" not in patch.paths or not whole or whole <= value):
        note = f"sequences of {value + answer:,} tokens: prompts of {value:,} and their answers"
        patch.put({"workload.seq_len": value + answer}, note)
    elif whole and whole > value:
        note = f"answers of {whole - value:,} tokens: what prompts of {value:,} leave"
        patch.put({"workload.response_len": whole - value}, note)
    else:
        note = f"answers taken as long as their prompts, {value:,} tokens"
        patch.put({"workload.seq_len": 2 * value, "workload.response_len": value}, note)


def laid_in_nodes(patch: Patch, value: int, words: str) -> None:
    """So many nodes as devices; kept for later where their size is not known yet."""
    device, each = get(patch.plan, "cluster.accelerator"), get(patch.plan, "cluster.per_node")
    if device is None and each is None:
        patch.nodes = value
        return
    notes: list[str] = []
    count = get(patch.plan, "cluster.count") if "cluster.count" in patch.paths else None
    if count and not {"cluster.per_node", "per_node"} & patch.paths:
        if count % value:
            patch.ask("cluster.per_node", f"{count} devices do not fill {words} evenly: how many are in each?")
        else:
            patch.put({"cluster.per_node": count // value})
        return
    if each is None:
        each = patch.catalogue.per_node(str(device))
        notes = [f"{words} read with {each} devices per node, as is usual for {device}"]
    patch.put({"cluster.per_node": each, "cluster.count": value * each}, *notes)
    patch.recent = "cluster.count"


def _recompute_block(patch: Patch, value: int, words: str) -> None:
    patch.put({"layout.recompute": f"block:{value}"})


def _tokens(plan: Mapping[str, Any]) -> dict[str, float]:
    prompt, answer = (
        get(plan, f"workload.{name}") or Inference.model_fields[name].default for name in ("input_len", "output_len")
    )
    return {"output": answer, "input": prompt, "total": prompt + answer}


def _token_rate(patch: Patch, value: tuple[Any, ...], words: str) -> None:
    rate, side, *prompts = value
    tokens = _tokens(patch.plan)
    if prompts:
        side = "output"
        tokens["input"] = max(round(tokens["output"] * prompts[0] / rate), 1)
        words = "tokens of prompts and of answers"
        patch.put({"workload.input_len": tokens["input"]})
    each = f"{tokens['input']:,} {_SIDES['input']} and " if prompts else ""
    note = f"{words} read as {rate / tokens[side]:.4g} requests/s, each with {each}{tokens[side]:,} {_SIDES[side]}"
    patch.put({"workload.request_rate": rate / tokens[side]}, note)


def _total_tokens(patch: Patch, value: float, words: str) -> None:
    tokens = _tokens(patch.plan)["total"]
    number = max(round(value / tokens), 1)
    patch.put({"workload.requests": number}, f"{words} read as {number:,} requests of {tokens:,} {_SIDES['total']}")


def _prefix_tokens(patch: Patch, value: float, words: str) -> None:
    prompt = get(patch.plan, "workload.input_len")
    if prompt is None:
        note = f"{words} taken as the whole prompt, all of it read anew"
        patch.put({"workload.input_len": int(value)}, note)
        return
    share = min(value / prompt, 0.999)
    note = f"{words} read as {100 * share:.1f} % of each prompt, found in the prefix cache"
    patch.put({"workload.prefix_hit": share}, note)


def _replicas(patch: Patch, value: int, words: str) -> None:
    layout, count = patch.plan.get("layout") or {}, get(patch.plan, "cluster.count")
    if "tp" not in layout and "pp" not in layout:
        if count and count % value == 0:
            patch.put({"layout.dp": value})
            return
        patch.ask("layout.tp", f"over how many devices is each of {words} (tensor parallel)?")
        return
    each = math.prod(layout.get(name) or 1 for name in ("tp", "pp", "dp"))
    note = f"{words} of {each} device{'s' if each > 1 else ''} read as {value * each} devices"
    patch.put({"cluster.count": value * each}, note)


def _expert_parallel(patch: Patch, value: Any, words: str) -> None:
    layout = patch.plan.get("layout") or {}
    size = (layout.get("tp") or 0) * (layout.get("dp") or 1) or get(patch.plan, "cluster.count")
    if size:
        patch.put({"layout.ep": size}, f"{words} read as experts dealt over {size} devices")
    else:
        patch.notes.append("expert parallel sizes are searched, since no number of devices was said")


def _device_links(patch: Patch, value: str, words: str) -> None:
    """The devices' own links, or the host's in their place."""
    device = get(patch.plan, "cluster.accelerator")
    if device is None:
        patch.notes.append(f"{words} is not used: no accelerator is named")
        return
    accelerator = find_accelerator(str(device)).value
    if not accelerator.scaleup_link.startswith(_OWN_LINKS):
        patch.notes.append(f"{words}: {accelerator.name} has none, so {accelerator.scaleup_link} is taken")
        return
    host = accelerator.host_bandwidth / BYTES_PER_GB
    link, speed = (accelerator.scaleup_link, None) if value == "own" else ("PCIe between devices", host)
    figure = accelerator.scaleup_bandwidth / BYTES_PER_GB if speed is None else speed
    patch.put({"overrides.scaleup_gb_per_s": speed}, f"{words}: {link} taken, {figure:g} GB/s each way")


def _load(patch: Patch, value: float, words: str) -> None:
    """Clients or requests a second, whichever the plan has."""
    rate = get(patch.plan, "workload.request_rate") is not None
    patch.put({"workload.request_rate" if rate else "workload.concurrency": value})


def _length(patch: Patch, value: int, words: str) -> None:
    """Of training that of a sequence; of serving that of a request: its prompt is what the answer leaves of it, unless
    the plan has a prompt already."""
    if not is_serving(patch.plan):
        patch.put({"workload.seq_len": value})
        return
    answer = _tokens(patch.plan)["output"]
    before, longest = get(patch.plan, "workload.input_len"), get(patch.plan, "workload.max_context")
    follows = longest is not None and before == longest - answer
    if (before is not None and not follows) or value <= answer:
        patch.put({"workload.max_context": value})
        return
    prompt = int(value - answer)
    note = f"{words} read as requests of {value:,} tokens, {prompt:,} of them the prompt"
    patch.put({"workload.max_context": value, "workload.input_len": prompt}, note)


_COMBINED: Mapping[str, Callable[[Patch, Any, str], None]] = {
    "batch": _batch,
    "batch_tokens": _batch_tokens,
    "accumulation": _accumulation,
    "nodes": laid_in_nodes,
    "recompute_block": _recompute_block,
    "prompt_len": _prompt,
    "total_tokens": _total_tokens,
    "token_rate": _token_rate,
    "prefix_tokens": _prefix_tokens,
    "replicas": _replicas,
    "expert_parallel": _expert_parallel,
    "device_links": _device_links,
    "load": _load,
    "length": _length,
}
