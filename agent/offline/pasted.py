"""A configuration or a command that was pasted into a message: it, and what was said beside it."""

from __future__ import annotations

import re
from pathlib import Path

_FIELD = re.compile(r"\s*[\"']?[A-Za-z_][\w.-]*[\"']?\s*[:=]\s*\S|\s*--[\w-]+|\s*#SBATCH")
# What stands between fields: keys of blocks, items of lists, brackets, fences, comments, continued lines.
_BETWEEN = re.compile(r"\s*$|\s+\S|\s*[-#{}\[\]`]|\s*[\"']?[\w.-]+[\"']?\s*:\s*$|.*\\\s*$")
_JSON = re.compile(r"\{\s*\"[\w.]+\"\s*:.*\}", re.DOTALL)
_COMMAND = re.compile(
    r"(?<![\w/.-])(?:torchrun|accelerate\s+launch|deepspeed|vllm\s+serve|trtllm-serve|llama-server|axolotl\s+train|"
    r"llamafactory-cli\s+train|swift\s+(?:sft|pt|rlhf)|python3?\s+-m\s+[\w.]+|python3?\s+[\w./-]+\.py|srun|sbatch|"
    r"docker\s+run)\b(?=[^\n]*?\s--?[a-z][\w-]+|[^\n]*\\\n)(?:[^\n]*\\\n)*[^\n]*",
    re.IGNORECASE,
)
# Where the command ends and the sentence goes on.
_SENTENCE = re.compile(
    r"\s+(?:--|—|–|<-+|←)\s+|[,;?]\s+(?=[a-z]+'?[a-z]*\s+[a-z])|\s*`+\s*|\s+(?=on (?:an? |one |\d|my |our ))|"
    r"\s+(?=\((?=[a-z\d]))",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)

_MOST_BYTES = 2**20


# What programs print when they fail; its numbers are of the failure, not of the plan.
_LOG_LINE = re.compile(
    r"^\s*(?:\[rank ?\d+\][: ]*)?(?:Traceback \(most recent call last\).*|File \"[^\n]*|\+[-=+|\s].*|"
    r"\|[-=+|\s].*(?:MiB|Memory|Driver|GPU  |PID).*|\|[-=+\s]{3}.*\|\s*|"
    r"(?:\[?\d{4}-\d\d-\d\d[ T]\S*\]?|\[?(?:INFO|WARNING|WARN|ERROR|DEBUG)\b\]?)[^\n]*|\^+\s*|"
    r"(?:[\w.]+\.)?\w*(?:Error|Exception|Warning)\b:(?:(?! (?:--|—|–) )[^\n])*)$",
    re.MULTILINE,
)
_FAILURE = re.compile(
    r"(?:[\w.]+\.)?(?:OutOfMemoryError|RuntimeError): ?(?:(?! (?:--|—|–) )[^\n])*|"
    r"\bTried to allocate [^\n]*?(?:allocated\)?|fragmentation\.?|\)|(?<=free)\.)(?=\s|$)(?:(?! (?:--|—|–) )[^\n])*",
)
_NO_MEMORY = re.compile(r"out of memory|OutOfMemory|\boom\b", re.IGNORECASE)
# 'Model: Llama 3.1 8B' and 'seq_len = 4096' are a person's list; a program's own names are longer, or stand in blocks.
_PLAIN = (
    r"(?i:(?:seq|max|max_seq|context|ctx)_len(?:gth)?|(?:micro|global|train)_batch(?:_size)?|batch_size|grad_accum\w*|"
    r"(?:num|n)_(?:gpus|nodes|devices|epochs|users)|(?:gpu|node|device)_(?:count|type)|lora_(?:rank|r|alpha)|"
    r"zero_stage|(?:input|output|prompt|response)_len(?:gth)?|(?:tp|pp|dp|cp|ep)_size)"
)
_OF_A_PROGRAM = re.compile(
    rf"\s*--|\s*#SBATCH|\s*[\"']|\s*(?!{_PLAIN}\s*[:=])[A-Za-z]\w*_\w+\s*[:=]|\s*[a-z]\w*\.\w[\w.]*\s*[:=]|"
    r"\s*\[[\w.]+\]\s*$",
)


def without_logs(text: str) -> str:
    """`text` without tracebacks, log lines and tables of nvidia-smi; that memory ran out is kept as words."""
    if "\n" not in text and not _FAILURE.search(text):
        return text
    left = _FAILURE.sub(" ", _LOG_LINE.sub("", text))
    if left == text:
        return text
    return f"{left.strip()} (out of memory)" if _NO_MEMORY.search(text) and not _NO_MEMORY.search(left) else left


def pasted(text: str) -> tuple[str, str] | None:
    """(The configuration, the words around it), or None where nothing was pasted."""
    return _lines(text) or _between(text, _JSON.search(text)) or _command(text)


def _lines(text: str) -> tuple[str, str] | None:
    """Several lines of 'key: value', of flags or of #SBATCH."""
    lines = text.splitlines()
    fields = [index for index, line in enumerate(lines) if _FIELD.match(line)]
    if not (any(map(_OF_A_PROGRAM.match, lines)) or _FENCE.search(text)):
        return None
    said = [line for line in lines if not _FIELD.match(line) and not _BETWEEN.match(line)]
    if len(lines) < 3 or len(fields) < 2 or len(fields) < len(said):
        return None
    start, end = fields[0], fields[-1] + 1
    while start and lines[start - 1].strip() and _BETWEEN.match(lines[start - 1]):
        start -= 1
    while end < len(lines) and lines[end].strip() and _BETWEEN.match(lines[end]):
        end += 1
    if (command := _COMMAND.search(lines[start - 1] if start else "")) is not None and command:
        start -= 1
    config = _FENCE.sub("", "\n".join(lines[start:end])).strip("` \n")
    return config, _FENCE.sub("", "\n".join([*lines[:start], *lines[end:]])).strip()


def _between(text: str, match: re.Match[str] | None) -> tuple[str, str] | None:
    return (match[0], f"{text[: match.start()]} {text[match.end() :]}".strip("` \n")) if match else None


def _command(text: str) -> tuple[str, str] | None:
    match = _COMMAND.search(text)
    if match is None:
        return None
    command, after = match[0], text[match.end() :]
    if "\\\n" not in command and (end := _SENTENCE.search(command)):
        command, after = command[: end.start()], command[end.end() :] + after
    if not re.search(r"\s--?[a-z]", command):
        return None
    return command.strip(), f"{text[: match.start()]} {after}".strip("` \n")


def content(path: str) -> str | None:
    """The text of a file of at most 1 MiB, or None where there is none that can be read as text."""
    try:
        file = Path(path).expanduser()
        return file.read_text(encoding="utf-8") if file.is_file() and file.stat().st_size <= _MOST_BYTES else None
    except (OSError, ValueError):
        return None
