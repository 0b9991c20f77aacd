"""Programs with a command of their own (llamafactory-cli, vllm, litgpt …): which reader their arguments are for."""

from __future__ import annotations

import re
from collections.abc import Callable

from launchers.reading.documents import Item
from launchers.reading.findings import as_number
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import TORCHRUN_FLAGS, Setting, Start, counts, until_program

Console = Callable[[list[Word], dict[str, Word], Setting], list[Start]]
TRL_SCRIPTS = ("sft", "dpo", "grpo", "kto", "reward", "rloo")

# Programs that images start where no command is named.
_IMAGES = (
    (re.compile(r"vllm"), ("vllm", "serve")),
    (re.compile(r"llama\.cpp.*server|llama-server"), ("llama-server",)),
)


def image_starts(image: str) -> tuple[str, ...]:
    """The words that the entry point of a container image stands for; () where that is not known."""
    return next((words for pattern, words in _IMAGES if pattern.search(image)), ())


def _llamafactory(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    if len(words) < 2 or words[1].text != "train":
        return []
    own = {
        name: word for name, word in (setting.variables | environment).items() if name in ("NNODES", "NPROC_PER_NODE")
    }
    for name, fact in (("NNODES", "nodes"), ("NPROC_PER_NODE", "per_node")):
        word = own.get(name)
        if word is not None and (number := as_number(word.text)) is not None and number >= 1:
            setting.found.put(fact, int(number), Item(setting.file, name, int(number), word.line))
    if "NPROC_PER_NODE" in own and "NNODES" not in own:
        setting.found.implied.append(("nodes", 1, Item(setting.file, "NNODES", "1 (default)")))
    return [Start("llamafactory", words[2:], Item(setting.file, "command", "train", words[0].line), environment)]


def _axolotl(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    """axolotl train FILE --launcher torchrun -- torchrun's options"""
    if len(words) < 2 or words[1].text not in ("train", "fetch"):
        return []
    place = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    keys, _ = options(setting.file, words[place + 1 :], TORCHRUN_FLAGS)
    counts(keys, setting, nodes="nnodes", per_node="nproc_per_node")
    own, rest = options(setting.file, words[2:place])
    if (item := own.take("num_processes")) is not None:
        setting.found.whole("devices", item)
    return [Start("axolotl", rest, Item(setting.file, "command", "axolotl", words[0].line), environment)]


def _tune(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    if len(words) < 2 or words[1].text != "run":
        return []
    own, rest = until_program(words[2:], TORCHRUN_FLAGS)
    keys, _ = options(setting.file, own, TORCHRUN_FLAGS)
    counts(keys, setting, nodes="nnodes", per_node="nproc_per_node")
    if not rest:
        return []
    name = Item(setting.file, "recipe", rest[0].text, rest[0].line)
    if "single_device" in rest[0].text:
        setting.found.implied += [("nodes", 1, name), ("per_node", 1, name)]
    return [Start("torchtune", rest[1:], name, environment)]


def _trl(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    if len(words) < 2 or words[1].text not in TRL_SCRIPTS:
        return []
    keys, _ = options(setting.file, words[2:])
    if (item := keys.items.get("num_processes")) is not None:
        setting.found.whole("devices", item)
    return [Start("trl", words[2:], Item(setting.file, "command", words[1].text, words[1].line), environment)]


def _primus(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    """primus-cli direct -- train pretrain --config FILE, in a world that the environment says."""
    for name, fact in (("NNODES", "nodes"), ("GPUS_PER_NODE", "per_node")):
        word = (setting.variables | environment).get(name)
        if word is not None and (number := as_number(word.text)) is not None and number >= 1:
            setting.found.put(fact, int(number), Item(setting.file, name, int(number), word.line))
    return [Start("primus", words[1:], Item(setting.file, "command", "primus-cli", words[0].line), environment)]


def _litgpt(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    """litgpt finetune_lora MODEL …, or in older versions litgpt finetune lora …"""
    if len(words) < 2 or not re.match(r"finetune|pretrain", words[1].text):
        return []
    name, rest = words[1].text, words[2:]
    if name == "finetune" and rest and not rest[0].text.startswith("-"):
        name, rest = f"finetune_{rest[0].text}", rest[1:]
    return [Start("litgpt", rest, Item(setting.file, "command", name, words[1].line), environment)]


def _llama(kind: str) -> Console:
    def start(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
        return [Start(kind, words[1:], Item(setting.file, "command", words[0].text, words[0].line), environment)]

    return start


def _swift(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    """swift sft …, on as many devices as its environment names."""
    if len(words) < 2 or words[1].text not in ("sft", "pt", "rlhf"):
        return []
    own = setting.variables | environment
    for name, fact in (("NNODES", "nodes"), ("NPROC_PER_NODE", "per_node")):
        if (word := own.get(name)) is not None and (number := as_number(word.text)):
            setting.found.put(fact, int(number), Item(setting.file, name, int(number), word.line))
    visible = own.get("CUDA_VISIBLE_DEVICES")
    if "NPROC_PER_NODE" not in own and visible is not None and re.fullmatch(r"[0-9]+", visible.text):
        setting.found.put("per_node", 1, Item(setting.file, "CUDA_VISIBLE_DEVICES", visible.text, visible.line))
    return [Start("swift", words[2:], Item(setting.file, "command", words[1].text, words[1].line), environment)]


def _trtllm(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    """trtllm-serve [serve] MODEL …"""
    rest = words[2:] if len(words) > 1 and words[1].text == "serve" else words[1:]
    return [Start("trtllm", rest, Item(setting.file, "command", "trtllm-serve", words[0].line), environment)]


def _sglang(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    if len(words) < 2 or words[1].text != "serve":
        return []
    return [Start("sglang", words[2:], Item(setting.file, "command", "sglang", words[0].line), environment)]


def _vllm(words: list[Word], environment: dict[str, Word], setting: Setting) -> list[Start]:
    item = Item(setting.file, "command", "vllm", words[0].line)
    if len(words) > 2 and words[1].text == "bench" and words[2].text == "serve":
        return [Start("load", words[3:], item, environment)]
    return [Start("vllm", words[2:], item, environment)] if len(words) > 1 and words[1].text == "serve" else []


CONSOLES: dict[str, Console] = {
    "llamafactory-cli": _llamafactory,
    "lmf": _llamafactory,
    "axolotl": _axolotl,
    "tune": _tune,
    "trl": _trl,
    "vllm": _vllm,
    "sglang": _sglang,
    "trtllm-serve": _trtllm,
    "llama-server": _llama("llama"),
    "llama-batched-bench": _llama("llama_load"),
    "primus-cli": _primus,
    "litgpt": _litgpt,
    "swift": _swift,
}
