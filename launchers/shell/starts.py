"""What a command starts: peels srun, torchrun, accelerate, deepspeed and their like off a line, and reads their counts.

`launchers.reading.programs` reads the program inside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launchers.accelerate import read as accelerate
from launchers.optimum_neuron.read import processes_of_a_device
from launchers.reading.commands import Console
from launchers.reading.documents import Item
from launchers.reading.findings import Findings, is_certain
from launchers.reading.programs import consoles, modules
from launchers.schedulers.slurm.read import after_srun
from launchers.schedulers.xpk import read as xpk
from launchers.shell.options import options
from launchers.shell.scripts import UNKNOWN, Script, ShellCommand, Word, script
from launchers.shell.setting import TORCHRUN_FLAGS, Program, ScriptSetting, counts, until_program
from launchers.shell.wrappers import (
    WRAPPERS,
    after_dashes,
    contained,
    handed_in,
    is_handed_on,
    text_of,
    without_mark,
    wrapped_program,
)
from launchers.trl.read import SCRIPTS

_ACCELERATE_FLAGS = (
    "multi_gpu", "cpu", "use_fsdp", "use_deepspeed", "tpu", "mps", "quiet", "same_network", "m", "module", "no_python",
    "use_megatron_lm", "use_parallelism_config", "debug",
)  # fmt: skip
_DEEPSPEED_FLAGS = ("force_multi", "no_local_rank", "no_python", "enable_each_rank_log", "save_pid", "module", "no_ssh")
_TRAINING = re.compile(
    r"(^|/)(pretrain_[a-z0-9_]+|train|finetune|run_[a-z]+|sft|dpo|grpo|kto|reward|main)[a-z0-9_]*\.py$"
)
_DEEPEST = 4


def read_script(text: str, setting: ScriptSetting, known: dict[str, str]) -> tuple[list[Program], dict[str, str]]:
    """Reads the counts of a script's commands; the programs that it starts come back, and what it exports."""
    parsed = script(setting.file, text, known, setting.scripts)
    setting.known, setting.sourced, setting.templates = known, parsed.sourced, parsed.templates
    setting.written |= parsed.files
    setting.variables = setting.variables | parsed.environment
    starts = _starts(parsed, setting)
    for name in sorted(
        parsed.defaults & {"NNODES", "NPROC_PER_NODE", "GPUS_PER_NODE", "NUM_GPUS", "NGPU", "WORLD_SIZE"}
    ):
        setting.findings.warn(f"{setting.file}: ${name} is taken at the default that the script gives it")
    for name in sorted(parsed.unset):
        setting.findings.warn(f"{setting.file}: ${name} is set nowhere in it and is taken for no words")
    return starts, {name: word.text for name, word in parsed.environment.items() if word.known}


def _starts(parsed: Script, setting: ScriptSetting) -> list[Program]:
    certain = [command for command in parsed.commands if not command.conditional]
    starts = [start for command in certain for start in peeled(command, setting, 0)]
    if starts:
        return starts
    perhaps = [command for command in parsed.commands if command.conditional]
    trial = replace(setting, findings=Findings(), written={})
    starting = [command for command in perhaps if peeled(command, trial, 0)]
    if len(starting) == 1 or _only_ranks_differ(starting):
        return peeled(starting[-1], setting, 0)
    if starting:
        setting.findings.warn(f"{setting.file}: starts programs in several branches, so none is read")
        setting.findings.blocked.setdefault("workload", f"{setting.file} starts one of several programs")
    return []


def _only_ranks_differ(commands: Sequence[ShellCommand]) -> bool:
    names = {" ".join(word.text for word in command.words[:4]) for command in commands}
    return len(commands) > 1 and len(names) == 1


def peeled(command: ShellCommand, setting: ScriptSetting, depth: int) -> list[Program]:
    """The programs that a command starts, with what its wrappers say put into the findings."""
    words, environment = without_mark(command.words), dict(command.environment)
    while words and depth <= _DEEPEST:
        name = words[0].text.rpartition("/")[2]
        if name in ("exec", "nohup", "time", "sudo", "env", "numactl", "stdbuf", "unbuffer"):
            words = words[1:]
            while words and name != "exec" and words[0].text.startswith("-"):
                words = words[1:]
            while words and (match := re.match(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", words[0].text, re.DOTALL)):
                environment[match[1]] = Word(match[2], words[0].line)
                words = words[1:]
        elif is_handed_on(name, words) or name in ("timeout",):
            words = words[2:]
        elif name in WRAPPERS and (wrapped := wrapped_program(name, words)):
            words = wrapped
        elif name == "ray":
            # ray job submit … -- COMMAND
            words = words[next((at + 1 for at, word in enumerate(words) if word.text == "--"), len(words)) :]
        elif name in ("bash", "sh", "source", ".", "eval") or name.endswith((".sh", ".bash", ".sbatch", ".slurm")):
            if (text := text_of(name, words)) is not None:
                return _inside(text, environment, setting, depth)
            rest = words if name.endswith((".sh", ".bash", ".sbatch", ".slurm")) else words[1:]
            if rest and (serving := _serving(rest, environment, setting)):
                return serving
            if rest and rest[0].text.rpartition("/")[2] == "run_train.sh" and set(environment) & set(_TITAN):
                return [_run_train(rest, environment, setting)]
            return _given_on(rest, environment, setting)
        elif name == "srun":
            words = after_srun(words[1:], setting)
        elif re.fullmatch(r"(apptainer|singularity|docker|podman|enroot)(_wrapper)?", name):
            inside = contained(words)
            environment |= handed_in(words[: len(words) - len(inside)], setting)
            words = inside
        elif (inner := after_dashes(words)) is not None:
            words = inner
        else:
            return _program(name, words, environment, setting)
    return []


def _inside(text: Word, environment: Mapping[str, Word], setting: ScriptSetting, depth: int) -> list[Program]:
    """The programs of a command that a shell is given as text, with what the script exports to it."""
    exported = {**setting.variables, **environment}
    inner = script(setting.file, text.text, setting.known | {name: word.text for name, word in exported.items()})
    setting.written |= inner.files
    moved = [
        ShellCommand([Word(word.text, text.line) for word in command.words], {**environment, **command.environment})
        for command in inner.commands
    ]
    return [start for command in moved for start in peeled(command, setting, depth + 1)]


_ENGINES = (
    ("vllm", "--model", ("--tensor-parallel-size", "--max-model-len", "--gpu-memory-utilization", "--max-num-seqs")),
    ("sglang", "--model-path", ("--tp", "--tp-size", "--tensor-parallel-size", "--mem-fraction-static")),
)
_TITAN = {"CONFIG": "--config", "MODULE": "--module", "CONFIG_FILE": "--job.config_file"}


def _run_train(words: Sequence[Word], environment: dict[str, Word], setting: ScriptSetting) -> Program:
    """torchtitan's own script: what it starts stands in variables (NGPU=8 CONFIG=llama3_8b ./run_train.sh --…)."""
    devices = environment.get("NGPU", Word("8", words[0].line))
    setting.findings.whole("per_node", Item(setting.file, "NGPU", devices.text, devices.line))
    arguments = [Word(text, value.line) for name, option in _TITAN.items() if (value := environment.get(name))
            for text in (option, value.text)]  # fmt: skip
    return Program("torchtitan", [*arguments, *words[1:]], Item(setting.file, "command", words[0].text, words[0].line))


def _refer_script(words: Sequence[Word], environment: Mapping[str, Word], setting: ScriptSetting) -> None:
    """The script that a shell is given, or that is a command itself, with the variables that it is started with."""
    named = next((word for word in words if not word.text.startswith("-")), None)
    path = named.text.rpartition(UNKNOWN)[2].lstrip("/") if named is not None else ""
    if named is not None and path.endswith((".sh", ".bash", ".sbatch", ".slurm")):
        item = Item(setting.file, "command", path, named.line)
        setting.findings.refers.setdefault(path, f"{item.origin}: what it starts")
        variables = {name: word.text for name, word in environment.items() if word.known}
        setting.handed.setdefault(path.rpartition("/")[2], variables)


def _given_on(words: Sequence[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """What a script starts: where it is not given, the source that stands behind it (launch.sh train.py --lr 1)."""
    name = words[0].text.rpartition("/")[2] if words else ""
    known = any(path.rpartition("/")[2] == name for path in setting.scripts)
    if known or len(words) < 2 or not words[1].text.endswith(".py"):
        _refer_script(words, environment, setting)
        return []
    setting.findings.warn(
        f"{setting.file}:{words[0].line} {name}: is not given, and taken to run {words[1].text.rpartition('/')[2]}"
    )
    return _script(words[1], list(words[2:]), environment, setting)


def _serving(words: Sequence[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """A server that a script of one's own starts, told by the engine's options."""
    has = {word.text.partition("=")[0] for word in words}
    for kind, model, others in _ENGINES:
        if model in has and has & set(others):
            return [
                Program(kind, list(words[1:]), Item(setting.file, "command", words[0].text, words[0].line), environment)
            ]
    return []


def _python(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """python [options] script.py … and python -m module …"""
    at = 1
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-m":
        at += 1
    if at >= len(words):
        return []
    if words[at].text == "-m" and at + 1 < len(words):
        return _module(words[at + 1], words[at + 2 :], environment, setting)
    return _script(words[at], words[at + 1 :], environment, setting)


def _module(module: Word, rest: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    name = module.text
    if name in ("torch.distributed.run", "torch.distributed.launch"):
        return _torchrun([module, *rest], environment, setting)
    if name in ("accelerate.commands.launch", "deepspeed.launcher.runner"):
        return _LAUNCHERS[name.partition(".")[0]]([module, *rest], environment, setting)
    kind = next((kind for prefix, kind in modules().items() if name.startswith(prefix)), None)
    if kind is not None:
        return [Program(kind, rest, Item(setting.file, "command", name, module.line), environment)]
    if _is_given(path := f"{name.replace('.', '/')}.py", setting):
        return _script(Word(path, module.line), rest, environment, setting)
    return _script(module, rest, environment, setting)


# Programs under whatever name, told by words that only they take.
_BY_WORDS = {
    "llamafactory": {"--stage", "--finetuning_type"},
    "slime": {"--rollout-batch-size", "--hf-checkpoint"},
    "verl": {"data.train_files", "actor_rollout_ref.model.path"},
    "skyrl": {"trainer.policy.model.path", "trainer.algorithm.advantage_estimator"},
    "verl-sft": {"data.train_files", "model.partial_pretrain"},
    "openrlhf": {"--pretrain", "--micro_train_batch_size", "--zero_stage"},
    "oat": {"--oracle", "--pretrain", "--train_batch_size_per_device"},
    "aws-fsdp": {"--max_context_width", "--hidden_width"},
}


def _script(path: Word, rest: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """A Python script: Megatron's by its arguments, TRL's and LlamaFactory's by name, others as the Trainer's."""
    text, item = path.text, Item(setting.file, "command", path.text, path.line)
    if (inner := _handed_on(rest, environment, setting)) is not None:
        return inner
    has = {word.text.partition("=")[0] for word in rest}
    if kind := next((kind for kind, needed in _BY_WORDS.items() if needed <= has), None):
        return [Program(kind, rest, item, environment)]
    # Forks of Megatron have underscores (epfLLM Megatron-LLM); micro_batch_size alone is in scripts of one's own, too.
    dashed = {name.replace("_", "-") for name in has}
    if (
        "--micro-batch-size" in has
        or "--tensor-model-parallel-size" in dashed
        or {"--num-layers", "--hidden-size"} <= dashed
    ):
        return [Program("megatron", rest, item, environment)]
    stem = re.sub(r"\.py$", "", text.rpartition("/")[2])
    if "open_instruct/" in text:
        return [Program("open-instruct", rest, Item(setting.file, "command", stem, path.line), environment)]
    if stem in ("run_recipe", "run_script") or "--recipe" in has:
        return [Program("bridge", rest, item, environment)]
    if {"--seq-len", "--micro-batch"} <= has:
        return [Program("plan", rest, item, environment)]
    if "--lg-model-name" in has:
        return [Program("mlperf", rest, item, environment)]
    if "maxtext" in text.lower() and any(word.text.endswith((".yaml", ".yml")) for word in rest):
        return [Program("maxtext", rest, item, environment)]
    if _is_given(text, setting):
        return [Program("python", rest, item, environment)]
    if stem == "train" and (
        has & {"--finetuning_type", "--stage"} or any(word.text.endswith((".yaml", ".yml")) for word in rest)
    ):
        return [Program("llamafactory", rest, item, environment)]
    if "swift/cli/" in text and stem in ("sft", "pt", "rlhf"):
        return [Program("swift", rest, Item(setting.file, "command", stem, path.line), environment)]
    if stem == "trl_resume" and rest and rest[0].text in SCRIPTS:
        return [Program("trl", rest[1:], Item(setting.file, "command", rest[0].text, path.line), environment)]
    if "trl" in text and stem in SCRIPTS:
        return [Program("trl", rest, Item(setting.file, "command", stem, path.line), environment)]
    if has & {"--model_name_or_path", "--per_device_train_batch_size", "--deepspeed", "--deepspeed_config"}:
        return [Program("trainer", rest, item, environment)]
    return [Program("script", rest, item, environment)] if _TRAINING.search(text) or rest else []


def _is_given(path: str, setting: ScriptSetting) -> bool:
    """Whether the source that a command starts is of the set; it may lie beside."""
    if path.rpartition("/")[2] in setting.sources.texts:
        return True
    if path.endswith(".py"):
        setting.findings.beside[path.rpartition(UNKNOWN)[2].lstrip("/")] = None
    return False


def _handed_on(rest: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program] | None:
    """What a submitting script hands on (submit.py --num_nodes 2 --gpus 8 -- COMMAND && COMMAND); None for others."""
    place = next((at for at, word in enumerate(rest) if word.text == "--"), None)
    if place is None:
        return None
    parts: list[list[Word]] = [[]]
    for word in rest[place + 1 :]:
        _, joined, after = word.text.rpartition("&&")
        if joined:
            parts.append([])
            word = Word(after, word.line)
        if word.text:
            parts[-1].append(word)
    trial = replace(setting, findings=Findings(), written={})
    handed = [part for part in parts if part and peeled(ShellCommand(list(part), environment), trial, 1)]
    if not handed:
        return None
    keys, _ = options(setting.file, rest[:place])
    told = [keys.take(name) for name in ("num_nodes", "nodes")], [keys.take(name) for name in ("gpus", "gpus_per_node")]
    for fact, items in zip(("nodes", "per_node"), told, strict=True):
        setting.findings.whole(fact, next((item for item in items if item is not None), None))
    command = handed[-1]
    if all(any(items) for items in told):
        # It puts the number of all processes in itself.
        at = next((at for at, word in enumerate(command) if word.text == "--num_processes"), None)
        command = command if at is None else [*command[:at], *command[at + 2 :]]
    return peeled(ShellCommand(command, environment), setting, 1)


def _torchrun(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    arguments, rest = until_program(words[1:], TORCHRUN_FLAGS)
    keys, _ = options(setting.file, arguments, TORCHRUN_FLAGS)
    is_told = "nproc_per_node" in keys or any(name.startswith("PET_") for name in setting.variables)
    source = setting.sources.texts.get(rest[0].text.rpartition("/")[2], "") if rest else ""
    counts(keys, setting, nodes="nnodes", per_node="nproc_per_node", each=processes_of_a_device(source))
    if not is_told:
        # torch/distributed/run.py: both are one unless told otherwise.
        setting.findings.default("per_node", 1, "torchrun starts one process unless told otherwise")
        setting.findings.default("nodes", 1, "torchrun starts one node unless told otherwise")
    return _inner(rest, "m" in keys or "module" in keys, environment, setting)


def _inner(words: list[Word], is_module: bool, environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """What a launcher starts: a module, a script, or a console program by its path."""
    # Two dashes end the launcher's own options.
    words = words[1:] if words and words[0].text == "--" else words
    if not words:
        return []
    if is_module:
        return _module(words[0], words[1:], environment, setting)
    name = words[0].text.rpartition("/")[2]
    if name == "-m" and len(words) > 1:
        return _module(words[1], words[2:], environment, setting)
    if name in _LAUNCHERS or name in consoles() or re.fullmatch(r"python[0-9.]*", name):
        return _program(name, words, environment, setting)
    return _script(words[0], words[1:], environment, setting)


def _accelerate(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    if len(words) > 1 and words[1].text == "launch":
        words = words[1:]
    elif words[0].text.rpartition("/")[2] == "accelerate":
        return []
    arguments, rest = until_program(words[1:], _ACCELERATE_FLAGS)
    keys, _ = options(setting.file, arguments, _ACCELERATE_FLAGS)
    is_module = keys.take("m") is not None or keys.take("module") is not None
    config = keys.take("config_file")
    if config is not None and is_certain(config.value):
        setting.findings.refer(config, str(config.value), "devices and sharding")
    for name in ("num_processes", "num_machines"):
        if name in keys and not is_certain(keys.look(name)):
            setting.findings.leave(keys.items.pop(name), "is known only where it runs")
    stage, version = keys.look("zero_stage"), keys.look("fsdp_version")
    if keys.take("use_deepspeed") is not None or stage is not None:
        keys.put("distributed_type", "DEEPSPEED")
    elif keys.take("use_fsdp") is not None or version is not None:
        keys.put("distributed_type", "FSDP")
    for name in [name for name in keys.items if name.startswith("fsdp_")]:
        keys.put(f"fsdp_config.{name}", keys.items.pop(name).value)
    for name in ("zero_stage", "offload_optimizer_device", "offload_param_device", "deepspeed_config_file"):
        if (item := keys.take(name)) is not None:
            keys.put(f"deepspeed_config.{name}", item.value, item.line)
    accelerate.read(keys, setting.findings)
    return _inner(rest, is_module, environment, setting)


def _deepspeed(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    arguments, rest = until_program(words[1:], _DEEPSPEED_FLAGS)
    keys, _ = options(setting.file, arguments, _DEEPSPEED_FLAGS)
    for name in ("num_gpus", "num_nodes"):
        if (item := keys.take(name)) is not None:
            keys.put("per_node" if name == "num_gpus" else "nodes", item.value, item.line)
    counts(keys, setting, nodes="nodes", per_node="per_node")
    include = keys.take("include")
    if include is not None and re.fullmatch(r"[^@:]+:\d+(,\d+)*", str(include.value)):
        # host:0,1,2 (deepspeed/launcher/runner.py parse_resource_filter).
        setting.findings.put("per_node", str(include.value).count(",") + 1, include)
        setting.findings.imply("nodes", 1, include)
    elif include is not None:
        setting.findings.block("per_node", include, "picks devices of several hosts, which is not read")
    return _inner(rest, keys.take("module") is not None, environment, setting)


def _torchx(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """torchx run -s slurm utils.sh --num_replicas N --gpu N COMMAND …, and dist.ddp -j 2x8"""
    place = next((at for at, word in enumerate(words) if re.fullmatch(r"(utils|dist)\.[a-z]+", word.text)), None)
    if place is None:
        return []
    arguments, rest = until_program(words[place + 1 :], ())
    keys, _ = options(setting.file, arguments)
    for name, fact in (("num_replicas", "nodes"), ("gpu", "per_node")):
        setting.findings.whole(fact, keys.take(name))
    world = keys.take("j")
    if world is not None and (match := re.fullmatch(r"([0-9]+)x([0-9]+)", str(world.value))):
        for fact, number in (("nodes", match[1]), ("per_node", match[2])):
            setting.findings.whole(fact, Item(setting.file, "-j", number, world.line))
    script = keys.take("script")
    if script is not None:
        rest = [Word(str(script.value), script.line or 0), *(word for word in rest if word.text != "--")]
        return _script(rest[0], rest[1:], environment, setting)
    return peeled(ShellCommand(rest, environment), setting, 1) if rest else []


def _xpk(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    text = xpk.command_of(words, setting)
    return [] if text is None else _inside(text, environment, setting, 1)


_LAUNCHERS: dict[str, Console] = {
    "xpk": _xpk,
    "torchrun": _torchrun,
    "accelerate": _accelerate,
    "deepspeed": _deepspeed,
    "torchx": _torchx,
}


def _visible(environment: Mapping[str, Word], setting: ScriptSetting) -> None:
    """The one device that a process is let see; of several it may take one, or all."""
    visible = (setting.variables | dict(environment)).get("CUDA_VISIBLE_DEVICES")
    if visible is not None and re.fullmatch(r"[0-9]+", visible.text):
        setting.findings.put("per_node", 1, Item(setting.file, "CUDA_VISIBLE_DEVICES", visible.text, visible.line))


def _program(name: str, words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    if re.fullmatch(r"python[0-9.]*", name) or (name == UNKNOWN and len(words) > 2 and words[1].text == "-m"):
        # A program that is known only where it runs starts modules as Python does.
        _visible(environment, setting)
        return _python(words, environment, setting)
    console = _LAUNCHERS.get(name) or consoles().get(name)
    return console(words, environment, setting) if console else _serving(words, environment, setting)
