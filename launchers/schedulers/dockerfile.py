"""Dockerfiles, read into the command that a container of their last stage starts."""

from __future__ import annotations

import json
import re

from launchers.schedulers.containers import Jobs, command_line

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_REFERENCE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_SETTING = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S+)")


def is_dockerfile(text: str) -> bool:
    """Whether it begins with a stage, or with arguments of one, and says what is started."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    begins = next((line for line in lines if not re.match(r"ARG\s", line, re.IGNORECASE)), "")
    return bool(re.match(r"FROM\s+\S", begins, re.IGNORECASE)) and any(
        re.match(r"\s*(CMD|ENTRYPOINT)\s", line, re.IGNORECASE) for line in lines
    )


def read(text: str) -> Jobs:
    arguments: dict[str, str] = {}
    stages: dict[str, dict[str, str]] = {}
    stage: dict[str, str] = {}
    variables: dict[str, str] = {}
    for word, rest in _instructions(text):
        if word == "ARG":
            arguments |= _settings(rest)
        elif word == "FROM":
            image, _, label = re.sub(r"--\S+\s+", "", _filled(rest, arguments)).partition(" ")
            stage = dict(stages.get(image, {"image": image}))
            stages[label.strip()[2:].strip()] = stage
        elif word == "ENV":
            variables |= _settings(rest) or dict([rest.split(maxsplit=1)] if len(rest.split()) > 1 else ())
        elif word == "ENTRYPOINT":
            # What the image before it is given by a CMD is not this one's.
            stage.pop("CMD", None)
            stage[word] = rest
        elif word == "CMD":
            stage[word] = rest
    script = _script(stage, variables)
    return Jobs("Dockerfile", [(script, variables)] if script else [])


def _script(stage: dict[str, str], variables: dict[str, str]) -> str:
    """A command in words is that of the image's entry point; one in a string is a shell's own, which takes none."""
    entry, command = (_words(stage.get(key, "")) for key in ("ENTRYPOINT", "CMD"))
    if isinstance(entry, str):
        return entry
    if isinstance(command, str) and not entry:
        return command
    args = command if isinstance(command, list) else ["sh", "-c", command]
    container = {"image": stage.get("image", ""), "args": args} | ({"command": entry} if entry else {})
    return command_line(container, variables)


def _words(text: str) -> list[str] | str:
    if not text:
        return []
    try:
        data = json.loads(text)
    except ValueError:
        return text
    return [str(word) for word in data] if isinstance(data, list) else text


def _instructions(text: str) -> list[tuple[str, str]]:
    """Instructions in capitals with what follows, lines that go on put together and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    matches = (_INSTRUCTION.fullmatch(line) for line in joined.splitlines())
    return [(match[1].upper(), match[2].strip()) for match in matches if match]


def _settings(text: str) -> dict[str, str]:
    return {key: value.strip("\"'") for key, value in _SETTING.findall(text)}


def _filled(text: str, arguments: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda name: arguments.get(name[1] or name[3], name[2] or ""), text)
