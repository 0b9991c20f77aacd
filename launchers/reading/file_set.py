"""The files of a set, sorted: configs by path with what they stand on, and scripts and Python that wait to be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from estimator.errors import PlanError
from launchers.python.source import parsed
from launchers.reading.commands import base_name
from launchers.reading.devices import accelerator
from launchers.reading.documents import Item, Keys, plain_data, yaml_keys
from launchers.reading.findings import Findings
from launchers.reading.formats import Format
from launchers.reading.recognition import config, is_python, is_script
from launchers.schedulers.read import read_jobs
from launchers.shell.scripts import UNKNOWN

# The config that one of MaxText's stands on, and the one that it ships, whose values are its defaults.
_BASE, _PUBLISHED_BASE = "base_config", "base.yml"
# Configs that a script may open and that what it starts reads itself.
_OF_OTHERS = ("DeepSpeed", "accelerate")


@dataclass
class FileSet:
    """The files of a set, sorted: configs by path, and scripts and Python that wait to be read."""

    findings: Findings
    documents: dict[str, tuple[Format, Keys]] = field(default_factory=dict)
    by_name: dict[str, Keys] = field(default_factory=dict)
    scripts: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    python: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """By name without folder."""
    unread: dict[str, PlanError] = field(default_factory=dict)
    """Configs of no format that is known, which Python of the set may open."""
    layers: dict[str, str] = field(default_factory=dict)
    """Those of them that stand on another config, whose format is theirs."""
    bases: set[str] = field(default_factory=set)
    """Configs that others stand on, which are no runs of their own."""
    opened: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)
    """Python that a script starts."""
    imported: set[str] = field(default_factory=set)
    """Python that other Python of the set imports, by path."""
    words: set[str] = field(default_factory=set)
    """Names of files that the commands of scripts have among their words."""

    def add(self, path: str, text: str, carrier: str = "") -> None:
        """Tells what a file is. One that `carrier` brings along may be anything, and wins over one beside it."""
        name = base_name(path) or path
        if not isinstance(text, str) or "\0" in text:
            raise PlanError("files", f"{name[:80]!r} is not a text file")
        text = text.removeprefix("\ufeff")
        if not text.strip() and carrier:
            return
        if not text.strip():
            raise PlanError("files", f"{name[:80]} is empty")
        if carrier and name in self.texts:
            if self.texts[name].strip() == text.strip():
                return
            self.findings.warn(f"{name}: the file and the copy of it in {carrier} differ; the copy is read")
            self.drop(name)
        self.texts[name] = text
        _plan_line(name, text, self.findings)
        if is_script(name, text):
            self.scripts.append((path, text, {}))
        elif (jobs := read_jobs(name, text, self.findings)) is not None:
            self.findings.formats[path] = jobs.kind
            for inner, content in jobs.files.items():
                self.add(inner, content, name)
            self.scripts += [(path, script, known) for script, known in jobs.scripts]
        elif is_python(name, text):
            self.python[path] = text
        else:
            try:
                known = config(name, text)
            except PlanError as error:
                if _named_base(text):
                    self.layers[path] = text
                if not carrier:
                    self.unread[path] = error
                return
            if known is not None:
                self.documents[path], self.by_name[name] = known, known[1]
                self.findings.formats[path] = known[0].name
            elif not carrier:
                self.scripts.append((path, text, {}))

    def load(self, path: str) -> Any:
        """The data of a config that Python of the set opens; UNKNOWN where it is not given."""
        name = base_name(path)
        if name not in self.texts:
            if re.search(r"\.(ya?ml|toml)$|(config|args|param)[^/]*\.json$", name):
                self.findings.refers.setdefault(path, f"{path}: the program's settings")
            return UNKNOWN
        try:
            data = plain_data(name, self.texts[name])
        except PlanError:
            return UNKNOWN
        self.opened.add(name)
        if not any(
            base_name(path) == name and form.name.startswith(_OF_OTHERS) for path, (form, _) in self.documents.items()
        ):
            self.by_name.pop(name, None)
            for other in self.documents:
                if base_name(other) == name:
                    self.findings.formats[other] = "settings of a script"
        return data

    def sources(self) -> dict[str, str]:
        """Python of the set by file name; of several of one name the first that was given."""
        return {base_name(path): text for path, text in reversed(self.python.items())}

    def source(self, path: str) -> str | None:
        """The text of a source that another one imports; None where it is not given."""
        for other, text in self.python.items():
            if f"/{other}".endswith(f"/{path}"):
                self.imported.add(other)
                return text
        self.findings.beside[path] = None
        return None

    @property
    def size(self) -> int:
        """How many configs, scripts and sources there are to read."""
        return len(self.documents) + len(self.scripts) + len(self.python)

    def drop(self, name: str) -> None:
        self.scripts = [row for row in self.scripts if base_name(row[0]) != name]
        for kept in (self.documents, self.python, self.findings.formats):
            for path in [path for path in kept if base_name(path) == name]:
                del kept[path]
        self.by_name.pop(name, None)


def stack(sets: FileSet) -> None:
    """Puts each config over the one of the set that its `defaults` names, which is no run of its own."""
    for path, text in sets.layers.items():
        name, base = base_name(path), base_name(_named_base(text))
        form = next((form for other, (form, _) in sets.documents.items() if base_name(other) == base), None)
        if form is None:
            sets.findings.refers.setdefault(_named_base(text), f"{name}: the config that it stands on")
        else:
            sets.documents[path] = form, yaml_keys(name, text)
            sets.by_name[name], sets.findings.formats[path] = sets.documents[path][1], form.name
            del sets.unread[path]
    for keys in list(sets.by_name.values()):
        _stand(keys, sets, {keys.file})
    under = [path for path in sets.documents if base_name(path) in sets.bases]
    if len(under) == len(sets.documents):
        # They name each other.
        under = under[1:]
    for path in under:
        del sets.documents[path], sets.by_name[base_name(path)]


def _stand(keys: Keys, sets: FileSet, above: set[str]) -> None:
    """Adds what the configs say that one stands on: of several the last one wins, and each stands on its own."""
    item = keys.take("defaults") or keys.take(_BASE)
    if item is not None and item.key == _BASE and base_name(str(item.value)) == _PUBLISHED_BASE not in sets.texts:
        # Of what that says the reader knows.
        item = None
    names = [] if item is None else item.value if isinstance(item.value, list) else [item.value]
    # Hydra leaves the ending out.
    whole = (f"{name}.yaml" if f"{base_name(name)}.yaml" in sets.texts else name for name in map(str, names))
    bases = [(name, _base_of(base_name(name), sets)) for name in whole if base_name(name) not in above]
    if item is not None and not any(base for _, base in bases):
        keys.adopt(item)
    for name, base in reversed(bases):
        if base is None:
            if item is not None and name.endswith((".yaml", ".yml")):
                _lacks(sets.findings, item, name)
            elif re.fullmatch(r"[A-Za-z][\w/-]*", name):
                sets.findings.beside[f"{name}.yaml"] = None
            continue
        sets.bases.add(base_name(name))
        _stand(base, sets, above | {base_name(name)})
        for below in base.items.values():
            if below.key not in keys and below.key not in keys.nulls:
                keys.adopt(below)
        keys.nulls |= base.nulls


def _base_of(name: str, sets: FileSet) -> Keys | None:
    """A config of the set by its name, also one of which nothing knows the format by itself."""
    if name in sets.by_name:
        return sets.by_name[name]
    try:
        keys = yaml_keys(name, sets.texts[name])
    except (KeyError, PlanError):
        return None
    for path in [path for path in sets.unread if base_name(path) == name]:
        del sets.unread[path]
    return keys


def _lacks(findings: Findings, item: Item, name: str) -> None:
    """A config says little without the one that it stands on; ours say all of a plan."""
    if findings.comment is not None:
        return
    findings.refers.setdefault(name, f"{item.origin}: the config that it stands on")
    findings.blocked.setdefault("workload", f"{item.origin}: stands on {name}, which is not given")


def _named_base(text: str) -> str:
    """The config that one stands on, whose ending Hydra leaves out; '' for others."""
    match = re.search(r"^defaults:\s*(?:-\s*)?([A-Za-z][\w./-]*?)(\.ya?ml)?\s*$", text, re.MULTILINE)
    return f"{match[1]}{match[2] or '.yaml'}" if match else ""


def _plan_line(name: str, text: str, findings: Findings) -> None:
    """Our own files say the plan in a comment: the only place of its accelerators, and in some of model and count."""
    head = text[:4000]
    match = re.search(r"^\s*# plan: (\S+), .*?(\d+) x ([A-Za-z0-9][\w.-]*)(?: \(\d+ x \d+\)|$)", head, re.MULTILINE)
    if match is None or not re.search(r"^\s*# Shardwise$", head, re.MULTILINE) or findings.comment:
        return
    line = head.count("\n", 0, match.start()) + 1
    model, count, device = (Item(name, "the plan in a comment", value, line) for value in match.groups())
    copies, together = (
        re.search(rf" (\d+) {words} ", f"{match[0]} ") for words in ("replicas of", "requests at once,")
    )
    accelerator(findings, device, device.value)
    findings.imply("model", model.value, model)
    if packed := re.search(r", weights ([\w-]+),", match[0]):
        findings.imply("workload.weight_dtype", packed[1], replace(count, value=packed[1]))
    findings.comment = count, int(copies[1]) if copies else 1, int(together[1]) if together else None


def leave_unnamed(sets: FileSet) -> None:
    """Configs of what shards that only commands name which a script does not come to."""
    named = {base_name(path) for path in sets.findings.refers} | sets.words
    values = [item.value for _, keys in sets.documents.values() for item in keys.items.values()]
    named |= {base_name(value) for value in values if isinstance(value, str) and value}
    texts = [re.sub(r"(?m)^\s*#.*", "", text) for name, text in sets.texts.items() if is_script(name, text)]
    for path, (form, _) in list(sets.documents.items()):
        name = base_name(path)
        if form.name.startswith(_OF_OTHERS) and name not in named and any(name in text for text in texts):
            sets.findings.warn(f"{name}: is named by commands that the script does not come to, and not read")
            del sets.documents[path]


def set_aside(sets: FileSet) -> None:
    """Python of other files that cannot be parsed is as if it were not given."""
    for path in list(sets.python) if len(sets.texts) > 1 else ():
        try:
            parsed(base_name(path), sets.python[path])
        except PlanError as error:
            sets.findings.warn(f"{error.problem}, so what it does is not read")
            sets.findings.formats[path] = "Python that cannot be parsed"
            del sets.python[path]
