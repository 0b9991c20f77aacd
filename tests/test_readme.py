"""What the README says is what the program shows."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path
from statistics import fmean
from types import ModuleType

import pytest

from knowledge.machines.catalogue import accelerators
from knowledge.models.known import models
from measure.fit.training.held_out_times import everything, misses
from measure.history.scores import POOLED

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DETAILS = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")


def benchmark() -> ModuleType:
    """benchmarks/accuracy.py, which is a program and not part of a package."""
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "benchmarks" / "accuracy.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("kind", "text"), [("memory", DETAILS), ("headline", README)])
def test_the_tables_are_what_the_benchmark_writes(tmp_path: Path, kind: str, text: str) -> None:
    accuracy = benchmark()
    copy = tmp_path / "copy.md"
    copy.write_text(text, encoding="utf-8")
    accuracy.write_table(copy, kind)
    assert copy.read_text(encoding="utf-8") == text


def table(kind: str) -> list[list[str]]:
    """The rows of one of the tables of accuracy, the mean over sources first."""
    start, end = benchmark().markers(kind)
    lines = DETAILS[DETAILS.index(start) : DETAILS.index(end)].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def shares(row: list[str]) -> list[float]:
    return [float(cell.removesuffix(" %")) for cell in row[2:]]


def test_the_training_table_is_what_leaving_sources_out_gives() -> None:
    """All of it takes minutes of fits; two sources, the count of each and the mean over them do not."""
    mean, *rows = table("training")
    runs, full = everything()
    counts = Counter(run.case.source for run in runs)
    for row in rows:
        name = next((name for name in counts if row[0] == name or row[0].startswith(f"{name} (")), POOLED)
        pooled = sum(count for source, count in counts.items() if not any(row[0].startswith(source) for row in rows))
        assert int(row[1]) == (pooled if name == POOLED else counts[name])
    assert int(mean[1]) == len(runs)
    for column, value in enumerate(shares(mean)):
        # Rounded to a tenth or to one, as the cells that it is the mean of.
        assert value == pytest.approx(
            fmean(shares(row)[column] for row in rows), abs=1.0 if column in (3, 4, 6) else 0.1
        )
    apart = {"NeMo performance summary 24.07", "pytorch/torchtitan benchmarks"}
    found = misses(runs, full, "source", only=apart)
    for source in apart:
        off = fmean(abs(math.expm1(-found[run.case.id])) for run in runs if run.case.source == source)
        assert [row[7] for row in rows if row[0] == source] == [f"{off:.1%}".replace("%", " %")]


def test_the_headline_has_every_figure_that_is_scored() -> None:
    rows = re.findall(r"^\| (training|serving), [^|]+\| +[0-9]+ \| ([0-9]+) \|", README, re.MULTILINE)
    assert [kind for kind, _ in rows] == ["training"] * 2 + ["serving"] * 3
    assert all(f"| {runs} |" in DETAILS for _, runs in rows)


def test_a_file_without_markers_is_left_alone(tmp_path: Path) -> None:
    accuracy = benchmark()
    copy = tmp_path / "README.md"
    copy.write_text("nothing here", encoding="utf-8")
    with pytest.raises(ValueError, match="memory table"):
        accuracy.write_table(copy, "memory")
    assert copy.read_text(encoding="utf-8") == "nothing here"


def test_the_catalogues_are_as_large_as_it_says() -> None:
    said = re.search(r"the catalogues: ([0-9]+) models, ([0-9]+) accelerators", README)
    assert said
    assert [int(number) for number in said.groups()] == [len(models()), len(accelerators())]


def test_the_python_example_runs() -> None:
    example = re.search(r"^    import shardwise\n(?:    .+\n)+", README, re.MULTILINE)
    assert example
    exec(textwrap.dedent(example[0]), {})


def test_every_command_that_it_names_exists() -> None:
    from tui.arguments.top import parser

    named = set(re.findall(r"`shardwise ([a-z]+)", README))
    assert named
    commands = next(action.choices for action in parser()._actions if isinstance(action.choices, dict))
    assert named <= set(commands)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert f"\n{target}:" in makefile


def test_the_serving_table_counts_what_is_measured() -> None:
    """The whole table takes minutes to make; what it counts does not."""
    from benchmarks.serving_accuracy import TITLES, memory_verdicts
    from measure.history.serving import serving_cases

    start, end = benchmark().markers("inference")
    written = DETAILS[DETAILS.index(start) : DETAILS.index(end)]
    memory = memory_verdicts()
    words = (
        f"Of {memory.ran_out} runs of llama.cpp that ran out of memory, {memory.ran_out_seen} are estimated not to fit"
    )
    assert words in " ".join(written.split())
    for metric, title in TITLES.items():
        said = re.search(rf"\*\*{re.escape(title)}, mean of [0-9]+ sources\*\* \| ([0-9]+) \|", written)
        counted = sum(metric in case.observed for case in serving_cases() if case.reason_unscored is None)
        assert said
        assert int(said[1]) == counted


def test_the_table_of_files_of_others_is_what_its_rows_give() -> None:
    from benchmarks.wild import rows

    every = rows()
    assert len({(row.repository, row.path) for row in every}) == len(every) > 100
    assert {row.holds for row in every} == {"run", "part", "none"}
    outcomes = {"verdict", "asks", "refused", "unrunnable"}
    assert {row.now for row in every} <= outcomes
    assert {row.first for row in every} <= outcomes | {"wrong"}
    assert not [row for row in every if row.holds == "none" and row.now == "verdict"]

    def read(some: list[bool]) -> str:
        return f"{100 * sum(some) / len(some):.0f} %"

    for name in dict.fromkeys(row.set for row in every):
        drawn = [row for row in every if row.set == name]
        whole, runs = ([row for row in drawn if row.holds in kinds] for kinds in (("run",), ("run", "part")))
        cells = (
            name, len(drawn), len(drawn) - len(runs), len(whole), read([row.first == "verdict" for row in whole]),
            read([row.now == "verdict" for row in whole]), len(runs), read([row.now == "verdict" for row in runs]),
        )  # fmt: skip
        assert f"| {' | '.join(map(str, cells))} |" in DETAILS
