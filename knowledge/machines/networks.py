"""Networks between nodes from names like ib-ndr-400x8: <kind>-[generation-]<Gb/s of a port>x<ports of a node>; and what
collectives reach on a machine's links, as fitted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from estimator.errors import PlanError
from estimator.kernels.collectives import NetworkFactors
from estimator.machine.hardware import Accelerator, Machine, Network
from estimator.plan.schema import Overrides
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
        link, _ = network(typical, typical)
        return link, f"network between nodes taken as {typical} ({_gbps(link)}), usual for such nodes"
    kind, generation, numbers = _read(text, name)
    facts = _kinds()[kind]
    gbps, ports, sentence = _port(facts, kind, generation, numbers, typical)
    if not 0 < gbps <= _MOST_GBPS or not 1 <= ports <= _MOST_PORTS:
        raise PlanError(PLACE, f"{name!r} has an impossible port speed or number of ports", EXAMPLES)
    label = "-".join(part for part in (kind, generation, f"{gbps:g}x{ports}") if part)
    fitted = _fitted()["latency_s"]
    latency = fitted.get(f"{kind}-{generation}", fitted.get(kind, facts["latency_s"]))
    link = Network(label, gbps / 8 * 1e9 * ports, latency, facts["source"])
    return link, f"{name!r} read as {label}: {sentence}" if sentence else None


def with_given_links(machine: Machine, overrides: Overrides) -> Machine:
    """The machine with the bandwidths and the latency that a user gives, as a data sheet prints them: what collectives
    reach of them is still estimated."""
    accelerator, joined = machine.accelerator, machine.network
    if overrides.scaleup_gb_per_s is not None:
        total = overrides.scaleup_gb_per_s * 1e9
        share = accelerator.peer_bandwidth / accelerator.scaleup_bandwidth if accelerator.scaleup_bandwidth else 1.0
        accelerator = replace(accelerator, scaleup_bandwidth=total, peer_bandwidth=total * share)
    if overrides.network_gb_per_s is not None:
        joined = replace(joined, bandwidth_per_node=overrides.network_gb_per_s * 1e9)
    if overrides.network_latency_us is not None:
        joined = replace(joined, latency_s=overrides.network_latency_us * 1e-6)
    return replace(machine, accelerator=accelerator, network=joined)


def network_factors(accelerator: Accelerator | None, engine: str = "") -> NetworkFactors:
    """What collectives reach on an accelerator's links; the middle of the measured kinds stands in for others, and for
    no accelerator. Kernels are those of `engine` where it has its own that were timed ('sglang', from 0.5.12 on, and
    'trtllm'), else vLLM's, which others took over."""
    return factors_of(accelerator, _fitted(), engine)


def factors_of(accelerator: Accelerator | None, fitted: Mapping[str, Any], engine: str = "") -> NetworkFactors:
    """As `network_factors`, from given contents of the factors' file."""
    measured_as, adds = link_kind(accelerator) if accelerator else ("default", False)
    rows = fitted["scaleup"]
    kernels = fitted["kernels"].get(engine, {}).get(measured_as, {})
    numbers = rows["default"] | fitted["scaleout"] | rows.get(measured_as, {}) | kernels
    ring = numbers["ring"]
    copied = accelerator is not None and accelerator.name.startswith(tuple(_facts()["through_host"]["names"]))
    return NetworkFactors(
        host=rows.get("PCIe", {}).get("ring", ring) / ring if copied else 1.0,
        adds_in_switch=adds,
        overlaps=measured_as not in _waiting(),
        **{name: numbers[name] for name in FACTORS},
    )


def timings_behind(kind: str) -> tuple[int, int]:
    """How many timings of collectives the factors of a kind of link rest on, and those between nodes."""
    fitted = _fitted()
    return fitted["scaleup"].get(kind, {}).get("rows", 0), fitted["scaleout"]["rows"]


_TOLD = ("host", "adds_in_switch", "overlaps")
FACTORS = tuple(field.name for field in fields(NetworkFactors) if field.name not in _TOLD)


def libraries() -> dict[str, str]:
    """Kinds of links that are driven by a library of their own, not NCCL nor one that follows it, and its name."""
    return {row["as"]: row["library"] for row in _facts()["links"] if "library" in row}


def _waiting() -> set[str]:
    """Kinds of links whose library's collectives end before the next kernel starts."""
    return {row["as"] for row in _facts()["links"] if not row.get("overlaps", True)}


def link_kind(accelerator: Accelerator) -> tuple[str, bool]:
    """(the kind of link whose timings stand for those of `accelerator`, whether its switches add)."""
    for row in _facts()["links"]:
        if accelerator.scaleup_link.startswith(row["starts"]):
            return row["as"], row["adds_in_switch"] and accelerator.topology == "switch"
    return "default", False


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


def _gbps(link: Network) -> str:
    return f"{link.bandwidth_per_node / 1e9:g} GB/s a node one way"


def _short(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "...")


def _kinds() -> dict[str, Any]:
    return _facts()["kinds"]


@cache
def _facts() -> dict[str, Any]:
    return document("networks.yaml")


@cache
def _fitted() -> dict[str, Any]:
    return document("../network_factors.yaml")
