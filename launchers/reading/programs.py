"""The programs that commands start: each one's arguments given to its reader, or put over the config that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from launchers.engines import commands as serving
from launchers.engines import read as engines
from launchers.hf import read as hf
from launchers.litgpt import read as litgpt
from launchers.llamafactory import read as llamafactory
from launchers.maxtext import read as maxtext
from launchers.megatron import read as megatron
from launchers.ms_swift import read as swift
from launchers.nemo import read as nemo
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import is_certain
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides
from launchers.shell.scripts import UNKNOWN, Word
from launchers.shell.setting import Setting, Start
from launchers.tables import table
from launchers.torchrun import read as plan_arguments
from launchers.torchtitan import read as torchtitan
from launchers.torchtune import read as tune
from launchers.trl import read as trl

_CONFIGS = (".yaml", ".yml", ".json")
_WHERE = "some arguments are known only where it runs"


def read_start(start: Start, setting: Setting) -> str | None:
    """Reads a program's own arguments, or puts them over the config that they name; the format, None where nothing of
    it is read."""
    found = setting.found
    if _has_unknown(start):
        found.warn(f"{start.name.origin}: {_WHERE}")
        found.blocked.setdefault("workload", f"{start.name.origin}: {_WHERE}")
    return _READERS.get(start.kind, _unknown)(start, setting)


def _merged(
    start: Start,
    setting: Setting,
    flags: Collection[str] = (),
    short: dict[str, str] | None = None,
    config: Sequence[str] = ("config",),
    published: Callable[[str, Item], Keys | None] = lambda _file, _name: None,
) -> tuple[Keys, list[Word], Item | None]:
    """The arguments over the config that one of them names (a file that is given, or a `published` one), the words that
    are none, and what names the config where it is neither."""
    keys, rest = options(setting.file, start.words, flags, short)
    named = next((item for name in config if (item := keys.take(name)) is not None), None)
    if named is None:
        return keys, rest, None
    if isinstance(named.value, list):
        # --config takes one word; those after it are overrides.
        rest = [*(Word(str(value), named.line or 0) for value in named.value[1:]), *rest]
        named = replace(named, value=named.value[0])
    given = _base(str(named.value)) in setting.documents
    document = (None if given else published(setting.file, named)) or _document(str(named.value), named, setting)
    if document is None:
        return keys, rest, named
    for item in keys.items.values():
        document.put(item.key, item.value, item.line)
    if given:
        setting.documents.pop(_base(str(named.value)))
    return document, rest, None


def _llamafactory(start: Start, setting: Setting) -> str | None:
    config = next((word for word in start.words if word.text.endswith(_CONFIGS)), None)
    if config is not None:
        _over(config, start, setting)
        return None
    keys, _ = options(setting.file, start.words, ("do_train", "bf16", "fp16", "pure_bf16"))
    llamafactory.read(keys, setting.found)
    return "LlamaFactory arguments"


def _axolotl(start: Start, setting: Setting) -> None:
    config = next((word for word in start.words if word.text.endswith(_CONFIGS)), None)
    if config is not None:
        _over(config, start, setting)


def _over(config: Word, start: Start, setting: Setting) -> None:
    """Puts key=value words and options over the config that a command names, which is read later."""
    item = Item(setting.file, "command", config.text, config.line)
    document = _document(config.text, item, setting)
    if document is None:
        return
    keys, _ = options(setting.file, overrides(document, [word for word in start.words if word is not config]))
    for given in keys.items.values():
        if given.key in document or start.kind == "llamafactory":
            document.put(given.key, given.value, given.line)


def _trl(start: Start, setting: Setting) -> str:
    keys, rest, _ = _merged(start, setting)
    overrides(keys, rest)
    trl.read(keys, setting.found, start.name)
    return "TRL arguments"


def _torchtune(start: Start, setting: Setting) -> str | None:
    keys, rest, missing = _merged(start, setting, published=tune.published)
    if missing is not None or not keys.items:
        setting.found.warn(
            f"{start.name.origin}: torchtune's own config {missing.value if missing else ''} is not given"
        )
        return None
    overrides(keys, rest)
    tune.read(keys, setting.found, start.name)
    return "torchtune command"


def _vllm(start: Start, setting: Setting) -> str | None:
    flags = ("enable_expert_parallel", "enforce_eager", "trust_remote_code", "enable_prefix_caching", "headless",
             "enable_chunked_prefill", "no_enable_chunked_prefill", "enable_auto_tool_choice", "ep")  # fmt: skip
    keys, rest, missing = _merged(start, setting, flags, table("reading/serving")["short"])
    model = _first(rest, setting) if keys.file == setting.file else None
    if missing is not None and model is None and "model" not in keys:
        return None
    serving.read_vllm(keys, setting.found, model)
    return "vLLM command"


def _sglang(start: Start, setting: Setting) -> str:
    flags = ("trust_remote_code", "enable_dp_attention", "enable_mixed_chunk", "disable_cuda_graph")
    keys, _ = options(setting.file, start.words, flags, {"-tp": "tp", "-dp": "dp"})
    serving.read_sglang(keys, setting.found)
    return "SGLang command"


def _trtllm(start: Start, setting: Setting) -> str:
    names = ("extra_llm_api_options", "config")
    keys, rest, _ = _merged(start, setting, ("trust_remote_code",), config=names)
    engines.read_trtllm(keys, setting.found, _first(rest, setting))
    return "TensorRT-LLM command"


def _llama(start: Start, setting: Setting) -> str:
    keys, _ = options(setting.file, start.words, engines.LLAMA_FLAGS, engines.LLAMA_SHORT)
    engines.read_llama(keys, setting.found, load=start.kind == "llama_load")
    return "llama.cpp command"


def _mlperf(start: Start, setting: Setting) -> str:
    keys, _ = options(setting.file, start.words, ("vllm",))
    engines.read_mlperf(keys, setting.found)
    return "MLPerf Inference reference"


def _load(start: Start, setting: Setting) -> str:
    keys, _ = options(setting.file, start.words)
    serving.read_load(keys, setting.found)
    return "load of a benchmark"


def _torchtitan(start: Start, setting: Setting) -> str | None:
    variants = [word.text for word in start.words if re.fullmatch(r"[a-z_]+:[a-z_]+", word.text)]
    start.words = [word for word in start.words if word.text not in variants]
    keys, _, missing = _merged(start, setting, config=("job.config_file",))
    if missing is not None:
        return None
    torchtitan.read(keys, setting.found, variants)
    return "torchtitan command line"


def _megatron(start: Start, setting: Setting) -> str:
    flags = ("bf16", "fp16", "swiglu", "use_distributed_optimizer", "sequence_parallel", "sft", "use_mcore_models",
             "group_query_attention", "untie_embeddings_and_output_weights", "disable_bias_linear",
             "use_flash_attn",
             "recompute_activations", "use_megatron_fsdp", "optimizer_cpu_offload", "cross_entropy_loss_fusion",
             "overlap_grad_reduce", "overlap_param_gather", "mock_data")  # fmt: skip
    found = setting.found
    keys, rest = options(setting.file, start.words, flags)
    if any(UNKNOWN in word.text for word in rest):
        found.blocked.setdefault("workload", f"{start.name.origin}: {_WHERE}")
    unsure = [item for item in keys.items.values() if not is_certain(item.value)]
    megatron.read(keys, found, start.name)
    told = {row.key for row in found.not_read}
    for item in unsure:
        # One that was passed over without being told.
        if item.origin not in told:
            found.block("workload", item, "what follows is known only where it runs")
    return "Megatron-LM arguments"


def _bridge(start: Start, setting: Setting) -> str:
    nemo.read_bridge(setting.file, start.words, setting.found, start.name)
    return "Megatron-Bridge recipe"


def _primus(start: Start, setting: Setting) -> None:
    keys, _ = options(setting.file, start.words)
    config = keys.take("config")
    if config is not None:
        _document(str(config.value), config, setting)


def _maxtext(start: Start, setting: Setting) -> str | None:
    config = next((word for word in start.words if word.text.endswith(_CONFIGS)), None)
    if config is not None and _base(config.text) in setting.documents:
        _over(config, start, setting)
        return None
    # base.yml, or another that is not given; the words say the rest.
    if config is not None and _base(config.text) != "base.yml":
        _document(config.text, Item(setting.file, "command", config.text, config.line), setting)
    maxtext.read(maxtext.from_words(setting.file, start.words), setting.found)
    return "MaxText command"


def _litgpt(start: Start, setting: Setting) -> str:
    keys, rest, _ = _merged(start, setting)
    if (model := _first(rest, setting)) is not None and "checkpoint_dir" not in keys:
        keys.put("checkpoint_dir" if "pretrain" not in str(start.name.value) else "model_name", model.value, model.line)
    litgpt.read(keys, setting.found, start.name)
    return "LitGPT command"


def _swift(start: Start, setting: Setting) -> str:
    keys, _ = options(setting.file, start.words)
    swift.read(keys, setting.found, start.name)
    return "ms-swift command"


def _plan(start: Start, setting: Setting) -> str:
    keys, _ = options(setting.file, start.words, plan_arguments.FLAGS)
    plan_arguments.read(keys, setting.found)
    return "arguments named as a plan's fields"


def _trainer(start: Start, setting: Setting) -> str:
    """A script on the transformers Trainer, or one that takes DeepSpeed's stage or file itself."""
    keys, _ = options(setting.file, start.words)
    found = setting.found
    config = keys.take("deepspeed_config")
    if config is not None:
        hf.refer(found, config, str(config.value), "DeepSpeed's ZeRO stage and offload")
        keys.take("deepspeed")
    stage = keys.take("zero_stage") or keys.take("deepspeed_stage")
    if stage is not None:
        found.whole("layout.zero_stage", stage, least=0)
        found.backend = found.backend or ("deepspeed", replace(stage, value=True))
        found.default("workload.precision", "bf16", "DeepSpeed computes in 16 bits; which, the script says")
    if "model_name_or_path" not in keys and "per_device_train_batch_size" not in keys:
        item = keys.take("deepspeed")
        if item is not None and isinstance(item.value, str):
            hf.refer(setting.found, item, item.value, "DeepSpeed's ZeRO stage and offload")
        leave_rest(keys, setting.found, "hf")
        return "command of a script"
    trl.read(keys, setting.found)
    return "arguments of the transformers Trainer"


def _unknown(start: Start, setting: Setting) -> str:
    keys, _ = options(setting.file, start.words)
    for word in start.words:
        if word.text.endswith(_CONFIGS) and word.known:
            hf.refer(
                setting.found, Item(setting.file, "command", word.text, word.line), word.text, "the program's settings"
            )
    for item in keys.items.values():
        setting.found.leave(item, "an argument of a script that is not known here")
    return "command of a script"


_READERS: dict[str, Callable[[Start, Setting], str | None]] = {
    "llamafactory": _llamafactory, "axolotl": _axolotl, "trl": _trl, "torchtune": _torchtune, "vllm": _vllm,
    "sglang": _sglang, "trtllm": _trtllm, "llama": _llama, "llama_load": _llama, "mlperf": _mlperf, "load": _load,
    "torchtitan": _torchtitan, "megatron": _megatron, "bridge": _bridge, "primus": _primus, "maxtext": _maxtext,
    "litgpt": _litgpt, "swift": _swift, "plan": _plan, "trainer": _trainer,
}  # fmt: skip


def _first(rest: Sequence[Word], setting: Setting) -> Item | None:
    """A model that is named without an option; values of switches are none."""
    rest = [word for word in rest if word.text.lower() not in ("true", "false")]
    return Item(setting.file, "model", rest[0].text, rest[0].line) if rest else None


def _has_unknown(start: Start) -> bool:
    """Takes out words of which nothing is known, unless they are an option's value; whether there were any."""
    kept = [
        word
        for before, word in zip([None, *start.words], start.words, strict=False)
        if word.text != UNKNOWN or (before is not None and re.match(r"--?[A-Za-z][^=]*$", before.text))
    ]
    found, start.words = len(kept) < len(start.words), kept
    return found


def _document(path: str, item: Item, setting: Setting) -> Keys | None:
    """The config of that name among the files given; else it is noted as missing."""
    document = setting.documents.get(_base(path))
    if document is None and is_certain(path):
        hf.refer(setting.found, item, path, "the program's settings")
    return document


def _base(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
