"""Runs as files that travel: JSON or YAML with everything, CSV with a line a run and without their steps."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from estimator.errors import PlanError
from knowledge.own.files import parsed
from knowledge.own.mappings import csv_records, json_value
from measure.history.run import FORMAT, MeasuredRun

Format = Literal["json", "yaml", "csv"]
_FIELD = "file"
_MOST_CSV = 20_000_000
_LISTS = ("tags", "findings")
_DOTTED = ("plan", "figures", "predicted", "software")
_PLAIN = ("name", "kind", "source", "date", "outcome", "peak_kind", "steps", "start_s", "note")


def written(runs: Sequence[MeasuredRun], format: Format) -> str:
    """The runs as text: one alone as an object, several as a list."""
    if format == "csv":
        return _csv(runs)
    data: Any = [{"format": FORMAT} | run.model_dump(mode="json", exclude_defaults=True) for run in runs]
    data = data[0] if len(data) == 1 else data
    if format == "json":
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    import yaml

    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)


_DEEPEST = 8
ENDS = (".json", ".yaml", ".yml", ".csv")


def is_written(text: str) -> bool:
    """Whether `written` made a text: of JSON and YAML each run names its format, of CSV the first columns do."""
    return FORMAT in text or text.lstrip("\ufeff").startswith(f"id,{_PLAIN[0]},{_PLAIN[1]},")


def read(text: str) -> list[MeasuredRun]:
    """The runs of a text that `written` made, whichever its format. Raises PlanError."""
    head = text.lstrip("\ufeff \n\r\t")
    if not head.startswith(("{", "[", "- ")) and "," in head.partition("\n")[0]:
        return [_checked(row) for row in _rows(head)]
    data = _json(head) if head.startswith(("{", "[")) else parsed(text, _FIELD)
    rows = data if isinstance(data, list) else [data]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise PlanError(_FIELD, "holds no runs", ["a run as `shardwise measure export` writes it: JSON, YAML or CSV"])
    return [_checked(row) for row in rows]


def _json(text: str) -> Any:
    try:
        return json_value(text)
    except ValueError:
        raise PlanError(_FIELD, "is not readable JSON") from None


def _checked(row: Mapping[str, Any]) -> MeasuredRun:
    try:
        return MeasuredRun.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the run"
        raise PlanError(_FIELD, f"is not a run: {where}: {first['msg']}") from None


def _csv(runs: Sequence[MeasuredRun]) -> str:
    rows = [dict(_flat(run)) for run in runs]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(run: MeasuredRun) -> Iterator[tuple[str, str]]:
    yield "id", run.id
    for name in _PLAIN:
        value = getattr(run, name)
        yield name, "" if value is None else str(value)
    for name in _LISTS:
        yield name, "; ".join(getattr(run, name))
    for section in _DOTTED:
        for path, value in _leaves(getattr(run, section)):
            yield f"{section}.{path}", value if isinstance(value, str) else json.dumps(value)
    for name, (low, high) in run.spread.items():
        yield f"spread.{name}", json.dumps([low, high])


def _leaves(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values by dotted path. A model given by its config stays one value."""
    for key, value in data.items():
        if isinstance(value, dict) and value and key != "model":
            for path, leaf in _leaves(value):
                yield f"{key}.{path}", leaf
        else:
            yield key, value


def _rows(text: str) -> Iterator[dict[str, Any]]:
    if len(text) > _MOST_CSV:
        raise PlanError(_FIELD, f"is larger than {_MOST_CSV // 10**6} MB")
    try:
        rows = list(csv_records(io.StringIO(text), strict=True))
    except ValueError as error:
        raise PlanError(_FIELD, f"is not readable CSV: {error}") from None
    for row in rows:
        yield _nested({name: cell for name, cell in row.items() if name and isinstance(cell, str) and cell})


def _nested(row: Mapping[str, str]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, cell in row.items():
        head, _, path = name.partition(".")
        if head in _LISTS:
            data[head] = [part for part in cell.split("; ") if part]
        elif head in (*_DOTTED, "spread") and path:
            place = data.setdefault(head, {})
            *parents, last = path.split(".") if head == "plan" else [path]
            for parent in parents[:_DEEPEST]:
                place = place.setdefault(parent, {})
                if not isinstance(place, dict):
                    raise PlanError(_FIELD, f"has the columns {name} and {parent}, which is a part of it")
            place[last] = cell if head == "software" else _value(cell)
        elif head in ("steps", "start_s"):
            data[head] = _value(cell)
        else:
            data["exported_as" if head == "id" else head] = cell
    return data


def _value(cell: str) -> Any:
    try:
        return json_value(cell)
    except ValueError:
        return cell
