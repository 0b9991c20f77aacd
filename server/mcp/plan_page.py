"""The Plan described once, for a model that has never seen one: every field with its values and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from estimator.plan.schema import Inference, Plan, Training

_EXAMPLE = """\
model: meta-llama/Llama-3.1-8B
workload: {kind: training, method: lora, seq_len: 4096, dataset_tokens: 1e9}
cluster: {accelerator: h100-sxm, count: 8}
layout: {zero_stage: 3}
goal: {objective: throughput, budget_usd: 500}
"""


def plan_page() -> str:
    """Markdown."""
    schema = Plan.model_json_schema()
    parts = schema["$defs"]
    training = Training.model_json_schema()
    sections = [
        ("workload of training (kind: training)", training),
        ("workload.lora", training["$defs"]["Lora"]),
        ("workload of serving (kind: inference)", Inference.model_json_schema()),
        *((name, parts[_part(field)]) for name, field in schema["properties"].items()
          if name != "workload" and _part(field) in parts),
    ]  # fmt: skip
    top = {name: field for name, field in schema["properties"].items() if name == "workload" or not _part(field)}
    tables = [_table("The Plan", top)]
    tables += [_table(title, section["properties"]) for title, section in sections]
    return (
        "# The Plan\n\nOne document says what to run, on what, how split, and to what end. Only the model is required: "
        "what is left out is chosen or assumed, and every result lists what was. Tools take a Plan whole or in part as "
        "`plan`, and its fields as flat arguments under the same names, which win.\n\n"
        f"```yaml\n{_EXAMPLE}```\n\n" + "\n\n".join(tables) + "\n"
    )


def _table(title: str, fields: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"| `{name}` | {' '.join(dict.fromkeys(_kinds(field)))} | {_cell(field.get('description', ''))} |"
        for name, field in fields.items()
    )
    return f"## {title}\n\n| field | values | meaning |\n| --- | --- | --- |\n{rows}"


def _part(field: Mapping[str, Any]) -> str:
    """The part of the Plan that a field holds, '' where it is a plain value."""
    refs = [each["$ref"] for each in (field, *field.get("anyOf", ())) if "$ref" in each]
    return refs[0].rpartition("/")[2] if refs else ""


def _kinds(field: Mapping[str, Any]) -> Iterator[str]:
    for each in (field, *field.get("anyOf", ())):
        if "enum" in each:
            yield from map(str, each["enum"])
        elif "const" in each:
            yield str(each["const"])
        elif each.get("type") not in (None, "null"):
            yield str(each["type"])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
