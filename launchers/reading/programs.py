"""The programs that commands start: each one's arguments given to its reader, or put over the config that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from launchers.reading import hf, llamafactory, megatron, serving, torchtitan, torchtune, trl
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, is_certain
from launchers.reading.leftovers import leave_rest
from launchers.reading.options import options, overrides
from launchers.reading.scripts import UNKNOWN, Word
from launchers.reading.starts import Setting, Start, is_config
from launchers.tables import table


def read_start(start: Start, setting: Setting) -> str | None:
    """Reads a program's own arguments, or puts them over the config that they name; the format, None where nothing of
    it is read."""
    found, kind = setting.found, start.kind
    if _has_unknown(start):
        found.warn(f"{start.name.origin}: some arguments are known only where it runs")
        found.blocked.setdefault("workload", f"{start.name.origin}: some arguments are known only where it runs")
    if kind in ("llamafactory", "axolotl"):
        config = next((word for word in start.words if is_config(word.text) or word.text.endswith(".json")), None)
        if config is not None:
            rest = [word for word in start.words if word is not config]
            _over(config, rest, start, setting)
            return None
        if kind == "axolotl":
            return None
        keys, _ = options(setting.file, start.words, ("do_train", "bf16", "fp16", "pure_bf16"))
        llamafactory.read(keys, found)
        return "LlamaFactory arguments"
    if kind in ("trl", "torchtune"):
        keys, rest = options(setting.file, start.words)
        config = keys.take("config")
        if config is not None and is_certain(config.value) and is_config(str(config.value)):
            document = _document(str(config.value), config, setting)
            if document is not None:
                for item in keys.items.values():
                    document.put(item.key, item.value, item.line)
                overrides(document, rest)
                (trl.read if kind == "trl" else torchtune.read)(document, found, start.name)
                setting.documents.pop(_base(str(config.value)))
                return None
        if kind == "trl":
            trl.read(keys, found, start.name)
            return "TRL arguments"
        found.warn(f"{start.name.origin}: torchtune's own config {config.value if config else ''} is not given")
        return None
    if kind == "vllm":
        keys, rest = options(setting.file, start.words, _vllm_flags(), table("reading/serving")["short"])
        config = keys.take("config")
        document = _document(str(config.value), config, setting) if config is not None else None
        if config is not None and document is not None:
            for item in keys.items.values():
                document.put(item.key, item.value, item.line)
            serving.read_vllm(document, found)
            setting.documents.pop(_base(str(config.value)))
            return None
        model = Item(setting.file, "model", rest[0].text, rest[0].line) if rest else None
        if config is not None and model is None and "model" not in keys:
            return None
        serving.read_vllm(keys, found, model)
        return "vLLM command"
    if kind == "torchtitan":
        return _torchtitan(start, setting)
    keys, rest = options(setting.file, start.words, _FLAGS.get(kind, ()), {"-tp": "tp", "-dp": "dp"})
    if any(UNKNOWN in word.text for word in rest):
        found.blocked.setdefault("workload", f"{start.name.origin}: some arguments are known only where it runs")
    if kind == "sglang":
        serving.read_sglang(keys, found)
        return "SGLang command"
    if kind == "load":
        serving.read_load(keys, found)
        return "load of a benchmark"
    if kind == "megatron":
        unsure = [item for item in keys.items.values() if not is_certain(item.value)]
        megatron.read(keys, found, start.name)
        _tell_unsure(unsure, found)
        return "Megatron-LM arguments"
    if kind == "trainer":
        return _trainer(keys, start, setting)
    for word in start.words:
        if word.text.endswith((".json", ".yaml", ".yml")) and word.known:
            hf.refer(found, Item(setting.file, "command", word.text, word.line), word.text, "the program's settings")
    for item in keys.items.values():
        found.leave(item, "an argument of a script that is not known here")
    return "command of a script"


def _tell_unsure(items: Sequence[Item], found: Findings) -> None:
    """Blocks the estimate where a word that is known only at run time was passed over without being told."""
    told = {row.key for row in found.not_read}
    for item in items:
        if item.origin not in told:
            found.block("workload", item, "what follows is known only where it runs")


def _has_unknown(start: Start) -> bool:
    """Takes out words of which nothing is known, unless they are an option's value; whether there were any."""
    kept = [
        word
        for before, word in zip([None, *start.words], start.words, strict=False)
        if word.text != UNKNOWN or (before is not None and re.match(r"--?[A-Za-z][^=]*$", before.text))
    ]
    found, start.words = len(kept) < len(start.words), kept
    return found


_FLAGS = {
    "megatron": ("bf16", "fp16", "swiglu", "use_distributed_optimizer", "sequence_parallel", "sft", "use_mcore_models",
                 "group_query_attention", "untie_embeddings_and_output_weights", "disable_bias_linear",
                 "use_flash_attn",
                 "recompute_activations", "use_megatron_fsdp", "optimizer_cpu_offload", "cross_entropy_loss_fusion",
                 "overlap_grad_reduce", "overlap_param_gather", "mock_data"),
    "sglang": ("trust_remote_code", "enable_dp_attention", "enable_mixed_chunk", "disable_cuda_graph"),
}  # fmt: skip


def _vllm_flags() -> tuple[str, ...]:
    return ("enable_expert_parallel", "enforce_eager", "trust_remote_code", "enable_prefix_caching", "headless",
            "enable_chunked_prefill", "no_enable_chunked_prefill", "enable_auto_tool_choice", "ep")  # fmt: skip


def _trainer(keys: Keys, start: Start, setting: Setting) -> str:
    """A script on the transformers Trainer, or one that reads a DeepSpeed file of its own."""
    config = keys.take("deepspeed_config")
    if config is not None:
        hf.refer(setting.found, config, str(config.value), "DeepSpeed's ZeRO stage and offload")
        keys.take("deepspeed")
    if "model_name_or_path" not in keys and "per_device_train_batch_size" not in keys:
        item = keys.take("deepspeed")
        if item is not None and isinstance(item.value, str):
            hf.refer(setting.found, item, item.value, "DeepSpeed's ZeRO stage and offload")
        leave_rest(keys, setting.found, "hf")
        return "command of a script"
    trl.read(keys, setting.found)
    return "arguments of the transformers Trainer"


def _torchtitan(start: Start, setting: Setting) -> str | None:
    variants = [word.text for word in start.words if re.fullmatch(r"[a-z_]+:[a-z_]+", word.text)]
    keys, _ = options(setting.file, [word for word in start.words if word.text not in variants])
    config = keys.take("job.config_file")
    document = _document(str(config.value), config, setting) if config is not None else None
    if config is not None and document is not None:
        for item in keys.items.values():
            document.put(item.key, item.value, item.line)
        torchtitan.read(document, setting.found, variants)
        setting.documents.pop(_base(str(config.value)))
        return None
    if config is not None:
        return None
    torchtitan.read(keys, setting.found, variants)
    return "torchtitan command line"


def _over(config: Word, rest: list[Word], start: Start, setting: Setting) -> None:
    """Puts key=value words and options over the config that a command names."""
    item = Item(setting.file, "command", config.text, config.line)
    document = _document(config.text, item, setting)
    if document is None:
        return
    rest = overrides(document, rest)
    keys, _ = options(setting.file, rest)
    for given in keys.items.values():
        if given.key.replace("-", "_") in document or start.kind == "llamafactory":
            document.put(given.key, given.value, given.line)


def _document(path: str, item: Item, setting: Setting) -> Keys | None:
    """The config of that name among the files given; else it is noted as missing."""
    document = setting.documents.get(_base(path))
    if document is None and is_certain(path):
        hf.refer(setting.found, item, path, "the program's settings")
    return document


def _base(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
