"""Networks between nodes from names like ib-ndr-400x8: <kind>-[generation-]<Gb/s of a port>x<ports of a node>."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from estimator.errors import PlanError
from estimator.hardware import Network
from knowledge.data_files import document

PLACE = "cluster.interconnect"
EXAMPLES = ("auto", "ib-ndr-400x8", "roce-100x1", "efa-v3", "ethernet-25")
_MOST_GBPS, _MOST_PORTS = 10_000, 128
_SAME_KIND = {
    "infiniband": "ib", "eth": "ethernet", "gbe": "ethernet", "tcp": "ethernet", "ena": "ethernet", "gvnic": "ethernet",
    "rocev2": "roce", "tcpxo": "tcpx",
}  # fmt: skip


def network(name: str, typical: str) -> tuple[Network, str | None]:
    """The network that `name` describes, and a sentence where something in it was assumed.

    `typical` is the usual network of the accelerator's nodes: it stands for "auto", and its ports are taken where the
    name has none. Bandwidth is bytes/s one way per node. Raises PlanError for a name that cannot be read.
    """
    text = name.strip().casefold()
    if text in ("auto", ""):
        found, _ = network(typical, typical)
        return found, f"network between nodes taken as {typical} ({_gbps(found)}), usual for such nodes"
    kind, generation, numbers = _read(text, name)
    facts = _kinds()[kind]
    gbps, ports, said = _port(facts, kind, generation, numbers, typical)
    if not 0 < gbps <= _MOST_GBPS or not 1 <= ports <= _MOST_PORTS:
        raise PlanError(PLACE, f"{name!r} has an impossible port speed or number of ports", EXAMPLES)
    label = "-".join(part for part in (kind, generation, f"{gbps:g}x{ports}") if part)
    found = Network(label, gbps / 8 * 1e9 * ports, facts["latency_s"], facts["source"])
    return found, f"{name!r} read as {label}: {said}" if said else None


def _read(text: str, name: str) -> tuple[str, str, list[str]]:
    """(kind, generation, numbers): numbers are '400x8' or '400'."""
    tokens = re.findall(r"\d+(?:\.\d+)?x\d+|[a-z]+\d?|\d+(?:\.\d+)?", re.sub(r"\s*[x*×]\s*(?=\d)", "x", text))
    kind, generation = "", ""
    numbers: list[str] = []
    generations: dict[str, str] = {g: k for k, facts in _kinds().items() for g in facts["generations"]}
    for token in tokens:
        token = _SAME_KIND.get(token) or token
        if token in _kinds():
            kind = kind or token
        elif token in generations:
            generation = token
        elif token[0].isdigit():
            numbers.append(token)
        elif token not in ("gbps", "gb", "g", "gbit", "s"):
            raise PlanError(PLACE, f"{_short(name)} is not a network that can be read", EXAMPLES)
    kind = kind or generations.get(generation, "")
    if not kind or len(numbers) > 1 or (generation and generation not in _kinds()[kind]["generations"]):
        raise PlanError(PLACE, f"{_short(name)} is not a network that can be read", EXAMPLES)
    return kind, generation, numbers


def _port(
    facts: dict[str, Any], kind: str, generation: str, numbers: list[str], typical: str
) -> tuple[float, int, str | None]:
    """(Gb/s of a port, ports of a node, what was assumed)."""
    assumed: list[str] = []
    gbps, ports = 0.0, 0
    if numbers and "x" in numbers[0]:
        first, second = numbers[0].split("x")
        fast, few = (first, second) if float(first) >= float(second) else (second, first)
        gbps, ports = float(fast), round(float(few))
    elif numbers:
        gbps = float(numbers[0])
    elif generation:
        gbps = float(facts["generations"][generation])
        ports = facts.get("generation_ports", {}).get(generation, 0)
    else:
        gbps = float(facts["port_gbps"])
        assumed.append(f"{gbps:g} Gb/s a port assumed")
    if not ports:
        ports = facts["ports"] or int(typical.rpartition("x")[2])
        if not facts["ports"]:
            assumed.append(f"{ports} ports a node assumed")
    return gbps, ports, ", ".join(assumed) or None


def _gbps(found: Network) -> str:
    return f"{found.bandwidth_per_node / 1e9:g} GB/s a node one way"


def _short(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "...")


@cache
def _kinds() -> dict[str, Any]:
    return document("networks.yaml")["kinds"]
