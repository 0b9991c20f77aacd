"""A set of files read as one: scripts first, as their command lines win, then configs, then what shards the states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from knowledge.fitted.training import framework, frameworks_known
from knowledge.models.catalogue import find_model
from launchers.engines import python as engines
from launchers.hf.read import ADAPTERS
from launchers.own_program import read as own_program
from launchers.python.names import Invocation
from launchers.reading.commands import base_name
from launchers.reading.documents import Item
from launchers.reading.file_set import FileSet, leave_unnamed, set_aside, stack
from launchers.reading.findings import SETTLED_BY, Findings, Read, nested
from launchers.reading.lengths import longest_rows_of
from launchers.reading.programs import read_start
from launchers.reading.published import read_published
from launchers.reading.recognition import WHAT_HELPS
from launchers.reading.result import FilesReading
from launchers.reading.totals import serves, total
from launchers.schedulers.slurm.read import directives
from launchers.shell.scripts import DEVICES
from launchers.shell.setting import Program, PythonSources, ScriptSetting
from launchers.shell.starts import read_script
from launchers.tables import table
from launchers.unsloth.read import read_python

_MOST_FILES = 64
_MOST_TEXT = 1_000_000
# More devices than these stand in several nodes.
_NODE = 8
# The framework of a Plan by program, where nothing shards its states.
_FRAMEWORKS = {
    "axolotl": "axolotl", "torchtune": "torchtune", "torchtitan": "torchtitan", "megatron-lm": "megatron-lm",
    "llamafactory": "hf-trainer", "trl": "hf-trainer", "trainer": "hf-trainer", "accelerate": "ddp",
    "maxtext": "maxtext", "primus": "primus", "megatron-bridge": "megatron-bridge", "nemo": "nemo",
    "litgpt": "litgpt", "unsloth": "unsloth", "mlx": "mlx", "ms-swift": "ms-swift",
    "optimum-habana": "optimum-habana", "optimum-neuron": "neuronx",
    "megatron-deepspeed": "megatron-deepspeed",
}  # fmt: skip
IMPORTED = "Python that another source imports"
_TRAINER = "TRL or transformers Trainer arguments"
# What trains on the Trainer and says nothing of how it is started: accelerate's settings may shard it.
_UNSTARTED = frozenset(
    {
        _TRAINER,
        "Trainer arguments in sections of their own",
        "settings of a program of one's own",
        "Python script on TRL",
        "Python script on the transformers Trainer",
        "Python script on accelerate",
        "settings of a script",
        "config that its program ships",
        "Python",
        IMPORTED,
    }
)
# The same of a program whose own command starts it on whole copies, and accelerate's may not.
_UNSTARTED_CONFIG = "LlamaFactory YAML"
# Programs that train on rows as they are where packing is off.
_UNPACKED = frozenset({"llamafactory", "trl", "trainer", "axolotl", "torchtune", "unsloth", "ms-swift", "mlx"})
# How weights are packed that only adapters can stand on (knowledge/models/data/weight_formats.yaml).
_PACKED = frozenset({"int4", "int8", "awq", "gptq", "nvfp4", "int4_pack", "hqq", "aqlm"})
_ONE_DEVICE = ("layout.tp", "layout.pp", "layout.cp", "layout.ep")


def read(files: Mapping[str, str], arguments: Mapping[str, Any] | None = None) -> FilesReading:
    """Reads the texts of `files` as one set. `arguments` are dotted Plan fields that are known besides and win.

    Raises PlanError where there is nothing that could be read.
    """
    if not files:
        raise PlanError("files", "none is given", ["{name: text}"])
    if len(files) > _MOST_FILES or sum(map(len, files.values())) > _MOST_TEXT:
        raise PlanError(
            "files", "are more than a set of configs has", [f"up to {_MOST_FILES} files, {_MOST_TEXT:,} characters"]
        )
    findings = Findings()
    sets = FileSet(findings)
    for path, text in files.items():
        sets.add(path, text)
    stack(sets)
    set_aside(sets)
    _read_scripts(sets, _devices(arguments or {}))
    _read_python(sets)
    if not findings.nameless:
        leave_unnamed(sets)
    left = [row for path, row in sets.documents.items() if base_name(path) in sets.by_name]
    for form, keys in sorted(left, key=lambda row: row[0].order):
        items = list(keys.items.values())
        form.read(keys, findings)
        if form.read is not own_program.read_settings:
            own_program.account(items, findings, form.name)
    _refuse_unread(sets)
    for path in [path for path in findings.refers if base_name(path) in sets.texts]:
        del findings.refers[path]
    read_published(findings)
    return _settled(findings, arguments or {})


def _devices(arguments: Mapping[str, Any]) -> dict[str, str]:
    """How many devices a script counts on its node, where the arguments say it."""
    count, per_node = arguments.get("cluster.count"), arguments.get("cluster.per_node")
    devices = per_node or (count if isinstance(count, int) and count <= _NODE else None)
    return {} if devices is None else {DEVICES: str(devices)}


def _read_scripts(sets: FileSet, known: dict[str, str]) -> None:
    """Scripts that start others come before those; what one writes in itself is a file of the set. `known`: what
    scripts find where they run."""
    findings = sets.findings
    begun = 0
    services: dict[str, list[list[str]]] = {}
    while sets.scripts:
        path, text, variables = sets.scripts.pop(_first(sets.scripts))
        name = base_name(path) or path
        sources = PythonSources(sets.sources(), sets.started, sets.load, sets.source)
        others = {other: inner for other, inner in sets.texts.items() if other != name}
        setting = ScriptSetting(name, findings, {}, sets.by_name, sources=sources, scripts=others, text=text)
        known |= directives(text, setting)
        starts, exported = read_script(text, setting, known | variables)
        begun += len(starts)
        sets.words |= {base_name(word.text.rpartition("=")[2]) for start in starts for word in start.words}
        known |= exported
        findings.formats |= {other: "script" for other, _, _ in sets.scripts if base_name(other) in setting.sourced}
        sets.scripts = [row for row in sets.scripts if base_name(row[0]) not in setting.sourced]
        sets.scripts = [
            (other, inner, variables | setting.handed.get(base_name(other), {}))
            for other, inner, variables in sets.scripts
        ]
        for template in setting.templates:
            sets.drop(template)
        held = sets.size
        for inner, content in setting.written.items():
            sets.add(inner, content, name)
        # Texts that are neither configs nor scripts say nothing of a run.
        writes = sets.size > held
        before = set(findings.blocked)
        read = [(start, form) for start in starts if (form := read_start(start, setting))]
        formats = [form for _, form in read]
        _several(starts, name, before, findings)
        _several_services(path, [start for start, _ in read], services, findings)
        # A source whose command has a reader of its own says nothing more.
        sets.started |= {base_name(path) for path in sets.python} & {
            f"{base_name(str(start.name.value)).removesuffix('.py')}.py" for start in starts
        }
        sbatch = "sbatch script" if "#SBATCH" in text else ""
        if not starts and not sbatch and not writes and not _refers_from(findings, name):
            if len(sets.texts) == 1 and not begun and not sets.scripts:
                raise PlanError("files", f"{name} starts no program that is read here", WHAT_HELPS)
            formats = formats or ["script that starts nothing known here"] * bool(text)
        if sbatch and not starts and not writes and not _refers_from(findings, name):
            findings.blocked.setdefault("workload", f"{name} starts no program that is read here")
        kind = ": ".join(part for part in (sbatch, " and ".join(dict.fromkeys(formats))) if part) or "script"
        before = findings.formats.get(path)
        findings.formats[path] = (
            before if before and kind in ("script", *before.split(": ")) else (f"{before}: {kind}" if before else kind)
        )
    if len(findings.idle) == begun > 0:
        findings.blocked.setdefault("workload", findings.idle[0])


def _several_services(
    path: str, starts: list[Program], services: dict[str, list[list[str]]], findings: Findings
) -> None:
    """Services of one file that start different things are no one run, whatever their words have in common.
    `services`: the words of what each file has started so far; what says nothing differs from nothing."""
    before = services.setdefault(path, [])
    words = [[start.kind, *(word.text for word in start.words)] for start in starts if start.words]
    if before and any(row != before[0] for row in words):
        findings.blocked.setdefault(
            "workload", f"{base_name(path)} starts services that differ: give the one that is meant"
        )
    before += words


def _several(starts: list[Program], name: str, before: set[str], findings: Findings) -> None:
    """Runs that one script starts after each other, where they say different things, are no one run. `before`: the
    fields that were open without them."""
    apart = [field for field, why in findings.blocked.items() if field not in before and ": contradicts " in why]
    lines = sorted({start.name.line for start in starts if start.name.line})
    if len(lines) > 1 and apart:
        for field in apart:
            del findings.blocked[field]
        places = f"{', '.join(map(str, lines[:-1]))} and {lines[-1]}"
        why = f"{name} starts runs at lines {places} that say different things; give the lines of one"
        findings.blocked |= dict.fromkeys(("workload", *({"model"} & set(apart))), why)


def _read_python(sets: FileSet) -> None:
    """Python that no script starts; where one starts some, the rest is what that imports."""
    if sets.started:
        for path in sets.python:
            sets.findings.formats[path] = "Python that a script starts" if base_name(path) in sets.started else "Python"
        return
    for path, text in sets.python.items():
        if path in sets.imported:
            sets.findings.formats[path] = IMPORTED
            continue
        kind = read_python(base_name(path), text, sets.findings, Invocation(load=sets.load, source=sets.source))
        if kind := kind or engines.read_python(base_name(path), text, sets.findings):
            sets.findings.formats[path] = kind
        elif len(sets.texts) == 1:
            raise PlanError("files", f"{base_name(path)} trains with nothing that is read here", WHAT_HELPS)


def _refuse_unread(sets: FileSet) -> None:
    """A config that nothing knows is an error by itself, and leaves a run open that names it."""
    for path, error in sets.unread.items():
        name = base_name(path)
        if path in sets.layers:
            sets.findings.blocked.setdefault("workload", f"{name} stands on a config that is not given")
        elif name in sets.opened:
            sets.findings.formats[path] = "settings of a script"
        elif len(sets.texts) == 1 or not sets.findings.formats:
            raise error
        elif any(base_name(named) == name for named in sets.findings.refers):
            sets.findings.blocked.setdefault("workload", error.problem)
        elif over := next((each for each in sets.by_name if each != name and each in sets.texts[name]), None):
            sets.findings.blocked.setdefault("workload", f"{error.problem}, and says how {over} is run")
        else:
            sets.findings.warn(error.problem)


def _first(scripts: list[tuple[str, str, dict[str, str]]]) -> int:
    """The script that no other one names."""
    for place, (path, _, _) in enumerate(scripts):
        if not any(base_name(path) in text for other, text, _ in scripts if other != path):
            return place
    return 0


def _refers_from(findings: Findings, name: str) -> bool:
    return any(origin.startswith(f"{name}:") for origin in findings.refers.values())


def _settled(findings: Findings, arguments: Mapping[str, Any]) -> FilesReading:
    """The reading of what was found: switches that one file of several says, what follows, the framework."""
    findings.settle()
    _named_model(findings)
    if findings.comment is not None and not any(findings.has(name) for name in ("devices", "per_node", "nodes", "dp")):
        # What other files say of devices is newer than a comment.
        item, copies, _ = findings.comment
        findings.put("devices", int(item.value) // copies, item)
        if copies > 1 and not findings.has("copies"):
            findings.put("copies", copies, item)
    _switches(findings)
    usual = findings.defaults.get("workload.stage")
    stage = findings.values.get("workload.stage", usual.value if usual else None)
    if stage not in (None, "pretrain", "sft"):
        # Pairs and prompts have rows of their own in any case, which is no choice of a plan.
        findings.values.pop("workload.packing", None)
        findings.defaults.pop("workload.packing", None)
        findings.read = [row for row in findings.read if row.field != "workload.packing"]
    _framework(findings)
    _one_process(findings, arguments)
    _packed_model(findings)
    longest_rows_of(findings, stage, bool(_UNPACKED.intersection(findings.programs)))
    _shards_not_given(findings)
    _undone(findings)
    if "nodes" not in findings.values and "nodes" not in findings.blocked and "per_node" in findings.values:
        findings.default("nodes", 1, "one node where no file names more")
    result = total(findings, arguments)
    _one_device(findings, arguments, result)
    values = {name: value for name, value in findings.values.items() if name in _PLAN_FIELDS or "." in name} | result
    plan = nested({name: value for name, value in values.items() if name not in arguments})
    known = {*values, *arguments}
    _unknown_scripts(findings, known)
    assumed = [row for row in findings.defaults.values() if _is_needed(row.field, known, findings)]
    blocked = {
        name: why
        for name, why in findings.blocked.items()
        if not {name, SETTLED_BY.get(name)} & arguments.keys() and name not in result
    }
    if not plan and not findings.not_read and not blocked and not findings.refers:
        raise PlanError("files", "nothing of them could be read", WHAT_HELPS)
    return FilesReading(
        plan,
        _tidy(findings.read, arguments),
        findings.not_read,
        assumed,
        blocked,
        findings.warnings,
        findings.formats,
        findings.refers,
        [row for row in findings.either.values() if not _is_told(row.field, arguments, findings)],
        list(findings.beside),
        "" if findings.comment or "workload.seq_len" in arguments else findings.longest,
    )


def _undone(findings: Findings) -> None:
    """What programs leave undone that no file asks for: splitting the model, offloading, a fused loss."""
    if not serves(findings) and (findings.programs or findings.backend is not None):
        for name in _ONE_DEVICE:
            findings.default(name, 1, "no file splits the model this way")
    if not (
        findings.refers or {"llamafactory", "trl", "trainer", "axolotl", "torchtune"}.isdisjoint(findings.programs)
    ):
        findings.default("layout.offload", "none", "no file offloads anything")
        if not {"llamafactory", "trl", "trainer"}.isdisjoint(findings.programs):
            findings.default("workload.fused_loss", False, "no file asks for a fused loss")


def _switches(findings: Findings) -> None:
    """Of switches of activation checkpointing one that is on is enough."""
    for on, item in sorted(findings.recomputes, key=lambda row: not row[0]):
        if not findings.has("layout.recompute"):
            findings.put("layout.recompute", "full" if on else "none", item)
        elif on and findings.values.get("layout.recompute") != "full":
            findings.leave(item, "another file says what is recomputed")


def _one_process(findings: Findings, arguments: Mapping[str, Any]) -> None:
    """Devices that are more than the process of a notebook: it would have them another way than a Plan."""
    count = arguments.get("cluster.count", 1)
    if findings.alone is not None and count != 1 and not findings.has("devices"):
        why = f"{findings.alone.origin}: is one process, which splits the layers over {count} devices: give 1 device"
        findings.blocked.setdefault("layout.dp", why)


def _packed_model(findings: Findings) -> None:
    """Weights that are packed as the checkpoint's name says train as adapters over them, or not at all."""
    name, row = findings.values.get("model"), findings.defaults.get("workload.method")
    method = findings.values.get("workload.method", row.value if row else None)
    if not isinstance(name, str) or serves(findings) or method == "qlora" or findings.comment is not None:
        return
    try:
        packing = find_model(name).value.weight_format
    except PlanError:
        return
    if packing in _PACKED:
        origin = next((row.origin for row in findings.read if row.field == "model"), "the model")
        findings.blocked.setdefault(
            "workload.method", f"{origin}: names weights that are packed ({packing}), not trained"
        )


def _named_model(findings: Findings) -> None:
    """The model that an option nobody reads names, where nothing else does."""
    if findings.has("model") or "model" in findings.blocked or "model" in findings.either:
        return
    if len({item.value for item in findings.named}) == 1:
        item = findings.named[0]
        findings.not_read = [row for row in findings.not_read if row.key != item.origin]
        findings.put("model", item.value, item)


def _unknown_scripts(findings: Findings, known: set[str]) -> None:
    """A script that nobody knows may take any batch and rows: what no file says of them is open."""
    if findings.unknown and not serves(findings):
        for names in (("workload.seq_len",), ("workload.global_batch", "workload.micro_batch")):
            if not any(name in known or name in findings.defaults or name in findings.either for name in names):
                findings.blocked.setdefault(names[0], findings.unknown[0])


def _is_told(field: str, arguments: Mapping[str, Any], findings: Findings) -> bool:
    return field in arguments or findings.has(field)


_PLAN_FIELDS = ("model",)


def _is_needed(field: str, known: set[str], findings: Findings) -> bool:
    if field in known or field in findings.blocked or field in findings.values:
        return False
    if field == "accumulation":
        return "workload.global_batch" not in known
    adapters = findings.values.get("workload.method", findings.defaults.get("workload.method"))
    method = adapters if isinstance(adapters, str) else adapters.value if adapters else None
    return not field.startswith("workload.lora.") or method in ADAPTERS


def _tidy(rows: list[Read], arguments: Mapping[str, Any]) -> list[Read]:
    """Without what an argument overrides, and each row once."""
    return list(
        {
            json.dumps([row.field, str(row.value), row.origin]): row for row in rows if row.field not in arguments
        }.values()
    )


def _shards_not_given(findings: Findings) -> None:
    """Files that say what shards the states, and are named and not given."""
    if findings.nameless and "layout.zero_stage" not in findings.values:
        findings.blocked.setdefault("layout.zero_stage", findings.nameless[0])
    for path, what in findings.refers.items():
        findings.warn(f"{what} stand in {path}, which is not given")
        if ("DeepSpeed" in what or "sharding" in what) and "layout.zero_stage" not in findings.values:
            findings.blocked.setdefault("layout.zero_stage", f"{path} says it, and is not given")


def _framework(findings: Findings) -> None:
    """The framework, from the program and from what holds the shards of its states."""
    if findings.has("workload.framework") or serves(findings):
        return
    if not findings.programs:
        if findings.backend is not None:
            findings.put("workload.framework", *findings.backend)
        return
    program = next((name for name in findings.programs if name != "accelerate"), "accelerate")
    if "megatron" in findings.programs:
        return
    if findings.backend is not None and program in (
        "llamafactory",
        "trl",
        "trainer",
        "accelerate",
        "axolotl",
        "script",
    ):
        backend, item = findings.backend
        name = "axolotl" if program == "axolotl" and backend == "fsdp2" else backend
        findings.put("workload.framework", name, item)
        return
    name = _FRAMEWORKS.get(program)
    if name is None:
        return
    findings.put("workload.framework", name, Item(base_name(next(iter(findings.formats), "files")), program, program))
    if name in ("hf-trainer", "ddp", "axolotl") and "layout.zero_stage" not in findings.blocked:
        kinds = set(findings.formats.values())
        alone = kinds == {_UNSTARTED_CONFIG} and findings.comment is None
        if findings.values.get("workload.optimizer") in table("hf/fields")["whole_gradients"]:
            findings.default("layout.zero_stage", 0, "this optimizer needs whole gradients, which shards are not")
        elif (program in ("trl", "trainer") and kinds <= _UNSTARTED) or alone:
            why = (
                "no file says how the Trainer is started and its states are sharded: give accelerate's or DeepSpeed's, "
                "or layout.zero_stage (0 where every device holds all)"
            )
            findings.at_most("layout.zero_stage", 0, Item(base_name(next(iter(findings.formats))), program, None), why)
            return
        findings.default("layout.zero_stage", 0, "no file shards the states")


def _one_device(findings: Findings, arguments: Mapping[str, Any], result: dict[str, Any]) -> None:
    """On one device there is nothing to shard, whatever the program does on several."""
    count = arguments.get("cluster.count", result.get("cluster.count"))
    row = findings.defaults.get("layout.zero_stage")
    known = findings.values.get("workload.framework") in frameworks_known()
    if count == 1:
        findings.either.pop("layout.zero_stage", None)
    if count == 1 and findings.formats and set(findings.formats.values()) <= _UNSTARTED:
        findings.blocked.pop("layout.zero_stage", None)
    stages = framework(findings.values["workload.framework"]).limits.zero_stages if known else (0,)
    if count == 1 and row is not None and "layout.zero_stage" not in findings.values and 0 in stages:
        del findings.defaults["layout.zero_stage"]
        findings.default("layout.zero_stage", 0, "there is one device")
