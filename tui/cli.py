"""The `shardwise` command. It imports only what the command at hand needs, so that `--help` costs nothing."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from estimator.errors import PlanError
from tui.arguments.kept import CATALOGUES
from tui.arguments.parser import commands_of, meant, shortened
from tui.arguments.top import parser
from tui.planning import MEASURING, PLANNING

# A value that an error repeats.
_QUOTED = re.compile(r"'([^']+)'")
_INTERRUPTED = 130
_YOUNG = 20_000  # objects that are made before the young ones are looked through
# What is left at the end goes with the process: to look through it for garbage first takes as long as a short command.
atexit.register(gc.freeze)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code. Only a bug inside Shardwise gives 1."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    _collect_seldom()
    try:
        arguments = parsed(words)
        _refuse_unheard(arguments)
        _settle_killed()
        code = importlib.import_module(arguments.run).run(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        _drop_output()  # whoever read it has seen enough
        return 0
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the line on which ^C was echoed
        return _fail("stopped", _INTERRUPTED)
    except Exception as error:
        if os.environ.get("SHARDWISE_DEBUG"):
            raise
        return _failed(error)


def _settle_killed() -> None:
    """What an earlier run was killed over is whole before this one looks at it."""
    from knowledge.own.files import begun_folder  # --help needs none of it

    if any(begun_folder().glob("*")):
        from launchers.writing import settle_killed  # and most starts have nothing to settle

        settle_killed()


def _collect_seldom() -> None:
    """A command keeps most of what it makes: modules, tables, types. To look for garbage among them as often as Python
    usually does is a fifth of its time."""
    young, *older = gc.get_threshold()
    if 0 < young < _YOUNG:
        gc.set_threshold(_YOUNG, *older)


def _open_streams() -> None:
    """Streams that were closed by whoever started us are empty ones; bytes that are no text stop nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for as long as we run)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """What is still buffered must not fail again when Python exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parsed(typed: list[str]) -> argparse.Namespace:
    """The words as what the command's module takes. Raises PlanError for what is no command."""
    words = typed
    first = words[0] if words else ""
    if first.startswith("-") and first not in ("-h", "--help", "--version"):
        # Options alone are those of the app.
        words, first = ["chat", *words], "chat"
    name = " ".join(words[:2]) if " ".join(words[:2]) in MEASURING else first
    made = parser(name)
    names = commands_of(made)
    if first and first not in names and not first.startswith("-"):
        raise _no_command(first, names)
    if words[:1] != typed[:1] and (named := [word for word in words[1:] if word in names]):
        made.error(f"options come after the command: shardwise {named[0]} …")
    planning = (PLANNING | MEASURING).get(name)
    if first in CATALOGUES:
        # Options may stand anywhere among the words of a row.
        return names[first].parse_intermixed_args(words[1:])
    if planning is None:
        return made.parse_args(words)
    from tui.flags import normal  # as above

    # Model and accelerator may stand anywhere among the flags.
    depth = len(name.split())
    chosen = names[first] if depth == 1 else commands_of(names[first])[words[1]]
    arguments, left = chosen.parse_known_intermixed_args(normal(words[depth:], planning))
    if left:
        raise _no_flag(left[0], chosen)
    return arguments


def _refuse_unheard(arguments: argparse.Namespace) -> None:
    """What asks for more of an answer than what it stands beside lets through."""
    form = next((flag for flag in ("brief", "json") if getattr(arguments, flag, False)), None)
    for more in ("why", "plot"):
        if form and getattr(arguments, more, False) and (form, more) != ("json", "why"):
            raise PlanError(f"--{more}", f"shows more than --{form} prints: give one of them")


def _no_command(word: str, names: Iterable[str]) -> Exception:
    if " " in word.strip():
        return PlanError("command", f'to ask a question: shardwise ask "{word}"')
    return PlanError("command", f"there is no command {word!r}{_meant(word, names)}")


def _meant(word: str, names: Iterable[str]) -> str:
    """': did you mean fit?', or where to look."""
    return meant(word, names) or "; see shardwise --help"


def _no_flag(word: str, made: argparse.ArgumentParser) -> Exception:
    if not word.startswith("-"):
        return PlanError(made.prog, f"does not know what {word!r} is for", ["a flag in front of it"])
    flag = word.partition("=")[0]
    near = _of_group(flag, made) or meant(flag, made._option_string_actions) or f"; see {made.prog} --help"
    return PlanError(flag, f"there is no such flag{near}")


def _of_group(flag: str, made: argparse.ArgumentParser) -> str:
    """The flags of a small group that a word of the flag names: of --custom-layout those of 'layout'."""
    words = flag.strip("-").split("-")
    group = next((group for group in made._action_groups if group.title in words), None)
    flags = [action.option_strings[0] for action in group._group_actions if action.option_strings] if group else []
    return f"; flags of the {group.title}: {', '.join(flags)}" if group and 0 < len(flags) <= _FEW_FLAGS else ""


_FEW_FLAGS = 16

# What only some commands need, and the extra that brings it.
_EXTRAS = {"httptools": "serve", "aiohttp": "web", "textual_serve": "web", "openai": "openai", "psycopg": "team",
           "alembic": "team"}  # fmt: skip


def _failed(error: Exception) -> int:
    """A user's mistake, and what the machine refuses, are told in their own words; anything else is ours."""
    if isinstance(error, PlanError):
        typed = _QUOTED.search(error.problem)
        near = get_close_matches(typed[1].lower(), error.valid, n=1, cutoff=0.6) if typed else []
        return _fail(f"{error}{f'; did you mean {near[0]}?' if near and len(error.valid) > 1 else ''}", 2)
    if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get((error.name or "").partition(".")[0])):
        return _fail(f"{error.name} is not installed; `pip install 'shardwise[{extra}]'` brings what this needs", 2)
    if isinstance(error, OSError) and error.strerror:
        _drop_output()
        return _fail(f"{error.filename or 'output'}: {error.strerror}", 2)
    return _fail(f"internal error: {type(error).__name__}: {error} (SHARDWISE_DEBUG=1 shows where)", 1)


def _fail(text: str, code: int) -> int:
    print(f"shardwise: {shortened(text)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
