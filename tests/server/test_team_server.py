"""A team's server: any of its processes answers any request, each caller does what their role allows and no more, and
all of it is noted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import ToolError
from fastmcp.server.auth.providers.jwt import RSAKeyPair
from joserfc.jwk import RSAKey
from live_server import Live, served_in_thread

from estimator.errors import PlanError
from knowledge.own import database
from server.http.guard import Guard
from server.team.identity import TokenFile, provider_of, role_of
from server.team.shared import digest
from tui.commands.servers.team import TeamOptions, team_app

QUESTION = "does llama-3.1-8b fit on 8 H100?"
FIT = {"model": "gpt2", "accelerator": "h100"}
ROLES = {"alice": "write", "bob": "plan", "eve": "read"}
READ, PLANNED, WRITTEN = "describe_model", "check_fit", "save_scenario"
CALLS = {READ: {"model": "gpt2"}, PLANNED: FIT, WRITTEN: {**FIT, "name": "mine"}}


def secret(name: str) -> str:
    return f"{name}-secret-of-some-length"


def headers(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret(name)}"}


@pytest.fixture
def tokens(team_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of three callers, whose names no other test has."""
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SHARDWISE_CONFIG", raising=False)
    path = tmp_path / "tokens"
    path.write_text("".join(f"{name}-{database.user()} {role} {secret(name)}\n" for name, role in ROLES.items()))
    return path


@contextmanager
def processes(count: int, options: TeamOptions) -> Iterator[list[Live]]:
    """Servers that serve as one, in threads of this process."""
    with ExitStack() as stack:
        logs: list[list[str]] = [[] for _ in range(count)]
        yield [stack.enter_context(served_in_thread(team_app(options, log.append)[0], log)) for log in logs]


def options(tokens: Path, root: Path | None = None, **more: Any) -> TeamOptions:
    return TeamOptions(Guard(), root, full=False, log=True, tokens=str(tokens), **more)


def call(live: Live, name: str, tool: str, arguments: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{live.url}/v1/tools/{tool}", json=arguments, headers=headers(name), timeout=60)


def ask(live: Live, name: str, text: str, session: str | None = None) -> httpx.Response:
    body = {"text": text} | ({"session": session} if session else {})
    return httpx.post(f"{live.url}/v1/ask", json=body, headers=headers(name), timeout=60)


def saved_by(live: Live, name: str) -> dict[str, Any]:
    """What somebody is told who asks the agent to save a plan."""
    session = ask(live, name, QUESTION).json()["session"]
    return ask(live, name, "save this as tuesday", session).json()


def mcp(live: Live, name: str, tool: str, arguments: dict[str, Any]) -> Any:
    async def run() -> Any:
        async with Client(StreamableHttpTransport(f"{live.url}/mcp", headers=headers(name))) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(run())


def rows(sql: str) -> list[Any]:
    with psycopg.connect(database.address()) as connection:
        return connection.execute(sql.encode()).fetchall()


def test_each_role_does_what_it_allows_and_no_more(tokens: Path) -> None:
    may = {"alice": {READ, PLANNED, WRITTEN}, "bob": {READ, PLANNED}, "eve": {READ}}
    with processes(1, options(tokens)) as (live,):
        for name, allowed in may.items():
            for tool, arguments in CALLS.items():
                answer = call(live, name, tool, arguments)
                assert answer.status_code == (200 if tool in allowed else 403), answer.text
                if tool in allowed:
                    assert mcp(live, name, tool, arguments).structured_content
                else:
                    assert f"{tool} needs the role" in answer.json()["error"]["message"]
                    with pytest.raises(ToolError, match=f"{tool} needs the role"):
                        mcp(live, name, tool, arguments)
            assert ask(live, name, QUESTION).status_code == (200 if PLANNED in allowed else 403)
        # What the agent calls for somebody it calls in their name.
        told = {name: saved_by(live, name) for name in ("alice", "bob")}
        assert told["alice"]["waiting"][0]["name"] == WRITTEN
        assert "needs the role write" in told["bob"]["answer"]
        for path in ("/v1/tools", "/metrics", "/v1/sessions", "/docs"):
            assert httpx.get(live.url + path).status_code == 401
            assert httpx.get(live.url + path, headers=headers("mallory")).status_code == 401
            assert httpx.get(live.url + path, headers=headers("eve")).status_code == 200
        for path in ("/healthz", "/readyz"):
            assert httpx.get(live.url + path).status_code == 200


def test_one_token_for_all_is_asked_for_but_where_probes_ask(team_database: str) -> None:
    alone = TeamOptions(Guard(token=secret("all")), None, full=False, log=True)
    paths = {"/healthz": 200, "/readyz": 200, "/v1/tools": 401, "/metrics": 401}
    with processes(1, alone) as (live,):
        assert {path: httpx.get(live.url + path).status_code for path in paths} == paths
        assert httpx.get(f"{live.url}/v1/tools", headers=headers("all")).status_code == 200


def test_any_process_answers_any_request(tokens: Path, tmp_path: Path) -> None:
    with processes(2, options(tokens, tmp_path / "files")) as (one, other):
        # A code that one gave, at the other, once, and for nobody else.
        shown = call(one, "alice", WRITTEN, CALLS[WRITTEN]).json()
        confirmed = CALLS[WRITTEN] | {"confirm": shown["confirm"]}
        tokens.write_text(tokens.read_text().replace(" plan ", " write "))
        time.sleep(1.1)
        assert "not known" in call(other, "bob", WRITTEN, confirmed).text
        assert call(other, "alice", WRITTEN, confirmed).json()["files"]
        assert "used already" in call(one, "alice", WRITTEN, confirmed).text
        # What was kept through one, through the other at once.
        assert call(one, "alice", "load_scenario", {"name": "mine"}).status_code == 200
        assert call(one, "bob", "load_scenario", {"name": "mine"}).status_code == 422
        place = f"{other.url}/v1/own/scenarios/mine.yaml"
        assert httpx.put(place, json={"shared": True}, headers=headers("alice")).status_code == 200
        assert call(one, "bob", "load_scenario", {"name": "mine"}).status_code == 200
        assert httpx.put(place, json={"shared": False}, headers=headers("alice")).status_code == 200
        assert call(other, "bob", "load_scenario", {"name": "mine"}).status_code == 422
        # The details of a brief answer.
        many = mcp(one, "alice", "list_catalogue", {"kind": "models"}).structured_content

        async def details() -> str:
            async with Client(StreamableHttpTransport(f"{other.url}/mcp", headers=headers("alice"))) as client:
                return str((await client.read_resource(many["details"]))[0])

        assert len(asyncio.run(details())) > len(json.dumps(many))
        # A conversation, and the files that it waits to write.
        first = ask(one, "alice", QUESTION).json()
        waiting = ask(other, "alice", "write the DeepSpeed files", first["session"]).json()
        assert waiting["waiting"][0]["preview"]["files"]
        done = httpx.post(f"{one.url}/v1/sessions/{first['session']}/approval", json={"approved": True},
                          headers=headers("alice"), timeout=60).json()  # fmt: skip
        assert done["files"]
        assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
        kept = httpx.get(f"{other.url}/v1/sessions/{first['session']}", headers=headers("alice")).json()
        assert [turn["state"] for turn in kept["turns"]] == ["done", "done"]


def test_every_address_is_described(tokens: Path) -> None:
    with processes(1, options(tokens)) as (live,):
        told = httpx.get(f"{live.url}/openapi.json", headers=headers("eve"), timeout=60).json()
        for path, methods in told["paths"].items():
            if not path.startswith(("/v1/ask", "/v1/sessions", "/v1/own", "/readyz")):
                continue
            for method in methods:
                place = live.url + path.replace("{id}", "none").replace("{kind}", "runs").replace("{name}", "none")
                answer = httpx.request(method, place, headers=headers("alice"), timeout=60)
                assert str(answer.status_code) in methods[method]["responses"], (method, path, answer.text)
                assert answer.status_code != 405
    assert len([path for path in told["paths"] if path.startswith(("/v1/sessions", "/v1/own", "/v1/ask"))]) == 6


def test_conversations_are_their_users_alone(tokens: Path) -> None:
    with processes(1, options(tokens)) as (live,):
        session = ask(live, "alice", QUESTION).json()["session"]
        place = f"{live.url}/v1/sessions"
        assert httpx.get(place, headers=headers("bob")).json() == {"sessions": []}
        for refused in (
            ask(live, "bob", "and on 4?", session),
            httpx.get(f"{place}/{session}", headers=headers("bob")),
            httpx.delete(f"{place}/{session}", headers=headers("bob")),
        ):
            assert (refused.status_code, refused.json()["error"]["field"]) == (404, "session")
        assert ask(live, "alice", "and on 4?", session).json()["plan"]["cluster"]["count"] == 4
        assert httpx.delete(f"{place}/{session}", headers=headers("alice")).status_code == 200
        assert httpx.get(place, headers=headers("alice")).json() == {"sessions": []}


def test_an_agent_reads_and_writes_no_file_of_the_server(tokens: Path, tmp_path: Path) -> None:
    text = "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: lora\ncutoff_len: 777\n"
    (tmp_path / "secret.yaml").write_text(text)
    with processes(1, options(tokens)) as (live,):
        told = ask(live, "alice", f"import the config {tmp_path}/secret.yaml").text
        assert "777" not in told
        written = ask(live, "alice", f"{QUESTION} write the DeepSpeed files").json()
        assert "waiting" not in written
        assert "without a folder to write to" in written["answer"]


def test_bad_bodies_are_refused_in_words(tokens: Path) -> None:
    with processes(1, options(tokens)) as (live,):
        for body, said in ((b"{", "body: is not valid JSON"), (b"[]", "body: must be a JSON object"), (b"{}", "text:"),
                           (b'{"text": 7}', "text: must be text"), (b'{"text": "x", "y": 1}', "y: there is no such"),
                           (b'{"text": " "}', "text: there is nothing to answer")):  # fmt: skip
            answer = httpx.post(f"{live.url}/v1/ask", content=body, headers=headers("bob"))
            assert answer.status_code == 422
            assert said in answer.json()["error"]["message"]
        assert httpx.get(f"{live.url}/v1/sessions?x=1", headers=headers("bob")).status_code == 422


def test_every_call_is_noted_with_its_outcome_and_never_a_token(tokens: Path) -> None:
    name = f"bob-{database.user()}"
    with processes(1, options(tokens)) as (live,):
        call(live, "bob", PLANNED, FIT)
        mcp(live, "bob", PLANNED, FIT)
        call(live, "bob", PLANNED, {"model": "no-such-model"})
        call(live, "bob", WRITTEN, CALLS[WRITTEN])
        ask(live, "bob", QUESTION)
        figures = httpx.get(f"{live.url}/metrics", headers=headers("eve")).text
        log = "\n".join(live.log)
    noted = rows(f"SELECT face, tool, outcome, arguments FROM audit WHERE who = '{name}' ORDER BY number")
    assert [row[:3] for row in noted] == [
        ("rest", PLANNED, "done"), ("mcp", PLANNED, "done"), ("rest", PLANNED, "refused"),
        ("rest", WRITTEN, "refused"), ("rest", "ask", "done"),
    ]  # fmt: skip
    assert noted[0][3] == noted[1][3] == digest(FIT)
    assert len({row[3] for row in noted}) == 4
    everything = str(rows("SELECT * FROM audit")) + log + figures
    assert "secret" not in everything
    assert f'"user":"{name}"' in log
    assert f'shardwise_calls_total{{face="rest",outcome="done",tool="{PLANNED}"}} 1.0' in figures
    assert f'shardwise_call_seconds_count{{tool="{PLANNED}"}} 3.0' in figures


def test_a_file_of_tokens_says_which_line_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    for text, said in (
        ("", "names nobody"), ("# nobody\n", "names nobody"), ("a read\n", "line 1: must be NAME ROLE TOKEN"),
        ("oidc:a read long-enough-token", "not beginning oidc:"),
        ("\na admin long-enough-token\n", "line 2: 'admin' is no role; valid: read plan write"),
        ("a read short\n", "line 1: the token must be at least 16"), ("a read sha256:abc\n", "64 hexadecimal"),
        ("a read long-enough-token\nb plan long-enough-token\n", "line 2: has the token of another line"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(PlanError) as caught:
            TokenFile(path)
        assert said in str(caught.value).replace(",", "")
        assert "long-enough" not in str(caught.value)
    path.write_text(f"a read sha256:{digest_of('long-enough-token')}\n")
    file = TokenFile(path)
    assert (file.caller("long-enough-token") or file).name == "a"  # type: ignore[union-attr]
    assert file.caller(digest_of("long-enough-token")) is None
    path.write_text("b plan another-token-there\n")
    file._looked -= 2
    assert file.caller("long-enough-token") is None
    path.write_text("half writ")
    file._looked -= 2
    assert file.caller("another-token-there") is not None


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class FakeProvider(BaseHTTPRequestHandler):
    """An identity provider, and a collector of traces."""

    answers: dict[str, Any]
    posted: list[tuple[str, bytes]]

    def do_GET(self) -> None:
        value = json.dumps(self.answers[self.path]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(value)))
        self.end_headers()
        self.wfile.write(value)

    def do_POST(self) -> None:
        self.posted.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[tuple[str, type[FakeProvider]]]:
    kind = type("OneProvider", (FakeProvider,), {"answers": {}, "posted": []})
    server = HTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", kind
    server.shutdown()
    server.server_close()


def test_tokens_of_an_identity_provider(tokens: Path, provider: tuple[str, type[FakeProvider]]) -> None:
    issuer, kind = provider
    ours, theirs = RSAKeyPair.generate(), RSAKeyPair.generate()
    key = RSAKey.import_key(ours.public_key).as_dict() | {"kid": "k", "use": "sig", "alg": "RS256"}
    kind.answers |= {"/.well-known/openid-configuration": {"issuer": issuer, "jwks_uri": f"{issuer}/keys"},
                     "/keys": {"keys": [key]}}  # fmt: skip
    good = {"subject": "u1", "issuer": issuer, "audience": "shardwise", "kid": "k", "scopes": ["shardwise:plan"]}

    def status(pair: RSAKeyPair, tool: str = PLANNED, **changes: Any) -> int:
        shown = {"Authorization": f"Bearer {pair.create_token(**(good | changes))}"}
        return httpx.post(f"{live.url}/v1/tools/{tool}", json=CALLS[tool], headers=shown, timeout=60).status_code

    with processes(1, options(tokens, provider=provider_of(issuer, "shardwise"))) as (live,):
        assert status(ours) == status(ours, subject="auth0|7 x") == 200
        assert status(ours, WRITTEN) == 403
        assert status(ours, WRITTEN, scopes=["openid", "shardwise:write"]) == 200
        assert status(ours, scopes=[], additional_claims={"roles": ["shardwise:write"]}) == 200
        assert status(theirs) == status(ours, audience="another") == status(ours, issuer="https://evil") == 401
        assert status(ours, scopes=[]) == status(ours, expires_in_seconds=-60) == 401
        assert status(ours, scopes=["write", "shardwise:admin"]) == 401
        assert call(live, "bob", PLANNED, FIT).status_code == 200
        # Whoever takes the name of somebody in the file is not them.
        bob = f"bob-{database.user()}"
        assert status(ours, subject=bob, additional_claims={"preferred_username": bob, "email": bob}) == 200
        # The log is written behind the answer.
        end = time.monotonic() + 20
        while not (noted := rows(f"SELECT who FROM audit WHERE who = 'oidc:{bob}'")) and time.monotonic() < end:
            time.sleep(0.05)
        assert noted == [(f"oidc:{bob}",)]
        refused = httpx.post(f"{live.url}/mcp", json={})
        where = refused.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
        told = httpx.get(where).json()
        assert (told["resource"], told["authorization_servers"]) == (f"{live.url}/mcp", [issuer])
    with pytest.raises(PlanError, match="--oidc-audience: is required"):
        provider_of(issuer, "")
    with pytest.raises(PlanError, match="not an https address"):
        provider_of("http://login.example.org", "x")
    kind.answers["/.well-known/openid-configuration"] = {}
    with pytest.raises(PlanError, match="names no issuer"):
        provider_of(issuer, "x")
    with pytest.raises(PlanError, match="cannot be read"):
        provider_of("http://127.0.0.1:9", "x")


@pytest.mark.parametrize(
    ("claims", "role"),
    [({"scope": "openid shardwise:read"}, "read"), ({"groups": ["shardwise:write", "x"]}, "write"), ({}, None),
     ({"scope": "shardwise:writer"}, None), ({"scp": ["shardwise:plan"], "scope": "shardwise:read"}, "plan"),
     ({"roles": 7, "scope": None}, None)],
)  # fmt: skip
def test_the_highest_role_of_a_token_counts(claims: dict[str, Any], role: str | None) -> None:
    assert role_of(claims) == role


def test_readiness_is_that_of_the_database(
    tokens: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with processes(1, options(tokens)) as (live,):
        assert httpx.get(f"{live.url}/readyz").status_code == 200
        # While pods of a newer version start, those of this one serve on.
        monkeypatch.setattr(database, "SCHEMA", "0000")
        time.sleep(1.1)
        assert httpx.get(f"{live.url}/readyz").status_code == 200
        monkeypatch.setattr(database, "SCHEMA", "0002")
        time.sleep(1.1)
        assert httpx.get(f"{live.url}/readyz").status_code == 503
        assert caplog.text.count("run: shardwise database upgrade") == 1
        monkeypatch.setenv("SHARDWISE_DATABASE", "postgresql://x@127.0.0.1:9/x")
        time.sleep(1.1)
        answer = httpx.get(f"{live.url}/readyz")
        assert answer.status_code == 503
        assert "cannot be reached" in caplog.text
        assert httpx.get(f"{live.url}/healthz").status_code == 200
        refused = call(live, "bob", PLANNED, FIT)
        assert (refused.status_code, refused.json()["error"]["field"]) == (503, "database")
        # Where the database is, is for nobody but whoever runs the server.
        assert "127.0.0.1" not in answer.text + refused.text


def test_traces_go_where_the_variables_say_and_join_the_callers(
    tokens: Path, provider: tuple[str, type[FakeProvider]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, kind = provider
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    trace = "0af7651916cd43dd8448eb211c80319c"
    with processes(1, options(tokens)) as (live,):
        parent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        httpx.post(f"{live.url}/v1/tools/{READ}", json=CALLS[READ], headers=headers("eve") | parent)
    ((path, sent),) = kind.posted
    assert path == "/v1/traces"
    assert bytes.fromhex(trace) in sent
    assert b"describe_model" in sent
    assert b"secret" not in sent
