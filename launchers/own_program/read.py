"""Settings of training programs of people's own, of which nothing is known but the words of the field (words.yaml).

Nobody knows what such a program does where its settings are silent. A number that a Plan cannot do without is asked
for; of what stays open otherwise a verdict has to hold for each value, or with the most that it can be.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache

from launchers.hf import read as hf
from launchers.reading.commands import CONFIGS, base_name
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, is_certain, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import NOT_KNOWN, leave_rest
from launchers.reading.mapped import resolve
from launchers.shell.options import options, overrides
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

TITLE = "settings of a program of one's own"
_ROWS = "rows"
# A number of rows that nobody has; it counts tokens.
_TOKENS = 16_384
_DEEPEST = 4
_LENGTHS = ("workload.epochs", "workload.steps")
# Dimensions that nothing has that trains a model as it is.
_OF_SHAPE = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
_BATCHES = ("workload.micro_batch", "accumulation", "workload.global_batch")
_RANK, _FOUR, _EIGHT = "rank", "four", "eight"


@cache
def _meanings() -> dict[str, str]:
    """What each word means, by word."""
    words = table("own_program/words")
    groups: dict[str, list[str]] = {**words["whole"], **words["number"], **words["dimensions"]}
    groups |= {name: words[name] for name in ("precision", "dtype", "optimizer", "recompute", "zero", "sharding",
                                              "model", "tied", "stage")}  # fmt: skip
    groups |= words["switches"] | words["adapters"]
    return {word: meaning for meaning, row in groups.items() for word in row}


def _plain(name: str) -> str:
    """batchSize, batch-size and BATCH_SIZE are batch_size."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name) if not name.isupper() else name
    return name.replace("-", "_").strip("_").lower()


def meaning_of(key: str) -> str | None:
    """What a dotted key means, by its last part or with its section's name before it."""
    parts = [_plain(part) for part in key.split(".")]
    known = _meanings()
    last = parts[-1]
    bare = re.sub(rf"^({'|'.join(table('own_program/words')['own_parts'])})_(?=.)", "", last)
    meaning = known.get("_".join(parts[-2:])) or known.get(last) or known.get(bare)
    return meaning or ("accumulation" if _accumulates(last) else None)


def _accumulates(name: str) -> bool:
    """grad_acc_steps, steps_to_accumulate, accumulation_passes: a word of adding up and one of what is counted."""
    parts = name.split("_")
    return any(re.fullmatch(r"acc|accu|accum|accumulat\w*", part) for part in parts) and any(
        part in ("steps", "step", "grad", "gradient", "gradients", "iters", "iter", "passes", "every", "batches")
        for part in parts
    )


def _is_of_another_part(key: str) -> bool:
    *sections, last = key.split(".")
    words = [word for part in sections for word in _plain(part).split("_")]
    if _plain(last) in table("own_program/words")["whole"]["workload.seq_len"]:
        # What a tokenizer cuts rows at.
        words = [word for word in words if word != "tokenizer"]
    return any(w.startswith(tuple(table("own_program/words")["other_parts"])) for w in (*words, _plain(last)))


def score(keys: Keys) -> int:
    """Less than two words of a program's own, and more than one, which may be anybody's: rows of a batch, and two
    other things that only trainings have."""
    meanings = {meaning_of(key) for key in keys.items if not _is_of_another_part(key)}
    rates = any(re.search(r"(^|[._])(lr|learning_rate)$", _plain(key)) for key in keys.items)
    batch = {_ROWS, "workload.micro_batch", "workload.global_batch"} & meanings
    further = {"workload.epochs", "workload.steps", "accumulation", "optimizer", "workload.seq_len", _RANK} & meanings
    return 2 if batch and len(further) + rates > 1 else 0


def read_settings(keys: Keys, findings: Findings) -> None:
    """A file of settings; where another file has told the program and what it runs, it is of something else."""
    if findings.programs or findings.has("workload.framework") or findings.has("workload.kind"):
        findings.warn(f"{keys.file}: is of a program that is not known here, and other files say the run")
    else:
        read(keys, findings)


def read(keys: Keys, findings: Findings, is_whole: bool = True) -> None:
    """Each key by its words; options of a command that stand among a file's keys win over those. `is_whole`: what no
    key says the program does not do; of a command's options a program has defaults that nobody knows."""
    resolve(keys)
    _unfold(keys)
    known = _gathered(keys, findings)
    first = Item(keys.file, "settings", None)
    findings.programs.append("trainer")
    stop(keys, findings)
    _model(known, findings)
    _stage(known, findings)
    for group in ("whole", "number"):
        for field in table("own_program/words")[group]:
            if (item := known.pop(field, None)) is not None:
                _number(field, item, known, findings)
    _precision(known, findings, first)
    _optimizer(known, findings)
    _recompute(known, findings, first)
    _method(known, findings, first if is_whole else None)
    _sharding(known, findings)
    _silent(findings, first, is_whole)
    for item in known.values():
        findings.leave(item, "not known here")
    findings.warn(f"{keys.file}: is of a program that is not known here, and read by the words of the field in it")
    leave_rest(keys, findings, "own_program", "hf")


def _unfold(keys: Keys) -> None:
    """Lists of one mapping are that mapping."""
    for _ in range(_DEEPEST):
        for item in list(keys.items.values()):
            inner = item.value[0] if isinstance(item.value, list) and len(item.value) == 1 else item.value
            if isinstance(inner, dict):
                del keys.items[item.key]
                for name, value in inner.items():
                    keys.put(f"{item.key}.{name}", value, item.line)


def _gathered(keys: Keys, findings: Findings) -> dict[str, Item]:
    """The items by what they mean, taken out of `keys`. What two keys of the file say differently is open."""
    known: dict[str, Item] = {}
    for key, item in list(keys.items.items()):
        meaning = meaning_of(key)
        if meaning is None or isinstance(item.value, dict):
            continue
        if item.file == keys.file and _is_of_another_part(key):
            findings.leave(keys.items.pop(key), "is of another part than the training")
            continue
        other = known.get(meaning)
        if other is None or (other.file == keys.file != item.file):
            known[meaning] = keys.items.pop(key)
        elif other.value == item.value or (item.file == keys.file != other.file):
            findings.leave(keys.items.pop(key), f"{other.key} says it")
        else:
            known[meaning] = replace(other, value=f"${{{other.key} is {other.value}, {key} {item.value}}}")
            findings.leave(keys.items.pop(key), f"{other.key} says {other.value}")
    return known


def stop(keys: Keys, findings: Findings, known: Collection[str] = ()) -> None:
    """Words of runs that no Plan is, or that are more than their numbers; `known`: keys that a reader reads itself.
    Groups of Hydra that are not here may say anything."""
    groups = keys.take("defaults")
    if groups is not None and groups.value not in ("_self_", ["_self_"]):
        findings.block("workload", groups, "stands on configs that are not given")
    stages = table("own_program/words")["stages"]
    staged = any(meaning_of(key) == "stage" and stages.get(str(item.value).lower()) for key, item in keys.items.items())
    for row in table("own_program/words")["stops"]:
        for key, item in list(keys.items.items()):
            if key.rpartition(".")[2] in known or (staged and "values" in row and row["field"] == "workload.stage"):
                continue
            spaced = f" {' '.join(re.split(r'[._]+', _plain(key)))} "
            if item.value in (None, False, 0, "", "none", "False", "false", [], {}) or _is_of_another_part(key):
                continue
            is_named = str(item.value).lower() in row.get("values", ()) and meaning_of(key) != "stage"
            if is_named or any(f" {word} " in spaced for word in row["words"]):
                findings.block(row["field"], item, row["why"])
                del keys.items[key]


# What has to be in a verdict as a file says it, and words that make a run one of adapters.
_ACCOUNTED = (
    *_BATCHES, "workload.seq_len", "layout.tp", "layout.pp", "layout.cp", "layout.ep", "workload.steps",
)  # fmt: skip
_OF_ADAPTERS = ("packed_switch", _RANK, _FOUR, _EIGHT)


def account(items: Iterable[Item], findings: Findings, reader: str, unsaid: str = "") -> None:
    """A second reading of what `reader` has read: options and keys whose words the field knows, and that it has neither
    used nor left with a reason, leave open what they say. `unsaid`: what stands for those of which it says nothing."""
    known = {row.key: row.why for row in findings.not_read}
    for item in items:
        if not _is_own(item.key) or known.get(item.origin, unsaid) != NOT_KNOWN:
            continue
        meaning, number = meaning_of(item.key), as_number(item.value)
        why = f"is in words that {reader} is not known to take"
        method = findings.values.get("workload.method", findings.defaults.get("workload.method"))
        if meaning in _ACCOUNTED and number is not None and number > 0:
            fields = {*_BATCHES} if meaning in _BATCHES else {meaning}
            open_ones = {*findings.either, *findings.blocked}
            if not fields & open_ones and findings.values.get(meaning) != number:
                findings.withdraw(meaning, f"{item.origin} says another")
                findings.block(meaning, item, why)
        elif meaning in _OF_ADAPTERS and (number or is_set(item)) and getattr(method, "value", method) == "full":
            findings.block("workload.method", item, why)


def _is_own(key: str) -> bool:
    """Whether a key is of the training itself: of no section, or one that says so."""
    sections = [_plain(part) for part in key.split(".")[:-1]]
    own = table("own_program/words")["own_parts"]
    return not _is_of_another_part(key) and all(section in own for section in sections)


def _number(field: str, item: Item, known: Mapping[str, Item], findings: Findings) -> None:
    number = as_number(item.value)
    if field == _ROWS:
        _rows(item, known, findings)
    elif field in _LENGTHS:
        # What is not known of the run's length changes no step.
        if number and number > 0:
            findings.number(field, item) if field == "workload.epochs" else findings.whole(field, item)
        else:
            findings.leave(item, "is no length that is known")
    elif field == "devices" and number in (0, -1, None):
        findings.leave(item, "is no number of devices")
    elif field == "workload.global_batch" and number is not None and number > _TOKENS:
        findings.block(field, item, "counts tokens, not rows")
    elif number is not None and number <= 0 and field not in ("workload.micro_batch", "workload.seq_len"):
        findings.leave(item, "is off")
    else:
        findings.whole(field, item)


def _rows(item: Item, known: Mapping[str, Item], findings: Findings) -> None:
    """`batch_size`: what a DataLoader of each process is given, unless other keys say the rows of a micro-step."""
    if findings.has("workload.micro_batch") or "workload.micro_batch" in known:
        if findings.has("workload.global_batch") or "workload.global_batch" in known:
            findings.leave(item, "other keys say the batch")
        else:
            findings.whole("workload.global_batch", item)
        return
    number = as_number(item.value)
    if number is None or not is_certain(item.value) or number > _TOKENS or number < 1 or number % 1:
        findings.block("workload.micro_batch", item, "is known only where it runs, or no number of rows")
        return
    why = f"{item.key} is what each process loads, as PyTorch's DataLoader counts"
    findings.default("workload.micro_batch", int(number), why)
    findings.at_most(
        "workload.micro_batch", int(number), item, "is the batch of each process, or of all (--micro-batch)"
    )


def _precision(known: dict[str, Item], findings: Findings, first: Item) -> None:
    words = table("own_program/words")
    item = known.pop("precision", None)
    on = [(kind, row) for kind in words["switches"] if is_set(row := known.pop(kind, None)) and row is not None]
    kind = known.pop("dtype", None)
    if item is not None and str(item.value).lower() in words["held"]:
        findings.put("workload.precision", "bf16", item)
        findings.put("workload.weights", words["held"][str(item.value).lower()], item)
    elif item is not None and item.value is not True:
        findings.word("workload.precision", item, words["precisions"])
    elif on:
        findings.put("workload.precision", on[0][0], on[0][1])
    elif kind is not None and kind.value != "auto":
        if findings.word("workload.precision", kind, words["precisions"]) == "bf16":
            why = "is what is computed in, or what all is held in"
            findings.one_of("workload.weights", ("fp32", "bf16"), kind, why)
    else:
        why = "no key says what is computed in (--precision)"
        findings.one_of("workload.precision", ("bf16", "fp32"), item or kind or first, why)


def _optimizer(known: dict[str, Item], findings: Findings) -> None:
    item = known.pop("optimizer", None)
    if item is not None:
        words = hf.optimizers() | table("own_program/words")["optimizers"]
        findings.word("workload.optimizer", replace(item, value=str(item.value).lower()), words)
    findings.default("workload.optimizer", "adamw", "no key names an optimizer")


def _recompute(known: dict[str, Item], findings: Findings, first: Item) -> None:
    item = known.pop("recompute", None)
    on = None if item is None else as_truth(item.value)
    if item is not None and on is not None:
        findings.recomputes.append((on, item))
    elif item is not None and str(item.value).lower() in ("none", "full", "selective"):
        findings.put("layout.recompute", str(item.value).lower(), item)
    elif item is not None:
        findings.block("layout.recompute", item, "is neither true nor false")
    elif not findings.recomputes and not findings.has("layout.recompute"):
        why = "no key says whether activations are kept or computed again (--recompute)"
        findings.one_of("layout.recompute", ("none", "full"), first, why)


def _method(known: dict[str, Item], findings: Findings, first: Item | None) -> None:
    rows = {name: known.pop(name, None) for name in table("own_program/words")["adapters"]}
    if is_set(packed := rows["packed_switch"]):
        # QLoRA is adapters on weights of 4 bits.
        rows |= {"switch": packed, _FOUR: packed}
    switch, rank = rows["switch"], rows[_RANK]
    off = switch is not None and as_truth(switch.value) is False
    ranked = rank is not None and as_number(rank.value) != 0
    if not off and not ranked and switch is None and first is None:
        item = next(iter(known.values()), Item("the command", "options", None))
        findings.at_most("workload.method", "full", item, "no option says whether adapters are trained (--method)")
        return
    if off or not (ranked or is_set(switch)):
        packed = next((rows[name] for name in (_FOUR, _EIGHT) if is_set(rows[name])), None)
        if packed is not None:
            findings.block("workload.method", packed, "packs weights, and nothing says adapters (--method qlora)")
        findings.default("workload.method", "full", "no key asks for adapters")
        return
    told = rank or switch or Item("the files", "adapters", True)
    if is_set(rows[_EIGHT]) and (eight := rows[_EIGHT]) is not None:
        hf.eight_bits(findings, eight)
    elif is_set(rows[_FOUR]) and (four := rows[_FOUR]) is not None:
        findings.put("workload.method", "qlora", four)
        nested = rows["double"]
        findings.default("workload.lora.quantisation", "nf4" if is_set(nested) else "nf4-single", "NF4 by its words")
    elif (packing := rows["packing"]) is not None:
        findings.block("workload.method", packing, "says how weights are packed, and not whether (--method)")
    else:
        findings.put("workload.method", "lora", told)
    findings.whole("workload.lora.rank", rank)
    for name, field in (("alpha", "workload.lora.alpha"), ("dropout", "workload.lora.dropout")):
        findings.number(field, rows[name])
    for name, value in ((_RANK, 8), ("alpha", 16.0), ("dropout", 0.0)):
        findings.default(f"workload.lora.{name}", value, "no key says it; PEFT's usual")
    hf.targets(findings, rows["targets"])
    hf.embeddings(findings, rows["saved"])


def _sharding(known: dict[str, Item], findings: Findings) -> None:
    stage, strategy = known.pop("zero", None), known.pop("sharding", None)
    if stage is not None:
        findings.whole("layout.zero_stage", stage, least=0)
        findings.backend = findings.backend or ("deepspeed", stage)
    elif strategy is not None and isinstance(strategy.value, str):
        words = table("own_program/words")["strategies"]
        if (number := words.get(strategy.value.lower().replace("-", "_"))) is not None:
            findings.put("layout.zero_stage", number, strategy)
            if number:
                findings.backend = findings.backend or ("fsdp2", strategy)
        elif strategy.value.lower() not in ("auto", "nccl", "gloo", "single", "none"):
            findings.block("layout.zero_stage", strategy, "is no way of sharding that is known here")
    if any((findings.values.get(f"layout.{name}") or 1) > 1 for name in ("tp", "pp", "cp", "ep")):
        item = next(Item(row.origin, row.field, row.value) for row in findings.read if row.field.startswith("layout."))
        findings.put("workload.framework", "pytorch", replace(item, value="pytorch"))
    for name in ("tp", "pp", "cp", "ep"):
        findings.default(f"layout.{name}", 1, "no key splits the model this way")


def _stage(known: dict[str, Item], findings: Findings) -> None:
    item = known.pop("stage", None)
    words = table("own_program/words")["stages"]
    kind = str(item.value).lower() if item is not None else ""
    if item is not None and isinstance(item.value, str) and kind not in words:
        findings.block("workload.stage", item, "is no stage of a Plan that is known here")
    elif item is not None and words.get(kind):
        findings.imply("workload.stage", words[kind], item)
    own = isinstance(findings.values.get("model"), dict) or "model" in findings.either
    findings.default("workload.stage", "pretrain" if own else "sft", "nothing in the settings is of another stage")


def _model(known: dict[str, Item], findings: Findings) -> None:
    """A model by name, or of the dimensions that the settings give."""
    names = table("own_program/words")["dimensions"]
    sizes = {name: item for name in names if (item := known.pop(name, None)) is not None}
    tied, item = known.pop("tied", None), known.pop("model", None)
    own = {"num_hidden_layers", "hidden_size", "num_attention_heads"} <= sizes.keys()
    if not own:
        for size in sizes.values():
            findings.leave(size, "is of a model's dimensions, of which others are not here")
        if item is not None and (inner := next((sizes[name] for name in _OF_SHAPE if name in sizes), None)) is not None:
            findings.block("model", inner, f"is a dimension beside the model that {item.key} names")
        hf.model(findings, item)
        return
    if item is not None:
        findings.leave(item, "its dimensions say the model")
    if "vocab_size" not in sizes:
        why = "is of a model of its own, whose vocabulary no key says (vocab_size)"
        findings.block("model", sizes["hidden_size"], why)
        return
    if (unknown := next((row for row in sizes.values() if not _is_size(row.value)), None)) is not None:
        findings.block("model", unknown, "is known only where it runs, or no size")
        return
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    config |= {name: int(as_number(row.value) or 0) for name, row in sizes.items()}
    if tied is not None:
        config["tie_word_embeddings"] = is_set(tied)
    wide = {"intermediate_size": 4 * int(config["hidden_size"])} | config
    why = "is of a model of its own, whose MLPs have a gate or none"
    choices = (
        {**wide, "mlp_gated": True},
        {**wide, "mlp_gated": False, "tie_word_embeddings": is_set(tied) or not tied},
    )
    findings.one_of("model", choices, sizes["hidden_size"], why)


def _is_size(value: object) -> bool:
    number = as_number(value)
    return number is not None and number >= 1 and number % 1 == 0


def _silent(findings: Findings, first: Item, is_whole: bool) -> None:
    """What a Plan needs and the settings do not say."""
    if is_whole:
        findings.default("accumulation", 1, "no key accumulates gradients")
    elif not findings.has("accumulation") and not findings.has("workload.global_batch"):
        findings.block("workload.global_batch", first, "no option says the batch of a step (--global-batch)")
    findings.default("workload.fused_loss", False, "no key asks for a fused loss")
    findings.default("layout.offload", "none", "no key offloads anything")
    fields = {*findings.values, *findings.defaults, *findings.blocked, *findings.either}
    if not fields & {"workload.micro_batch", "workload.global_batch"}:
        findings.block("workload.micro_batch", first, "no key says the rows of a batch (--micro-batch)")
    if "workload.seq_len" not in fields:
        findings.block("workload.seq_len", first, "no key says how long rows are (--seq-len)")
    stage = findings.values.get("workload.stage", findings.defaults["workload.stage"].value)
    if stage == "pretrain":
        findings.default("workload.packing", True, "rows of pretraining are joined")
    elif (row := next((row for row in findings.read if row.field == "workload.seq_len"), None)) is not None:
        findings.longest = f"{row.origin}: rows are at most {row.value} tokens"


def read_command(start: Program, setting: ScriptSetting) -> str:
    """A script of which nothing is known but its arguments, and the config that one of them names."""
    findings = setting.findings
    name = base_name(str(start.name.value))
    words = [word for word in re.split("[^a-z]+", name.lower()) if word]
    rows = table("data/script_names")
    does = next((word for word in words if word.startswith(tuple(rows["other_work"]))), None)
    keys, rest = options(setting.file, start.words)
    overrides(keys, rest)
    configs = [word for word in start.words if word.text.endswith(CONFIGS) and word.known]
    for word in configs:
        item = Item(setting.file, "command", word.text, word.line)
        findings.refer(item, word.text, "the program's settings")
    if does is not None and not any(part in name.lower() for part in rows["training"]):
        findings.idle.append(f"{start.name.origin}: {name} is no training by its name ({does})")
        for item in keys.items.values():
            findings.leave(item, "an argument of other work than training")
        return "command of a script"
    findings.unknown.append(f"{start.name.origin}: what {name} does is not known here")
    config = next(
        (setting.documents[file] for word in configs if (file := base_name(word.text)) in setting.documents), None
    )
    if config is not None:
        for item in keys.items.values():
            config.adopt(item)
    elif score(keys):
        read(keys, findings, is_whole=False)
    else:
        leave_rest(keys, findings)
    return "command of a script"


COMMANDS = {"script": read_command}
FORMATS = (Format(TITLE, score, read_settings, ("yaml", "json", "toml"), order=2),)
