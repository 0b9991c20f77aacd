"""deploy/ as the programs read it that it is for, and its commands as our own command line does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from conftest import Ask

from tui.cli import parsed

DEPLOY = Path(__file__).parent.parent / "deploy"
FULL = {"host": "plan.example.org", "ingressClass": "nginx", "tlsSecret": "tls", "tracesEndpoint": "http://otel:4318",
        "oidc": {"issuer": "https://login.example.org", "audience": "shardwise"}}  # fmt: skip


def test_the_chart_is_valid_kubernetes_with_and_without_all_that_it_offers(ask: Ask, tmp_path: Path) -> None:
    chart = {"kind": "chart", "path": str(DEPLOY / "chart")}
    broken = tmp_path / "broken"
    (broken / "templates").mkdir(parents=True)
    (broken / "values.yaml").write_text((DEPLOY / "chart" / "values.yaml").read_text())
    text = (DEPLOY / "chart" / "templates" / "server.yaml").read_text()
    (broken / "templates" / "server.yaml").write_text(
        text.replace("replicas: {{ .Values.replicas }}", "replicas: many")
    )
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


def test_the_compose_file_starts_what_our_command_line_takes() -> None:
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = told["services"]
    assert started(services["upgrade"]["command"]).action == "upgrade"
    assert started(services["server"]["command"]).workers == 2
    for service in services.values():
        for needed in service.get("depends_on", {}):
            assert needed in services
        for secret in service.get("secrets", ()):
            assert secret in told["secrets"]
