"""deploy/ as the programs read it that it is for, and its commands as our own command line does."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

from conftest import Ask

from tui.cli import parsed

DEPLOY = Path(__file__).parent.parent / "deploy"
FULL = {"host": "plan.example.org", "ingressClass": "nginx", "tlsSecret": "tls", "tracesEndpoint": "http://otel:4318",
        "oidc": {"issuer": "https://login.example.org", "audience": "shardwise"}}  # fmt: skip


def test_the_chart_is_valid_kubernetes_with_and_without_all_that_it_offers(ask: Ask, tmp_path: Path) -> None:
    chart = {"kind": "chart", "path": str(DEPLOY / "chart")}
    broken = tmp_path / "broken"
    shutil.copytree(DEPLOY / "chart", broken)
    file = broken / "templates" / "server.yaml"
    file.write_text(file.read_text().replace("replicas: {{ .Values.replicas }}", "replicas: many"))
    questions = [chart | {"values": {}}, chart | {"values": FULL}, {**chart, "path": str(broken), "values": {}}]
    bare, full, wrong = ask("deploy", "deploy", questions)
    assert [each["error"] for each in (bare, full, wrong)] == [None] * 3
    assert (bare["problems"], bare["kinds"]) == ([], ["Deployment", "Service", "Job"])
    assert (full["problems"], full["kinds"]) == ([], ["Deployment", "Service", "Ingress", "Job"])
    assert len(wrong["problems"]) == 1
    for made in (bare["made"], full["made"]):
        for each in made:
            for container in each["spec"].get("template", {}).get("spec", {}).get("containers", ()):
                started(container["args"])
    words = full["made"][0]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert started(words).oidc_audience == "shardwise"
    assert "plan.example.org" in started(words).allow_host


def started(words: list[str]) -> Any:
    """What our command line makes of a container's command. Exits where it takes none of it."""
    return parsed(words)


def test_the_dockerfile_has_nothing_to_mend_and_copies_every_room(ask: Ask, tmp_path: Path) -> None:
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM python\nRUN cd / && pip install x\n")
    good, bad = ask("deploy", "deploy", [{"kind": "dockerfile", "path": str(path)}
                                         for path in (DEPLOY / "Dockerfile", wrong)])  # fmt: skip
    assert (good["error"], good["problems"]) == (None, [])
    assert bad["problems"]


def test_compose_starts_what_our_command_line_takes(ask: Ask) -> None:
    path = str(DEPLOY / "compose.yaml")
    question = {"kind": "compose", "path": path, "variables": {"DATABASE_PASSWORD": "secret"}}
    read, unset = ask("deploy", "deploy", [question, question | {"variables": {}}])
    assert (read["error"], read["problems"]) == (None, [])
    assert "DATABASE_PASSWORD" in unset["problems"][0]
    services = read["made"]["services"]
    assert started(services["upgrade"]["command"]).action == "upgrade"
    assert started(services["server"]["command"]).workers == 2
    assert "--tokens=" + services["server"]["secrets"][0]["target"] in _joined(services["server"]["command"])
    address = "postgresql://shardwise:secret@database/shardwise"
    assert services["server"]["environment"]["SHARDWISE_DATABASE"] == address
    assert services["server"]["build"] == {"context": str(DEPLOY.parent), "dockerfile": "deploy/Dockerfile"}
    assert services["server"]["depends_on"]["upgrade"]["condition"] == "service_completed_successfully"


def _joined(words: list[str]) -> list[str]:
    """A flag and its value as one word."""
    return [f"{flag}={value}" for flag, value in pairwise(words)]
