"""The measured runs that estimates are checked on, as their files have them."""

from __future__ import annotations

from dataclasses import dataclass

from measure.history.nearest import FILES, File, rows_of_file


@dataclass(frozen=True)
class ShippedRun:
    """A row of `file`: `measured` by the keys of figures, `settings` what its source says of it.

    `software` is the framework or engine with its version, `doubt` why it is not scored (empty where it is).
    """

    id: str
    file: File
    place: int
    model: str
    platform: str
    software: str
    measured: dict[str, float]
    date: str
    doubt: str
    source: str
    reference: str
    settings: dict[str, str]


_KEYS = {"tokens_per_s_per_device": 1.0, "mfu": 1.0, "step_s": 1.0, "peak_bytes": 1.0, "ttft_ms": 1e-3, "tpot_ms": 1e-3}
_OUTPUT = "output_tokens_per_s"
_ABOUT = ("id", "source", "source_ref", "doubt", "tags")


def shipped_runs() -> list[ShippedRun]:
    """All of them, in file order; nothing is estimated."""
    return [_run(row, file, place) for file in FILES for place, row in enumerate(rows_of_file(file))]


def _run(row: dict[str, str], file: File, place: int) -> ShippedRun:
    software = " ".join(filter(None, (row.get("framework") or row.get("engine"), row.get("software_version"))))
    measured = {
        key.replace("_ms", "_s"): float(row[key]) * unit for key, unit in _KEYS.items() if _is_number(row.get(key, ""))
    }
    if _is_number(row.get(_OUTPUT, "")):
        measured[_OUTPUT] = float(row[_OUTPUT])
    return ShippedRun(
        id=row["id"],
        file=file,
        place=place,
        model=row.get("model", ""),
        platform=f"{row.get('devices', '1')} x {row.get('accelerator', '')}",
        software=software,
        measured=measured,
        date=row.get("date", ""),
        doubt=row.get("doubt", ""),
        source=row["source"],
        reference=row.get("source_ref", ""),
        settings={name: value for name, value in row.items() if name not in (*_ABOUT, *_KEYS, _OUTPUT)},
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
