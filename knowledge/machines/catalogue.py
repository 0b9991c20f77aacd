"""The accelerator catalogue, and machines made of them."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator, Machine, Topology
from estimator.units import GIB
from knowledge.data_files import rows
from knowledge.machines.naming import accelerator_form, accelerator_tokens
from knowledge.machines.networks import network
from knowledge.machines.offered import refuse_unplanned, rented, without_provider
from knowledge.names import Language, Match, NameCatalogue, NamedEntry
from knowledge.own.files import Stamp, stamp
from knowledge.own.hardware import LIKE, joined_rows, table_row, taken_for
from knowledge.own.rows import HardwareRow, LeftOut, Own, read_rows, refuse_lost

USABLE_SHARE = 0.985
"""Share of the printed memory that the driver shows, where no figure is known (H100: 0.996, A100 40 GB: 0.99)."""
USABLE_SHARE_APPLE = 0.75
"""Metal's recommendedMaxWorkingSetSize on machines with more than 36 GB."""
VECTOR_SHARE = 1 / 16
"""Vector rate as a share of the bf16 matrix rate where no fp32 rate is published (A100: 19.5 of 312 TFLOP/s)."""
PCIE_3_X16 = 15.75e9
"""Bytes/s one way, taken where a host link is only known to be PCIe."""
_WATTS = re.compile(r"[\s,(/-]+(?:at|limited to|capped at|@)?\s*(\d{2,4})\s*(?:w|watts?)\b\)?", re.IGNORECASE)
_TWICE = re.compile(r"([^()]+?)\s*\(([^()]+)\)\s*([^()]*)")
_MEMORY = re.compile(r"(?i)\d+(?:\.\d+)?\s*(?:gib|gb|g)(?:\s*v?ram)?")
"""A device that is named twice: TPU v7 (Ironwood)."""
_TOPOLOGIES: dict[str, Topology] = {t: t for t in ("switch", "mesh", "torus", "pcie", "none")}
_RATES = {"fp16": "fp16_tflops", "bf16": "bf16_tflops", "fp32": "fp32_tflops", "tf32": "tf32_tflops",
          "fp8": "fp8_tflops", "int8": "int8_tops", "int4": "int4_tops"}  # fmt: skip


@dataclass(frozen=True)
class _KnownAccelerators:
    """The catalogue with the user's own rows in it; `own` by id, and what of them cannot be used."""

    rows: dict[str, dict[str, str]]
    by_id: dict[str, Accelerator]
    names: NameCatalogue
    own: dict[str, Own[HardwareRow]]
    left_out: list[LeftOut]


def accelerators() -> list[Accelerator]:
    """Every accelerator of the catalogue, in its order, and the user's own."""
    return list(_known().by_id.values())


def own_accelerators() -> dict[str, Own[HardwareRow]]:
    """The user's own rows by id."""
    return _known().own


def accelerators_left_out() -> list[LeftOut]:
    """The user's own rows that cannot be used."""
    return _known().left_out


def aliases(id: str) -> tuple[str, ...]:
    """Other names of an accelerator."""
    row = _known().rows[id]
    return tuple(part for column in ("aliases", "readings") for part in _parts(row[column]))


def no_accelerator() -> PlanError:
    """What is asked wherever a plan needs an accelerator and names none."""
    return PlanError("cluster.accelerator", "which accelerator? e.g. 8xh100")


def find_accelerator(name: str) -> Match[Accelerator]:
    """The accelerator that a name means. Raises PlanError(field="cluster.accelerator"), also when memory is open."""
    known = _known()
    plain, watts = _without_limit(name)
    try:
        match = _found(known.names, plain)
    except PlanError:
        refuse_lost(name, known.left_out, known.names.place)
        raise
    device, sentences = known.by_id[match.value], [match.note]
    if watts and device.tdp_w and watts < device.tdp_w:
        sentences.append(f"a limit of {watts} W is not estimated: its full {device.tdp_w:g} W are taken")
    if match.value in known.own:
        sentences.append(known.own[match.value].source)
    note = "; ".join(filter(None, sentences)) or None
    return Match(device, note, match.score, match.runner_up, match.lacking, match.devices)


def device_words() -> frozenset[str]:
    """Every word and number of the names of devices."""
    return _known().names.tokens


def _found(names: NameCatalogue, name: str) -> Match[str]:
    """The device of a name, or of the one of two names of it that is known: 'DGX Station (GB300)'."""
    try:
        return rented(name, names) or names.find(name)
    except PlanError as error:
        if "there is no" not in error.problem:
            raise
        refuse_unplanned(name, names)
        if rest := without_provider(name):
            return _found(names, rest)
        if not (twice := _TWICE.fullmatch(name.strip())):
            raise
        matches: list[Match[str]] = []
        if _MEMORY.fullmatch(twice[2].strip()):
            raise  # another memory than any device of the name has: RTX 3050 (4GB)
        for part in (f"{twice[1]} {twice[3]}".strip(), twice[2]):
            with suppress(PlanError):
                matches.append(rented(part, names) or names.find(part))
        if len({match.value for match in matches}) != 1:
            raise
        return matches[0]


def _without_limit(name: str) -> tuple[str, int | None]:
    """(A name without its power limit, the limit in W): '3090 at 250W'."""
    limit = _WATTS.search(name)
    if not limit or not (plain := _WATTS.sub(" ", name).strip()):
        return name, None
    return plain, int(limit[1])


def check_own_accelerator(entry: Own[HardwareRow]) -> tuple[Accelerator, list[tuple[str, str | float, str]]]:
    """The accelerator that a row of the user's makes, and (field, value, why) of what it leaves open.

    Raises PlanError, also where it clashes with the catalogue's.
    """
    shipped = _shipped()
    row = table_row(entry, shipped.rows, shipped.names)
    return _accelerator(row), taken_for(entry.row, row)


def machine(
    accelerator: str | Accelerator, count: int, per_node: int | None = None, interconnect: str = "auto"
) -> tuple[Machine, list[str]]:
    """`count` accelerators in nodes of `per_node` (None: as many as usual), and sentences that say what was assumed.

    Raises PlanError for a count or an interconnect that cannot be.
    """
    sentences: list[str] = []
    if isinstance(accelerator, str):
        match = find_accelerator(accelerator)
        accelerator = match.value
        sentences += [match.note] if match.note else []
    if isinstance(count, bool) or count < 1:
        raise PlanError("cluster.count", f"must be 1 or more, not {count}")
    if per_node is not None and per_node < 1:
        raise PlanError("cluster.per_node", f"must be 1 or more, not {per_node}")
    size = min(per_node or accelerator.per_node, count)
    joined, assumed = network(interconnect, _known().rows[accelerator.id]["typical_network"])
    built = Machine(accelerator, count, size, joined)
    if built.nodes > 1:
        if per_node is None:
            sentences.append(f"{size} {accelerator.name} per node, as usual")
        if assumed:
            sentences.append(assumed)
        if count % size:
            sentences.append(
                f"{count} accelerators do not fill {built.nodes} nodes of {size}: the last node is partly used"
            )
    return built, sentences


def _known() -> _KnownAccelerators:
    stamps = stamp("hardware")
    return _joined(stamps) if stamps else _shipped()


@cache
def _shipped() -> _KnownAccelerators:
    return _with({row["id"]: row for row in rows("accelerators.csv")}, {}, [])


@lru_cache(maxsize=2)
def _joined(_: Stamp) -> _KnownAccelerators:
    entries, left_out = read_rows("hardware", HardwareRow)
    shipped = _shipped()
    added, unusable = joined_rows(entries, shipped.rows, shipped.names)
    return _with(
        shipped.rows | added, {each.row.id: each for each in entries if each.row.id in added}, left_out + unusable
    )


def _with(
    all_rows: dict[str, dict[str, str]], own: dict[str, Own[HardwareRow]], left_out: list[LeftOut]
) -> _KnownAccelerators:
    by_id = {id: _accelerator(row) for id, row in all_rows.items()}
    return _KnownAccelerators(all_rows, by_id, _catalogue(all_rows), own, left_out)


def _accelerator(row: dict[str, str]) -> Accelerator:
    memory = float(row["memory_gb"]) * GIB
    bandwidth = float(row["memory_bw_gb_s"]) * 1e9
    peaks = _peaks(row)
    host = _gb_s(row["host_gb_s"]) or PCIE_3_X16
    scaleup = _gb_s(row["scaleup_gb_s"]) or (0.0 if row["topology"] == "none" else host)
    matrix = peaks.get("bf16") or peaks.get("fp16") or 0.0
    share = USABLE_SHARE_APPLE if row["vendor"] == "Apple" else USABLE_SHARE
    usable = float(row["usable_gib"]) * GIB if row["usable_gib"] else memory * share
    return Accelerator(
        id=row["id"],
        name=row["name"],
        vendor=row["vendor"],
        family=row["family"],
        memory_bytes=max(memory, usable),  # vendors round down too (TPU v5p)
        usable_bytes=usable,
        torch_bytes=_torch_bytes(row["id"], memory) or usable,
        memory_bandwidth=bandwidth,
        peak_flops=peaks,
        vector_flops=peaks.get("fp32") or matrix * VECTOR_SHARE,
        scaleup_link=row["scaleup_link"],
        scaleup_bandwidth=scaleup,
        peer_bandwidth=_gb_s(row["peer_gb_s"]) or scaleup,
        scaleup_domain=int(row["scaleup_domain"]),
        topology=_TOPOLOGIES[row["topology"]],
        per_node=int(row["per_node"]),
        host_bandwidth=host,
        tdp_w=float(row["tdp_w"]) if row["tdp_w"] else None,
        cores=int(row["cores"]) if row["cores"] else None,
        clock_hz=float(row["boost_mhz"]) * 1e6 if row["boost_mhz"] else None,
        form_factor=row["form_factor"],
        year=int(row["year"]) if row["year"] else None,
        source=row["source"],
        notes=row["notes"],
        like=row.get(LIKE, ""),
        memory_type=row["memory_type"],
        announced=row["status"] == "announced",
        host_slowness=_slowness().get(row["form_factor"], 1.0),
    )


@cache
def _torch_gib() -> dict[str, float]:
    """What torch says that a device has, by accelerator."""
    return {row["id"]: float(row["gib"]) for row in rows("torch_memory.csv")}


def _torch_bytes(id: str, memory_bytes: float) -> float | None:
    """The same of a device with that memory; None where nobody has said, as of a person's own row with the name of one
    that has less."""
    size = _torch_gib().get(id, 0.0) * GIB
    return size if 0.9 * memory_bytes < size <= memory_bytes else None


@cache
def _slowness() -> dict[str, float]:
    """How much longer hosts take for launches than usual ones, by form factor of the accelerator."""
    return {row["form_factor"]: float(row["slowness"]) for row in rows("hosts.csv")}


def _peaks(row: dict[str, str]) -> dict[str, float]:
    """Dense FLOP/s by precision. Microscaled fp8 runs at the fp8 rate; fp4 is MXFP4, on NVIDIA also NVFP4."""
    peaks = {kind: float(row[column]) * 1e12 for kind, column in _RATES.items() if row[column]}
    if "fp8" in peaks:
        peaks["mxfp8"] = peaks["fp8"]
    if row["fp4_tflops"]:
        peaks["mxfp4"] = float(row["fp4_tflops"]) * 1e12
        if row["vendor"] == "NVIDIA":
            peaks["nvfp4"] = peaks["mxfp4"]
    return peaks


def _gb_s(text: str) -> float:
    return float(text) * 1e9 if text else 0.0


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(";") if part)


def _catalogue(all_rows: dict[str, dict[str, str]]) -> NameCatalogue:
    entries = []
    for row in all_rows.values():
        attributes = {f"{float(row['memory_gb']):g}gb", *accelerator_tokens(row["memory_type"])}
        boards = set(accelerator_tokens(row["form_factor"])) & {"sxm", "pcie"}
        # A machine of them is called by the memory of all: DGX A100 640GB.
        whole = {f"{float(row['memory_gb']) * int(row['per_node']):g}gb"} if "sxm" in boards else set[str]()
        attributes |= boards | whole
        names = (row["name"], *_parts(row["aliases"]))
        written = {token for name in names for token in accelerator_tokens(name)}
        attributes |= {token for token in accelerator_tokens(row["family"]) if token.isalpha()} - written
        entry = NamedEntry(row["id"], row["name"], names, _parts(row["readings"]), frozenset(attributes))
        entries.append(replace(entry, makers=frozenset({row["vendor"].casefold()})))
    return NameCatalogue(entries, Language(accelerator_form), "accelerator", "cluster.accelerator", "hardware")
