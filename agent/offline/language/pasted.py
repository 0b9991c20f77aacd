"""A configuration, a command or a log that was pasted into a message, and the words around it: the first is data."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from json import JSONDecoder

from agent.offline.language.lexicon import lexicon
from measure.logs.sampled import OF_A_CARD

# Of so many lines of steps, or of so many figures in one, a log is told from a line that somebody quotes.
_FEWEST_LINES, _FEWEST_PAIRS = 2, 4
_OF_STEPS = ("loss", "iter", "step")
_NO_MEMORY = ("out of memory", "outofmemory")
# Words that only configurations of training, or of serving, have.
_OF_TRAINING = ("per_device_train", "micro_batch", "gradient_accumulation", "learning_rate", "torchrun", "lora_r",
                "deepspeed", "num_train_epochs", "trainingarguments")  # fmt: skip
_OF_SERVING = ("max_model_len", "vllm serve", "vllm_openai", "llama_server", "sglang", "trtllm_serve",
               "gpu_memory_utilization", "ctx_size", "max_num_seqs")  # fmt: skip
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
# 'import x', 'from x import y', 'name = a.call(', 'trainer.train()'.
_OPENS_PYTHON = re.compile(
    r"(import \w[\w.]*( as \w+)?|from \w[\w.]* import .+|\w+(, ?\w+)* ?= ?[A-Za-z_][\w.]*\(.*)\s*$"
)
_PYTHON = re.compile(
    r"(\s+\S|import \w|from \w[\w.]* import |[\w.\[\]\"']+(, ?\w+)* ?=|[A-Za-z_][\w.]*\(|[)\]}]|#|@\w|"
    r"(def|class|with|for|if|elif|while) .*:\s*$|(else|try|finally):)"
)


@dataclass(frozen=True)
class Pasted:
    """`config` is what was pasted to be read as a configuration (None: nothing was), `said` the person's own words,
    `data` what tables, logs and other blocks say, in words: it fills fields and asks for nothing; `rows` those of a
    table of several, which are set side by side."""

    config: str | None
    said: str
    data: str = ""
    rows: tuple[str, ...] = ()
    log: str | None = None
    """Lines of a training log with the speeds of its steps."""

    @property
    def trains(self) -> bool | None:
        """Whether the configuration is of training, or of serving; None where its words are of neither."""
        words = (self.config or "").lower().replace("-", "_")
        shown = [any(word in words for word in its) for its in (_OF_TRAINING, _OF_SERVING)]
        return shown[0] if shown[0] != shown[1] else None


def apart(text: str) -> Pasted:
    """Splits a message into what was pasted and what was said."""
    text, log = _without_steps(text)
    text, listed = _without_list(text)
    text, sampled = _without_samples(text)
    text, cards = _without_cards(text)
    text, rows = _without_tables(text)
    facts = listed + sampled + cards + (rows if len(rows) == 1 else [])
    text, machines = _without_logs(text)
    facts += machines
    config = None
    for split in (_fenced, _python, _object, _lines, _json, _command):
        if found := split(text):
            config, text = found[0].strip(), found[1].strip(" `\n")
            break
    else:
        text, blocks = _without_blocks(text)
        facts += blocks
    return Pasted(config, text, "\n".join(facts), tuple(rows) if len(rows) > 1 else (), log)


def _without_steps(text: str) -> tuple[str, str | None]:
    """(The text without the log of a training run, that log with all its lines)."""
    lines = text.split("\n")
    if len(lines) < _FEWEST_LINES or not any(word in text.lower() for word in _OF_STEPS):
        return text, None
    from measure.logs.reading import log_span  # heavy: only where several lines are said

    if (span := log_span(lines)) is None:
        return text, None
    start, end = span
    pairs = sum(line.count(": ") + line.count("=") for line in lines[start:end])
    if end - start < _FEWEST_LINES and pairs < _FEWEST_PAIRS:
        return text, None
    return "\n".join([*lines[:start], *lines[end:]]).strip(), "\n".join(lines[start:end])


def _without_logs(text: str) -> tuple[str, list[str]]:
    """(The text without tracebacks, log lines and monitors, what those say of the machine); that memory ran out is kept
    as words."""
    lines = text.split("\n")
    kept = [_before_log(_without_metrics(line)) for line in lines]
    if kept == lines:
        return text, []
    left = "\n".join(line for line in kept if line is not None)
    ran_out = any(word in text.lower() for word in _NO_MEMORY)
    if ran_out and not any(word in left.lower() for word in _NO_MEMORY):
        left = f"{left.strip()} (out of memory)"
    return left, _facts(lines)


def _facts(lines: list[str]) -> list[str]:
    """What a monitor's table and an error say of the devices: their name and number, how much memory one has."""
    names = [line.partition("NVIDIA ")[2].partition("  ")[0].partition(" On")[0] for line in lines if _is_monitor(line)]
    devices = [name.strip(" |") for name in names if name.strip(" |")]
    facts = [f"{len(devices)} x {devices[0]}"] if devices else []
    for line in lines:
        _, found, rest = line.partition("total capacity of ")
        if found and not facts:
            facts.append(f"vram: {' '.join(rest.split()[:2])}")
    return facts


def _is_monitor(line: str) -> bool:
    return line.strip().startswith("|") and "NVIDIA " in line and "Driver" not in line


# Columns of `nvidia-smi --query-gpu=… --format=csv` that tell one device from another, the surest first; and what its
# cells are measured in.
_OF_ONE_DEVICE = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index")
_SAMPLED_IN = (" %", " MiB", " W", " MHz")


def _without_list(text: str) -> tuple[str, list[str]]:
    """(The text without the lines of `nvidia-smi -L`, how many devices of which name they are)."""
    lines = text.split("\n")
    listed = [line for line in lines if line.strip().startswith("GPU ") and " (UUID: " in line]
    names = [line.partition(": ")[2].partition(" (UUID: ")[0].removeprefix("NVIDIA ") for line in listed]
    left = "\n".join(line for line in lines if line not in listed).strip()
    return left, [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]


def _without_samples(text: str) -> tuple[str, list[str]]:
    """(The text without the rows of `nvidia-smi --format=csv`, how many devices of which name they are of)."""
    lines = text.split("\n")
    rows = {at: cells for at, line in enumerate(lines) if _is_sample(cells := _by_commas(line))}
    if not rows:
        return text, []
    first = min(rows)
    heads = [head.partition(" ")[0].lower() for head in _by_commas(lines[first - 1])] if first else []
    headed = len(heads) == len(rows[first]) and "name" in heads
    column = next((heads.index(name) for name in _OF_ONE_DEVICE if headed and name in heads), None)
    if column is None and all(cells[0].isdigit() for cells in rows.values()):
        column = 0
    devices = len(rows) if column is None else len({cells[column] for cells in rows.values() if column < len(cells)})
    name = next(cell for cell in rows[first] if cell.startswith("NVIDIA "))
    left = [line for at, line in enumerate(lines)
            if at not in rows and not (headed and at == first - 1) and "--query-gpu" not in line]  # fmt: skip
    return "\n".join(left).strip(), [f"{devices} x {name.removeprefix('NVIDIA ')}"]


# Tables of rocm-smi stand between lines of =.
_OF_ROCM = re.compile(r"=+ ROCm System Management Interface =+\n.*?(?:=+ End of ROCm SMI Log =+|$)", re.DOTALL)
_CARD = re.compile(r"^(\d+) {2,}\S", re.MULTILINE)


def _without_cards(text: str) -> tuple[str, list[str]]:
    """(The text without what rocm-smi printed, how many cards that is of, and their name or the memory of one)."""
    cells = OF_A_CARD.findall(text)
    report = _OF_ROCM.search(text)
    if not (cells or report):
        return text, []
    text = text.replace(report[0], "") if report else text
    text = "\n".join(line for line in text.split("\n") if not OF_A_CARD.match(line.strip())).strip()
    devices = {device for device, _, _ in cells} or set(_CARD.findall(report[0] if report else ""))
    said = {name.lower(): value.strip() for _, name, value in cells}
    if name := said.get("card series") or said.get("card model"):
        return text, [f"{len(devices)} x {name}"]
    total = said.get("vram total memory (b)", "")
    return text, [f"vram: {int(total) / 2**30:.0f} GiB"] if total.isdigit() else []


def _by_commas(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _is_sample(cells: list[str]) -> bool:
    named = any(cell.startswith("NVIDIA ") for cell in cells)
    return named and len(cells) > 1 and any(cell.endswith(_SAMPLED_IN) for cell in cells)


def _without_metrics(line: str) -> str:
    """A line without what a training loop prints: a dictionary of its metrics, a bar of its progress."""
    start = line.find("{'")
    end = line.find("}", start)
    if 0 <= start < end and "': " in line[start:end]:
        line = f"{line[:start]} {line[end + 1 :]}"
    end = max(line.find("s/it]"), line.find("it/s]"))
    if end > 0 and "%|" in line[:end]:
        before = line[: line.find("%|")].rstrip("0123456789 ")
        line = f"{before} {line[end + 5 :]}"
    return line


def _without_tables(text: str) -> tuple[str, list[str]]:
    """(The text without its first table below a heading, its rows as its columns' names and values). A table of two
    columns is a list of names and values, and stays."""
    lines = text.split("\n")
    for at in range(1, len(lines) - 1):
        rule = _cells(lines[at])
        if len(rule) < 3 or not all(cell and not cell.strip("-: ") for cell in rule):
            continue
        heads, end = _cells(lines[at - 1]), at + 1
        while end < len(lines) and len(_cells(lines[end])) == len(heads):
            end += 1
        if len(heads) == len(rule) and end > at + 1:
            rows = [
                "; ".join(f"{head}: {cell}" for head, cell in zip(heads, _cells(line), strict=True) if cell)
                for line in lines[at + 1 : end]
            ]
            return "\n".join([*lines[: at - 1], *lines[end:]]).strip(), rows
    return _without_columns(lines)


def _without_columns(lines: list[str]) -> tuple[str, list[str]]:
    """(The lines without a table whose columns stand apart by two spaces, its rows)."""
    for at, line in enumerate(lines):
        heads, end = _apart(line), at + 1
        while end < len(lines) and len(_apart(lines[end])) == len(heads) and _is_numbered(_apart(lines[end])):
            end += 1
        if len(heads) > 2 and end > at + 1 and not _is_numbered(heads):
            rows = [
                "; ".join(f"{head}: {cell}" for head, cell in zip(heads, _apart(row), strict=True))
                for row in lines[at + 1 : end]
            ]
            return "\n".join([*lines[:at], *lines[end:]]).strip(), rows
    return "\n".join(lines), []


def _apart(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().replace("\t", "  ").split("  ") if cell.strip()]


def _is_numbered(cells: list[str]) -> bool:
    return any(cell[0].isdigit() for cell in cells[1:])


def _cells(line: str) -> list[str]:
    bare = line.strip()
    return [cell.strip() for cell in bare.strip("|").split("|")] if bare.startswith("|") else []


def _without_blocks(text: str) -> tuple[str, list[str]]:
    """(The text without what stands between lines of ```, that)."""
    parts = text.split("```")
    if len(parts) < 3:
        return text, []
    blocks = [part.strip() for part in parts[1:-1:2]]
    return "\n".join(part.strip() for part in (*parts[0:-1:2], parts[-1])), [block for block in blocks if block]


# How the sentences of torch's error begin (c10/cuda/CUDACachingAllocator.cpp).
_OF_THE_ERROR = ("Tried to", "GPU ", "Process ", "Including ", "Of the allocated", "If reserved", "See documentation")


def _behind_error(line: str) -> str:
    """A person's own words behind an error on the same line."""
    for stop in (" -- ", " — ", " – "):
        if stop in line:
            return line[line.find(stop) :]
    _, *sentences = line.split(". ")
    own = itertools.dropwhile(lambda sentence: sentence.strip().startswith(_OF_THE_ERROR), sentences)
    return ". ".join(own)


def _before_log(line: str) -> str | None:
    """What of a line is no log: all of it, its beginning, or None."""
    bare = line.strip()
    if bare.startswith(("Traceback (most recent call last)", 'File "', "+---", "+===", "|---", "|===")):
        return None
    levels = ("INFO", "WARNING", "WARN", "ERROR", "DEBUG")
    if bare.startswith(levels) or bare.startswith(tuple(f"[{level}" for level in levels)) or _dated(bare):
        return None
    if _is_monitor(line) or (bare.startswith("|") and any(word in bare for word in ("MiB", "Driver", "PID"))):
        return None
    if bare.startswith("[rank") and ":" in bare:
        line = line.partition(":")[2]
    for mark in (
        "torch.cuda.OutOfMemoryError:",
        "torch.OutOfMemoryError:",
        "OutOfMemoryError:",
        "RuntimeError:",
        "CUDA out of memory. Tried",
    ):
        at = line.find(mark)
        if at >= 0:
            return f"{line[:at]} out of memory {_behind_error(line[at:])}".strip()
    return line


def _dated(line: str) -> bool:
    start = line.lstrip("[")[:10]
    return len(start) == 10 and start[4] == start[7] == "-" and start.replace("-", "").isdigit() and len(line) > 20


def _fenced(text: str) -> tuple[str, str] | None:
    """What stands between lines of ```."""
    parts = text.split("```")
    if len(parts) < 3:
        return None
    inside = parts[1].partition("\n")
    body = inside[2] if "\n" in parts[1] and " " not in inside[0].strip() else parts[1]
    configured = any(_key(line) for line in body.split("\n")) or "--" in body or "{" in body
    return (body, f"{parts[0]} {' '.join(parts[2:])}") if configured else None


def _python(text: str) -> tuple[str, str] | None:
    """Python source: from the first line that imports something or gives a name what a call returns, to the last line
    of code."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if _OPENS_PYTHON.match(line)), None)
    if start is None:
        return None
    end, open_brackets = start, 0
    for at in range(start, len(lines)):
        bare = _QUOTED.sub('""', lines[at]).partition("#")[0]
        if open_brackets > 0 or _PYTHON.match(lines[at]):
            end = at + 1
        elif bare.strip():
            break
        open_brackets = max(0, open_brackets + sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}")))
    source = "\n".join(lines[start:end])
    return (source, "\n".join([*lines[:start], *lines[end:]])) if "(" in source else None


def _key(line: str) -> str | None:
    """The name that a line gives a value to: 'name: value', 'name = value', '--name'."""
    bare = line.strip().lstrip("-# ").strip()
    if line.strip().startswith("--"):
        return line.strip().split()[0].lstrip("-").partition("=")[0]
    if line.strip().startswith("#SBATCH"):
        return "#SBATCH"
    for sign in (":", "="):
        name, found, value = bare.partition(sign)
        name = name.strip().strip("\"'")
        if (
            found
            and name
            and value.strip()
            and name.replace("_", "").replace(".", "").replace("-", "").replace("/", "").isalnum()
            and not name[0].isdigit()
        ):
            return name
    return None


def _opens_section(line: str, below: str) -> bool:
    """Whether a line is the name of what stands further in below it: 'spec:'."""
    name = line.strip().removeprefix("- ")
    indent = len(line) - len(line.lstrip())
    deeper = len(below) - len(below.lstrip()) > indent or below.strip().startswith("- ")
    return name.endswith(":") and name[:-1].replace("_", "").replace("-", "").isalnum() and deeper


def _of_a_program(line: str, key: str) -> bool:
    if line.strip().startswith(("--", "#SBATCH", '"', "'")):
        return True
    return ("_" in key and key.lower() not in lexicon().settings) or "." in key


def _lines(text: str) -> tuple[str, str] | None:
    """Several lines of a program's own settings."""
    lines = text.split("\n")
    if len(lines) < 3:
        return None
    keys = [_key(line) for line in lines]
    fields = [index for index, key in enumerate(keys) if key]
    sections = any(line.strip().startswith("[") and line.strip().endswith("]") for line in lines)
    sections = sections or any(map(_opens_section, lines, lines[1:]))
    if len(fields) < 2 or not (sections or any(_of_a_program(lines[index], str(keys[index])) for index in fields)):
        return None
    start, end = fields[0], fields[-1] + 1
    while start and lines[start - 1].strip() and _belongs(lines[start - 1]):
        start -= 1
    while end < len(lines) and lines[end].strip() and _belongs(lines[end]):
        end += 1
    prose = [line for line in lines[start:end] if not _key(line) and not _belongs(line)]
    items = [line for line in lines[start:end] if line.startswith("- ") and not _key(line)]
    if len(prose) > len(fields) or len(items) >= len(fields):
        # A list of what somebody says is no configuration.
        return None
    return "\n".join(lines[start:end]), "\n".join([*lines[:start], *lines[end:]])


def _belongs(line: str) -> bool:
    """Whether a line without a value goes on with a configuration: a key, a bracket, an item, a continued command."""
    bare = line.strip()
    words = bare.split()
    return (
        not bare
        or (bare.endswith(("\\", ":", "{", "[", "(", ",")) and len(words) < 8)
        or bare[0] in "-{}[]#"
        or words[0] in lexicon().programs
    )


def _object(text: str) -> tuple[str, str] | None:
    """A whole JSON object over several lines, with nothing but words around it."""
    if (start := text.find("{")) < 0:
        return None
    try:
        _, end = JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if "\n" not in text[start:end]:
        return None
    before, behind = text[:start], text[end:]
    around = [line for line in f"{before}\n{behind}".split("\n") if line.strip()]
    if any(_of_a_program(line, _key(line) or "") or line.split()[0] in lexicon().programs for line in around):
        return None
    return text[start:end], f"{before} {behind}"


def _json(text: str) -> tuple[str, str] | None:
    start, end = text.find("{"), text.rfind("}")
    inside = text[start : end + 1]
    if start < 0 or end < start or '"' not in inside or ":" not in inside:
        return None
    return inside, f"{text[:start]} {text[end + 1 :]}"


def _command(text: str) -> tuple[str, str] | None:
    """A command line with flags, up to where the sentence goes on."""
    if " -" not in text:
        return None
    flat = text.replace("\\\n", "\\\0").replace("\n", "\n ")
    words = flat.split(" ")
    for index, word in enumerate(words):
        name = word.rpartition("\n")[2].strip("`'\"$ ").rpartition("/")[2]
        if name not in lexicon().programs:
            continue
        rest = words[index:]
        end = _ends(rest)
        if not any(_is_flag(one) for one in rest[:end]):
            continue
        settings = list(itertools.takewhile(_is_variable, reversed(words[:index])))
        before = " ".join([*words[: index - len(settings)], word[: len(word) - len(word.rpartition("\n")[2])]])
        config = " ".join([*reversed(settings), word.rpartition("\n")[2], *rest[1:end]])
        return config.replace("\\\0", "\\\n").strip("`, "), f"{before} {' '.join(rest[end:])}".replace("\\\0", " ")
    return None


def _is_variable(word: str) -> bool:
    """'CUDA_VISIBLE_DEVICES=0,1'."""
    name, found, _ = word.rpartition("\n")[2].partition("=")
    return bool(found) and name.isidentifier() and name == name.upper()


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-")[:1].isalpha()


def _ends(words: list[str]) -> int:
    """Where a command ends: a dash alone, a comma or a question, a line's end, or words after the last flag's value."""
    free = 0
    for index, word in enumerate(words):
        if index and word in ("--", "—", "–", "<-", "←"):
            return index
        if "\n" in word and "\0" not in word:
            # What stands before the line's end is the last flag's value.
            return index + 1 if index else index
        if (
            index
            and word.endswith((",", ";", "?", "`"))
            and index + 1 < len(words)
            and not words[index + 1].startswith("-")
        ):
            return index + 1
        free = 0 if word.startswith("-") else free + 1
        if free == 2 and word in lexicon().placing and not any(map(_is_flag, words[index:])):
            # '--max-model-len 32768 on 8xH100?'
            return index
        if free > 3 and index > 3 and not any(one.startswith("-") for one in words[index:]):
            return index - 1
    return len(words)
