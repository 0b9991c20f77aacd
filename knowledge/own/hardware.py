"""The user's own accelerators as rows of the catalogue's table, so that everything else reads them like the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estimator.errors import PlanError
from knowledge.machines.networks import network
from knowledge.names import NameCatalogue
from knowledge.own.rows import HardwareRow, LeftOut, Own

LIKE = "like"
"""A column that only own rows have: the catalogue's id whose timings stand for theirs."""
_COLUMNS = {
    "name": "name", "vendor": "vendor", "family": "family", "memory_gib": "memory_gb", "usable_gib": "usable_gib",
    "memory_bandwidth_gb_per_s": "memory_bw_gb_s", "bf16_tflops": "bf16_tflops", "fp16_tflops": "fp16_tflops",
    "fp32_tflops": "fp32_tflops", "tf32_tflops": "tf32_tflops", "fp8_tflops": "fp8_tflops",
    "fp4_tflops": "fp4_tflops", "int8_tops": "int8_tops", "int4_tops": "int4_tops", "scaleup_link": "scaleup_link",
    "scaleup_gb_per_s": "scaleup_gb_s", "peer_gb_per_s": "peer_gb_s", "scaleup_domain": "scaleup_domain",
    "topology": "topology", "per_node": "per_node", "host_gb_per_s": "host_gb_s", "tdp_w": "tdp_w", "notes": "notes",
}  # fmt: skip
_NEEDED = ("vendor", "memory_gib", "memory_bandwidth_gb_per_s")
_USUAL_NETWORK = "ethernet-100x1"
_USUAL_NODE = 8


def joined_rows(
    entries: Sequence[Own[HardwareRow]], shipped: Mapping[str, dict[str, str]], names: NameCatalogue
) -> tuple[dict[str, dict[str, str]], list[LeftOut]]:
    """(Rows of the table by id, what cannot be used), for the user's rows and those of the catalogue."""
    added: dict[str, dict[str, str]] = {}
    left_out: list[LeftOut] = []
    taken: dict[str, str] = {}
    for each in entries:
        try:
            row = table_row(each, shipped, names)
            for name in (each.row.id, *(each.row.aliases or ())):
                if (other := taken.setdefault(name.casefold(), each.row.id)) != each.row.id:
                    raise PlanError(f"{each.path}: aliases", f"{name!r} is a name of {other} already")
            added[each.row.id] = row
        except PlanError as error:
            known = (each.row.id, *(each.row.aliases or ()), each.path.stem)
            left_out.append(LeftOut(each.path, tuple(name.casefold() for name in known), error))
    return added, left_out


def table_row(entry: Own[HardwareRow], shipped: Mapping[str, dict[str, str]], names: NameCatalogue) -> dict[str, str]:
    """The row of the table that a row of the user's makes. Raises PlanError, also where it clashes with another."""
    hardware, place = entry.row, f"{entry.path}: "
    same = names.exact(hardware.id)
    if same and not hardware.replaces:
        problem = f"{hardware.id!r} names {same} of the catalogue; choose another, or say replaces: true"
        raise PlanError(f"{place}id", problem)
    if hardware.replaces and hardware.id not in shipped:
        raise PlanError(f"{place}replaces", f"the catalogue has no {hardware.id!r} to replace", [same] if same else [])
    for alias in hardware.aliases or ():
        if (other := names.exact(alias)) and other != hardware.id:
            raise PlanError(f"{place}aliases", f"{alias!r} is a name of {other} in the catalogue")
    like = _like(hardware, names, place)
    row = dict(shipped[like]) if like else dict.fromkeys(next(iter(shipped.values())), "")
    data = hardware.model_dump(exclude_none=True)
    if not like:
        _refuse_gaps(data, place)
    elif hardware.scaleup_link not in (None, row["scaleup_link"]) and hardware.scaleup_gb_per_s is None:
        raise PlanError(f"{place}scaleup_gb_per_s", f"is required: {like} has other links ({row['scaleup_link']})")
    _forget_what_follows(row, data)
    row |= {column: _text(data[field]) for field, column in _COLUMNS.items() if field in data}
    kept = row["aliases"] if same else ""
    row |= {
        "id": hardware.id,
        "aliases": ";".join(filter(None, [kept, *(hardware.aliases or ())])),
        "source": entry.source,
    }
    row["readings"] = shipped[hardware.id]["readings"] if same else ""
    row["name"] = hardware.name or (row["name"] if same else hardware.id)
    row["notes"] = hardware.notes or (f"like {like}" if like and not same else "")
    row["family"] = row["family"] or hardware.id
    row[LIKE] = like if like != hardware.id and row["family"] == shipped.get(like, {}).get("family") else ""
    _fill_links(row)
    usual = row["typical_network"] or _USUAL_NETWORK
    try:
        row["typical_network"] = network(hardware.interconnect, usual)[0].name if hardware.interconnect else usual
    except PlanError as error:
        raise PlanError(f"{place}interconnect", error.problem, error.valid) from None
    if row["usable_gib"] and float(row["usable_gib"]) > 1.1 * float(row["memory_gb"]):
        raise PlanError(f"{place}usable_gib", f"is more than the memory of {row['memory_gb']} GiB")
    return row


def taken_for(hardware: HardwareRow, row: Mapping[str, str]) -> list[tuple[str, str | float, str]]:
    """(field, value, why) of what the user's row leaves open and the table's row says."""
    like = hardware.like or (hardware.id if hardware.replaces else None)
    why = f"as {like}" if like else "usual unless given"
    reasons = {"name": "the id unless given"} | (
        {} if like else {"family": "a family of its own, of which nothing is known"}
    )
    return [
        (field, _number(row[column]), reasons.get(field, why))
        for field, column in {**_COLUMNS, "interconnect": "typical_network"}.items()
        if getattr(hardware, field) is None and row[column] and field != "notes"
    ]


def _number(text: str) -> str | float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text


def _like(hardware: HardwareRow, names: NameCatalogue, place: str) -> str:
    """The catalogue's id that the row begins from; '' for none."""
    if hardware.like is None:
        return hardware.id if hardware.replaces else ""
    try:
        return names.find(hardware.like).value
    except PlanError as error:
        raise PlanError(f"{place}like", error.problem, error.valid) from None


def _refuse_gaps(data: Mapping[str, object], place: str) -> None:
    for name in _NEEDED:
        if name not in data:
            raise PlanError(f"{place}{name}", "is required, unless like names an accelerator to take it from")
    if not {"bf16_tflops", "fp16_tflops", "fp32_tflops"} & data.keys():
        raise PlanError(f"{place}bf16_tflops", "a dense matrix rate is required", ["bf16_tflops", "fp16_tflops"])


def _forget_what_follows(row: dict[str, str], data: Mapping[str, object]) -> None:
    """Clears what the model row says of figures that are given anew and others follow from."""
    follows = {
        "memory_gib": ("usable_gib", "usable_source"),
        "scaleup_gb_per_s": ("peer_gb_s",),
    }
    for field, columns in follows.items():
        if field in data:
            row |= dict.fromkeys(columns, "")


def _fill_links(row: dict[str, str]) -> None:
    row["per_node"] = row["per_node"] or str(_USUAL_NODE)
    row["topology"] = row["topology"] or ("switch" if row["scaleup_gb_s"] else "pcie")
    row["scaleup_domain"] = row["scaleup_domain"] or row["per_node"]
    row["scaleup_link"] = row["scaleup_link"] or ("" if row["scaleup_gb_s"] else "PCIe")


def _text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
