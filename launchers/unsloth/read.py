"""Python scripts on transformers' Trainer, TRL, PEFT and Unsloth: the arguments of the calls that say a run.

A script is parsed and never run or imported: literals and names that are given one literal are read, the rest is not
known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from launchers.optimum_habana import read as habana
from launchers.optimum_neuron import read as neuron
from launchers.own_program import read as own_program
from launchers.own_program.loop import read_loop
from launchers.python.imports import with_imports
from launchers.python.loops import Call, gather_loop, workers
from launchers.python.names import Invocation, constants, scopes
from launchers.python.source import parsed
from launchers.python.values import BF16, SPREAD, arguments_of, called, is_unknown, taken
from launchers.reading.commands import base_name, over_config
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, is_set
from launchers.reading.leftovers import NOT_KNOWN
from launchers.shell.options import options, plain
from launchers.shell.scripts import UNKNOWN, Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.trl import read as trl
from launchers.unsloth.own_parts import (
    LIBRARIES,
    STAGES,
    made_elsewhere,
    of_one_stage,
    of_own_class,
    stage_of,
    untrained,
    unused,
)

_ADAPTERS = {"r": "lora_r", "lora_alpha": "lora_alpha", "lora_dropout": "lora_dropout", "use_dora": "use_dora",
             "target_modules": "lora_target_modules", "modules_to_save": "lora_modules_to_save"}  # fmt: skip
_PACKED = {
    "BitsAndBytesConfig": {
        "load_in_4bit": "load_in_4bit", "load_in_8bit": "load_in_8bit", "bnb_4bit_quant_type": "bnb_4bit_quant_type",
        "bnb_4bit_use_double_quant": "use_bnb_nested_quant",
    },
    "GPTQConfig": {"bits": trl.GPTQ},
}  # fmt: skip
# Adapters that are loaded to be trained on (peft_model.py PeftModel.from_pretrained).
_LOADED = "adapters that are loaded"
# Adapters that a trainer is given.
_GIVEN = "the trainer's peft_config"
# A trainer's model that the source does not load.
_MADE_ELSEWHERE = "the trainer's model"
_ROWS_OF_A_DEVICE = "per_device_train_batch_size"
# What decides memory or time of the Trainer's arguments, and a class of one's own may have another default of.
_OF_THE_TRAINER = (_ROWS_OF_A_DEVICE, "gradient_accumulation_steps", "gradient_checkpointing", "optim", "bf16", "fp16")
_TRAINERS = {"Trainer", "Seq2SeqTrainer", "UnslothTrainer", *(f"{name}Trainer" for name in STAGES)}
# Trainers of one's own that are one of TRL's by their names, and add to its loss alone.
_OWN_TRAINERS = r"(SFT|Reward)Trainer$"
# The arguments of a parser as a mapping.
_AS_MAPPING = r"\w*arg\w*\.(to_dict\(\)|__dict__)|(vars|asdict|dataclasses\.asdict)\(\w*arg\w*\)"
# A trainer that is called as one of TRL's and is none.
_PLAIN = "Trainer"
# Arguments are the Trainer's own class of them.
_PLAIN_ARGUMENTS = "TrainingArguments"
# What makes dataclasses of the Trainer's arguments of a command or a config (transformers, TRL, alignment-handbook).
_PARSERS = r"(Hf|H4|Trl)(Argument)?Parser"
# Packages whose trainers are these.
_OF_TRAINERS = r"(trl|transformers|unsloth|optimum|swift|ray)\b"
# Devices that a source lets itself see.
_VISIBLE = "CUDA_VISIBLE_DEVICES"
# What a dataset of one's own is given to cut its rows at.
_ROWS: dict[str, str] = dict.fromkeys(("max_len", *trl.LENGTHS), "max_length")
_TRAINER = {"max_seq_length": "max_length", "packing": "packing", "max_length": "max_length"}


def read_python(name: str, text: str, findings: Findings, invocation: Invocation | None = None) -> str | None:
    """What the script was taken for; None where it trains with nothing that is known here."""
    invocation = invocation or Invocation()
    tree = with_imports(parsed(name, text), invocation.source)
    names = constants(tree, invocation)
    if any(key.startswith(".") for key in names) and not invocation.options:
        findings.warn(f"{name}: its arguments are taken at the defaults that the script gives them")
    calls = _calls(tree, names, invocation)
    keys = Keys(name)
    unsloth = any(name.startswith(("FastLanguageModel.", "FastModel.", "FastVisionModel.")) for name, _, _ in calls)
    adapted, stage = _gather(keys, calls, unsloth)
    if unused(tree, _PACKED):
        for word in {word for words in _PACKED.values() for word in words.values()} & keys.items.keys():
            findings.leave(keys.items.pop(word), "is of a configuration that nothing takes")
    loop = gather_loop(keys, calls, findings)
    _one_process(keys, findings)
    _prepared(keys, calls, stage, findings)
    of_own_class(tree, calls, name, findings)
    made_elsewhere(tree, calls, name, findings)
    of_one_stage(calls, name, findings)
    _unknown_spread(keys, findings)
    trains = {name.rpartition(".")[2] for name, _, _ in calls}
    plain_arguments = keys.take(_PLAIN_ARGUMENTS) is not None
    is_commanded = any(re.fullmatch(_PARSERS, name) for name in trains)
    if is_commanded:
        _parsed_arguments(keys, names, invocation)
        if "gradient_checkpointing" not in keys and _takes_the_trainers(tree):
            keys.put("gradient_checkpointing", False)
    is_commanded = is_commanded and bool(trains & _TRAINERS) and not invocation.options
    untrained(name, calls, stage, findings)
    if _ROWS_OF_A_DEVICE not in keys and stage is None and not unsloth and loop is None and not is_commanded:
        return read_loop(keys, names, calls, findings)
    if is_commanded and _ROWS_OF_A_DEVICE not in keys:
        why = "takes its arguments from the command that starts it: give that too, or --micro-batch"
        findings.block("workload.micro_batch", Item(name, "HfArgumentParser", None), why)
    findings.whole("per_node", keys.take(_VISIBLE))
    on_ray = workers(calls, name, findings)
    library = _settled(calls, keys, findings, text)
    _adapters(keys, findings, adapted, is_told="get_peft_config" in trains)
    if BF16 in (keys.look("bf16"), keys.look("fp16")):
        for key in ("bf16", "fp16"):
            keys.take(key)
        findings.default("workload.precision", "bf16", "the script takes it where the device has it")
    if unsloth:
        _unsloth(keys, findings, adapted)
    elif adapted:
        for field, value in (("rank", 8), ("alpha", 8.0), ("dropout", 0.0)):
            findings.default(f"workload.lora.{field}", value, "PEFT's LoraConfig has it unless given")
    if stage is None and not unsloth and not any(word in keys for word in trl.LENGTHS):
        findings.block("workload.seq_len", Item(name, "tokenizer", None), "cuts rows at no length that the script says")
    script = Item(name, "trainer", stage) if stage else None
    trl.read(keys, findings, script, defaults=trl.TRAINER if plain_arguments else "")
    if program := "unsloth" if unsloth else library:
        findings.programs.insert(0, program)
    kind = "TRL" if stage else "the transformers Trainer" if loop is None else loop
    kind = "Python script for Unsloth" if unsloth else f"Python script on {library or kind}"
    return f"Ray Train: {kind}" if on_ray else kind


def _calls(tree: ast.Module, names: Mapping[str, Any], invocation: Invocation) -> list[Call]:
    """The calls in the branches that are taken, in their order, with the names that each knows."""
    inside = scopes(tree, names, invocation)
    nodes = [node for node in taken(tree, names) if isinstance(node, ast.Call)]
    rows = [(called(node), node, inside.get(id(node), names)) for node in sorted(nodes, key=lambda node: node.lineno)]
    others = _of_others(tree)
    return [(_PLAIN if name.rpartition(".")[2] in others else name, node, known) for name, node, known in rows]


def _of_others(tree: ast.Module) -> set[str]:
    """Trainers called as TRL's and the Trainer that the source imports from files of its own."""
    return {
        part.asname or part.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.level or not re.match(_OF_TRAINERS, node.module or ""))
        for part in node.names
        if part.name in _TRAINERS
    }


def _adapters(keys: Keys, findings: Findings, adapted: bool, is_told: bool) -> None:
    """Whether the source makes adapters (`adapted`), or has TRL make those of the command's own words (`is_told`)."""
    told = is_told and is_set(keys.items.get("use_peft"))
    if not told:
        keys.put("use_peft", adapted)
    if (made := keys.take(_MADE_ELSEWHERE)) is not None and not (adapted or told):
        findings.block("workload.method", made, "is made in another file, and may have adapters: --method says so")
    if (handed := keys.take(_GIVEN)) is not None and not (adapted or is_told):
        findings.block(
            "workload.method", handed, "is made where it is not read, and may be of any kind: --method says so"
        )
    if (loaded := keys.take(_LOADED)) is not None:
        findings.block("workload.method", loaded, "goes on with adapters, of which a file beside them says the kind")


def _takes_the_trainers(tree: ast.Module) -> bool:
    """Whether what a parser makes are the Trainer's own arguments, of which TRL's defaults are not those."""
    parsers = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and re.search(_PARSERS, called(node))]
    names = [called(part) for node in parsers for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]
    return any(name.endswith("TrainingArguments") for name in names) and not any(
        name.endswith("Config") for name in names
    )


def _parsed_arguments(keys: Keys, names: Mapping[str, Any], invocation: Invocation) -> None:
    """The Trainer's own arguments come from the command, beside those that the source reads itself; how long rows are
    may be a field of its own, which the command leaves as it is."""
    for key, value in invocation.options.items():
        # Of what the source makes of an argument on the way nothing may be known.
        if key not in keys or is_unknown(keys.look(key)):
            keys.put(key, value)
    for word in _OF_THE_TRAINER:
        # A class of the Trainer's arguments has defaults of its own.
        if word not in keys and (value := names.get(f".{word}")) is not None and not is_unknown(value):
            keys.put(word, value)
    known = [word for word in trl.LENGTHS if word in keys and not is_unknown(keys.look(word))]
    for word in trl.LENGTHS:
        if known and word in keys and is_unknown(keys.look(word)):
            del keys.items[word]
        if word not in keys and isinstance(names.get(f".{word}"), int):
            keys.put(word, names[f".{word}"])


def read_command(start: Program, setting: ScriptSetting) -> str | None:
    """python SCRIPT --option value, of which the source is given."""
    name = base_name(str(start.name.value))
    keys, rest = options(setting.file, start.words)
    variables = {**setting.variables, **start.environment}
    invocation = Invocation(
        {key: item.value for key, item in keys.items.items()},
        [plain(word.text) for word in rest],
        {key: word.text for key, word in variables.items() if word.known},
        setting.sources.load,
        setting.sources.source,
    )
    setting.sources.started.add(name)
    config = next((word for word in _configs(keys, rest) if base_name(word.text) in setting.documents), None)
    is_parsed = config is not None and re.search(rf"\b{_PARSERS}\(", setting.sources.texts[name])
    if is_parsed and config is not None:
        # The arguments are those of the config, and the command's over them.
        document = setting.documents.pop(base_name(config.text))
        invocation.options = {**{key: item.value for key, item in document.items.items()}, **invocation.options}
        setting.findings.formats[base_name(config.text)] = "arguments of a script"
    kind = read_python(name, setting.sources.texts[name], setting.findings, invocation)
    if kind is not None:
        own_program.account(keys.items.values(), setting.findings, name, unsaid=NOT_KNOWN)
    if kind is None and _ROWS_OF_A_DEVICE in keys:
        # What parses the Trainer's arguments is imported.
        return trl.COMMANDS["trainer"](start, setting)
    config = None if is_parsed else next((word for word in rest if base_name(word.text) in setting.documents), None)
    if kind is None and config is not None:
        # A program of one's own that starts another one on its config.
        over_config(config, start, setting)
    elif kind is None:
        return _by_its_options(start, keys, setting)
    return kind


def _configs(keys: Keys, rest: list[Word]) -> list[Word]:
    """The words of a command that may be a config: bare ones, and --config's."""
    named = keys.items.get("config")
    return [*rest, *([Word(str(named.value), named.line or 0)] if named is not None else [])]


def _by_its_options(start: Program, keys: Keys, setting: ScriptSetting) -> str | None:
    """A source that says nothing by itself: its options stand over the config that one of them names."""
    names = {base_name(word.text) for word in start.words} & setting.documents.keys()
    if not names:
        return own_program.COMMANDS["script"](_with_defaults(start, keys, setting), setting)
    for item in keys.items.values():
        if base_name(str(item.value)) not in names:
            setting.documents[min(names)].adopt(item)
    return None


def _with_defaults(start: Program, keys: Keys, setting: ScriptSetting) -> Program:
    """The command with the words of the field that the source's arguments have at their defaults."""
    name = base_name(str(start.name.value))
    tree = with_imports(parsed(name, setting.sources.texts[name]), setting.sources.source)
    names = constants(tree, Invocation(dict.fromkeys(keys.items, True)))
    usual = {
        name.removeprefix("."): value
        for name, value in names.items()
        if name.startswith(".") and isinstance(value, str | int | float) and not is_unknown(value)
    }
    words = [
        Word(f"--{name}={value}", start.name.line or 0)
        for name, value in usual.items()
        if name not in keys and own_program.meaning_of(name) is not None
    ]
    return replace(start, words=[*start.words, *words])


def _gather(keys: Keys, calls: list[tuple[str, ast.Call, Mapping[str, Any]]], unsloth: bool) -> tuple[bool, str | None]:
    """Puts the arguments of the script's calls into `keys`; whether adapters are made, and the trainer's stage."""
    stage: str | None = None
    adapted = configured = False
    trained: int | None = None
    for name, node, names in calls:
        last = name.rpartition(".")[2]
        arguments = dict(arguments_of(node, names))
        if last in ("LoraConfig", "get_peft_model") and (last == "LoraConfig" or "r" in arguments):
            adapted = True
            _take(keys, arguments, _ADAPTERS | {SPREAD: "lora_r"}, node)
            if last == "get_peft_model" and "use_gradient_checkpointing" in arguments:
                keys.put("gradient_checkpointing", arguments["use_gradient_checkpointing"], node.lineno)
        elif (
            last.startswith(("tokenize", "processor"))
            or last.endswith("Dataset")
            or {"truncation", "max_length"} <= arguments.keys()
        ):
            _cut(keys, arguments, node)
        elif last in _PACKED:
            _take(keys, arguments, _PACKED[last], node)
        elif name.endswith("PeftModel.from_pretrained"):
            if arguments.get("is_trainable", False) is not False:
                keys.put(_LOADED, arguments["is_trainable"], node.lineno)
        elif last == "from_pretrained" and re.search(r"Model|For[A-Z]\w+\.", name):
            # A later one loads what was trained.
            if "model_name_or_path" in keys:
                continue
            _loaded(keys, arguments, node, unsloth and name.startswith("Fast"))
        elif stage_of(last, "Config") or last.endswith("TrainingArguments"):
            _configured(keys, arguments, node, last)
            configured, stage = True, stage or stage_of(last, "Config")
        elif stage_of(last, "Trainer") or last in _TRAINERS or re.search(_OWN_TRAINERS, last):
            own = re.search(_OWN_TRAINERS, last)
            stage = stage or stage_of(own[0] if own else last, "Trainer")
            _trained(keys, arguments, node, names)
            trained = node.lineno if "args" in arguments else trained
        configured = configured or name.endswith(("Parser", "parse_args"))
    if trained is not None and not configured:
        # What makes the trainer's arguments is not here.
        keys.put(SPREAD, UNKNOWN, trained)
    return adapted, stage


def _cut(keys: Keys, arguments: dict[str, Any], node: ast.Call) -> None:
    """The length that a data set's rows are cut at: of several the longest, as one may be of questions or a test."""
    before = keys.look("max_length")
    _take(keys, arguments, _ROWS, node)
    if isinstance(before, int) and isinstance(after := keys.look("max_length"), int) and after < before:
        keys.put("max_length", before, node.lineno)


def _configured(keys: Keys, arguments: dict[str, Any], node: ast.Call, kind: str) -> None:
    """The arguments of a configuration of TRL's, or of the Trainer's own."""
    spread = [ast.unparse(word.value) for word in node.keywords if word.arg is None]
    if SPREAD in arguments and all(re.fullmatch(_AS_MAPPING, text) for text in spread):
        # What the command's own arguments are is read of the command.
        del arguments[SPREAD]
    for key, value in arguments.items():
        # Unsloth's own checkpointing stays what the model was loaded with.
        if not (key == "gradient_checkpointing" and keys.look(key) == "unsloth"):
            keys.put(key, value, node.lineno)
    if kind.endswith("TrainingArguments") and SPREAD not in arguments:
        keys.put(_PLAIN_ARGUMENTS, True, node.lineno)


def _trained(keys: Keys, arguments: dict[str, Any], node: ast.Call, names: Mapping[str, Any]) -> None:
    """What a trainer is given besides its configuration, and the devices that its process is let see."""
    named = arguments.get("model", arguments.get("0"))
    if "model_name_or_path" not in keys and isinstance(named, str) and UNKNOWN not in named:
        keys.put("model_name_or_path", named, node.lineno)
    elif (
        named is not None
        and "model_name_or_path" not in keys
        and not {"peft_config", "lora_r"} & {*arguments, *keys.items}
    ):
        keys.put(_MADE_ELSEWHERE, UNKNOWN, node.lineno)
    if is_unknown(arguments.get("peft_config")):
        keys.put(_GIVEN, UNKNOWN, node.lineno)
    _take(keys, arguments, _TRAINER, node)
    if re.fullmatch(r"[0-9]+(,[0-9]+)*", visible := str(names.get("$CUDA_VISIBLE_DEVICES"))):
        keys.put(_VISIBLE, visible.count(",") + 1, node.lineno)


def _settled(
    calls: list[tuple[str, ast.Call, Mapping[str, Any]]], keys: Keys, findings: Findings, text: str
) -> str | None:
    """What brings TRL and the Trainer to other makers' devices, whose own arguments are taken."""
    names = {name.rpartition(".")[2] for name, _, _ in calls}
    trains = tuple(name for name in names if name.endswith(("Config", "Trainer", "TrainingArguments")))
    library = next((library for word, library in LIBRARIES.items() if any(n.startswith(word) for n in trains)), None)
    if library == "optimum-habana":
        habana.settle(keys, findings)
    elif library == "optimum-neuron":
        neuron.settle(keys, findings, text)
    return library


def _unknown_spread(keys: Keys, findings: Findings) -> None:
    """TrainingArguments(**settings) of which nothing is known say what they like."""
    if (item := keys.take(SPREAD)) is not None:
        findings.block("workload", item, "other arguments are known only where it runs")


def _one_process(keys: Keys, findings: Findings) -> None:
    """A notebook is one process, and so is what loads a model that it splits over the devices that it sees."""
    item = keys.take("device_map")
    places = item.value if item is not None else None
    is_split = places in ("auto", "balanced", "sequential") or (
        isinstance(places, dict) and bool(places) and not any(map(is_unknown, places.values()))
    )
    if (is_split or keys.file.endswith(".ipynb")) and not findings.has("per_node"):
        why = "is one process, which trains on one device or splits the layers over several: give 1 device"
        findings.alone = item or Item(keys.file, "notebook", None)
        for field in ("per_node", "nodes"):
            findings.default(field, 1, f"{findings.alone.origin}: {why}")


def _prepared(keys: Keys, calls: list[Call], stage: str | None, findings: Findings) -> None:
    """Calls that have activations computed again, whatever the trainer's arguments say, which are off by themselves,
    and that hold in fp32 what is not packed (peft utils/other.py prepare_model_for_kbit_training)."""
    packed = any(is_set(keys.items.get(word)) for word in ("load_in_4bit", "load_in_8bit"))
    for name, node, names in calls:
        packs = name.endswith("prepare_model_for_kbit_training")
        switch = dict(arguments_of(node, names)).get("use_gradient_checkpointing")
        if name.endswith("gradient_checkpointing_enable") or (packs and switch is not False):
            keys.put("gradient_checkpointing", True, node.lineno)
        if packs and not packed and trl.GPTQ not in keys:
            findings.put(
                "workload.weights", "fp32", Item(keys.file, "prepare_model_for_kbit_training", None, node.lineno)
            )
    # TRL before 0.7 has it done for packed weights by itself.
    if _PLAIN_ARGUMENTS in keys and "gradient_checkpointing" not in keys and not (stage and packed):
        keys.put("gradient_checkpointing", False)


def _unsloth(keys: Keys, findings: Findings, adapted: bool) -> None:
    """Its own defaults, and its way of checkpointing, which holds what is kept in host memory."""
    if not adapted and not is_set(keys.take("full_finetuning")):
        findings.leave(Item(keys.file, "get_peft_model", None), "is not there, so nothing would be trained")
    keys.take("full_finetuning")
    if keys.look("load_in_4bit") is False and (name := keys.take("model_name_or_path")) is not None:
        # It loads what the packed checkpoint was made of (unsloth/models/loader_utils.py get_model_name).
        keys.put("model_name_or_path", re.sub("-bnb-4bit$", "", str(name.value)), name.line)
    if adapted and "load_in_4bit" not in keys:
        findings.default("workload.method", "qlora", "load_in_4bit is on unless given")
        keys.put("load_in_4bit", True)
    findings.default("workload.lora.quantisation", "nf4", "Unsloth's checkpoints quantise their scales too")
    for field, value in (("rank", 16), ("alpha", 16.0), ("dropout", 0.0)):
        findings.default(f"workload.lora.{field}", value, "get_peft_model has it unless given")
    kind = keys.items.get("gradient_checkpointing")
    if kind is None:
        for field, value in (("layout.offload", "activations"), ("layout.recompute", "full")):
            findings.default(field, value, "Unsloth's own checkpointing unless told otherwise")
    elif kind.value == "unsloth":
        keys.put("gradient_checkpointing", True, kind.line)
        findings.put("layout.offload", "activations", kind)
    else:
        findings.default("layout.offload", "none", "nothing is moved to the host")
    findings.default("workload.rollout", "trainer", "fast_inference is off unless given")
    findings.default("workload.precision", "bf16", "Unsloth loads bf16 where devices have it")
    # Its kernels never hold the logits whole.
    findings.default("workload.fused_loss", True, "Unsloth computes the loss in pieces")
    findings.default("layout.zero_stage", 0, "Unsloth keeps whole replicas")
    findings.default("per_node", 1, "a script by itself is one process, on one device")
    findings.default("nodes", 1, "one node where no file names more")
    if is_set(keys.take("float32_mixed_precision")):
        findings.put("workload.weights", "fp32", Item(keys.file, "float32_mixed_precision", True))


def _loaded(keys: Keys, arguments: dict[str, Any], node: ast.Call, fast: bool) -> None:
    name = arguments.get("model_name", arguments.get("pretrained_model_name_or_path", arguments.get("0")))
    keys.put("model_name_or_path", name, node.lineno)
    if arguments.get("attn_implementation"):
        keys.put("attn_implementation", arguments["attn_implementation"], node.lineno)
    _take(keys, arguments, {"load_in_4bit": "load_in_4bit", "load_in_8bit": "load_in_8bit"}, node)
    _take(keys, arguments, {name: name for name in ("device_map", "torch_dtype", "dtype")}, node)
    if fast:
        keys.put("max_length", arguments.get("max_seq_length"), node.lineno)
        if arguments.get("fast_inference") is True:
            keys.put("use_vllm", True, node.lineno)
            keys.put("vllm_mode", "colocate", node.lineno)
            keys.put("vllm_gpu_memory_utilization", arguments.get("gpu_memory_utilization", 0.5), node.lineno)
        names = {"full_finetuning": "full_finetuning", "float32_mixed_precision": "float32_mixed_precision"}
        _take(keys, arguments, names, node)
        if "use_gradient_checkpointing" in arguments:
            keys.put("gradient_checkpointing", arguments["use_gradient_checkpointing"], node.lineno)


def _take(keys: Keys, arguments: dict[str, Any], words: dict[str, str], node: ast.Call) -> None:
    for name, key in words.items():
        if name in arguments:
            keys.put(key, arguments[name], node.lineno)


COMMANDS = {"python": read_command}
