"""What deploy/ holds, as the programs that it is for read it: Hadolint, and Kubernetes' schemas for a chart whose
templates Go's own engine fills (Helm's functions beside it are not there, so the chart uses none)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

_BIN = Path(sys.executable).parent
_GO = """
package main

import (
	"encoding/json"
	"os"
	"text/template"
)

func main() {
	var values map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&values); err != nil { panic(err) }
	filled := template.New("").Option("missingkey=error")
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err != nil { panic(err) }
		err = template.Must(filled.New(path).Parse(string(text))).Execute(os.Stdout, values)
		if err != nil { panic(err) }
		os.Stdout.WriteString("\\n---\\n")
	}
}
"""


def answer(question: dict[str, Any]) -> dict[str, Any]:
    if question["kind"] == "dockerfile":
        done = subprocess.run([_BIN / "hadolint", question["path"]], capture_output=True, text=True, check=False)
        return {"problems": done.stdout.splitlines()}
    return _chart(Path(question["path"]), question["values"])


def _chart(folder: Path, changes: dict[str, Any]) -> dict[str, Any]:
    values = yaml.safe_load((folder / "values.yaml").read_text())
    for name, value in changes.items():
        values[name] = values[name] | value if isinstance(value, dict) else value
    given = {"Values": values, "Release": {"Name": "planner"}}
    paths = sorted(map(str, (folder / "templates").glob("*.yaml")))
    with tempfile.TemporaryDirectory() as place:
        program = Path(place, "fill.go")
        program.write_text(_GO)
        env = {"HOME": place, "PATH": f"{_BIN}:/usr/bin:/bin", "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
        done = subprocess.run(
            [_BIN / "go", "run", str(program), *paths], input=json.dumps(given), env=env, cwd=place,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        return {"problems": [done.stderr.strip()[-500:]], "kinds": []}
    made = [each for each in yaml.safe_load_all(done.stdout) if each]
    problems: list[str] = []
    for each in made:
        try:
            kubernetes_validate.validate(each, "1.31", strict=True)
        except Exception as error:
            problems.append(f"{each.get('kind')}: {error}"[:300])
    return {"problems": problems, "kinds": [each["kind"] for each in made], "made": made}
