"""Which page shows a result: one table, by the result's type. Types stand by name, as most of them have a tool of their
own behind them that need not be loaded to show another's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from pages.blocks import Block
from pages.results import (
    advice,
    choice,
    estimate,
    explanation,
    facts,
    files,
    many,
    matrix,
    measured,
    money,
    portfolio,
    reading,
    records,
    runs,
    scenarios,
)

VIEWS: Mapping[str, Callable[[Any], list[Block]]] = {
    "TrainingEstimate": estimate.estimate,
    "ServingEstimate": estimate.estimate,
    "FitCheck": estimate.fit,
    "BestParallelism": choice.best,
    "BestServing": choice.best,
    "Limit": choice.limit,
    "SizedServing": choice.size,
    "MlperfProjection": choice.mlperf,
    "CostEstimate": money.cost,
    "RecommendedCluster": money.clusters,
    "AutoConfigured": money.auto,
    "Comparison": many.compare,
    "Sweep": many.sweep,
    "ScalingProjection": many.scaling,
    "AppliedStrategies": many.strategies,
    "PeakThroughput": many.peak,
    "Explanation": explanation.explain,
    "Advice": advice.advise,
    "PlaybookFound": advice.playbook,
    "ModelDescription": facts.model,
    "HardwareDescription": facts.accelerator,
    "RenderedConfigs": files.configs,
    "WrittenConfigs": files.configs,
    "RenderedReport": files.report,
    "ReportFiles": files.report_files,
    "WrittenReport": files.written_report,
    "ImportedConfig": reading.check,
    "RenderedMatrix": matrix.matrix,
    "WrittenMatrix": matrix.matrix,
    "MatrixResults": matrix.results,
    "Portfolio": portfolio.portfolio,
    "MachineDescription": measured.machine,
    "HardwareMeasurement": measured.hardware,
    "RenderedBenchmark": measured.benchmark,
    "TrainingMeasurement": measured.training,
    "ServingMeasurement": measured.serving,
    "RunReading": runs.reading,
    "RunRating": runs.rating,
    "RunHistory": runs.history,
    "ScenarioList": scenarios.scenarios,
    "ScenarioDiff": scenarios.diff,
    "LoadedScenario": records.plan_file,
    "RenderedScenario": records.plan_file,
    "SavedScenario": records.saved,
    "DeletedScenario": records.deleted,
    "ShownRow": records.own_file,
    "AddedRow": records.added,
    "CatalogueList": records.catalogue,
}


def blocks_of(result: BaseModel) -> list[Block]:
    """Raises KeyError for a type that no page shows; a test keeps every tool's result in the table."""
    return VIEWS[type(result).__name__](result)
