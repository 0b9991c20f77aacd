"""Runs on random tokens: what a program makes itself, or files that a script of ours (generator.py) writes before it is
started (data/synthetic.yaml)."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pprint import pformat
from typing import Any

from estimator.errors import PlanError
from launchers.launch.duration import run_steps
from launchers.launch.heading import heading
from launchers.launch.of_plan import Launch
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File
from launchers.rollouts import answer_tokens
from launchers.site import SYNTHETIC
from launchers.tables import table

SCRIPT = "synthetic.py"
_SETTINGS = 'SETTINGS: dict[str, Any] = {"rows": 0, "words": {}, "files": {}, "texts": {}}\n'
FIELD = "dataset"
_SHORT = 16
# Tokens that are left for a chat template's own, so that no row is cut or dropped.
_TEMPLATE = 64
# Rows where the run's length is not known, in optimizer steps; the most that a file takes, and of that a word.
_STEPS, _MOST_BYTES, _WORD_BYTES = 4, 2e9, 4


def placed(launch: Launch) -> Launch:
    """The launch with the files that stand for its data as these. Raises PlanError where its program takes none."""
    if launch.site.dataset != SYNTHETIC:
        return launch
    if launch.kind == "inference":
        raise PlanError(FIELD, "is of training; a server is asked by its benchmark")
    dataset = _row(launch).get("dataset")
    site = launch.site if dataset is None else replace(launch.site, dataset=dataset)
    return replace(launch, site=site, synthetic=True)


def is_own(launch: TrainingLaunch) -> bool:
    """Whether the program makes random tokens itself."""
    return launch.synthetic and _row(launch).get("own", False)


def around(launch: TrainingLaunch) -> str:
    """What goes before the command that starts a node; '' where nothing is written."""
    return f"python3 {SCRIPT} env " if launch.synthetic and not is_own(launch) else ""


def generated(launch: TrainingLaunch, command: str) -> tuple[File, ...]:
    """The script that writes the data, and what it is told; none where there is nothing to write."""
    if not launch.synthetic or is_own(launch):
        return ()
    row, program = _row(launch), launch.program
    settings = {"rows": rows(launch), "words": _words(launch), "files": row["files"], "texts": row.get("texts", {})}
    source = files("launchers.trial").joinpath("generator.py").read_text(encoding="utf-8")
    source = source.replace(_SETTINGS, f"SETTINGS: dict[str, Any] = {pformat(settings, sort_dicts=False)}\n")
    head = "".join(f"# {line}\n" for line in heading(launch, command))
    return (File(SCRIPT, program, head + source),)


def needs(launch: TrainingLaunch) -> list[str]:
    """What a person has to know of the data."""
    if not launch.synthetic or is_own(launch):
        return []
    return [f"data: {SCRIPT} writes {rows(launch)} rows of random words; a run that wants more goes over them again"]


def rows(launch: TrainingLaunch) -> int:
    """Whole optimizer steps: the run's, or a few, and no more than a file of a sensible size holds."""
    steps = run_steps(launch) or _STEPS
    most = max(1, int(_MOST_BYTES / (_WORD_BYTES * launch.seq_len * launch.global_batch)))
    return launch.global_batch * min(steps, most)


def _words(launch: TrainingLaunch) -> dict[str, int]:
    stage = launch.training.stage
    long = launch.seq_len if stage == "pretrain" else max(1, launch.seq_len - _TEMPLATE)
    answer = answer_tokens(launch) if stage in ("ppo", "grpo") else 0
    return {"$long": long, "$prompt": max(1, launch.seq_len - answer - _TEMPLATE), "$short": _SHORT}


def _row(launch: TrainingLaunch) -> dict[str, Any]:
    """How the set's program has such data in the plan's stage. Raises PlanError."""
    program, stage = launch.program, launch.training.stage
    targets = table("data/synthetic")["targets"]
    known = targets.get(program, {})
    if stage not in known:
        others = [f"targets: {name}" for name, stages in targets.items() if stage in stages]
        problem = f"{program} takes no random tokens for {stage}" if known else f"what {program} reads is your script's"
        raise PlanError(FIELD, problem, ["a name or path of data", *others])
    return known[stage]
