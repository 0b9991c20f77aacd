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
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from estimator.errors import PlanError  # noqa: E402
from planner.files.importing import ImportedConfig, imported  # noqa: E402

DEVICES = {"cluster.accelerator": "h100-sxm"}
COUNTS = (8, 1, 2, 4, 16, 32, 64, 128)
# What the documentation of these repositories says to start their recipes with.
STARTED_WITH = {
    "huggingface/open-r1": "recipes/accelerate_configs/zero3.yaml",
    "huggingface/alignment-handbook": "recipes/accelerate_configs/zero3.yaml",
    "princeton-nlp/SimPO": "accelerate_configs/deepspeed_zero3.yaml",
}
_DEEPEST = 4
_MOST, _LONGEST = 9, 60_000


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


def text_of(folder: Path, row: Row, path: str) -> str | None:
    """A file of the row's repository at its commit; None where there is none."""
    clone = folder / row.repository.replace("/", "+")
    clone = clone if (clone / "HEAD").exists() or (clone / ".git").exists() else clone / "repo"
    command = ["git", "-C", str(clone), "show", f"{row.commit}:{path}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout if done.returncode == 0 else None


def _named(row: Row, text: str) -> Iterator[str]:
    """Paths of configs, scripts and sources that a file names, from its own folder or one above."""
    folders = [row.path]
    while folders[-1]:
        folders.append(posixpath.dirname(folders[-1]))
    said = re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE)
    for path in dict.fromkeys(re.findall(r"[\w./-]*\w\.(?:json|ya?ml|toml|py|sh|conf)\b", said)):
        yield from (posixpath.join(folder, path.lstrip("/")) for folder in folders[1:])
    if row.path.endswith(".yaml") and row.repository in STARTED_WITH:
        yield STARTED_WITH[row.repository]


def _bases(text: str) -> list[str]:
    """Configs that one stands on: its `defaults`, one or a list."""
    block = re.search(r"^defaults:((?: *[^\n]*)(?:\n[ -]+[^\n]*|\n *#[^\n]*)*)", text, re.MULTILINE)
    said = re.sub(r"(^|\s)#.*", "", block[1], flags=re.MULTILINE) if block else ""
    # Hydra leaves the ending out.
    plain = re.findall(r"^\s*-\s*([A-Za-z][\w/-]*)\s*$", said, re.MULTILINE)
    return re.findall(r"[\w./-]+\.yaml\b", said) + [f"{name}.yaml" for name in plain]


def files_of(folder: Path, row: Row) -> dict[str, str] | None:
    text = text_of(folder, row, row.path)
    if text is None:
        return None
    files = {posixpath.basename(row.path): text}
    for path in _named(row, text):
        new = posixpath.basename(path) not in files and len(files) < _MOST
        if new and (other := text_of(folder, row, posixpath.normpath(path))) and len(other) < _LONGEST:
            files[posixpath.basename(path)] = other
    left = [(row.path, text)]
    for _ in range(_DEEPEST):
        left = [
            (path, other)
            for above, inner in left
            for name in _bases(inner)
            for path in [posixpath.normpath(posixpath.join(posixpath.dirname(above), name))]
            if (other := text_of(folder, row, path)) is not None
        ]
        files |= {posixpath.basename(path): other for path, other in left}
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
