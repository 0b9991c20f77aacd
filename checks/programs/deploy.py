"""What deploy/ holds, as the programs that it is for read it: Hadolint, Helm, Kubernetes' schemas, Compose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import yaml

_BIN = Path(sys.executable).parent
# A remark of Helm's linter, which is no fault of the chart.
_INFO = 1


def answer(question: dict[str, Any]) -> dict[str, Any]:
    asked = {"dockerfile": _dockerfile, "chart": _chart, "compose": _compose}
    return asked[question["kind"]](question)


def _dockerfile(question: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run([_BIN / "hadolint", question["path"]], capture_output=True, text=True, check=False)
    return {"problems": done.stdout.splitlines()}


def _compose(question: dict[str, Any]) -> dict[str, Any]:
    """What Compose makes of the file in a folder with this `.env`."""
    program = next((_BIN.parent / "lib").glob("python3.*/site-packages/compose/docker-compose"))
    done = subprocess.run(
        [program, "-f", question["path"], "--env-file", "/dev/null", "config", "--format", "json"],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"} | question["variables"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {"problems": [done.stderr.strip()], "made": {}} if done.returncode else {
        "problems": [], "made": json.loads(done.stdout),
    }  # fmt: skip


def _chart(question: dict[str, Any]) -> dict[str, Any]:
    linted = helm_python.lint(question["path"], values=question["values"])
    problems = [each["error"] for each in linted["messages"] if each["severity"] > _INFO] + linted["errors"]
    with helm_python.Chart.load(question["path"]) as chart:
        texts = chart.render(question["values"], name="planner", namespace="team").values()
    made = [each for text in texts for each in yaml.safe_load_all(text) if each]
    for each in made:
        try:
            kubernetes_validate.validate(each, "1.31", strict=True)
        except Exception as error:
            problems.append(f"{each.get('kind')}: {error}"[:300])
    return {"problems": problems, "kinds": [each["kind"] for each in made], "made": made}
