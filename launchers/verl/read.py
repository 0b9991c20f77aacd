"""verl: its PPO and GRPO trainer by key=value words or YAML. Words: fields.yaml."""

from __future__ import annotations

import math

from launchers.hf.read import targets
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.reading.mapped import read_mapped, resolve
from launchers.reading.packed import longest_rows
from launchers.shell.options import options, overrides
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_MODEL, _ACTOR, _ROLLOUT = "actor_rollout_ref.model", "actor_rollout_ref.actor", "actor_rollout_ref.rollout"

_SPLITS = tuple(f"{_ACTOR}.megatron.{name}_parallel_size" for name in ("tensor_model", "pipeline_model", "context"))
_OWN_CONFIGS = ("ppo_trainer", "ppo_trainer.yaml", "./config", "config", "sft_trainer", "sft_trainer_engine",
                "sft_trainer.yaml", "sft_trainer_engine.yaml")  # fmt: skip


def score(keys: Keys) -> int:
    marks = (f"{_MODEL}.path", f"{_ACTOR}.ppo_mini_batch_size", f"{_ROLLOUT}.n", "algorithm.adv_estimator")
    return 6 * sum(name in keys for name in marks)


def read(keys: Keys, findings: Findings) -> None:
    resolve(keys)
    read_run(keys, findings, "verl")


def reward_model(item: Item | None, findings: Findings) -> None:
    """One on the training's devices, which PPO's estimate has and GRPO's has not."""
    if (
        item is not None
        and item.value not in (None, False, "False", "false")
        and findings.values.get("workload.stage") == "grpo"
    ):
        why = "puts a reward model beside the trained one, which is not counted; give what else is on the devices"
        findings.block("overrides.extra_models_gib", item, why)


def read_as(program: str, keys: Keys, findings: Findings) -> None:
    """Another program whose words mean what some of verl's do: its table says which, and what it does unless told."""
    rows = table(f"{program}/fields")
    resolve(keys)
    for name, meaning in rows["words"].items():
        if (item := keys.take(name)) is not None:
            keys.adopt(item, meaning)
    for meaning, (value, why) in rows["unless_given"].items():
        if meaning not in keys:
            keys.adopt(Item(keys.file, why, value), meaning)
    read_run(keys, findings, program)
    findings.warn(f"{keys.file}: verl stands for {rows['title']}, so memory and time are less certain")


def read_run(keys: Keys, findings: Findings, leftovers: str) -> None:
    words = table("verl/fields")
    findings.word("workload.stage", keys.take("algorithm.adv_estimator"), words["stages"])
    findings.default("workload.stage", "ppo", "adv_estimator is gae unless given")
    reward_model(keys.take("reward_model.enable"), findings)
    if (model := keys.take(f"{_MODEL}.path")) is not None:
        findings.put("model", model.value, model)
    _batches(keys, findings, _lengths(keys, findings))
    _method(keys, findings)
    findings.whole("per_node", keys.take("trainer.n_gpus_per_node"))
    findings.whole("nodes", keys.take("trainer.nnodes"))
    _length(keys, findings)
    if (device := keys.items.get("trainer.device")) is not None and device.value == "npu":
        findings.block("cluster.accelerator", device, "is an Ascend NPU, for which none is planned")
    findings.truth("workload.packing", keys.take(f"{_MODEL}.use_remove_padding"))
    _backend(keys, findings)
    leave_rest(keys, findings, leftovers)


def _backend(keys: Keys, findings: Findings) -> None:
    """What trains: FSDP, or Megatron-core."""
    engine = keys.take(f"{_ACTOR}.strategy") or keys.take("model_engine")
    below = [name for name in keys.items if name.startswith(f"{_ACTOR}.megatron.")]
    named = engine is not None and engine.value not in ("fsdp", "fsdp2", "dp")
    words = table("verl/fields")
    if named and engine is not None and engine.value != "megatron":
        findings.block("workload.framework", engine, "is another backend than FSDP and Megatron-core")
    elif named or below:
        _megatron(
            keys, findings, engine if engine is not None and named else keys.items[below[0]], f"{_ACTOR}.megatron"
        )
    else:
        _fsdp(keys, findings)
    for field, (value, why) in words["defaults"].items():
        findings.default(field, value, why)


def _fsdp(keys: Keys, findings: Findings) -> None:
    words = table("verl/fields")
    _types(keys, findings, f"{_ACTOR}.fsdp_config", _MODEL)
    findings.word(
        "layout.recompute", keys.take(f"{_MODEL}.enable_gradient_checkpointing"), {"true": "full", "false": "none"}
    )
    findings.default("layout.recompute", "full", "enable_gradient_checkpointing is on unless given")
    findings.word("workload.precision", keys.take(f"{_ACTOR}.fsdp_config.dtype"), words["precisions"])
    findings.whole("layout.cp", keys.take(f"{_ACTOR}.ulysses_sequence_parallel_size"))
    findings.put("workload.framework", "verl", Item(keys.file, "verl", "verl"))


def _megatron(keys: Keys, findings: Findings, item: Item, below: str) -> None:
    """Its layout and recompute; NeMo RL has the same engine and the same way with its samples."""
    words = table("verl/fields")
    for name, field in words["megatron"].items():
        findings.whole(field, keys.take(f"{below}.{name}"))
    granularity = keys.take(f"{below}.override_transformer_config.recompute_granularity") or keys.take(
        f"{_MODEL}.gradient_checkpointing_kwargs.activations_checkpoint_granularity"
    )
    keys.take(f"{_MODEL}.enable_gradient_checkpointing")
    findings.word("layout.recompute", granularity, words["megatron_recompute"])
    if granularity is not None:
        # Of how many layers at a time, of all of them.
        keys.take(f"{below}.override_transformer_config.recompute_method")
        keys.take(f"{below}.override_transformer_config.recompute_num_layers")
    weights, states = keys.take(f"{below}.param_offload"), keys.take(f"{below}.optimizer_offload")
    for switch in (weights, states):
        if is_set(switch) and switch:
            # They leave the device while samples are generated, and are back while it trains.
            findings.leave(switch, "goes to the host between steps only")
    findings.put("workload.framework", "nemo-rl", item)
    findings.warn(f"{item.origin}: NeMo RL stands for verl on Megatron-core, so memory and time are less certain")
    if "rows_of_all" in findings.values:
        findings.default("layout.tp", 4, "before 0.3 tensor_model_parallel_size was 4 unless given")
    for field, (value, why) in words["megatron_defaults"].items():
        findings.default(field, value, why)


def _length(keys: Keys, findings: Findings) -> None:
    """Steps win over passes."""
    steps, passes = keys.take("trainer.total_training_steps"), keys.take("trainer.total_epochs")
    if findings.whole("workload.steps", steps) is None:
        findings.number("workload.epochs", passes)


def _types(keys: Keys, findings: Findings, engine: str, model: str) -> None:
    """What weights are held in, the shard group, the loss, and what goes to the host."""
    held = keys.take(f"{engine}.model_dtype")
    if held is not None and held.value in ("bfloat16", "bf16"):
        findings.put("workload.weights", "bf16", held)
    group = keys.take(f"{engine}.fsdp_size")
    if group is not None and (as_number(group.value) or 0) > 0:
        findings.whole("layout.shard_group", group)
    findings.truth("workload.fused_loss", keys.take(f"{model}.use_fused_kernels"))
    weights, states = keys.take(f"{engine}.param_offload"), keys.take(f"{engine}.optimizer_offload")
    if is_set(weights) and weights:
        findings.put("layout.offload", "params", weights)
    elif is_set(states) and states:
        findings.put("layout.offload", "optimizer", states)


def _lengths(keys: Keys, findings: Findings) -> int | None:
    """The longest row: a prompt and its answer. How long they are on the mean no file says."""
    prompt, answer = keys.take("data.max_prompt_length"), keys.take("data.max_response_length")
    # Where the engine's own words say them.
    own, whole = keys.take(f"{_ROLLOUT}.response_length"), keys.take(f"{_ROLLOUT}.max_model_len")
    response = findings.whole("workload.response_len", answer or own)
    length = as_number(prompt.value) if prompt is not None else None
    most = as_number(whole.value) if whole is not None else None
    if length is None and most and response is not None and whole is not None:
        prompt, length = whole, most - response
    if prompt is None or length is None or response is None:
        return None
    longest = int(length) + response
    if not _reaches_longest(keys):
        why = f"is the longest prompt; rows are at most {longest} tokens, their mean is not said (--seq-len)"
        findings.at_most("workload.seq_len", longest, prompt, why)
        return longest
    why = f"{prompt.origin} and the answer at their longest: memory is that of the longest rows, time no more than said"
    findings.default("workload.seq_len", longest, why)
    return longest


def _reaches_longest(keys: Keys) -> bool:
    """Whether a micro-step holds as much as its longest rows: they are padded, packed up to a number of tokens, or come
    one by one. Several without padding are as long as their mean."""
    padded = as_truth(keys.look(f"{_MODEL}.use_remove_padding")) is False
    packed = as_truth(keys.look(f"{_ACTOR}.use_dynamic_bsz")) is True
    return padded or packed or keys.look(f"{_ACTOR}.ppo_micro_batch_size_per_gpu") == 1


def _batches(keys: Keys, findings: Findings, longest: int | None) -> None:
    """A step takes ppo_mini_batch_size prompts with rollout.n answers each."""
    # Programs on verl that take several turns count their conversations besides (Search-R1, RAGEN), of which a
    # mini-batch has no more (their verl/workers/fsdp_workers.py).
    turns, samples = keys.take(f"{_ROLLOUT}.n_agent"), keys.take(f"{_ROLLOUT}.n")
    whole = findings.whole("workload.group_size", turns or samples) or 1
    answers = whole if turns is None else int(as_number(samples.value) or 1) if samples is not None else 1
    prompts = keys.take(f"{_ACTOR}.ppo_mini_batch_size")
    count = as_number(prompts.value) if prompts is not None else None
    if turns is not None and prompts is not None and count is not None and count % whole:
        findings.block("workload.global_batch", prompts, f"is no whole groups of {whole} answers, which no Plan has")
    elif prompts is not None and count is not None:
        findings.put("workload.global_batch", int(count) * answers, prompts)
    elif prompts is not None:
        findings.block("workload.global_batch", prompts, "is known only where it runs")
    micro, of_all = keys.take(f"{_ACTOR}.ppo_micro_batch_size_per_gpu"), keys.take(f"{_ACTOR}.ppo_micro_batch_size")
    if (item := keys.take(f"{_ACTOR}.use_dynamic_bsz")) is not None and is_set(item):
        _packed(keys, findings, item, longest)
    elif micro is None and of_all is not None:
        # Before 0.3 it counted the rows of all devices.
        findings.whole("rows_of_all", of_all)
    elif micro is None:
        nothing = Item(keys.file, f"{_ACTOR}.ppo_micro_batch_size_per_gpu", None)
        findings.block("workload.micro_batch", nothing, "is not given, and it does not start without it")
    else:
        findings.whole("workload.micro_batch", micro)
    keys.take("data.train_batch_size")
    hybrid, share = keys.take("actor_rollout_ref.hybrid_engine"), keys.take(f"{_ROLLOUT}.gpu_memory_utilization")
    if hybrid is not None and as_truth(hybrid.value) is False:
        # Its asynchronous trainers (rollout.nnodes): trainer.nnodes are those that train.
        findings.put("workload.rollout", "separate", hybrid)
        return
    if not findings.has("workload.rollout"):
        findings.put("workload.rollout", "colocated", Item(keys.file, _ROLLOUT, "an engine on the same devices"))
    findings.number("workload.engine_share", share)


def _replicas(keys: Keys) -> int | None:
    """The data-parallel groups that the file's devices make."""
    names = ("trainer.n_gpus_per_node", "trainer.nnodes", f"{_ACTOR}.ulysses_sequence_parallel_size", *_SPLITS)
    numbers = [as_number(keys.look(name)) if name in keys else 1.0 for name in names]
    if None in numbers or names[0] not in keys:
        return None
    per_node, nodes, *splits = (int(number or 1) for number in numbers)
    return max(1, per_node * nodes // math.prod(splits))


def _packed(keys: Keys, findings: Findings, item: Item, longest: int | None) -> None:
    """Rows are packed by tokens: as many of the longest as go in, that divide a device's share of the step."""
    tokens = keys.take(f"{_ACTOR}.ppo_max_token_len_per_gpu")
    room = as_number(tokens.value) if tokens is not None else 16384.0
    dp, batch = _replicas(keys), findings.values.get("workload.global_batch")
    if longest is None or room is None:
        findings.block("workload.micro_batch", item, "packs rows by tokens; give rows per device and micro-step")
        return
    split = as_number(keys.look(f"{_ACTOR}.ulysses_sequence_parallel_size")) or 1
    rows = longest_rows(room * split, longest, batch // dp if dp and batch else None)
    findings.default("workload.micro_batch", rows, f"{item.origin}: so many of the longest rows in {int(room)} tokens")


def _method(keys: Keys, findings: Findings) -> None:
    rank = keys.take(f"{_MODEL}.lora_rank")
    if rank is not None and (as_number(rank.value) or 0) > 0:
        findings.put("workload.method", "lora", rank)
        findings.whole("workload.lora.rank", rank)
        findings.number("workload.lora.alpha", keys.take(f"{_MODEL}.lora_alpha"))
        targets(findings, keys.take(f"{_MODEL}.target_modules"))
    findings.default("workload.method", "full", "lora_rank is 0 unless given")


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys = Keys(setting.file)
    _of_hydra(keys, start, setting)
    read(keys, setting.findings)
    return "verl command line"


def _of_hydra(keys: Keys, start: Program, setting: ScriptSetting) -> None:
    """The command's key=value words into `keys`, and its options, which may name a config of one's own."""
    arguments, _ = options(setting.file, overrides(keys, start.words))
    for item in arguments.items.values():
        if "megatron" in str(item.value) and item.key in ("config_name", "cn"):
            keys.put("model_engine", "megatron", item.line)
        elif item.key in ("config_name", "cn", "config_path", "cp") and item.value not in _OWN_CONFIGS:
            setting.findings.block("workload", item, "names a config of one's own, which is not given")
        else:
            setting.findings.leave(item, "is an option of Hydra's own")


def read_sft_command(start: Program, setting: ScriptSetting) -> str:
    keys = Keys(setting.file)
    _of_hydra(keys, start, setting)
    for name, fact in (("trainer.n_gpus_per_node", "per_node"), ("trainer.nnodes", "nodes")):
        # torchrun starts it, and it takes the world that it finds (verl/trainer/fsdp_sft_trainer.py).
        if setting.findings.has(fact) and (item := keys.take(name)) is not None:
            setting.findings.leave(item, "torchrun says how many processes there are")
    _length(keys, setting.findings)
    engine = keys.take("engine") or keys.take("model.strategy")
    is_megatron = engine is not None and engine.value == "megatron"
    if engine is not None and is_megatron:
        _megatron(keys, setting.findings, engine, "engine")
        states = keys.take("optim.override_optimizer_config.optimizer_cpu_offload")
        if is_set(states) and states:
            setting.findings.put("layout.offload", "optimizer", states)
    else:
        _types(keys, setting.findings, "engine", "model")
        if engine is not None and engine.value not in ("fsdp", "fsdp2"):
            setting.findings.block("workload.framework", engine, "is another backend than FSDP and Megatron-core")
    if (as_number(keys.look("model.lora_rank")) or 0) > 0:
        targets(setting.findings, keys.take("model.target_modules"))
    read_mapped("verl/sft", keys, setting.findings, "nemo-rl" if is_megatron else None)
    return table("verl/sft/fields")["title"]


FORMATS = (Format("verl YAML", score, read),)
COMMANDS = {"verl": read_command, "verl-sft": read_sft_command}
MODULES = {
    "verl.trainer.main_ppo": "verl",
    "recipe.dapo.main_dapo": "verl",
    "verl.trainer.sft_trainer": "verl-sft",
    "verl.trainer.fsdp_sft_trainer": "verl-sft",
}
