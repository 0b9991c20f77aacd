"""llama.cpp's commands. Words: fields.yaml."""

from __future__ import annotations

import re

from estimator.errors import PlanError
from estimator.plan.schema import Inference
from knowledge.models.catalogue import SCORE_OF_A_TUNE, find_model
from knowledge.models.naming import model_form, own_mix
from launchers.engines.reading import begin, settings_of
from launchers.reading.commands import Console
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, inverted, is_set
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, plain
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

# llama.cpp's short options (common/arg.cpp).
_SHORT = {"-m": "model", "-hf": "hf-repo", "-hfr": "hf-repo", "-c": "ctx-size", "-np": "parallel",
               "-ctk": "cache-type-k", "-ctv": "cache-type-v", "-ngl": "n-gpu-layers", "-sm": "split-mode",
               "-b": "batch-size", "-ub": "ubatch-size", "-ts": "tensor-split", "-fa": "flash-attn", "-t": "threads",
               "-dev": "device", "-ncmoe": "n-cpu-moe"}  # fmt: skip
_FLAGS = ("no_kv_unified", "kv_unified", "jinja", "no_mmap", "mlock", "cont_batching", "metrics", "no_warmup",
               "embedding", "verbose", "no_webui")  # fmt: skip
_OF_VARIABLES = {"n_parallel": "parallel", "batch": "batch_size", "ubatch": "ubatch_size"}
_GGUF = re.compile(r"(?:^|[-._:])((?:i?q[0-9]\w*|bf16|f16|f32|mxfp4)(?:_k)?(?:_[smxl]+)?)(?:[-.]|$)", re.IGNORECASE)


def read(keys: Keys, findings: Findings, load: bool = False) -> None:
    """llama-server; `load`: llama-batched-bench. Layers are split over the devices that there are."""
    if load:
        for name, field in (("npp", "input_len"), ("ntg", "output_len"), ("npl", "concurrency")):
            item = keys.take(name)
            if item is not None and isinstance(item.value, int):
                findings.whole(f"workload.{field}", item)
            elif item is not None:
                findings.leave(item, "several loads, one after the other")
        leave_rest(keys, findings, "engines")
        return
    begin(keys, findings, "llamacpp")
    named, file = keys.take("model") or keys.take("hf_repo"), keys.take("hf_file")
    if named is not None:
        gguf(named, file, findings)
    context, slots = keys.take("ctx_size"), keys.take("parallel")
    number = findings.whole("workload.max_batch", slots) if slots is not None and slots.value != -1 else None
    length = as_number(context.value) if context is not None else None
    whole = keys.take("kv_unified")
    keys.take("no_kv_unified")
    if context is not None and length and not is_set(whole):
        findings.put("workload.max_context", int(length) // (number or 1), context)
    elif context is not None and length == 0:
        findings.leave(context, "as long as the model was trained for")
    elif context is not None and length:
        findings.put("workload.max_context", int(length), context)
    _cache(keys, findings)
    split, device = keys.take("split_mode"), keys.take("device")
    device_layers(keys.take("n_gpu_layers"), findings)
    experts = keys.take("n_cpu_moe")
    if experts is not None:
        findings.whole("workload.host_experts", experts)
    if split is not None and split.value == "row":
        findings.block("layout.tp", split, "splits rows of matrices, which no Plan of this engine has")
    elif split is not None and split.value == "none":
        findings.put("layout.pp", 1, split)
    if device is not None and device.value == "none":
        findings.leave(device, "runs on the host's processors")
    findings.default("layout.tp", 1, "layers are split, not matrices")
    findings.default("layout.dp", 1, "one server")
    step, batch = keys.take("ubatch_size"), keys.take("batch_size")
    findings.whole("workload.max_batched_tokens", step or batch)
    findings.whole("workload.speculative_tokens", keys.take("spec_draft_n_max") or keys.take("draft_max"))
    leave_rest(keys, findings, "engines")


def _cache(keys: Keys, findings: Findings) -> None:
    words = table("engines/llamacpp/fields")
    values, cached = keys.take("cache_type_v"), keys.take("cache_type_k")
    if values is not None and cached is None:
        findings.leave(values, "quantises the values only, and one format is modelled for both")
    elif values is not None and cached is not None and values.value != cached.value:
        findings.leave(values, "is another format than that of the keys, which is taken for both")
    if cached is not None and cached.value in words["smaller_kv"]:
        findings.at_most("workload.kv_dtype", "int8", cached, f"{cached.value} takes less than the 8 bits of a Plan")
    else:
        findings.word("workload.kv_dtype", cached, inverted(words["kv"]))


def device_layers(layers: Item | None, findings: Findings) -> None:
    """Layers on devices, of which the output counts as one (llama-model.cpp, i_gpu_start)."""
    number = None if layers is None else as_number(layers.value)
    if layers is not None and number is not None and 0 <= number < 99:
        findings.put("workload.device_layers", max(1, round(number) - 1), layers)


def gguf(item: Item, file: Item | None, findings: Findings) -> None:
    """Model and format from the name of the file, or from the repository on the hub."""
    text = str(item.value)
    name = re.split(r"[/\\]", text)[-1]
    match = _GGUF.search(str(file.value) if file is not None else name)
    kinds = {"f16": "fp16", "f32": "fp32"}
    formats = Inference.model_fields["weight_dtype"].annotation
    kind = kinds.get(match[1].lower(), match[1].lower()) if match else ""
    if match and (mixed := own_mix(name)) and len(held := model_form(name).formats) == 1:
        (kind,) = held
        findings.warn(f"{item.origin}: {mixed}")
    if kind in getattr(formats, "__args__", ()):
        findings.put("workload.weight_dtype", kind, item)
    elif match:
        findings.block("workload.weight_dtype", item, f"{match[1]} is no format of a Plan")
    else:
        findings.block("workload.weight_dtype", item, "the name does not say how the weights are packed")
    stem = re.sub(r"[-.]gguf$|-\d{5}-of-\d{5}", "", name.split(":")[0], flags=re.IGNORECASE)
    stem = _GGUF.sub("", stem).rstrip("-._")
    if "SET_ME" in text:
        findings.leave(item, "a placeholder, not a model")
        return
    known = _checkpoint(stem)
    if known is None:
        findings.block("model", item, "the name is that of no model in the catalogue")
        return
    model, is_tune = known
    if is_tune:
        findings.warn(f"{item.origin}: {stem} is taken to have the shape of {model}, as its name begins")
    findings.put("model", model, item)


def _checkpoint(name: str) -> tuple[str, bool] | None:
    """The catalogue's model that a name is of, or begins with where words without a number follow (what somebody
    trained on calls its own: Qwen3.6-27B-heretic), and whether it is such a one."""
    words = re.split(r"([-_. ])", name)
    for end in range(len(words), 0, -2):
        left = "".join(words[end:])
        if re.search(r"\d|moe|prun", left, re.IGNORECASE) or end < 3:
            return None
        try:
            match = find_model("".join(words[:end]))
        except PlanError:
            continue
        return match.value.id, bool(left.strip("-_. ")) or match.score <= SCORE_OF_A_TUNE
    return None


def _console(kind: str) -> Console:
    def start(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
        return [Program(kind, words[1:], Item(setting.file, "command", words[0].text, words[0].line), environment)]

    return start


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words, _FLAGS, _SHORT)
    for name, text in settings_of(start, setting).items():
        option = name.removeprefix("LLAMA_ARG_").lower()
        option = _OF_VARIABLES.get(option, option)
        if name.startswith("LLAMA_ARG_") and option not in keys:
            # An option wins over its variable (common/arg.cpp, set_env).
            keys.put(option, plain(text))
    read(keys, setting.findings, load=start.kind == "llama_load")
    return "llama.cpp command"


COMMANDS = {"llama": read_command, "llama_load": read_command}
CONSOLES = {"llama-server": _console("llama"), "llama-batched-bench": _console("llama_load")}
