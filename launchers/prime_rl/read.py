"""prime-rl's TOML and its starts. Words: fields.yaml."""

from __future__ import annotations

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.reading.commands import named_document
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings
from launchers.reading.formats import Format
from launchers.reading.mapped import mapped_format, read_mapped
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_TRAINER = "trainer."


def read(keys: Keys, findings: Findings) -> None:
    for name in [name for name in keys.below("trainer") if name.startswith(_TRAINER)]:
        item = keys.take(name)
        assert item is not None
        keys.adopt(item, name.removeprefix(_TRAINER))
    if keys.look("model.ep") == "auto":
        keys.take("model.ep")
    _sources(keys, findings)
    read_mapped("prime_rl", keys, findings)
    if not findings.has("layout.ep"):
        _experts(keys, findings)


def _sources(keys: Keys, findings: Findings) -> None:
    """Each source of samples may have an algorithm of its own."""
    item = keys.items.get("orchestrator.train.source")
    rows = item.value if item is not None and isinstance(item.value, list) else []
    kinds = [row["algo"].get("type") for row in rows if isinstance(row, dict) and isinstance(row.get("algo"), dict)]
    known = table("prime_rl/fields")["algorithms"]
    if item is not None and any(kind not in known for kind in kinds):
        findings.block("workload.stage", item, "names an algorithm of its own")


def _experts(keys: Keys, findings: Findings) -> None:
    """By itself it spreads experts over the devices of a shard group, up to eight (ModelConfig.ep)."""
    try:
        spreads = architecture(findings.values.get("model", "")).is_moe
    except PlanError:
        return
    if spreads:
        why = "model.ep is auto, the devices of a shard group up to eight; give it"
        findings.blocked.setdefault("layout.ep", f"{keys.file}: {why}")
    else:
        findings.default("layout.ep", 1, "the model has no experts")


def read_command(start: Program, setting: ScriptSetting) -> None:
    """A start with `@ FILE` and `--section.key value` over it."""
    words = [word for word in start.words if word.text != "@"]
    config = next((word for word in words if word.text.removeprefix("@").endswith(".toml")), None)
    if config is None:
        return
    name = config.text.removeprefix("@")
    document = named_document(name, Item(setting.file, "command", name, config.line), setting)
    if document is not None:
        keys, _ = options(setting.file, [word for word in words if word is not config])
        for item in keys.items.values():
            document.put(item.key, item.value, item.line)


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """rl or sft, where a TOML is named: the words are too short to be its own."""
    if not any(word.text.endswith(".toml") for word in words):
        return []
    item = Item(setting.file, "command", words[0].text, words[0].line)
    return [Program("prime-rl", words[1:], item, environment)]


_MAPPED = mapped_format("prime_rl", ("toml",))
FORMATS = (Format(_MAPPED.name, _MAPPED.score, read, _MAPPED.kinds),)
COMMANDS = {"prime-rl": read_command}
CONSOLES = {"rl": _console, "sft": _console}
MODULES = {"prime_rl.trainer.sft.train": "prime-rl", "prime_rl.entrypoints.": "prime-rl"}
