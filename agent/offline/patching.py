"""Lays a turn's edits over the session's plan. The plan holds only what the person gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.offline.beside import MEANT, Patch, combined, laid_in_nodes
from agent.offline.catalogue import Catalogue
from agent.offline.form import BESIDE, Edit
from agent.offline.refusing import refuse
from estimator.errors import PlanError
from estimator.plan.schema import Inference, Training, merge
from knowledge import engines, offers
from knowledge.figures import length_in_tokens
from knowledge.fitted.training import framework
from knowledge.machines.catalogue import find_accelerator
from knowledge.machines.without_training import no_training
from knowledge.models.catalogue import architecture
from planner.partial import checked, get, is_serving
from planner.requests import ALL_PATHS, ONLY_SERVING, ONLY_TRAINING, SERVING_PATHS

# Beside quantities that come in whole numbers.
_WHOLE = ("batch", "accumulation", "nodes", "recompute_block", "prompt_len", "replicas", "length")
# What a field of training is called of serving, where words may mean either.
_OF_SERVING = {"seq_len": "length", "precision": "weight_dtype", "global_batch": "concurrency",
               "micro_batch": "concurrency", "response_len": "output_len", "prompt_len": "input_len",
               "batch_tokens": "max_batched_tokens"}  # fmt: skip
_OF_TRAINING = {"input_len": "seq_len", "max_context": "seq_len", "output_len": "response_len",
                "weight_dtype": "precision", "concurrency": "global_batch", "total_tokens": "dataset_tokens",
                "replicas": "dp"}  # fmt: skip
# Quantities that are of one kind of work alone.
_ELSEWHERE = (("token_rate", "prefix_tokens", "load"), ("accumulation", "recompute_block"))
_CHANGES = ("set", "times", "plus")
_ALL_AT_ONCE = ("offline", "single-stream", "static-batch")
_LOADS = {"workload.concurrency", "workload.request_rate"}
_FOUR_BITS, _FILE_OF_FOUR_BITS = "int4", "q4_k_m"
_ENGINE_FORMATS = {"exllamav2": "exl2", "llamacpp": "gguf", "ollama": "gguf"}


@dataclass(frozen=True)
class Before:
    """What an edit may be relative to: the last complete plan that a tool gave, nodes that were said before their size
    was known, values that were refused before by flat name, and fields that are compared, which stay open."""

    last: Mapping[str, Any] = field(default_factory=dict)
    nodes: int | None = None
    refused: Mapping[str, list[Any]] = field(default_factory=dict)
    compared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Patched:
    """The plan after the edits, and the refused values by flat name that are still so."""

    patch: Patch
    refused: dict[str, list[Any]]

    @property
    def plan(self) -> dict[str, Any]:
        return {name: value for name, value in self.patch.plan.items() if value != {}}


def patched(plan: Mapping[str, Any], edits: Sequence[Edit], text: str, catalogue: Catalogue, before: Before) -> Patched:
    """The plan after `edits`, said in `text`. What the Plan would refuse becomes a Need and changes nothing."""
    serving = is_serving(plan)
    edits = [replace(edit, field=_name(edit.field, serving)) for edit in _passes(plan, edits, text)]
    patch = Patch(merge(plan, {}), catalogue)
    edits = [edit for edit in edits if _possible(patch, edit, text)]
    patch.paths = {_path(edit.field) for edit in edits if edit.op in _CHANGES}
    _free_what_depends(patch, edits)
    plain = [edit for edit in edits if edit.field not in BESIDE]
    for edit in (*_of(plain, "drop"), *_of(plain, "set")):
        _set(patch, edit)
    for edit in (*_of(edits, "times"), *_of(edits, "plus")):
        _relative(patch, edit, before.last, text)
    if serving:
        _loads_agree(patch)
        _bits_of_files(patch)
    for edit in edits:
        if edit.field in BESIDE and edit.op in ("set", "drop"):
            _beside(patch, edit, text)
    if before.nodes and not {"nodes", "cluster.count"} & patch.paths:
        laid_in_nodes(patch, before.nodes, f"{before.nodes} nodes")
    if not serving:
        _offloaded_together(patch)
        _length_of_samples(patch)
        _method_of_adapters(patch, before.compared)
    taken = {edit.field: edit.value for edit in edits if edit.op == "set"}
    kept = {name: [value for value in values if taken.get(name) != value] for name, values in before.refused.items()}
    for edit in _of(edits, "refuse"):
        before_it = kept.setdefault(edit.field, [])
        before_it += [] if edit.value in before_it else [edit.value]
    refused = {name: values for name, values in kept.items() if values}
    refuse(patch, refused, _of(edits, "refuse"))
    return Patched(patch, refused)


def _passes(plan: Mapping[str, Any], edits: Sequence[Edit], text: str) -> list[Edit]:
    """The edits with '2 ep' of a model without experts as passes over the data; 'ep2' is none."""
    model = next((edit.value for edit in edits if edit.field == "model" and edit.op == "set"), get(plan, "model"))
    passes = [edit for edit in edits if edit.field == "ep" and edit.op == "set" and _is_counted(text, edit)]
    if not passes or model is None or is_serving(plan):
        return list(edits)
    try:
        moe = architecture(model).is_moe
    except PlanError:
        moe = True
    return list(edits) if moe else [replace(edit, field="epochs") if edit in passes else edit for edit in edits]


def _is_counted(text: str, edit: Edit) -> bool:
    """Whether a number stands before the name of its field."""
    start = edit.span[0]
    return text[start : start + 1].isdigit() and not text[:start].rstrip(" =:").lower().endswith(edit.field)


def said_words(edit: Edit, text: str) -> str:
    """The words of an edit; what it says where they were concluded."""
    start, end = edit.span
    return repr(" ".join(text[start:end].split())) if end > start else f"{edit.field.replace('_', ' ')} {edit.value}"


def _of(edits: Sequence[Edit], operator: str) -> list[Edit]:
    return [edit for edit in edits if edit.op == operator]


def _path(name: str) -> str:
    return ALL_PATHS.get(name, name)


def _name(name: str, serving: bool) -> str:
    """The field that is meant in a plan of this kind."""
    foreign = name in (ONLY_TRAINING if serving else ONLY_SERVING) or name in BESIDE
    return (_OF_SERVING if serving else _OF_TRAINING).get(name, name) if foreign else name


def _possible(patch: Patch, edit: Edit, text: str) -> bool:
    """Whether the Plan takes what is set; else it is asked, or said where it is of the other kind of work."""
    name, value, serving = edit.field, edit.value, is_serving(patch.plan)
    elsewhere = name in _ELSEWHERE[serving] or (name in MEANT and not _meanings(patch.plan, name))
    if elsewhere or name in (ONLY_TRAINING if serving else ONLY_SERVING):
        patch.notes.append(f"{said_words(edit, text)} is of {'training' if serving else 'serving'}, so it is not used")
        return False
    if edit.op != "set":
        return True
    if name not in BESIDE:
        try:
            checked(_path(name), value, serving)
        except PlanError as error:
            valid = f" ({', '.join(error.valid)})" if error.valid else ""
            patch.ask(_path(name), f"{name.replace('_', ' ')} {error.problem}{valid}: what should it be?")
            return False
    elif isinstance(value, int | float) and not (value > 0 and (name not in _WHOLE or value == int(value))):
        whole = "a whole number above 0" if name in _WHOLE else "above 0"
        patch.ask(_path(MEANT[name][0]), f"{said_words(edit, text)} must be {whole}: how many?")
        return False
    return True


def _set(patch: Patch, edit: Edit) -> None:
    path = _path(edit.field)
    patch.put({path: None if edit.op == "drop" else checked(path, edit.value, is_serving(patch.plan))})
    patch.recent = path


def _beside(patch: Patch, edit: Edit, text: str) -> None:
    if edit.op == "set":
        combined(patch, edit.field, edit.value, said_words(edit, text))
        return
    names = [*MEANT[edit.field], *(["per_node"] if edit.field == "nodes" else [])]
    patch.put({ALL_PATHS[name]: None for name in names if get(patch.plan, ALL_PATHS[name]) is not None})


def _relative(patch: Patch, edit: Edit, last: Mapping[str, Any], text: str) -> None:
    """`times` and `plus` of what the plan has, else of what the last answer took for it, else of the default."""
    path = ALL_PATHS[_meant(patch.plan, edit.field)]
    before = get(patch.plan, path)
    if before is None and get(last, "workload.kind") == (get(patch.plan, "workload.kind") or "training"):
        before = get(last, path)
    before = _default(path, is_serving(patch.plan)) if before is None else before
    if not isinstance(before, int | float) or isinstance(before, bool):
        patch.ask(path, f"{said_words(edit, text)} of how many?")
        return
    value = before * edit.value if edit.op == "times" else before + edit.value * _unit(patch, edit.field)
    # 0.1 x 30 is 3, and 0.2 x 3 is 0.6, whatever binary fractions make of it.
    value = round(value) if abs(value - round(value)) <= 1e-9 * max(abs(value), 1) else float(f"{value:.12g}")
    try:
        patch.put({path: checked(path, value, is_serving(patch.plan))})
    except PlanError:
        patch.ask(path, f"{said_words(edit, text)} of {before:,} would be {value:,.6g}: how many should it be?")


def _meant(plan: Mapping[str, Any], name: str) -> str:
    """The field that a quantity is about: of those it may stand for the one that the plan has."""
    names = _meanings(plan, name)
    return next((each for each in names if get(plan, ALL_PATHS[each]) is not None), names[0])


def _meanings(plan: Mapping[str, Any], name: str) -> list[str]:
    """The fields of the plan's kind of work that a quantity may stand for."""
    return [each for each in MEANT.get(name, (name,)) if each in SERVING_PATHS or not is_serving(plan)]


def _unit(patch: Patch, name: str) -> int:
    """How many of the field one more of the quantity is: of a node its devices, of a replica those of one."""
    if name == "nodes":
        device = get(patch.plan, "cluster.accelerator")
        return get(patch.plan, "cluster.per_node") or (patch.catalogue.per_node(str(device)) if device else 1)
    sizes = [get(patch.plan, f"layout.{size}") or 1 for size in ("tp", "pp", "dp")] if name == "replicas" else []
    return sizes[0] * sizes[1] * sizes[2] if sizes else 1


def _default(path: str, serving: bool) -> Any:
    room, _, name = path.partition(".")
    fields = (Inference if serving else Training).model_fields
    return fields[name].default if room == "workload" and name in fields else None


def _free_what_depends(patch: Patch, edits: Sequence[Edit]) -> None:
    """A new device comes with its own node size; a new number of devices with its own data parallel size."""
    taken = {edit.field: edit.value for edit in edits if edit.op == "set"}
    device, number = taken.get("accelerator"), taken.get("count")
    if device and device != get(patch.plan, "cluster.accelerator"):
        usable = get(patch.plan, "overrides.usable_gib")
        if usable and "overrides.usable_gib" not in patch.paths:
            patch.notes.append(f"{usable:g} GiB usable were said of the device before, so they are set aside")
        paths = ("cluster.per_node", "cluster.interconnect", "overrides.usable_gib", "overrides.scaleup_gb_per_s")
        patch.plan = merge(patch.plan, {path: None for path in paths if path not in patch.paths})
        _free_what_runs_elsewhere(patch, str(device))
    each = get(patch.plan, "cluster.per_node")
    if isinstance(number, int) and each and number < each and "cluster.per_node" not in patch.paths:
        # Fewer than a node of them: the node size was that of more.
        patch.plan = merge(patch.plan, {"cluster.per_node": None})
    counted = patch.paths & {"cluster.count", "nodes", "replicas"}
    if counted and "layout.dp" not in patch.paths and (dp := get(patch.plan, "layout.dp")):
        patch.plan = merge(patch.plan, {"layout.dp": None})
        patch.notes.append(f"dp={dp} no longer holds for the new number of devices, so it is chosen again")


def _free_what_runs_elsewhere(patch: Patch, device: str) -> None:
    """A framework or engine that was named before, and does not run on the new device, is chosen again."""
    kind = "engine" if is_serving(patch.plan) else "framework"
    path, name = f"workload.{kind}", get(patch.plan, f"workload.{kind}")
    if name is None or path in patch.paths:
        return
    accelerator = find_accelerator(device).value
    if kind == "engine":
        runs = engines.runs_on(engines.engine(name, None, accelerator), accelerator)
    else:
        runs = offers.runs_on(name, accelerator) or no_training(accelerator) is not None
    if not runs:
        patch.plan = merge(patch.plan, {path: None})
        patch.notes.append(f"{name} does not run on {accelerator.name}, so the {kind} is chosen again")


def _loads_agree(patch: Patch) -> None:
    """Clients and a rate stand for each other, and a scenario without clients for both."""
    workload, paths = patch.plan.get("workload") or {}, patch.paths
    changes: dict[str, Any] = {}
    loads = (paths & _LOADS) | ({"workload.request_rate"} if "token_rate" in paths else set())
    if len(loads) == 1:
        changes |= dict.fromkeys(_LOADS - loads)
    scenario = workload.get("scenario")
    named = "workload.scenario" in paths
    if loads and scenario in _ALL_AT_ONCE and not named:
        changes["workload.scenario"] = None
        patch.notes.append(f"scenario {scenario} is left, since clients come at their own time")
    if named and scenario in _ALL_AT_ONCE and not loads:
        changes |= dict.fromkeys(_LOADS)
    loaded = loads or any(workload.get(name) for name in ("concurrency", "request_rate"))
    if paths & {"workload.requests", "total_tokens"} and not (named or loaded or scenario == "offline"):
        changes["workload.scenario"] = "offline"
        patch.notes.append("all of these requests taken as sent at once (offline)")
    if "workload.weight_dtype" in paths and "workload.weight_bits" not in paths:
        changes["workload.weight_bits"] = None
    kind = _ENGINE_FORMATS.get(str(workload.get("engine")))
    if "workload.weight_bits" in paths and kind and workload.get("weight_dtype") is None:
        changes["workload.weight_dtype"] = kind
    if "workload.engine" in paths and "workload.software_version" not in paths:
        changes["workload.software_version"] = None
    patch.plan = merge(patch.plan, changes)


def _bits_of_files(patch: Patch) -> None:
    """Weights in four bits as those of llama.cpp's files, where no server runs on the device."""
    device = get(patch.plan, "cluster.accelerator")
    named = get(patch.plan, "workload.engine") is not None or get(patch.plan, "workload.weight_dtype") != _FOUR_BITS
    if named or not isinstance(device, str) or not {"workload.weight_dtype", "cluster.accelerator"} & patch.paths:
        return
    accelerator = find_accelerator(device).value
    if not any(engines.engine(name, None, accelerator).weight_formats for name in engines.SERVERS):
        patch.plan = merge(patch.plan, {"workload.weight_dtype": _FILE_OF_FOUR_BITS})
        patch.notes.append(f"weights in 4 bits taken as {_FILE_OF_FOUR_BITS}, the usual file of llama.cpp")


def _offloaded_together(patch: Patch) -> None:
    """'CPU offload' of a framework that moves parameters, gradients and states together as that."""
    name = get(patch.plan, "workload.framework")
    if get(patch.plan, "layout.offload") != "optimizer" or name in (None, "auto"):
        return
    offered = framework(str(name)).limits.offloads
    if "optimizer" not in offered and "params" in offered:
        note = f"{name} moves parameters, gradients and optimizer states to the host together"
        patch.put({"layout.offload": "params"}, note)


def _length_of_samples(patch: Patch) -> None:
    """'8k tokens per sample' without a number of samples says how long the sequences are."""
    workload = patch.plan.get("workload") or {}
    if "workload.sample_tokens" not in patch.paths or workload.get("dataset_samples") or workload.get("seq_len"):
        return
    if length := workload.get("sample_tokens"):
        thousands, rest = divmod(round(length), 1000)
        whole = round(length) if rest else round(length_in_tokens(thousands, "k"))
        note = f"samples of {length:,.0f} tokens, without a number of them, read as sequences of {whole:,}"
        patch.put({"workload.sample_tokens": None, "workload.seq_len": whole}, note)


def _method_of_adapters(patch: Patch, compared: frozenset[str]) -> None:
    """What is said of adapters says that there are some."""
    paths, method = patch.paths | compared, get(patch.plan, "workload.method")
    if "workload.lora.quantisation" in paths and method in (None, "full", "lora"):
        patch.plan = merge(patch.plan, {"workload.method": "qlora"})
        return
    adapters = any(path.startswith("workload.lora.") for path in paths) and "workload.method" not in compared
    if adapters and (method is None or (method == "full" and "workload.method" not in patch.paths)):
        patch.plan = merge(patch.plan, {"workload.method": "lora"})
