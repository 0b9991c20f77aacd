"""Runs that are profiled, or that have random tokens for data, in every training program: the files still say the plan,
and what is not to be had is refused with its reason."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from launch_plans import PREDICTION, complete

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.pieces import Rendered
from launchers.reading.sets import read
from launchers.render import render
from launchers.site import Site
from launchers.tables import table
from launchers.targets import TARGETS

STAGES = ("pretrain", "sft", "dpo", "ipo", "orpo", "simpo", "kto", "rm", "ppo", "grpo")
PROGRAMS = [name for name, row in TARGETS.items() if row.role == "program" and row.kinds == ("training",)]
SCHEDULERS = (None, "slurm", "kubernetes-jobset")


def base(target: str, stage: str) -> Plan:
    changes = yaml.safe_load((Path(__file__).parent / "refused" / f"{target}.yaml").read_text())["base"]
    return complete(changes).patch({"workload.stage": stage})


def rendered(plan: Plan, target: str, scheduler: str | None = None, **site: Any) -> Rendered | None:
    try:
        return render(plan, [target, *([scheduler] if scheduler else [])], PREDICTION, site=Site(**site))
    except PlanError:
        return None


def said(files: Rendered) -> tuple[Any, ...]:
    found = read({file.path: file.text for file in files.files})
    return found.plan, found.blocked, found.warnings, found.assumed


def written(target: str, **site: Any) -> Iterator[tuple[Plan, str, Rendered]]:
    for stage in STAGES:
        plan = base(target, stage)
        if rendered(plan, target, dataset="x") is not None and (files := rendered(plan, target, **site)) is not None:
            yield plan, stage, files


@pytest.mark.parametrize("target", PROGRAMS)
def test_the_files_read_back_as_they_do_without(target: str) -> None:
    compared = 0
    for stage in ("pretrain", "sft", "dpo", "grpo"):
        plan = base(target, stage)
        for scheduler in SCHEDULERS:
            plain = rendered(plan, target, scheduler, dataset="x")
            if plain is None:
                continue
            for site in ({"profile": "auto", "dataset": "x"}, {"profile": "nsys", "dataset": "synthetic"},
                         {"dataset": "synthetic"}):  # fmt: skip
                if (files := rendered(plan, target, scheduler, **site)) is not None:
                    assert said(files) == said(plain), (stage, scheduler, site)
                    compared += 1
    assert compared


@pytest.mark.parametrize("target", PROGRAMS)
def test_each_stage_is_profiled_and_has_random_tokens_or_says_why_not(target: str) -> None:
    for stage in STAGES:
        plan = base(target, stage)
        plain = rendered(plan, target, dataset="x")
        if plain is None:
            continue
        wishes: tuple[dict[str, Any], ...] = ({"profile": "auto"}, {"dataset": "synthetic"})
        for wish in wishes:
            files = rendered(plan, target, **wish)
            if files is None:
                with pytest.raises(PlanError) as refused:
                    render(plan, [target], PREDICTION, site=Site(**wish))
                assert refused.value.field in (*wish, "workload.steps")
                assert refused.value.valid or "profiler" in refused.value.problem
                continue
            assert [file.text for file in files.files] != [file.text for file in plain.files], (stage, wish)
            if "dataset" in wish:
                assert not any("SET_ME_DATASET" in file.text for file in files.files), stage


def test_every_program_takes_random_tokens_in_some_stage() -> None:
    for target in PROGRAMS:
        assert any(True for _ in written(target, dataset="synthetic")), target


@pytest.mark.parametrize("target", PROGRAMS)
def test_what_is_written_beside_a_run_makes_its_data_and_starts_it(target: str, tmp_path: Path) -> None:
    for _, stage, files in written(target, dataset="synthetic"):
        scripts = [file for file in files.files if file.path == "synthetic.py"]
        row = table("data/synthetic")["targets"][target][stage]
        assert bool(scripts) != row.get("own", False)
        if not scripts or any(name.endswith(".parquet") for name in row["files"]):
            continue
        folder = tmp_path / stage
        folder.mkdir()
        # As written, but two rows of a few words.
        text = scripts[0].text.replace(str(4096 - 64), "6").replace("4096", "8")
        (folder / "synthetic.py").write_text(text.replace("'rows': 128", "'rows': 2"))
        command = [sys.executable, "synthetic.py", "env", "MARK=1", "sh", "-c", "echo started $MARK"]
        for _ in range(2):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            assert done.stdout == "started 1\n"
        for name, template in row["files"].items():
            rows = [json.loads(line) for line in (folder / name).read_text().splitlines()]
            assert len(rows) == 2
            for made in rows:
                fills(made, template)
        assert all((folder / name).exists() for name in row.get("texts", {}))
        assert files.launch_command.startswith("python3 synthetic.py env ")


def fills(made: Any, template: Any) -> None:
    """Asserts that a row is the template with words, truth or its own values in place."""
    if isinstance(template, dict):
        assert set(made) == set(template)
        for name, part in template.items():
            fills(made[name], part)
    elif isinstance(template, list):
        assert len(made) == len(template)
        for one, part in zip(made, template, strict=True):
            fills(one, part)
    elif template == "$odd":
        assert isinstance(made, bool)
    elif str(template).startswith("$"):
        assert len(made.split()) >= 1
        assert "$" not in made
    else:
        assert made == template


def test_steps_and_ranks_are_those_that_were_asked_for() -> None:
    plan = base("megatron-lm", "pretrain")
    text = render(plan, ["megatron-lm"], PREDICTION, site=Site(profile="torch:5-8@0,3")).files[0].text
    assert "--profile-step-start 4" in text
    assert "--profile-step-end 8" in text
    assert "--profile-ranks 0 3" in text
    found = render(base("llamafactory", "sft"), ["llamafactory"], PREDICTION, site=Site(profile="torch:5-8"))
    values = next(yaml.safe_load(file.text) for file in found.files if file.path == "llamafactory.yaml")
    waited = values["profiler_wait_steps"] + values["profiler_warmup_steps"]
    assert (waited + 1, waited + values["profiler_active_steps"]) == (5, 8)


@pytest.mark.parametrize(
    ("target", "stage", "profile", "words"),
    [
        ("mlx", "sft", "auto", "Xcode"),
        ("openrlhf", "grpo", "auto", "Ray"),
        ("llamafactory", "sft", "torch:5-8@1", "takes no ranks"),
        ("megatron-lm", "pretrain", "torch:5-8@8", "ranks 0 to 7"),
        ("megatron-lm", "pretrain", "xplane", "not profiled with xplane"),
        ("megatron-lm", "pretrain", "perf", "is no profiler"),
        ("megatron-lm", "pretrain", "torch:1-3", "a step before it"),
        ("megatron-lm", "pretrain", "torch:9-3", "a step before it"),
        ("primus", "pretrain", "nsys", "not profiled with nsys"),
        ("nemo-rl", "grpo", "torch", "not profiled with torch"),
        ("prime-rl", "sft", "torch", "9 at most"),
    ],
)
def test_what_cannot_be_profiled_is_refused_with_the_reason(target: str, stage: str, profile: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        render(base(target, stage), [target], PREDICTION, site=Site(profile=profile))


def test_a_profile_ends_with_the_run() -> None:
    plan = base("megatron-lm", "pretrain").patch({"workload.steps": 8})
    with pytest.raises(PlanError, match="8 steps"):
        render(plan, ["megatron-lm"], PREDICTION, site=Site(profile="torch"))
    assert render(plan, ["megatron-lm"], PREDICTION, site=Site(profile="torch:7-8"))


def test_the_callback_profiles_from_the_first_step_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    files = render(base("ms-swift", "sft"), ["ms-swift"], PREDICTION, site=Site(profile="nsys:3-5@1"))
    text = next(file.text for file in files.files if file.path == "swift_profiler.py")
    seen: list[str] = []
    profiler = types.SimpleNamespace(start=lambda: seen.append("start"), stop=lambda: seen.append("stop"))
    cuda = types.SimpleNamespace(profiler=profiler, is_available=lambda: False)
    callbacks: dict[str, Any] = {}
    stands = {
        "torch": types.SimpleNamespace(cuda=cuda),
        "transformers": types.SimpleNamespace(TrainerCallback=object),
        "swift": types.SimpleNamespace(),
        "swift.callbacks": types.SimpleNamespace(),
        "swift.callbacks.mapping": types.SimpleNamespace(callbacks_map=callbacks),
    }
    for name, module in stands.items():
        monkeypatch.setitem(sys.modules, name, module)
    exec(compile(text, "swift_profiler.py", "exec"), {})
    for rank, expected in ((1, ["1", "2", "start", "3", "4", "5", "stop", "6"]), (0, list("123456"))):
        seen.clear()
        arguments = types.SimpleNamespace(process_index=rank)
        callback = callbacks["profiled"](arguments, None)
        callback.on_train_begin(arguments, None, None)
        for step in range(1, 7):
            callback.on_step_begin(arguments, None, None)
            seen.append(str(step))
            callback.on_step_end(arguments, None, None)
        assert seen == expected
