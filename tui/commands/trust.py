"""`shardwise trust`: rows of hardware, models and prices that came with a project's folder are used from here on."""

from __future__ import annotations

import argparse
import sys

from estimator.errors import PlanError
from knowledge.own.files import PROJECT_FOLDER, ROW_KINDS, distrust, read_text, trust, trusted, yaml_files
from knowledge.own.home import expanded
from pages.rendering.clean import clean, one_line
from tui.asides import say


def run(arguments: argparse.Namespace) -> int:
    folder = expanded(arguments.folder).absolute() / PROJECT_FOLDER
    files = [path for kind in ROW_KINDS for path in yaml_files(folder / kind)]
    if arguments.withdraw:
        distrust(folder)
        say(f"{one_line(folder)} is not used any more.")
        return 0
    if not files:
        raise PlanError("folder", f"there are no rows in {folder}", [f"files in {'/, '.join(ROW_KINDS)}/"])
    if trusted(folder):
        say(f"{one_line(folder)} is trusted already.")
        return 0
    for path in files:
        say(f"--- {one_line(path.relative_to(folder))}")
        print(clean(read_text(path)), file=sys.stderr)
    if not arguments.yes and not _agreed():
        say("It stays unused.")
        return 0
    trust(folder)
    say(f"{one_line(folder)} is used from here on, until one of its {len(files)} files changes.")
    return 0


def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PlanError("trust", "nobody here can be asked", ["shardwise trust --yes"])
    sys.stderr.write("Use these figures in answers? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
