"""Ollama's Modelfiles, its commands and what its server is told by the environment. Words: fields.yaml."""

from __future__ import annotations

import re

from launchers.engines.llamacpp.read import device_layers, gguf
from launchers.engines.reading import begin, settings_of
from launchers.reading.commands import named_document
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, plain
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_INSTRUCTION = re.compile(
    r'^(FROM|PARAMETER|ADAPTER|TEMPLATE|SYSTEM|LICENSE|MESSAGE|REQUIRES)[ \t]+("""(?:.|\n)*?"""|[^\n]*)',
    re.IGNORECASE | re.MULTILINE,
)


def is_modelfile(text: str) -> bool:
    """Whether it says what a model is made from and what only a model is given."""
    words = {match[1].upper() for match in _INSTRUCTION.finditer(text)}
    others = re.search(r"^(RUN|CMD|ENTRYPOINT|COPY|ENV|WORKDIR)[ \t]", text, re.IGNORECASE | re.MULTILINE)
    return "FROM" in words and (len(words) > 1 or text.count("\n") < 2) and others is None


def modelfile_keys(name: str, text: str) -> Keys:
    keys = Keys(name)
    for match in _INSTRUCTION.finditer(text):
        word, rest, line = match[1].lower(), match[2].strip(), text.count("\n", 0, match.start()) + 1
        if word == "parameter":
            parameter, _, value = rest.partition(" ")
            keys.put(parameter.lower(), plain(value.strip().strip('"')), line)
        elif word in ("from", "adapter"):
            keys.put(word, rest.strip('"'), line)
    return keys


def read(keys: Keys, findings: Findings) -> None:
    begin(keys, findings, "ollama")
    rows = table("engines/ollama/fields")
    if (base := keys.take("from")) is not None:
        if re.search(r"\.gguf$|^hf\.co/|^huggingface\.co/", str(base.value), re.IGNORECASE):
            gguf(base, None, findings)
        elif not re.match(r"[./~]", str(base.value)):
            findings.put("model", base.value, base)
        else:
            findings.block("model", base, "is a folder of weights, whose model is not named")
    for name, field in rows["options"].items():
        findings.whole(field, keys.take(name))
    device_layers(keys.take("num_gpu"), findings)
    findings.word("workload.kv_dtype", keys.take("kv_cache_type"), rows["caches"])
    findings.default("layout.tp", 1, "layers are split, not matrices")
    findings.default("layout.dp", 1, "one server")
    leave_rest(keys, findings, "engines/ollama", "engines")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """docker exec names a container before the program, mostly by the same name."""
    while len(words) > 1 and words[1].text == "ollama":
        words = words[1:]
    if len(words) < 2 or words[1].text not in ("run", "serve", "start", "pull", "create"):
        return []
    return [Program("ollama", words[1:], Item(setting.file, "command", words[1].text, words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    """A server loads what it is asked for: the model that is run or fetched beside it."""
    command, findings = start.words[0].text, setting.findings
    told, rest = options(setting.file, start.words[1:], ("verbose", "insecure", "nowordwrap"), {"-f": "file"})
    keys = Keys(setting.file)
    if command == "create":
        named = told.take("file") or told.take("model")
        if named is not None:
            named_document(str(named.value), named, setting)
    elif command in ("run", "pull") and rest and not _is_made_here(rest[0].text, setting):
        keys.put("from", rest[0].text, rest[0].line)
    for name, text in settings_of(start, setting).items():
        if name.startswith("OLLAMA_"):
            keys.put(name.removeprefix("OLLAMA_").lower(), plain(text))
    read(keys, findings)
    return "Ollama command"


def _is_made_here(name: str, setting: ScriptSetting) -> bool:
    """Whether a script of the set makes the model under a name of its own (ollama create NAME -f Modelfile)."""
    texts = (*setting.scripts.values(), setting.text)
    return any(re.search(rf"ollama\s+create\s+{re.escape(name)}(\s|$)", text) for text in texts)


def _score(keys: Keys) -> int:
    return 5 if "from" in keys else 0


FORMATS = (Format("Ollama Modelfile", _score, read, ("modelfile",)),)
COMMANDS = {"ollama": read_command}
CONSOLES = {"ollama": _console}
