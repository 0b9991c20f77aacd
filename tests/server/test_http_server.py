"""The HTTP server: its routes, who may speak to it, calls beside each other, its log and its end."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from live_server import Live, in_process, in_thread
from tool_calls import FLAT, steady

from estimator.errors import PlanError
from server.calls import Calls
from server.http.guard import LARGEST_BODY_BYTES, Guard, HttpRefusal, check, guard_for
from server.http.server import app
from server.service import Service
from tools import call
from tools.registry import Tool, registry
from tui.cli import main

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with in_thread(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=live.url, timeout=30) as found:
        yield found


def test_a_tool_answers_as_it_does_everywhere(client: httpx.Client) -> None:
    answer = client.post("/v1/tools/estimate_training", json=FLAT)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert steady(answer.json()) == steady(call("estimate_training", FLAT))


@pytest.mark.parametrize(
    "arguments", [{"model": "gpt3000"}, FLAT | {"tp": 3}, FLAT | {"tpp": 1}, {}, FLAT | {"count": 0}]
)
def test_an_error_is_the_same_sentence_with_its_parts(client: httpx.Client, arguments: dict[str, Any]) -> None:
    with pytest.raises(PlanError) as caught:
        call("estimate_training", arguments)
    answer = client.post("/v1/tools/estimate_training", json=arguments)
    assert answer.status_code == 422
    error = caught.value
    assert answer.json()["error"] == {
        "message": str(error), "field": error.field, "problem": error.problem, "valid": error.valid,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models?query=llama 3.1", 200),
        ("GET", "/v1/models?limit=1&offset=3", 200),
        ("GET", "/v1/models?limit=0", 422),
        ("GET", "/v1/models?colour=red", 422),
        ("GET", "/v1/models?" + "limit=1&" * 60, 422),
        ("GET", "/v1/models?limit=1&limit=2", 422),
        ("GET", "/v1/models/meta-llama/Llama-3.1-8B", 200),
        ("GET", "/v1/models/meta-llama%2FLlama-3.1-8B", 200),
        ("GET", "/v1/models/llama-9-90b", 404),
        ("GET", "/v1/models//etc/passwd", 404),
        ("GET", "/v1/hardware", 200),
        ("GET", "/v1/hardware/h100", 200),
        ("GET", "/v1/hardware/h1000", 404),
        ("GET", "/v1/tools", 200),
        ("GET", "/v1/tools/check_fit", 200),
        ("GET", "/v1/tools/nope", 404),
        ("POST", "/v1/tools/nope", 404),
        ("DELETE", "/v1/tools/check_fit", 405),
        ("POST", "/v1/models", 405),
        ("HEAD", "/healthz", 200),
        ("OPTIONS", "/healthz", 405),
        ("GET", "/mcp", 405),
        ("PUT", "/mcp", 405),
        ("GET", "/", 200),
        ("GET", "/docs", 200),
        ("GET", "/healthz", 200),
        ("GET", "/v2", 404),
        ("GET", "/../../etc/passwd", 404),
    ],
)
def test_every_address_answers_as_it_should(client: httpx.Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    if status == 405:
        assert answer.headers["allow"]
    if status >= 400:
        assert answer.json()["error"]["message"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_catalogues_hold_what_the_tools_know(client: httpx.Client) -> None:
    models = client.get("/v1/models", params={"query": "llama 3.1 8b"}).json()
    assert "meta-llama/Llama-3.1-8B" in [row["id"] for row in models["models"]]
    assert client.get("/v1/models/llama-3.1-8b").json() == call("describe_model", {"model": "meta-llama/Llama-3.1-8B"})
    assert client.get("/v1/hardware/h100-sxm").json() == call("describe_hardware", {"accelerator": "h100-sxm"})


def test_openapi_describes_every_tool_and_its_real_answers(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for name, tool in registry().items():
        operations = document["paths"][f"/v1/tools/{name}"]
        operation = operations["post"]
        # Whatever is answered is declared, and nothing is asked for that need not come.
        assert set(operations) == {"get", "post"}
        assert operation["requestBody"]["required"] == bool(tool.request.model_json_schema().get("required"))
        assert operation["summary"] == tool.title
        assert {"200", "401", "422"} <= operation["responses"].keys()

    def schema_of(path: str, method: str, status: str) -> dict[str, Any]:
        found = document["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"]
        return {**found, "components": document["components"]}

    for path, name, arguments in (
        ("/v1/tools/estimate_training", "estimate_training", FLAT),
        ("/v1/tools/write_configs", "write_configs", FLAT),
    ):
        answer = client.post(f"/v1/tools/{name}", json=arguments).json()
        jsonschema.Draft202012Validator(schema_of(path, "post", "200")).validate(answer)
    about = client.get("/v1/tools/check_fit").json()
    jsonschema.Draft202012Validator(schema_of("/v1/tools/check_fit", "get", "200")).validate(about)
    assert client.post("/v1/tools/search_playbook").status_code == 200
    error = client.post("/v1/tools/check_fit", json={}).json()
    jsonschema.Draft202012Validator(schema_of("/v1/tools/check_fit", "post", "422")).validate(error)


def test_the_docs_page_names_every_tool_and_runs_no_script(client: httpx.Client) -> None:
    answer = client.get("/docs")
    for name in registry():
        assert f'id="{name}"' in answer.text
    assert "<script" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_writing_over_rest_takes_the_code_of_the_first_call(client: httpx.Client) -> None:
    arguments = FLAT | {"folder": "runs/rest"}
    shown = client.post("/v1/tools/write_configs", json=arguments).json()
    assert shown["written"] is False
    done = client.post("/v1/tools/write_configs", json=arguments | {"confirm": shown["confirm"]}).json()
    assert done["written"] is True
    for file in done["files"]:
        assert Path(file["path"]).stat().st_size == file["bytes"]


@pytest.mark.parametrize("model", ["/etc/passwd", "~/.ssh/id_rsa", "../config.json", "tests", "C:\\x", "a/../../b"])
def test_a_caller_elsewhere_reads_no_file_outside_the_root(client: httpx.Client, model: str) -> None:
    for arguments in ({"model": model}, {"plan": {"model": model}}):
        answer = client.post("/v1/tools/check_fit", json=arguments | {"accelerator": "h100-sxm"})
        assert answer.status_code == 422
        assert "outside what this server may read" in answer.json()["error"]["message"]


def test_a_path_in_the_text_of_a_plan_is_no_way_to_a_file(client: httpx.Client, tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 512}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    text = json.dumps({"model": str(tmp_path / "config.json"), "cluster": {"accelerator": "h100-sxm"}})
    for tool, arguments in (
        ("render_scenario", {"name": "x", "text": text}),
        ("save_scenario", {"name": "x", "text": text}),
    ):
        answer = client.post(f"/v1/tools/{tool}", json=arguments, timeout=60).text
        assert "config.json" in answer
        assert '"fits":null' in answer or "error" in answer, answer[:500]


def test_a_model_below_the_root_can_be_read(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 512}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    with in_thread(tmp_path) as live:
        for layers in (2, 3):
            (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": layers}))
            answer = httpx.post(f"{live.url}/v1/tools/describe_model", json={"model": str(tmp_path)}, timeout=30)
            assert answer.json()["layers"] == layers, "an answer that was read from a file must not be kept"


def test_every_request_leaves_one_line_of_json_without_secrets(live: Live, client: httpx.Client) -> None:
    before = len(live.log)
    client.post("/v1/tools/check_fit?key=hidden", json={"model": "hidden"}, headers={"Authorization": "Bearer hidden"})
    client.get("/v1/models/a%0Ab")
    time.sleep(0.05)
    first, second = (json.loads(line) for line in live.log[before:])
    assert (first["method"], first["path"], first["status"]) == ("POST", "/v1/tools/check_fit", 422)
    assert first["ms"] > 0
    assert first["bytes_in"] == len(b'{"model":"hidden"}')
    assert second["path"] == "/v1/models/a\nb"
    assert "hidden" not in "".join(live.log[before:])


# Host, Origin, Authorization, and the status that a server with a token gives.
HEADERS: list[tuple[str | None, str | None, str | None, int]] = [
    ("127.0.0.1:8000", None, f"Bearer {TOKEN}", 200),
    ("localhost", "http://localhost:3000", f"bearer  {TOKEN}", 200),
    ("[::1]:8000", None, f"Bearer {TOKEN}", 200),
    ("plans.example:443", "https://ui.example", f"Bearer {TOKEN}", 200),
    ("evil.example", None, f"Bearer {TOKEN}", 421),
    ("127.0.0.1.evil.example", None, f"Bearer {TOKEN}", 421),
    ("localhost@evil.example", None, f"Bearer {TOKEN}", 421),
    ("10.0.0.1", None, f"Bearer {TOKEN}", 421),
    ("localhost:x", None, f"Bearer {TOKEN}", 421),
    ("", None, f"Bearer {TOKEN}", 421),
    ("localhost", "https://evil.example", f"Bearer {TOKEN}", 403),
    ("localhost", "null", f"Bearer {TOKEN}", 403),
    ("localhost", "file://localhost", f"Bearer {TOKEN}", 403),
    ("localhost", None, None, 401),
    ("localhost", None, f"Basic {TOKEN}", 401),
    ("localhost", None, f"Bearer {TOKEN}x", 401),
    ("localhost", None, "Bearer ", 401),
    ("localhost", None, "Bearer \xff", 401),
]


@pytest.mark.parametrize(("host", "origin", "authorization", "status"), HEADERS, ids=range(len(HEADERS)))
def test_host_origin_and_token_are_checked(
    host: str | None, origin: str | None, authorization: str | None, status: int
) -> None:
    guard = guard_for("127.0.0.1", TOKEN, frozenset({"plans.example"}), frozenset({"https://ui.example"}))
    given = {"host": host, "origin": origin, "authorization": authorization}
    found = 200
    try:
        check(guard, {name: value for name, value in given.items() if value is not None})
    except HttpRefusal as refusal:
        found = refusal.status
    assert found == status


@pytest.mark.parametrize(
    "path", ["/healthz", "/docs", "/openapi.json", "/v1/models", "/v1/tools/check_fit", "/mcp", "/x"]
)
def test_the_token_guards_every_address(path: str) -> None:
    for method in ("GET", "POST"):
        for headers, status in (({}, 401), ({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
            assert _status(method, path, headers) == status


def _status(method: str, path: str, headers: dict[str, str]) -> int:
    """The status that the application answers, without a socket in between."""
    given = {"host": "127.0.0.1"} | {name.lower(): value for name, value in headers.items()}
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "client": None,
             "headers": [(name.encode(), value.encode()) for name, value in given.items()]}  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        await app(Service(), Guard(token=TOKEN))(scope, receive, send)

    asyncio.run(run())
    return sent[0]["status"]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "10.1.2.3", "example.org"])
def test_a_token_is_required_on_every_address(
    host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guards: list[Guard] = []
    monkeypatch.setattr(
        "tui.commands.servers.serve.serve", lambda root, host, port, guard, log, ready: guards.append(guard)
    )
    monkeypatch.delenv("SHARDWISE_TOKEN", raising=False)
    assert main(["serve", "--host", host]) == 0
    assert len(guards[0].token or "") >= 32
    monkeypatch.setenv("SHARDWISE_TOKEN", "short")
    assert main(["serve", "--host", host]) == 2
    assert "at least 16" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", str(live.port)]) == 2
    assert "cannot listen" in capsys.readouterr().err


def test_too_large_a_body_is_refused_though_it_was_sent_in_full(client: httpx.Client) -> None:
    for size, status in ((LARGEST_BODY_BYTES + 1, 413), (10 * 2**20, 413), (LARGEST_BODY_BYTES, 400)):
        answer = client.post("/v1/tools/check_fit", content=b" " * size, headers={"Content-Type": "application/json"})
        assert answer.status_code == status


async def test_equal_calls_share_one_computation_and_a_long_one_holds_up_nobody() -> None:
    """Tools that wait stand for tools that compute: a thread that waits lets the others run in the same way."""
    runs: list[str] = []
    release = threading.Event()

    def slow(request: Any) -> Any:
        runs.append(request.model)
        release.wait(10)
        return real.function(request)

    calls, real = Calls(), registry()["describe_model"]
    searching = Tool(**{**vars(real), "name": "search", "function": slow})
    waiting = [asyncio.create_task(calls.run(searching, {"model": "gpt2"})) for _ in range(50)]
    started = time.perf_counter()
    for _ in range(20):
        assert (await calls.run(real, {"model": "gpt2"})).failure is None
    assert time.perf_counter() - started < 5
    assert not any(task.done() for task in waiting)
    waiting[0].cancel()
    release.set()
    answers = await asyncio.gather(*waiting[1:])
    assert len(runs) == 1
    assert len({id(answer) for answer in answers}) == 1
    calls.close()


@pytest.mark.parametrize(("most", "limit"), [("_MOST_KEPT", 5), ("_MOST_KEPT_BYTES", 2000)])
async def test_what_is_kept_is_bounded(most: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"server.calls.{most}", limit)
    calls, tool = Calls(), registry()["describe_model"]
    names = ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "llama-3.1-8b", "llama-3.1-70b", "qwen2.5-7b"]
    for name in [*names, *names]:
        await calls.run(tool, {"model": name})
    await asyncio.sleep(0)
    assert 1 < len(calls._kept) <= 5
    last = await calls.run(tool, {"model": names[-1]})
    assert await calls.run(tool, {"model": names[-1]}) is last
    calls.close()


async def test_what_is_kept_is_forgotten_after_a_write() -> None:
    calls, tool = Calls(), registry()["describe_model"]
    kept = await calls.run(tool, {"model": "gpt2"})
    assert await calls.run(tool, {"model": "gpt2"}) is kept
    calls.forget()
    assert await calls.run(tool, {"model": "gpt2"}) is not kept
    calls.close()


async def test_short_calls_beside_many_others_are_not_taken_for_long_ones() -> None:
    order = list[str]()

    def slow(request: Any) -> Any:
        order.append(request.model)
        time.sleep(0.3)  # on the clock, as where other threads have the processor
        return real.function(request)

    calls, real = Calls(), registry()["describe_model"]
    tool = Tool(**{**vars(real), "function": slow})
    names = ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]
    await asyncio.gather(*(calls.run(tool, {"model": name}) for name in names))
    assert order == names  # the first to ask is the first to be served
    assert calls._seconds["describe_model"] < 0.25
    calls.close()


async def test_a_folder_is_read_below_the_root_alone_and_always_anew(tmp_path: Path) -> None:
    async def said(root: Path | None, folder: str) -> str:
        service = Service(root, remote=True)
        tool = service.tool("matrix_results")
        answers = [(await service.call(tool, {"folder": folder})).failure or ""]
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / "matrix.json").write_text("[]")
        answers.append((await service.call(tool, {"folder": folder})).failure or "")
        service.calls.close()
        return "; then ".join(answers)

    assert "--root" in await said(None, "runs")
    for outside in ("..", "/etc", "mine/../../x"):
        assert "outside" in await said(tmp_path / "mine", outside)
    (tmp_path / "mine" / "matrix.json").unlink()
    first, then = (await said(tmp_path, "mine")).split("; then ")
    assert str(tmp_path) in first
    assert then != first


async def test_a_failure_of_ours_is_not_kept() -> None:
    def broken(request: Any) -> Any:
        raise RuntimeError

    calls, real = Calls(), registry()["describe_model"]
    failing = Tool(**{**vars(real), "function": broken})
    assert (await calls.run(failing, {"model": "gpt2"})).bug
    assert (await calls.run(real, {"model": "gpt2"})).failure is None
    calls.close()


async def test_many_clients_at_once_get_their_own_answers(live: Live) -> None:
    async def one(number: int) -> None:
        async with httpx.AsyncClient(base_url=live.url, timeout=60) as client:
            for step in range(3):
                seq_len = 512 * (1 + (number + step) % 16)
                answer = await client.post("/v1/tools/estimate_training", json=FLAT | {"seq_len": seq_len})
                assert answer.json()["plan"]["workload"]["seq_len"] == seq_len

    await asyncio.gather(*(one(number) for number in range(12)))


def test_the_server_ends_in_good_order_while_a_request_runs(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with in_process("--root", str(tmp_path), SHARDWISE_TOKEN=TOKEN, SHARDWISE_HOME=home) as (process, port):
        answers: list[httpx.Response] = []
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connected = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
                client.get("/healthz")  # from here on the connection stands
                connected.set()
                answers.append(client.post("/v1/tools/best_parallelism", json=FLAT | {"count": 64}))

        asking = threading.Thread(target=ask)
        asking.start()
        assert connected.wait(30)
        time.sleep(0.15)
        process.send_signal(signal.SIGTERM)
        asking.join(60)
        assert process.wait(30) == 0
        assert process.stderr is not None
        errors = process.stderr.read()
    assert [answer.status_code for answer in answers] == [200]
    assert "Traceback" not in errors
    assert [json.loads(line)["status"] for line in errors.splitlines()[:2]] == [200, 200]
    assert TOKEN not in errors
