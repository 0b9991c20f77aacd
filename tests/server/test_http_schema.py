"""Requests made from /openapi.json, valid and not: no server error, and answers as the document says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from live_server import Live, in_thread
from samples import part
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from tool_calls import FLAT

from tools.registry import registry

EXAMPLES = part(10, 200)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with in_thread(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture(scope="module")
def api(live: Live) -> Any:
    # Not from_url, which waits no longer than ten seconds, however busy the machine is.
    return schemathesis.openapi.from_dict(httpx.get(f"{live.url}/openapi.json", timeout=60).json())


TOOLS = [f"/v1/tools/{name}" for name in registry()]
LISTS = ("/v1/models", "/v1/hardware")
# Any text may be a name, and what takes no input has none that could be wrong.
ALWAYS_RIGHT = (*TOOLS, *(f"{path}/{{id}}" for path in LISTS), "/healthz", "/v1/tools")
CASES = [
    *(("POST", path, mode) for path in TOOLS for mode in GenerationMode),
    *(("GET", path, mode) for path in LISTS for mode in GenerationMode),
    *(("GET", path, GenerationMode.POSITIVE) for path in ALWAYS_RIGHT),
]


def test_every_operation_of_the_document_is_tried(api: Any) -> None:
    documented = {(operation.ok().method.upper(), operation.ok().path) for operation in api.get_all_operations()}
    assert documented == {(method, path) for method, path, _ in CASES}


@pytest.mark.parametrize(("method", "path", "mode"), CASES, ids=lambda part: getattr(part, "value", part))
def test_no_request_from_the_document_breaks_the_server(
    method: str, path: str, mode: GenerationMode, api: Any, live: Live
) -> None:
    operation = api[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )  # fmt: skip
    def run(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and isinstance(case.body, dict) and "model" in case.body:
            # Random text is no model: with a real one the other arguments are reached.
            case.body = {**case.body, "model": FLAT["model"]}
        answer = case.call(base_url=live.url, timeout=60)
        # Which plans can work is more than a schema can say, so a valid body may get 422.
        case.validate_response(answer, excluded_checks=[CHECKS.get_one("positive_data_acceptance")])

    run()
