"""The documentation page: every tool with its arguments and a command to try it, in one page without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from server.service import Service
from tools.schemas import input_schema

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2330;background:#fff}
h2{margin-top:2.5rem;border-top:1px solid #d5dae3;padding-top:1rem} code,pre{font:13px/1.5 ui-monospace,monospace}
pre{background:#f3f5f9;padding:.75rem;overflow-x:auto} table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.2rem .75rem .2rem 0;border-bottom:1px solid #e7eaf0}
.tag{font-size:.8rem;border:1px solid #9aa4b5;border-radius:.4rem;padding:0 .4rem;margin-left:.5rem}
@media(prefers-color-scheme:dark){body{color:#e6e9ef;background:#14181f}pre{background:#1e242e}td,th,h2{border-color:#333c4a}}
"""
_ROUTES = (
    ("POST /v1/tools/NAME", "calls a tool; the body is its arguments as one JSON object"),
    ("GET /v1/tools", "all tools with the schemas of their arguments and results"),
    ("GET /v1/models, /v1/models/ID", "the model catalogue (?query=, ?offset=, ?limit=), one model"),
    ("GET /v1/hardware, /v1/hardware/ID", "the accelerators, one accelerator"),
    ("POST /mcp", "the same tools over the Model Context Protocol"),
    ("GET /openapi.json", "this page for programs"),
    ("GET /healthz", "whether the server answers"),
)
_EXAMPLE = '{"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8}'


def page(service: Service, version: str) -> str:
    routes = "".join(
        f"<tr><td><code>{escape(route)}</code></td><td>{escape(what)}</td></tr>" for route, what in _ROUTES
    )
    tools = "".join(_tools(service))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shardwise API</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>Shardwise API {escape(version)}</h1>"
        f"<p>An argument that cannot be used gives status 422 and one sentence that names it, says what is wrong and "
        f"lists the nearest valid values.</p><table>{routes}</table>"
        f"<pre>curl -X POST localhost:8000/v1/tools/estimate_training -H 'Content-Type: application/json' \\\n"
        f"  -d '{escape(_EXAMPLE)}'</pre>{tools}</body></html>"
    )


def _tools(service: Service) -> Iterator[str]:
    for tool in service.tools.values():
        tag = "" if tool.read_only else '<span class="tag">writes files</span>'
        schema = input_schema(tool)
        required = schema.get("required", [])
        rows = "".join(
            f"<tr><td><code>{escape(name)}</code>{' (required)' if name in required else ''}</td>"
            f"<td>{escape(_type(field))}</td><td>{escape(field.get('description', ''))}</td></tr>"
            for name, field in schema.get("properties", {}).items()
        )
        yield (
            f'<h2 id="{tool.name}">{escape(tool.name)}{tag}</h2><p>{escape(tool.description)}</p>'
            f"<details><summary>Arguments</summary><table>{rows}</table></details>"
        )


def _type(field: Mapping[str, Any]) -> str:
    """A schema in a few words: its types or values, without null."""
    kinds = [field, *field.get("anyOf", [])]
    words: list[str] = []
    for kind in kinds:
        words += [str(value) for value in kind.get("enum", [])]
        if "enum" not in kind and isinstance(kind.get("type"), str) and kind["type"] != "null":
            words.append(kind["type"])
    return ", ".join(dict.fromkeys(words))
