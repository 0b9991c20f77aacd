"""Arguments of the tools' own: what no Plan holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent.offline.calls import wishes as calls
from agent.offline.form import Edit, Reading
from agent.offline.language.own.apis import api_prices
from agent.offline.language.own.files import files_of, import_of, matrix_of, report_of, scenario_of
from agent.offline.language.own.limits import limit_of, scaling_of, sweep_of
from agent.offline.language.own.measured import RATES
from agent.offline.language.own.prices import price_row
from agent.offline.language.own.rows import device_row, model_row
from agent.offline.language.own.runs import benchmark_of, history_of, results_of, scenario_text
from agent.offline.language.own.searches import (
    catalogue_of,
    facts_of,
    figure_of,
    hardware_facts,
    hardware_search,
    query_of,
    serving_search,
    strategies_of,
)

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_SCENARIOS = ("save_scenario", "load_scenario", "delete_scenario", "diff_scenarios", "list_scenarios")
# Tools whose question is about no plan: what is named is theirs. What is imported has one, as has each of several runs.
FREE = (calls.FREE - {"import_config", "schedule_runs"}) | {"describe_model", "describe_hardware"}
_WRITES = ("write_configs", "render_configs", "benchmark_matrix", "render_matrix")


def own_of(page: Page, tool: str | None, reading: Reading) -> dict[str, Any]:
    """The arguments that only `tool` takes, as far as the words say them."""
    found = _limits_of_serving(page)
    make = _OF_TOOL.get(tool or "")
    if make:
        found |= make(page, reading)
    if page.read.does("anyway"):
        found["anyway"] = True
    if "assistant" in page.read.asked("whose") and not page.plan:
        found["assistant"] = True
    if any(sense.kind == "optimal" for sense in page.read.senses()):
        found["compute_optimal"] = True
    if tool is None and is_outside(page):
        found |= {"control": "outside", "outside": page.read.asked("outside")[0]}
    return found


# Percentiles of a latency that are read as its tail.


def is_outside(page: Page) -> bool:
    """Whether a kind of model is named that is not planned here, and nothing of a run that is."""
    said = page.read.of("model") or page.values("model_size") or (page.plan and (page.filled or page.kept))
    return bool(page.read.asked("outside")) and not said


def _limits_of_serving(page: Page) -> dict[str, Any]:
    """Limits of a deployment that no Plan holds."""
    found: dict[str, Any] = {}
    if values := page.values("e2e_limit_s"):
        found["e2e_limit_s"] = values[-1]
    return found | api_prices(page)


def edits_left(page: Page, tool: str | None, edits: list[Edit], own: Mapping[str, Any]) -> list[Edit]:
    """What of the edits is said of the plan, and not only to the tool, whose own arguments are given."""
    edits = [
        edit
        for edit in edits
        if not (f"{edit.field}s" in own and edit.field in ("engine", "weight_dtype", "accelerator"))
    ]
    if tool in FREE:
        return []
    match tool, own:
        case "sweep", {"field": str(swept), "values": "all"}:
            # What it is ranked by is asked of this question alone.
            return [edit for edit in edits if edit.field not in ("objective", swept)]
    if tool in _WRITES:
        # A path is where they go.
        return [edit for edit in edits if not (edit.field == "model" and "/" in str(edit.value)[:2])]
    if tool == "render_benchmark":
        # 'Time 20 steps' trains no longer.
        return [edit for edit in edits if edit.field not in ("steps", "epochs", "recompute_block")]
    if tool == "save_scenario":
        # What the name itself seems to say is said of nothing: 'save it as gemma-lora'.
        called = [value for name, value in own.items() if name == "name"]
        starts = [(page.read.text.rfind(value), len(value)) for value in called]
        inside = {at for start, length in starts if start >= 0 for at in range(start, start + length)}
        return [edit for edit in edits if edit.span == (0, 0) or edit.span[0] not in inside]
    return edits


def _speed_of(page: Page, reading: Reading) -> dict[str, Any]:
    if named := page.read.of("run"):
        return {"run": named[0].id}
    return {page.speed.name: page.speed.value} if page.speed else {}


def _log_of(page: Page, reading: Reading) -> dict[str, Any]:
    return {"text": page.log} if page.log else {"path": page.files.records[0]} if page.files.records else {}


_ROWS = {"price": price_row, "hardware": device_row, "model": model_row}
_OF_TOOL: Mapping[str, Callable[[Any, Reading], dict[str, Any]]] = {
    "find_limit": limit_of,
    "sweep": sweep_of,
    "project_scaling": scaling_of,
    "explain": figure_of,
    "search_playbook": query_of,
    "list_catalogue": catalogue_of,
    "describe_model": facts_of("models", "model"),
    "describe_hardware": hardware_facts,
    "render_configs": files_of,
    "write_configs": files_of,
    "recommend_cluster": hardware_search,
    "auto_configure": hardware_search,
    "size_serving": serving_search,
    "best_serving": serving_search,
    "apply_strategies": strategies_of,
    "peak_throughput": strategies_of,
    "benchmark_matrix": matrix_of,
    "render_matrix": matrix_of,
    "render_benchmark": benchmark_of,
    "matrix_results": results_of,
    "benchmark_result": results_of,
    "list_runs": history_of,
    "render_scenario": scenario_text,
    RATES: _speed_of,
    "read_run": _log_of,
    **dict.fromkeys(("report", "preview_report"), report_of),
    "import_config": import_of,
    **{tool: _ROWS[kind] for tool, kind in calls.ROWS.items()},
    **dict.fromkeys(_SCENARIOS, scenario_of),
}
