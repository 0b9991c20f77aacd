"""How much of what people have is read: configs and scripts of public repositories, drawn by a seed (wild.csv).

`python benchmarks/wild.py FOLDER [SET]` reads each file at its commit from clones in FOLDER (owner+name, bare or not;
`git clone --bare https://github.com/owner/name owner+name`) with the files that it names, on H100s, eight where it does
not say how many or the fewest that can be, and prints the outcomes that are no longer those of wild.csv and the shares.
A file is `run` where it says a run that a Plan can say, `part` where something decides that only another file, a
command line or a machine knows or no Plan has, `none` where it is no run. Outcomes: `verdict`, `asks`, `refused`,
`unrunnable`;
at first sight also `wrong`, a verdict that was mended since.
"""

from __future__ import annotations

import csv
import posixpath
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from estimator.errors import PlanError  # noqa: E402
from planner.files.beside import with_named  # noqa: E402
from planner.files.importing import ImportedConfig, imported  # noqa: E402

DEVICES = {"cluster.accelerator": "h100-sxm"}
COUNTS = (8, 1, 2, 4, 16, 32, 64, 128)
# What the documentation of these repositories says to start their recipes with.
STARTED_WITH = {
    "huggingface/open-r1": "recipes/accelerate_configs/zero3.yaml",
    "huggingface/alignment-handbook": "recipes/accelerate_configs/zero3.yaml",
    "princeton-nlp/SimPO": "accelerate_configs/deepspeed_zero3.yaml",
}


@dataclass(frozen=True)
class Row:
    set: str
    repository: str
    commit: str
    path: str
    holds: str
    first: str
    now: str
    read: str


def rows(name: str | None = None) -> list[Row]:
    with (ROOT / "benchmarks" / "wild.csv").open(newline="") as file:
        every = [Row(**row) for row in csv.DictReader(file)]
    return [row for row in every if name in (None, row.set)]


@dataclass(frozen=True)
class Commit:
    """The files of the row's repository at its commit, as `shardwise check` is given those of a folder."""

    folder: Path
    row: Row

    def _git(self, *words: str) -> str | None:
        clone = self.folder / self.row.repository.replace("/", "+")
        clone = clone if (clone / "HEAD").exists() or (clone / ".git").exists() else clone / "repo"
        done = subprocess.run(
            ["git", "-C", str(clone), *words], capture_output=True, text=True, errors="replace", check=False
        )
        return done.stdout if done.returncode == 0 else None

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset((self._git("ls-tree", "-r", "-z", "--name-only", self.row.commit) or "").split("\0"))

    def is_file(self, path: Path) -> bool:
        return posixpath.normpath(path.as_posix()) in self._names

    def text(self, path: Path) -> str:
        text = self._git("show", f"{self.row.commit}:{posixpath.normpath(path.as_posix())}")
        if text is None:
            raise PlanError("files", f"{path} is not readable")
        return text


def files_of(folder: Path, row: Row) -> dict[str, str] | None:
    """A row's file and those that it names and that lie beside it; None where the repository is not at hand."""
    commit = Commit(folder, row)
    if not commit.is_file(Path(row.path)):
        return None
    files = {row.path: commit.text(Path(row.path))}
    started = STARTED_WITH.get(row.repository)
    if row.path.endswith(".yaml") and started is not None:
        files[started] = commit.text(Path(started))
    try:
        return with_named(files, {}, commit)
    except PlanError:
        return files


def outcome(files: dict[str, str]) -> tuple[str, ImportedConfig | None]:
    """What the files come to; where they do not say on how many devices, on eight or the fewest that can be."""
    try:
        result = imported(files, DEVICES)
        if any(row.field == "cluster.count" for row in result.missing):
            tried = (imported(files, {**DEVICES, "cluster.count": count}) for count in COUNTS)
            result = next((each for each in tried if not each.refused), result)
    except PlanError:
        return "refused", None
    return ("unrunnable" if result.refused else "asks" if result.missing else "verdict"), result


def shares(every: list[Row], field: str) -> str:
    """Verdicts of what holds a whole run, and of all that is a run."""
    whole = [getattr(row, field) == "verdict" for row in every if row.holds == "run"]
    of_all = [getattr(row, field) == "verdict" for row in every if row.holds != "none"]
    return f"{sum(whole)} of {len(whole)} whole runs, {sum(of_all)} of {len(of_all)} runs"


def main(folder: Path, name: str | None) -> int:
    changed, counts = 0, Counter[str]()
    for row in rows(name):
        files = files_of(folder, row)
        kind = "not there" if files is None else outcome(files)[0]
        counts[kind] += 1
        if kind != row.now:
            changed += 1
            print(f"{row.set} {row.repository} {row.path}: {row.now} before, {kind} now")
    print(dict(counts))
    for each in dict.fromkeys(row.set for row in rows(name)):
        print(f"{each}: {shares(rows(each), 'now')}; at first sight {shares(rows(each), 'first')}")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
