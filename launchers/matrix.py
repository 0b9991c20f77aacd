"""A benchmark matrix: a folder for each cell (a model on a platform under a strategy) with its launch files, one script
that runs them one after another, and matrix.json, which says what each cell is and what was predicted of it.

<number>-<strategy>/<platform>-<model>/ is both the folder of a cell and its id; `plan.json` there is its plan, and
`result.json` there is where what was measured may be put; without it the logs of the run are read.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from launchers.choice import usual_program
from launchers.engines.load import PATH as LOAD
from launchers.launch.names import last_part, one_line, slug
from launchers.pieces import File, Rendered
from launchers.predictions import ServingPrediction, TrainingPrediction
from launchers.render import render
from launchers.shell.quoting import AS_WRITTEN, NODE_RANK
from launchers.site import Site

MANIFEST, SCRIPT, PLAN, RESULT = "matrix.json", "run_all.sh", "plan.json", "result.json"
NO_SCHEDULER = "none"
_TARGET, _CELL = "matrix", "cell.sh"
_MANIFESTS = {
    "kubernetes-trainjob": "trainjob.yaml",
    "kubernetes-pytorchjob": "pytorchjob.yaml",
    "kubernetes-jobset": "jobset.yaml",
}
# What runs a cell's files and comes back when they have ended, with their exit status.
WAITS: dict[str, str] = {
    "slurm": "sbatch --wait job.sbatch",
    "ssh": "bash ssh.sh",
    "compose": "docker compose up --exit-code-from run",
    "skypilot": "sky launch --yes --down skypilot.yaml",
} | {name: f"manifest {path}" for name, path in _MANIFESTS.items()}
SCHEDULERS = (NO_SCHEDULER, *WAITS)
# Engines that come with a program that puts a load on them and says what came of it.
BENCHED = ("vllm", "sglang", "trtllm")


@dataclass(frozen=True)
class Cell:
    """One run to be. `plan` is complete, or None with `why` there is no layout; `why` of a plan says why it is not to
    be run. `facts` go into the manifest as they are."""

    model: str
    platform: str
    strategy: str
    plan: Plan | None
    why: str | None
    facts: Mapping[str, Any]
    prediction: TrainingPrediction | ServingPrediction | None = None
    model_id: str | None = None
    site: Site = field(default_factory=Site)


@dataclass(frozen=True)
class Made:
    """A cell with its files; `command` runs them, None where it cannot be run."""

    cell: Cell
    id: str
    files: tuple[File, ...]
    targets: tuple[str, ...]
    command: str | None
    needs: tuple[str, ...]
    why: str | None


def matrix_files(
    cells: Sequence[Cell], scheduler: str, cooldown_s: float, head: Mapping[str, Any]
) -> tuple[Rendered, list[dict[str, Any]]]:
    """The files of a matrix, and its cells as the manifest has them. `head` stands before them there; its `name` is
    the matrix's.

    A cell whose plan no target can say has no files but its plan. Raises PlanError for an unknown scheduler.
    """
    if scheduler not in SCHEDULERS:
        raise PlanError("scheduler", f"{scheduler!r} does not run cells one after another", SCHEDULERS)
    name = slug(head.get("name")) or "matrix"
    made = [
        _made(cell, id, f"{name[:16]}-{number:03d}-{cell.platform}-{last_part(cell.model)}-{cell.strategy}", scheduler)
        for number, (cell, id) in enumerate(zip(cells, _ids(cells), strict=True))
    ]
    rows = [_row(row) for row in made]
    manifest = {**head, "scheduler": scheduler, "run": f"bash {SCRIPT}", "cells": rows}
    files = [
        File(MANIFEST, _TARGET, json.dumps(manifest, indent=1, allow_nan=False) + "\n"),
        File(SCRIPT, _TARGET, _script(made, scheduler, cooldown_s), executable=True),
        *(file for row in made for file in row.files),
    ]
    needs = list(dict.fromkeys(need for row in made for need in row.needs))
    if len({cell.platform for cell in cells}) > 1:
        needs.append(
            f"{SCRIPT}: the cells of the machine that it runs on, e.g. bash {SCRIPT} '*/{cells[0].platform}-*'"
        )
    return Rendered(tuple(files), f"bash {SCRIPT}", tuple(needs)), rows


def refusal(plan: Plan, scheduler: str, site: Site) -> PlanError | None:
    """Why no launch files can be written for a complete plan; None where they can."""
    try:
        _rendered(plan, scheduler, site)
    except PlanError as error:
        return error
    return None


def _ids(cells: Sequence[Cell]) -> list[str]:
    """Folders: strategies are numbered in the order in which they come; models of one name are told apart, also where
    small and capital letters are the same."""
    strategies = list(dict.fromkeys(cell.strategy for cell in cells))
    ids: dict[str, str] = {}
    for cell in cells:
        group = f"{strategies.index(cell.strategy):02d}-{slug(cell.strategy)}"
        id = stem = f"{group}/{slug(cell.platform)}-{slug(last_part(cell.model)) or 'model'}"
        again = 1
        while id.lower() in ids:
            again += 1
            id = f"{stem}-{again}"
        ids[id.lower()] = id
    return list(ids.values())


def _made(cell: Cell, id: str, name: str, scheduler: str) -> Made:
    if cell.plan is None:
        return Made(cell, id, (), (), None, (), cell.why)
    plan = cell.plan.patch({"name": name[:200]})
    document = File(f"{id}/{PLAN}", _TARGET, json.dumps(plan.model_dump(mode="json"), indent=1, allow_nan=False) + "\n")
    try:
        rendered, targets = _rendered(plan, scheduler, cell.site, cell.prediction, cell.model_id)
    except PlanError as error:
        why = cell.why or f"no launch files: {' '.join(str(error).split())}"
        return Made(cell, id, (document,), (), None, (), why)
    files = (document, *(replace(file, path=f"{id}/{file.path}") for file in rendered.files))
    command = WAITS.get(scheduler, rendered.launch_command)
    return Made(cell, id, files, targets, command, rendered.needs_from_user, cell.why)


def _rendered(
    plan: Plan,
    scheduler: str,
    site: Site,
    prediction: TrainingPrediction | ServingPrediction | None = None,
    model_id: str | None = None,
) -> tuple[Rendered, tuple[str, ...]]:
    """The launch files of a plan by the usual program of its framework, and their targets. Raises PlanError."""
    if isinstance(plan.workload, Inference) and scheduler != NO_SCHEDULER:
        raise PlanError("scheduler", "cells of a served model run on the machine itself", [NO_SCHEDULER])
    wanted = [usual_program(plan)] + ([] if scheduler == NO_SCHEDULER else [scheduler])
    rendered = render(plan, wanted, prediction, model_id, site)
    if scheduler == NO_SCHEDULER and NODE_RANK in rendered.launch_command:
        raise PlanError("scheduler", "a run of several nodes needs one", list(WAITS))
    if isinstance(plan.workload, Inference):
        rendered = _under_load(plan, rendered)
    return rendered, tuple(dict.fromkeys(file.target for file in rendered.files))


_UNDER_LOAD = r"""#!/bin/bash
# Shardwise: starts the engine, waits until it answers, puts the plan's load on one replica, and stops it.
# READY_S: seconds that it may take to start (1800). Its own words go to serve.log.
set -uo pipefail
export HOST="${HOST:-127.0.0.1}" PORT="${PORT:-8000}"

answers() {
  curl -sf -o /dev/null --max-time 5 "http://$HOST:$PORT/health"
}

if answers; then
  echo "something answers on port $PORT already: stop it, or choose another PORT" >&2
  exit 1
fi
setsid sh serve.sh >serve.log 2>&1 &
engine=$!
trap 'kill -- "-$engine" 2>/dev/null; wait "$engine" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
until answers; do
  if ! kill -0 "$engine" 2>/dev/null || ((SECONDS > ${READY_S:-1800})); then
    tail -n 20 serve.log >&2
    echo "the engine does not answer" >&2
    exit 1
  fi
  sleep 1
done
sh bench.sh
"""


def _under_load(plan: Plan, rendered: Rendered) -> Rendered:
    """The files of an engine with a script that measures it and comes back. Raises PlanError."""
    if all(file.path != LOAD for file in rendered.files) or plan.inference.engine not in BENCHED:
        raise PlanError("workload.engine", f"{plan.inference.engine} has no load generator of its own", BENCHED)
    file = File(_CELL, _TARGET, _UNDER_LOAD, executable=True)
    return replace(rendered, files=(*rendered.files, file), launch_command=f"bash {_CELL}")


def _row(made: Made) -> dict[str, Any]:
    cell = made.cell
    return {
        "id": made.id,
        "model": cell.model,
        "platform": cell.platform,
        "strategy": cell.strategy,
        **cell.facts,
        "runs": made.command is not None and made.why is None,
        "skip_reason": made.why,
        "targets": list(made.targets),
        "command": made.command,
        "plan": f"{made.id}/{PLAN}" if cell.plan else None,
        "result": f"{made.id}/{RESULT}" if cell.plan else None,
    }


# A manifest is deleted first: what has ended under the same name would be taken for the new run.
_MANIFEST = r"""
manifest() { # file: runs it and waits, as kubectl comes back at once
  kubectl delete --ignore-not-found -f "$1" && kubectl apply -f "$1" || return 1
  local state misses=0 teller="" printed=0 name
  name=$(sed -n 's|^ *app.kubernetes.io/name: *||p' "$1" | head -n 1)
  while sleep "${POLL_S:-15}"; do
    if ! state=$(kubectl get -f "$1" -o jsonpath='{.items[*].status.conditions[?(@.status=="True")].type}'); then
      ((++misses < 20)) || return 1
      continue
    fi
    misses=0
    told "$name"
    case " $state " in
      *" Failed "*) return 1 ;;
      *" Complete "* | *" Completed "* | *" Succeeded "*) return 0 ;;
    esac
  done
}

told() { # name: what the first node's pod has printed since the last time
  local pod text
  pod=$(kubectl get pods -l "app.kubernetes.io/name=$1" -o name 2>/dev/null | sort | head -n 1)
  [[ $pod == "$teller" ]] || printed=0
  teller=$pod
  [[ -n $pod ]] && text=$(kubectl logs --tail=-1 "$pod" 2>/dev/null) && [[ -n $text ]] || return 0
  tail -n "+$((printed + 1))" <<<"$text"
  printed=$(wc -l <<<"$text")
}
"""


def runnable(command: str) -> str:
    """A cell's command as a shell runs it outside of the script, where the function that waits for Kubernetes is."""
    return f"{_MANIFEST.strip()}\n{command}" if command.startswith("manifest ") else command


_RUN = r"""
summary=() ran=0 failed=0 matched=0

wanted() { # cell
  local pattern
  for pattern in "${patterns[@]}"; do
    # shellcheck disable=SC2053  # a pattern is meant as one
    if [[ $1 == $pattern ]]; then
      matched=1
      return 0
    fi
  done
  return 1
}

skip() { # cell, why
  wanted "$1" || return 0
  echo "-- $1: left out: $2"
  summary+=("left out          $1")
}

keep() { # cell: what a run of it before left
  [[ -e $1/run.log ]] || return 0
  local at=1 left
  while [[ -e $1/before-$at ]]; do at=$((at + 1)); done
  mkdir "$1/before-$at"
  for left in run.log result.json; do
    if [[ -e $1/$left ]]; then mv "$1/$left" "$1/before-$at/"; fi
  done
}

cell() { # cell, command
  wanted "$1" || return 0
  if ((list)); then
    echo "== $1: $2"
    return 0
  fi
  if [[ $1/done -nt $1/plan.json && -z ${AGAIN:-} ]]; then
    summary+=("done before       $1")
    return 0
  fi
  if ((ran++)); then
    sleep "$cooldown"
  fi
  echo "== $1: $2"
  keep "$1"
  local code=0 started=$SECONDS
  (cd "$1" && eval "$2") </dev/null 2>&1 | tee "$1/run.log" || code=$?
  if ((code)); then
    failed=$((failed + 1))
    summary+=("$(printf 'FAILED (%3d) %4ds  %s' "$code" $((SECONDS - started)) "$1")")
  else
    : >"$1/done"
    summary+=("$(printf 'ran          %4ds  %s' $((SECONDS - started)) "$1")")
  fi
}

finish() {
  if ((!list && ${#summary[@]})); then
    echo
    printf '%s\n' "${summary[@]}"
    echo "$ran run, $failed of them failed; logs are in run.log of each folder"
  fi
}
trap finish EXIT
trap 'exit 130' INT TERM
"""
_END = r"""
if ((!matched)); then
  echo "no cell is called ${patterns[*]}" >&2
  exit 2
fi
((failed == 0))
"""


def _script(made: Sequence[Made], scheduler: str, cooldown_s: float) -> str:
    """Runs the cells one after another; what one of them ends with does not stop the others."""
    head = [
        "#!/bin/bash",
        f"# Shardwise: {len(made)} cells, one after another; {MANIFEST} says what was predicted of each.",
        f"#   bash {SCRIPT} [--list] [PATTERN...]",
        "# Patterns choose cells by their folders: '*/h100-sxm-*', '00-*'. A cell that has failed does not stop the",
        "# others; one that is done is not run again unless its plan has changed or AGAIN=1. COOLDOWN_S=0: no pause.",
        "# matrix_results of Shardwise reads speeds from the logs in each folder (Megatron, torchtitan, MaxText, the",
        f"# Hugging Face Trainer, load generators) or, where it is there, {RESULT}, whose schema is in {MANIFEST}.",
        AS_WRITTEN,
        "set -uo pipefail",
        'cd "$(dirname "$0")" || exit 1',
        f'cooldown="${{COOLDOWN_S:-{cooldown_s:g}}}"',
        "list=0",
        "case ${1:-} in",
        "  --list) list=1 && shift ;;",
        f"  -*) sed -n '2,6s/^# *//p' {SCRIPT} && exit 0 ;;",
        "esac",
        'patterns=("${@:-*}")',
    ]
    waiting = _MANIFEST if scheduler in _MANIFESTS else ""
    calls = [_call(cell) for cell in made]
    return "\n".join(head) + waiting.rstrip("\n") + _RUN + "\n" + "\n".join(calls) + "\n" + _END


def _call(made: Made) -> str:
    id = shlex.quote(made.id)
    if made.why is not None or made.command is None:
        return f"skip {id} {shlex.quote(one_line(made.why or 'there is no command'))}"
    return f"cell {id} {shlex.quote(made.command)}"
