"""A set of files read as one: scripts first, as their command lines win, then configs, then what shards the states."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from estimator.errors import PlanError
from launchers.reading import Reading, accelerate, axolotl, deepspeed, llamafactory, serving, torchtitan, torchtune, trl
from launchers.reading.documents import Item, Keys, json_keys, toml_keys, yaml_keys
from launchers.reading.findings import Findings, Read, nested
from launchers.reading.programs import read_start
from launchers.reading.starts import Setting, read_script, slurm_option
from launchers.reading.totals import serves, total

_MOST_FILES = 64
_MOST_TEXT = 1_000_000


@dataclass(frozen=True)
class Format:
    """How a config is told from others (the highest score wins) and read. `order`: configs of programs come first, what
    they refer to later."""

    name: str
    score: Callable[[Keys], int]
    read: Callable[[Keys, Findings], None]
    kinds: tuple[str, ...] = ("yaml",)
    order: int = 0


FORMATS = (
    Format("LlamaFactory YAML", llamafactory.score, llamafactory.read, ("yaml", "json")),
    Format("LlamaFactory v1 YAML", llamafactory.score_v1, llamafactory.read_v1),
    Format("Axolotl YAML", axolotl.score, axolotl.read),
    Format("TRL or transformers Trainer arguments", trl.score, trl.read, ("yaml", "json")),
    Format("torchtune YAML", torchtune.score, torchtune.read),
    Format("torchtitan TOML", torchtitan.score, torchtitan.read, ("toml",)),
    Format("vLLM YAML", serving.score, serving.read_vllm),
    Format("accelerate YAML", accelerate.score, accelerate.read, ("yaml", "json"), order=1),
    Format("DeepSpeed JSON", deepspeed.score, deepspeed.read_deepspeed, ("json", "yaml"), order=2),
)
OTHERS = ("bash or sbatch script", "command line")
# The framework of a Plan by program, where nothing shards its states.
_FRAMEWORKS = {
    "axolotl": "axolotl", "torchtune": "torchtune", "torchtitan": "torchtitan", "megatron-lm": "megatron-lm",
    "llamafactory": "hf-trainer", "trl": "hf-trainer", "trainer": "hf-trainer", "accelerate": "ddp",
}  # fmt: skip
_COMMAND = re.compile(
    r"([A-Z_][A-Z0-9_]*=\S* +)*"
    r"(srun|torchrun|accelerate|deepspeed|llamafactory-cli|axolotl|tune|trl|vllm|python[0-9.]*|exec|export|set) "
)
_ONE_DEVICE = ("layout.tp", "layout.pp", "layout.cp", "layout.ep")


def read_set(files: Mapping[str, str], given: Mapping[str, Any]) -> Reading:
    if not files:
        raise PlanError("files", "none is given", ["{name: text}"])
    if len(files) > _MOST_FILES or sum(map(len, files.values())) > _MOST_TEXT:
        raise PlanError(
            "files", "are more than a set of configs has", [f"up to {_MOST_FILES} files, {_MOST_TEXT:,} characters"]
        )
    found = Findings()
    documents: dict[str, tuple[Format, Keys]] = {}
    scripts: dict[str, str] = {}
    for path, text in files.items():
        _sort(path, text, found, documents, scripts)
    setting_documents = {_base(path): keys for path, (_, keys) in documents.items()}
    _read_scripts(scripts, found, documents, setting_documents)
    left = [row for path, row in documents.items() if _base(path) in setting_documents]
    for form, keys in sorted(left, key=lambda row: row[0].order):
        form.read(keys, found)
    for path in [path for path in found.refers if _base(path) in {_base(name) for name in documents}]:
        del found.refers[path]
    return _settled(found, given)


def _sort(
    path: str, text: str, found: Findings, documents: dict[str, tuple[Format, Keys]], scripts: dict[str, str]
) -> None:
    """Tells what a file is, by what stands in it; its name only says which reader is tried first."""
    name = _base(path) or path
    if not isinstance(text, str) or "\0" in text:
        raise PlanError("files", f"{name[:80]!r} is not a text file")
    text = text.removeprefix("\ufeff")
    if _looks_like_script(name, text):
        scripts[path] = text
        return
    errors: list[PlanError] = []
    for kind, parse in (("json", json_keys), ("toml", toml_keys), ("yaml", yaml_keys)):
        if (kind == "json") != text.lstrip().startswith("{") and kind == "json":
            continue
        if kind == "toml" and not name.endswith(".toml"):
            continue
        try:
            keys = parse(name, text)
        except PlanError as error:
            errors.append(error)
            continue
        scores = [(form.score(keys), form) for form in FORMATS if kind in form.kinds]
        best, form = max(scores, key=lambda row: row[0])
        if best > 0:
            documents[path] = (form, keys)
            found.formats[path] = form.name
            return
        errors.append(PlanError("files", f"{name} is of no format that is read here", [*names()]))
        break
    if name.endswith((".yaml", ".yml", ".json", ".toml")):
        raise errors[-1]
    scripts[path] = text


def names() -> list[str]:
    return [*(form.name for form in FORMATS), *OTHERS]


def _looks_like_script(name: str, text: str) -> bool:
    if name.endswith((".sh", ".sbatch", ".slurm", ".bash")) or text.startswith("#!"):
        return True
    first = next((line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")), "")
    return bool(_COMMAND.match(first))


def _read_scripts(
    scripts: Mapping[str, str],
    found: Findings,
    documents: dict[str, tuple[Format, Keys]],
    by_name: dict[str, Keys],
) -> None:
    """Scripts that start others' files too: what one writes in itself is a file of the set."""
    for path, text in scripts.items():
        setting = Setting(_base(path) or path, found, {}, by_name)
        known = _directives(text, setting)
        starts = read_script(text, setting, known)
        formats = [form for start in starts if (form := read_start(start, setting))]
        sbatch = "sbatch script" if "#SBATCH" in text else ""
        if not starts and not sbatch and not _starts_other_script(text, scripts):
            raise PlanError("files", f"{_base(path)} starts no program that is read here", names())
        found.formats[path] = (
            ": ".join(part for part in (sbatch, " and ".join(dict.fromkeys(formats))) if part) or "script"
        )


def _starts_other_script(text: str, scripts: Mapping[str, str]) -> bool:
    return any(_base(path) in text for path in scripts)


def _directives(text: str, setting: Setting) -> dict[str, str]:
    """#SBATCH lines up to the first command, and the variables that Slurm sets from them."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            break
        if match := re.match(r"#SBATCH\s+(?:--([a-z-]+)[=\s]+|-([NG])\s*)([^#\s]+)", stripped):
            name = match[1] or {"N": "nodes", "G": "gpus"}[match[2]]
            slurm_option(name, match[3].strip("\"'"), number, setting)
    values = setting.found.values
    known = {}
    if "nodes" in values:
        known |= {name: str(values["nodes"]) for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")}
    if "per_node" in values:
        known |= {name: str(values["per_node"]) for name in ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE")}
    return known


def _settled(found: Findings, given: Mapping[str, Any]) -> Reading:
    """The reading of what was found: switches that one file of several says, what follows, the framework."""
    found.settle()
    for on, item in sorted(found.recomputes, key=lambda row: not row[0]):
        if not found.has("layout.recompute"):
            found.put("layout.recompute", "full" if on else "none", item)
        elif on and found.values.get("layout.recompute") != "full":
            found.leave(item, "another file says what is recomputed")
    _framework(found)
    for path, what in found.refers.items():
        found.warn(f"{what} stand in {path}, which is not given")
        if "DeepSpeed" in what or "sharding" in what:
            found.blocked.setdefault("layout.zero_stage", f"{path} says it, and is not given") if (
                "layout.zero_stage" not in found.values
            ) else None
    if not {"llamafactory", "trl", "trainer", "axolotl", "torchtune"}.isdisjoint(found.programs):
        for name in _ONE_DEVICE:
            found.default(name, 1, "no file splits the model this way")
        if not found.refers:
            found.default("layout.offload", "none", "no file offloads anything")
    if "nodes" not in found.values and "nodes" not in found.blocked and "per_node" in found.values:
        found.default("nodes", 1, "one node where no file names more")
    result = total(found, given)
    _one_device(found, given, result)
    values = {name: value for name, value in found.values.items() if name in _PLAN_FIELDS or "." in name} | result
    plan = nested({name: value for name, value in values.items() if name not in given})
    known = {*values, *given}
    assumed = [row for row in found.defaults.values() if _is_needed(row.field, known, found)]
    blocked = {name: why for name, why in found.blocked.items() if name not in given and name not in result}
    if not plan and not found.not_read and not blocked:
        raise PlanError("files", "nothing of them could be read", names())
    return Reading(
        plan, _tidy(found.read, given), found.not_read, assumed, blocked, found.warnings, found.formats, found.refers
    )


_PLAN_FIELDS = ("model",)


def _is_needed(field: str, known: set[str], found: Findings) -> bool:
    if field in known or field in found.blocked or field in found.values:
        return False
    if field == "accumulation":
        return "workload.global_batch" not in known
    adapters = found.values.get("workload.method", found.defaults.get("workload.method"))
    method = adapters if isinstance(adapters, str) else adapters.value if adapters else None
    return not field.startswith("workload.lora.") or method in ("lora", "qlora", "dora", "pissa")


def _tidy(rows: list[Read], given: Mapping[str, Any]) -> list[Read]:
    """Without what an argument overrides, and each row once."""
    return list(
        {json.dumps([row.field, str(row.value), row.origin]): row for row in rows if row.field not in given}.values()
    )


def _framework(found: Findings) -> None:
    """The framework, from the program and from what holds the shards of its states."""
    if found.has("workload.framework") or serves(found) or not found.programs:
        return
    program = next((name for name in found.programs if name != "accelerate"), "accelerate")
    if "megatron" in found.programs:
        return
    if found.backend is not None and program in ("llamafactory", "trl", "trainer", "accelerate", "axolotl", "script"):
        backend, item = found.backend
        name = "axolotl" if program == "axolotl" and backend == "fsdp2" else backend
        found.put("workload.framework", name, item)
        return
    name = _FRAMEWORKS.get(program)
    if name is None:
        return
    found.put("workload.framework", name, Item(_base(next(iter(found.formats), "files")), program, program))
    if name in ("hf-trainer", "ddp", "axolotl") and "layout.zero_stage" not in found.blocked:
        found.default("layout.zero_stage", 0, "no file shards the states")


def _one_device(found: Findings, given: Mapping[str, Any], result: dict[str, Any]) -> None:
    """On one device there is nothing to shard, whatever the program does on several."""
    count = given.get("cluster.count", result.get("cluster.count"))
    row = found.defaults.get("layout.zero_stage")
    if count == 1 and row is not None and "layout.zero_stage" not in found.values:
        del found.defaults["layout.zero_stage"]
        found.default("layout.zero_stage", 0, "there is one device")


def _base(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
