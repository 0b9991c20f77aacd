"""TRL: the YAML or arguments of its scripts, and of other scripts on the transformers Trainer."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache

from launchers.hf import read as hf
from launchers.own_program import read as own_program
from launchers.reading.commands import merged
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

# PEFT's own example of SFT (peft examples/sft/train.py), which many scripts began as.
_OF_PEFT = {"use_peft_lora": "use_peft", "use_lora": "use_peft", "use_4bit_quantization": "load_in_4bit",
            "use_8bit_quantization": "load_in_8bit", "use_nested_quant": "use_bnb_nested_quant"}  # fmt: skip
# Words of QLoRA's own script (artidoro/qlora qlora.py), which many scripts began as, too.
_OF_QLORA = {
    "double_quant": "use_bnb_nested_quant",
    "bnb_4bit_use_double_quant": "use_bnb_nested_quant",
    "quant_type": "bnb_4bit_quant_type",
    "model_max_len": "max_length",
}
# PEFT's own words of adapters, beside the Trainer's, and what such configs call passes.
_OF_ADAPTERS = {"r": "lora_r", "target_modules": "lora_target_modules", "epochs": "num_train_epochs"}
# What a program of one's own has in its own words for them (own_program/words.yaml).
_ADAPTERS = ("switch", "packed_switch", "rank", "alpha", "dropout", "four", "eight", "double")
_TRL = ("use_peft", "max_length", "lora_r", "dataset_name", "loss_type", "beta", "num_generations", "max_prompt_length")
# Of those, what scripts that are not TRL's own seldom have for other reasons.
_TRL_ALONE = ("use_peft", "loss_type", "num_generations", "max_prompt_length", "max_completion_length")
# Arguments without which nothing trains.
_TRAINS = ("learning_rate", "num_train_epochs", "max_steps", "per_device_batch_size", "train_batch_size")
# What nobody else's argument begins as, from so many letters on.
_SHORTENED = ("per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs")
_BEGINNING = 12
# What scripts of one's own call the model.
_OWN_NAMES = ("model_name", "model_id", "base_model", "model_path", "model")
# The bits of a GPTQ checkpoint that a script says itself (transformers GPTQConfig).
GPTQ = "bits of a GPTQ checkpoint"
# How long rows are: TRL's word, its older one, and those of scripts of one's own.
LENGTHS = ("max_length", "max_seq_length", "max_seq_len", "block_size", "model_max_length")
# Words of a script's name, and what it trains.
_NAMED = {"reward": "rm", "rm": "rm", "dpo": "dpo", "kto": "kto", "orpo": "orpo", "simpo": "simpo"}
# What TRL and scripts like its own train besides, which no stage is (trl/trainer, trl/experimental).
_OF_NO_STAGE = ("prm", "gkd", "gold", "minillm", "cpo", "bco", "xpo", "nash", "online_dpo", "papo")
# Whose defaults stand where arguments say nothing: TRL's, the Trainer's, or those of a program that is not known.
TRL, TRAINER, OWN = "TRL", "Trainer", "own"
_SIXTEEN_BITS = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16"}
# What is computed in where no argument says it (trl/trainer/base_config.py; transformers 5 modeling_utils.py).
_SILENT = {
    TRL: "TRL computes in bf16 since 0.19, and before in what the model is loaded in (--precision)",
    TRAINER: "is computed in what the model is loaded in, which is fp32 before transformers 5 (--precision)",
    OWN: "no key says what is computed in (--precision)",
}
SCRIPTS = ("sft", "dpo", "grpo", "kto", "reward", "rloo")


def score(keys: Keys) -> int:
    if "model_name_or_path" not in keys and "per_device_train_batch_size" not in keys:
        return 0
    markers = ("per_device_train_batch_size", "gradient_accumulation_steps", "learning_rate", *_TRL)
    return 2 + sum(name in keys for name in markers)


@cache
def _known() -> frozenset[str]:
    """The arguments that TRL's parsers take."""
    return frozenset(name for words in table("trl/names").values() for name in words.split())


def _in_own_words(keys: Keys) -> None:
    """Puts what a program of one's own calls its adapters under the Trainer's names."""
    for name, item in list(keys.items.items()):
        meaning = own_program.meaning_of(name)
        meant = table("trainer_sections/fields")["meanings"].get(meaning) if meaning in _ADAPTERS else None
        if meant is not None and meant not in keys and name not in _known() and "." not in name:
            keys.take(name)
            keys.put(meant, item.value, item.line)
    for name in ("lora_r", "use_qlora"):
        item = keys.items.get(name)
        if item is not None and "use_peft" not in keys and (is_set(item) or as_number(item.value)):
            keys.put("use_peft", True, item.line)


def read_config(keys: Keys, findings: Findings) -> None:
    """A file of such arguments. TRL's parser refuses words that it does not know: a file that has some is read by a
    program of one's own, whose defaults nobody knows."""
    known = _known()
    foreign = next((name for name in keys.items if name.partition(".")[0] not in known), None)
    is_trl = foreign is None and any(name in keys for name in _TRL)
    read(keys, findings, defaults=TRL if is_trl else OWN)


def read(
    keys: Keys, findings: Findings, script: Item | None = None, own: Item | None = None, defaults: str = ""
) -> None:
    """`script` names TRL's script where the command says it (sft, dpo, …), `own` one that is not known. `defaults`:
    whose stand where the arguments say nothing (`TRL`, `TRAINER`, `OWN`)."""
    words = table("trl/fields")
    defaults = defaults or (TRL if script is not None else OWN if own is not None else TRAINER)
    is_trl = script is not None or any(name in keys for name in (_TRL if own is None else _TRL_ALONE))
    findings.programs.append("trl" if is_trl else "trainer")
    _renamed(keys)
    if defaults == OWN:
        _in_own_words(keys)
    word = next((word for word in _OWN_NAMES if word in keys and script is None), None)
    name = keys.take("model_name_or_path") or (keys.take(word) if word else None)
    hf.model(findings, name)
    _stage(keys, findings, script, is_trl, own)
    own_script = script is None and "per_device_train_batch_size" in keys
    _method(keys, findings, name, own_script, is_alone=word is not None and own is None and defaults == OWN)
    _lengths(keys, findings, defaults == TRL or script is not None)
    if defaults == OWN and not findings.has("workload.seq_len") and "workload.seq_len" not in findings.defaults:
        first = own or Item(keys.file, "settings", None)
        findings.block("workload.seq_len", first, "cuts rows at no length that its arguments say")
    hf.batch(keys, findings)
    hf.length(keys, findings)
    if keys.take("with_tracking") is not None:
        # A loop of one's own on accelerate, in the manner of transformers' no_trainer scripts.
        findings.default("workload.precision", "bf16", "accelerate's own settings say it")
    _precision(keys, findings, defaults)
    hf.optimizer(keys, findings)
    attention = {"flash_attention_2": "flash", hf.OF_SINKS: "flash"} | inverted(words["attention"])
    findings.word("workload.attention", keys.take("attn_implementation"), attention, soft=True)
    _recompute(keys, findings, defaults)
    for key in ("use_liger_kernel", "use_liger_loss"):  # the second before TRL 1
        findings.truth("workload.fused_loss", keys.take(key))
    findings.default("workload.fused_loss", False, "the fused loss is off unless given")
    host = keys.take("activation_offloading")
    if is_set(host) and host:
        findings.put("layout.offload", "activations", host)
    findings.truth("workload.packing", keys.take("packing"))
    findings.default("workload.packing", False, "packing is off unless given")
    hf.compiled(keys, findings)
    _generation(keys, findings)
    config = keys.take("accelerate_config")
    if config is not None:
        findings.refer(config, str(config.value), "devices and sharding")
    hf.deepspeed(keys, findings)
    hf.fsdp(keys, findings, version=1)
    leave_rest(keys, findings, "trl", "hf")


def _stage(keys: Keys, findings: Findings, script: Item | None, is_trl: bool, own: Item | None = None) -> None:
    loss = keys.take("loss_type")
    if script is None and (stage := findings.values.get("workload.stage")) is not None:
        # The command of another program on the Trainer has said it.
        if stage == "dpo" and loss is not None and loss.value not in ("sigmoid", ["sigmoid"]):
            findings.block("workload.stage", loss, "is no loss of a Plan")
        return
    kind = str(script.value) if script is not None else None
    if kind is None:
        if is_trl and ("num_generations" in keys or "reward_funcs" in keys):
            findings.imply("workload.stage", "grpo", keys.items.get("num_generations") or keys.items["reward_funcs"])
            return
        if (rewards := _rewards(keys)) is not None:
            findings.imply("workload.stage", "rm", rewards)
            return
        if (hint := _hint(keys)) is not None:
            findings.imply("workload.stage", "ipo" if loss is not None and loss.value == "ipo" else hint[0], hint[1])
        elif loss is not None or "beta" in keys:
            item = loss or keys.items["beta"]
            findings.block("workload.stage", item, "is of DPO, KTO and others; give stage, or the command that runs it")
        elif (named := _by_name(own or Item(keys.file, "file", keys.file))) is not None:
            findings.imply("workload.stage", *named)
        elif own is not None and _is_named(own, _OF_NO_STAGE):
            findings.block("workload.stage", own, "trains what no stage of a Plan is, by its name")
        elif "max_completion_length" in keys:
            item = keys.items["max_completion_length"]
            findings.block(
                "workload.stage", item, "is of GRPO, RLOO and others; give stage, or the command that runs it"
            )
        else:
            findings.default("workload.stage", "sft", "nothing in the file is of another stage")
        return
    assert script is not None
    losses = loss.value if loss is not None and isinstance(loss.value, list) else [loss.value] if loss else ["sigmoid"]
    if kind == "dpo":
        loss_word = loss or script
        if losses in (["sigmoid"], ["ipo"]):
            findings.put("workload.stage", "dpo" if losses == ["sigmoid"] else "ipo", loss_word)
        else:
            findings.block("workload.stage", loss_word, "is no loss of a Plan")
    elif kind == "sft":
        findings.default("workload.stage", "sft", "the SFT script, which trains on plain text too")
    else:
        words = {"orpo": "orpo"} | inverted(
            {name: row["script"] for name, row in table("trl/fields")["stages"].items()}
        )
        findings.word("workload.stage", script, words)


def _rewards(keys: Keys) -> Item | None:
    """What RewardConfig alone has; at its default it is null."""
    name = "center_rewards_coefficient"
    return keys.take(name) or (Item(keys.file, name, None) if name in keys.nulls else None)


def _by_name(script: Item) -> tuple[str, Item] | None:
    """The stage that a script of one's own is named after."""
    stages = [stage for word, stage in _NAMED.items() if _is_named(script, (word,))]
    return (stages[0], script) if len(stages) == 1 and not _is_named(script, _OF_NO_STAGE) else None


def _is_named(script: Item, words: Collection[str]) -> bool:
    name = str(script.value).rpartition("/")[2].lower()
    return name.endswith((".py", ".yaml", ".yml", ".json")) and any(
        re.search(rf"(^|[^a-z]){word}([^a-z]|$)", name) for word in words
    )


def _hint(keys: Keys) -> tuple[str, Item] | None:
    """The stage that a run is named after, where a loss says that it is one of preferences."""
    if "beta" not in keys and "max_prompt_length" not in keys:
        return None
    for name in ("output_dir", "hub_model_id", "run_name"):
        item = keys.items.get(name)
        for stage in ("dpo", "kto", "orpo", "simpo"):
            if item is not None and re.search(rf"(^|[-_/.]){stage}([-_/.]|$)", str(item.value).lower()):
                return stage, item
    return None


def _method(keys: Keys, findings: Findings, model: Item | None, own_script: bool, is_alone: bool = False) -> None:
    """`is_alone`: a config in words of a script of one's own, which is not there to say what it makes of the model."""
    peft, dora = keys.take("use_peft"), keys.take("use_dora")
    four, eight = keys.take("load_in_4bit"), keys.take("load_in_8bit")
    double, kind = keys.take("use_bnb_nested_quant"), keys.take("bnb_4bit_quant_type")
    gptq = keys.take(GPTQ)
    packed = "gptq" if gptq is not None and gptq.value == 4 else hf.quantised_checkpoint(findings, model)
    lora = keys.items.get("lora_r")
    if peft is None and lora is not None and own_script and (as_number(lora.value) or 0) > 0:
        peft = replace(lora, value=True)
    if not (is_set(peft) and peft):
        for name in ("lora_r", "lora_alpha", "lora_dropout", "lora_target_modules", "lora_task_type"):
            if (item := keys.take(name)) is not None:
                findings.leave(item, "has no effect without use_peft")
        if packs := next((item for item in (four, eight) if is_set(item)), None):
            why = (
                "packs weights, which do not train by themselves, and nothing says adapters (use_peft; --method qlora)"
            )
            findings.block("workload.method", packs, why)
        if is_alone and peft is None and model is not None and not findings.has("workload.method"):
            findings.at_most(
                "workload.method", "full", model, "is read by a script of one's own, which may add adapters"
            )
        findings.default("workload.method", "full", "use_peft is not set")
        return
    if is_set(eight) and eight:
        hf.eight_bits(findings, eight)
    elif is_set(four) and four:
        if kind is not None and kind.value != "nf4":
            findings.block("workload.method", kind, "only NF4 has a place in a Plan")
        else:
            findings.put("workload.method", "qlora", four)
            on = as_truth(double.value) if double is not None else False
            if double is not None and on is not None:
                findings.put("workload.lora.quantisation", "nf4" if on else "nf4-single", double)
            else:
                findings.default("workload.lora.quantisation", "nf4-single", "use_bnb_nested_quant is off unless given")
    elif packed == "gptq" and model is not None:
        findings.put("workload.method", "qlora", peft)
        findings.put("workload.lora.quantisation", "gptq", model)
    elif packed and model is not None:
        findings.block(
            "workload.method", model, "the checkpoint's name says packed weights of a kind that is not modelled"
        )
    else:
        findings.put("workload.method", "dora" if is_set(dora) else "lora", dora if is_set(dora) and dora else peft)
    hf.adapters(keys, findings, rank=16, alpha=32.0, dropout=0.05, renamed=False)


def _lengths(keys: Keys, findings: Findings, is_trl: bool) -> None:
    """Rows of max_length tokens; of GRPO a prompt and its answer."""
    if findings.values.get("workload.stage") == "grpo" or "max_completion_length" in keys:
        prompt, answer = keys.take("max_prompt_length"), keys.take("max_completion_length")
        tokens = findings.whole("workload.response_len", answer)
        if tokens and answer is not None and prompt is not None and (start := as_number(prompt.value)):
            findings.put("workload.seq_len", int(start) + tokens, answer)
            findings.longest = f"{answer.origin}: rows are a prompt and its answer, both at their longest"
        elif prompt is None:
            if answer is not None:
                findings.longest = f"{answer.origin}: rows are a prompt and its answer, which is no longer"
            # Since TRL 1 only the engine cuts them.
            findings.whole("workload.seq_len", keys.take("vllm_max_model_length"))
        return
    joined = keys.items.get("padding_free")
    if joined is not None and is_set(joined) and not is_set(keys.items.get("packing")):
        findings.longest = f"{joined.origin}: joins rows as they are, each at its longest here"
    for name in LENGTHS:
        findings.whole("workload.seq_len", keys.take(name))
    if is_trl:
        findings.default("workload.seq_len", 1024, "max_length is 1024 unless given")


def _precision(keys: Keys, findings: Findings, defaults: str) -> None:
    """`dtype: bfloat16` without autocast holds all in 16 bits. Else it says how a checkpoint is loaded."""
    kind = keys.take("dtype") or keys.take("torch_dtype")
    bf16, fp16 = keys.items.get("bf16"), keys.items.get("fp16")
    half = _SIXTEEN_BITS.get(str(kind.value)) if kind is not None else None
    is_off = bf16 is not None or (defaults == TRAINER and not findings.has("workload.precision"))
    if half and kind is not None and is_off and not is_set(bf16) and not is_set(fp16):
        for name in ("bf16", "fp16"):
            keys.take(name)
        findings.put("workload.precision", half, kind)
        findings.put("workload.weights", "bf16", kind)
        return
    if kind is not None:
        findings.leave(kind, "the type that the checkpoint is loaded in; what is computed in is said by bf16 and fp16")
    if half and bf16 is None and fp16 is None:
        findings.default("workload.precision", half, "is what the model is loaded in")
    is_open = bf16 is None and fp16 is None and "workload.precision" not in findings.defaults
    if is_open and not findings.has("workload.precision"):
        findings.one_of("workload.precision", ("bf16", "fp32"), Item(keys.file, "settings", None), _SILENT[defaults])
    hf.precision(keys, findings, "fp32")


def _recompute(keys: Keys, findings: Findings, defaults: str) -> None:
    """The Trainer recomputes nothing by itself, and TRL all of it since 0.22."""
    is_told = "gradient_checkpointing" in keys or findings.recomputes or findings.has("layout.recompute")
    if defaults != TRAINER and not is_told and "layout.recompute" not in findings.defaults:
        why = "no key says whether activations are kept or computed again (--recompute)"
        if defaults == TRL:
            why = "TRL computes activations again since 0.22, and before it keeps them (--recompute)"
        findings.one_of("layout.recompute", ("none", "full"), Item(keys.file, "settings", None), why)
    hf.checkpointing(keys, findings, usual=False)


# Where a server of one's own is (TRL's GRPOConfig, ms-swift's VllmArguments).
_SERVERS = ("vllm_server_base_url", "vllm_server_host", "vllm_server_port")


def _generation(keys: Keys, findings: Findings) -> None:
    findings.whole("workload.group_size", keys.take("num_generations"))
    engine, mode = keys.take("use_vllm"), keys.take("vllm_mode")
    server = next((keys.items[name] for name in _SERVERS if name in keys), None)
    share = keys.take("vllm_gpu_memory_utilization")
    if engine is None:
        return
    if not is_set(engine):
        findings.put("workload.rollout", "trainer", engine)
    elif mode is not None:
        findings.word("workload.rollout", mode, {"colocate": "colocated", "server": "separate"})
        if mode.value == "colocate":
            findings.number("workload.engine_share", share)
    elif server is not None:
        findings.put("workload.rollout", "separate", server)
    else:
        # huggingface/trl pull request 5255.
        why = "vllm_mode is not there: since TRL 1 it is colocate, before it was a server on devices of its own"
        findings.one_of("workload.rollout", ("colocated", "separate"), engine, why)
        findings.number("workload.engine_share", share)


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    if len(words) < 2 or words[1].text not in SCRIPTS:
        return []
    keys, _ = options(setting.file, words[2:])
    if (item := keys.items.get("num_processes")) is not None:
        setting.findings.whole("devices", item)
    return [Program("trl", words[2:], Item(setting.file, "command", words[1].text, words[1].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, rest, _ = merged(start, setting)
    overrides(keys, rest)
    # python -m trl.scripts.sft is `trl sft`.
    read(keys, setting.findings, replace(start.name, value=str(start.name.value).rpartition(".")[2]))
    return "TRL arguments"


def read_trainer(start: Program, setting: ScriptSetting) -> str:
    """A script on the transformers Trainer, or one that takes DeepSpeed's stage or file itself."""
    keys, _ = options(setting.file, start.words)
    findings = setting.findings
    _renamed(keys)
    config = keys.take("deepspeed_config")
    if config is not None:
        findings.refer(config, str(config.value), "DeepSpeed's ZeRO stage and offload")
        keys.take("deepspeed")
    stage = keys.take("zero_stage") or keys.take("deepspeed_stage")
    if stage is not None:
        findings.whole("layout.zero_stage", stage, least=0)
        findings.backend = findings.backend or ("deepspeed", replace(stage, value=True))
        findings.default("workload.precision", "bf16", "DeepSpeed computes in 16 bits; which, the script says")
    if not any(name in keys for name in ("per_device_train_batch_size", "gradient_accumulation_steps", *_TRAINS)):
        item = keys.take("deepspeed")
        if item is not None and isinstance(item.value, str):
            setting.findings.refer(item, item.value, "DeepSpeed's ZeRO stage and offload")
        why = "starts a script with no argument of a training run"
        setting.findings.blocked.setdefault("workload", f"{start.name.origin}: {why}")
        leave_rest(keys, setting.findings, "hf")
        return "command of a script"
    if match := re.search(r"grpo|ppo|rloo|reinforce", str(start.name.value).rpartition("/")[2]):
        why = (
            f"{match[0]} in a script that is not known here: give stage, group size, rollout and the training's devices"
        )
        findings.block("workload.stage", start.name, why)
    read(keys, setting.findings, own=start.name)
    return "arguments of the transformers Trainer"


def _renamed(keys: Keys) -> None:
    """Puts the words of scripts that many began as in the place of TRL's, and whole words in that of their beginnings,
    which argparse takes for them."""
    for name in _SHORTENED:
        begun = (
            [key for key in keys.items if name.startswith(key) and len(key) > _BEGINNING] if name not in keys else []
        )
        if len(begun) == 1 and (item := keys.take(begun[0])) is not None:
            keys.put(name, item.value, item.line)
    for own, theirs in (_OF_PEFT | _OF_QLORA).items():
        if (item := keys.take(own)) is not None:
            keys.put(theirs, item.value, item.line)
    if "lora_alpha" in keys and "r" in keys:
        for own, theirs in _OF_ADAPTERS.items():
            if (item := keys.take(own)) is not None and theirs not in keys:
                keys.put(theirs, item.value, item.line)
    bits = keys.items.get("bits")
    if bits is not None and bits.value in (4, 8, 16) and not is_set(keys.items.get("full_finetune")):
        keys.take("bits")
        keys.put("use_peft", True, bits.line)
        if bits.value != 16:
            keys.put(f"load_in_{bits.value}bit", True, bits.line)


FORMATS = (Format("TRL or transformers Trainer arguments", score, read_config, ("yaml", "json")),)
COMMANDS = {"trl": read_command, "trainer": read_trainer}
CONSOLES = {"trl": _console}
MODULES = {"trl.scripts.": "trl", "trl.commands.": "trl"}
