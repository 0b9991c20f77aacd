"""What each target's file says of a plan, read back with the formats' own parsers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from launch_plans import PREDICTION, complete, devices

from estimator.errors import PlanError
from launchers.pieces import Rendered
from launchers.render import able_targets, render
from launchers.schedulers.slurm.write import slurm_time
from launchers.targets import TARGETS


def text_of(rendered: Rendered, target: str) -> str:
    return next(file.text for file in rendered.files if file.target == target)


def llamafactory(changes=None, targets=("llamafactory",), **arguments) -> dict:
    return yaml.safe_load(text_of(render(complete(changes), targets, **arguments), "llamafactory"))


def deepspeed(changes=None) -> dict:
    return json.loads(text_of(render(complete(changes), ["deepspeed"]), "deepspeed"))


def test_targets_bring_what_their_files_refer_to():
    def names(targets, changes=None):
        return [file.target for file in render(complete(changes), targets).files]

    assert names(["llamafactory"]) == ["deepspeed", "llamafactory"]
    assert names(["llamafactory"], {"layout.zero_stage": 0}) == ["llamafactory"]
    assert names(["deepspeed", "deepspeed"]) == ["deepspeed"]
    assert names(["slurm"]) == ["deepspeed", "llamafactory", "slurm"]
    assert names(["slurm", "llamafactory", "deepspeed"]) == ["deepspeed", "llamafactory", "slurm"]


@pytest.mark.parametrize("targets", [[], "slurm", ["kubernets"]])
def test_unknown_targets_are_named(targets):
    with pytest.raises(PlanError) as raised:
        render(complete(), targets)
    assert raised.value.field == "targets"
    assert set(raised.value.valid) <= set(TARGETS)


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("pretrain", {"stage": "pt"}),
        ("sft", {"stage": "sft"}),
        ("rm", {"stage": "rm"}),
        ("dpo", {"stage": "dpo", "pref_loss": "sigmoid"}),
        ("ipo", {"stage": "dpo", "pref_loss": "ipo"}),
        ("orpo", {"stage": "dpo", "pref_loss": "orpo"}),
        ("simpo", {"stage": "dpo", "pref_loss": "simpo"}),
        ("kto", {"stage": "kto"}),
        ("ppo", {"stage": "ppo", "reward_model_type": "full"}),
    ],
)
def test_every_stage_has_its_words(stage, said):
    config = llamafactory({"workload.stage": stage})
    assert said.items() <= config.items()
    assert ("reward_model" in config) == (stage == "ppo")


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("full", {"finetuning_type": "full"}),
        ("freeze", {"finetuning_type": "freeze", "freeze_trainable_layers": 2}),
        ("lora", {"finetuning_type": "lora"}),
        ("qlora", {"finetuning_type": "lora", "quantization_bit": 4}),
        ("dora", {"finetuning_type": "lora", "use_dora": True}),
        ("pissa", {"finetuning_type": "lora", "pissa_init": True}),
    ],
)
def test_every_method_has_its_words(method, said):
    config = llamafactory({"workload.method": method, "workload.lora": {"rank": 64, "alpha": 128}})
    assert said.items() <= config.items()
    adapters = {"lora_rank": 64, "lora_alpha": 128, "lora_target": "all"}
    if method in ("full", "freeze"):
        assert not adapters.keys() & config.keys()
    else:
        assert adapters.items() <= config.items()


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        ("adamw", {"optim": "adamw_torch"}),
        ("adamw_8bit", {"optim": "adamw_8bit"}),
        ("paged_adamw", {"optim": "paged_adamw_32bit"}),
        ("paged_adamw_8bit", {"optim": "paged_adamw_8bit"}),
        ("sgd", {"optim": "sgd"}),
        ("adafactor", {"optim": "adafactor"}),
        ("lion", {"optim": "lion_32bit"}),
        ("lomo", {"optim": "lomo"}),
        ("galore", {"use_galore": True, "optim": "adamw_torch", "galore_layerwise": False}),
        ("apollo", {"use_apollo": True, "optim": "adamw_torch", "apollo_layerwise": False}),
        ("muon", {"use_muon": True}),
        ("adam_mini", {"use_adam_mini": True}),
        ("badam", {"use_badam": True, "badam_mode": "layer", "badam_switch_interval": 50}),
    ],
)
def test_every_optimizer_has_its_words(optimizer, said):
    one = {"cluster": {"count": 1, "per_node": 1}, "layout": {"zero_stage": 0, "dp": 1}}
    changes = {"workload": {"optimizer": optimizer, "global_batch": 1}, **one}
    assert said.items() <= llamafactory(changes).items()


@pytest.mark.parametrize(
    ("precision", "said", "json_said"),
    [
        ("bf16", {"bf16": True}, "bf16"),
        ("fp16", {"fp16": True}, "fp16"),
        ("fp32", {"bf16": False, "fp16": False}, None),
        ("tf32", {"bf16": False, "fp16": False, "tf32": True}, None),
        ("fp8", {"bf16": True, "fp8": True}, "bf16"),
    ],
)
def test_every_precision_agrees_in_yaml_and_json(precision, said, json_said):
    changes = {"workload": {"precision": precision, "attention": "sdpa"}}
    assert said.items() <= llamafactory(changes).items()
    config = deepspeed(changes)
    assert {name for name in ("bf16", "fp16") if config.get(name, {}).get("enabled")} == ({json_said} - {None})


def test_memory_and_speed_follow_the_layout():
    plain = llamafactory({"layout": {"recompute": "none"}})
    assert plain["disable_gradient_checkpointing"] is True
    assert plain["enable_liger_kernel"] is False
    assert "use_unsloth_gc" not in plain
    rich = llamafactory({"workload": {"fused_loss": True, "compile": True}, "layout": {"offload": "activations"}})
    assert rich["disable_gradient_checkpointing"] is False
    assert rich["enable_liger_kernel"] is rich["torch_compile"] is rich["use_unsloth_gc"] is True
    names = ("flash", "flash2", "sdpa", "eager")
    attention = {name: llamafactory({"workload.attention": name})["flash_attn"] for name in names}
    assert attention == {"flash": "fa2", "flash2": "fa2", "sdpa": "sdpa", "eager": "disabled"}


def test_packing_is_said_where_the_stage_packs():
    assert llamafactory()["packing"] is True
    assert llamafactory({"workload.packing": False})["packing"] is False
    # Written out, `packing: true` would shorten pretraining rows by a token.
    assert "packing" not in llamafactory({"workload.stage": "pretrain"})
    assert llamafactory({"workload": {"stage": "pretrain", "packing": False}})["packing"] is False
    assert llamafactory({"workload.stage": "dpo"})["packing"] is False


def test_floats_survive_yaml():
    for stage in ("sft", "dpo", "ppo", "simpo"):
        for method in ("full", "lora"):
            changes = {"workload": {"stage": stage, "method": method, "epochs": 1e-05}}
            text = text_of(render(complete(changes), ["llamafactory"]), "llamafactory")
            assert not re.search(r": \d+e", text)
            config = yaml.safe_load(text)
            assert isinstance(config["learning_rate"], float)
            assert 0 < config["learning_rate"] < 1e-3
            assert config["num_train_epochs"] == 1e-05


def test_adapter_targets_become_module_names():
    def target(targets, model="Qwen/Qwen2.5-7B"):
        changes = {"model": model, "workload": {"method": "lora", "lora": {"targets": targets}}}
        return llamafactory(changes, model_id=model)["lora_target"]

    assert target("attention") == "q_proj,k_proj,v_proj,o_proj"
    assert target("attention, mlp").endswith("o_proj,gate_proj,up_proj,down_proj")
    assert target("attention", "microsoft/Phi-3-mini-4k-instruct") == "qkv_proj,o_proj"
    assert target("q_proj, v_proj") == "q_proj,v_proj"
    assert target("mlp,all-linear") == "all"
    for bad in ("q_proj; rm -rf ~", "${oc.env:HOME}", ","):
        with pytest.raises(PlanError, match=r"workload\.lora\.targets"):
            target(bad)


def test_alpha_must_be_whole():
    with pytest.raises(PlanError, match=r"workload\.lora\.alpha.*valid: 12 13"):
        llamafactory({"workload": {"method": "lora", "lora": {"alpha": 12.5}}})


def test_model_name_goes_in_and_unknown_ones_are_asked_for():
    assert llamafactory({"model": "llama 3.1 8b"}, model_id="meta-llama/Llama-3.1-8B")["model_name_or_path"] == (
        "meta-llama/Llama-3.1-8B"
    )
    path = "/data/my models/#1: ünï 'x' \"y\""
    config = llamafactory({"model": path})
    assert config["model_name_or_path"] == path
    assert "template" not in config
    needs = render(complete({"model": path}), ["llamafactory"]).needs_from_user
    assert any("template" in need for need in needs)
    inline = render(complete({"model": {"model_type": "llama"}}), ["llamafactory"])
    assert yaml.safe_load(text_of(inline, "llamafactory"))["model_name_or_path"].startswith("SET_ME")
    assert any("model_name_or_path" in need for need in inline.needs_from_user)


@pytest.mark.parametrize("name", ["a\nb", "${oc.env:SECRET}", "\x1b[31m", "  ", "a\u202eb"])
def test_model_names_that_a_file_cannot_carry_are_refused(name):
    with pytest.raises(PlanError, match=r"^model: "):
        llamafactory(model_id=name)


def test_needs_say_what_the_user_must_bring():
    rendered = render(complete({"workload": {"stage": "ppo", "method": "qlora"}}), ["slurm"])
    text = " | ".join(rendered.needs_from_user)
    for word in ("dataset", "reward_model", "bitsandbytes", "flash-attn", "--partition", "environment"):
        assert word in text
    config = yaml.safe_load(text_of(rendered, "llamafactory"))
    assert config["dataset"].startswith("SET_ME")
    assert config["reward_model"].startswith("SET_ME")
    assert config["reward_model_type"] == "lora"


def test_heading_gives_the_plan_the_prediction_and_the_command():
    rendered = render(complete({"name": "trial"}), ["slurm"], PREDICTION)
    for target in ("llamafactory", "slurm"):
        head = text_of(rendered, target)
        assert "# Shardwise: trial" in head
        assert "60.0 GiB per device (55.0 to 66.0) of 79.6 GiB; step 12.34 s (11 to 13.9)" in head
        assert "sbatch job.sbatch" in head
        assert "seq 4096, batch 1 x 4 x 8 = 32" in head
    assert "predicted" not in text_of(render(complete(), ["llamafactory"]), "llamafactory")
    tight = PREDICTION.__class__(**{**PREDICTION.__dict__, "capacity_bytes": 50 * 2**30})
    assert "# WARNING" in text_of(render(complete(), ["llamafactory"], tight), "llamafactory")


def test_prompts_and_what_is_generated_fill_a_sequence():
    config = llamafactory({"workload": {"stage": "ppo", "response_len": 1000}})
    assert config["max_new_tokens"] == 1000
    assert config["cutoff_len"] == 4096 - 1000
    plain = llamafactory({"workload": {"stage": "sft", "response_len": 1000}})
    assert plain["cutoff_len"] == 4096
    assert "max_new_tokens" not in plain


def test_heading_gives_figures_set_by_hand_with_their_units():
    given = {"usable_gib": 60, "network_gb_per_s": 400, "network_latency_us": 2.5}
    head = text_of(render(complete({"overrides": given}), ["llamafactory"]), "llamafactory")
    assert "set by hand: usable 60 GiB per device, network 400 GB/s, network latency 2.5 us\n" in head
    assert "by hand" not in text_of(render(complete(), ["llamafactory"]), "llamafactory")


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_deepspeed_holds_the_plan_in_numbers(stage):
    text = text_of(render(complete({"layout.zero_stage": stage}), ["deepspeed"]), "deepspeed")
    assert "auto" not in text
    config = json.loads(text)
    assert config["zero_optimization"]["stage"] == stage
    sizes = [
        config[f"{name}"]
        for name in ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size")
    ]
    assert sizes == [1, 4, 32]


def test_zero3_buckets_follow_the_width_and_groups_the_plan():
    zero = deepspeed({"layout.zero_stage": 3})["zero_optimization"]
    assert zero["reduce_bucket_size"] == 4096**2
    assert zero["stage3_prefetch_bucket_size"] == int(0.9 * 4096**2)
    assert zero["stage3_param_persistence_threshold"] == 40960
    assert "zero_hpz_partition_size" not in zero
    grouped = deepspeed({**devices(32), "layout": {"dp": 32, "zero_stage": 3, "shard_group": 8}})
    assert grouped["zero_optimization"]["zero_hpz_partition_size"] == 8
    plan = complete({**devices(32), "layout": {"dp": 32, "zero_stage": 3, "shard_group": 8}})
    assert "shard groups of 8" in text_of(render(plan, ["llamafactory"]), "llamafactory")


def test_offload_goes_where_deepspeed_has_it():
    optimizer = deepspeed({"layout.offload": "optimizer"})["zero_optimization"]
    assert optimizer["offload_optimizer"]["device"] == "cpu"
    assert "offload_param" not in optimizer
    params = deepspeed({"layout": {"offload": "params", "zero_stage": 3}})["zero_optimization"]
    assert params["offload_optimizer"]["device"] == params["offload_param"]["device"] == "cpu"
    assert not [key for key in deepspeed()["zero_optimization"] if key.startswith("offload")]


def test_launch_commands():
    assert render(complete(), ["llamafactory"]).launch_command == (
        "FORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli train llamafactory.yaml"
    )
    several = render(complete(devices(16)), ["llamafactory"])
    assert (
        'NNODES=2 NODE_RANK="$NODE_RANK" MASTER_ADDR="$MASTER_ADDR" MASTER_PORT="$MASTER_PORT"'
        in several.launch_command
    )
    assert any("NODE_RANK (0 to 1)" in need for need in several.needs_from_user)
    assert render(complete(devices(16)), ["slurm"]).launch_command == "sbatch job.sbatch"
    alone = render(complete(devices(16)), ["deepspeed"])
    assert alone.launch_command.startswith("deepspeed --hostfile hostfile --num_nodes 2 --num_gpus 8 train.py")
    assert any("hostfile" in need for need in alone.needs_from_user)


def sbatch_options(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line.startswith("#SBATCH ")]
    return {name: value for name, _, value in (line.removeprefix("#SBATCH ").partition("=") for line in lines)}


@pytest.mark.parametrize(
    ("count", "per_node", "nodes", "gpus", "whole"), [(16, 8, 2, 8, True), (12, 4, 3, 4, True), (2, 8, 1, 2, False)]
)
def test_sbatch_asks_for_the_planned_nodes(count, per_node, nodes, gpus, whole):
    options = sbatch_options(text_of(render(complete(devices(count, per_node)), ["slurm"]), "slurm"))
    assert options["--nodes"] == str(nodes)
    assert options["--gres"] == f"gpu:{gpus}"
    assert options["--ntasks-per-node"] == "1"
    assert ("--exclusive" in options) == ("--mem" in options) == whole


@pytest.mark.parametrize(
    ("hours", "said"), [(24, "1-00:00:00"), (0.001, "0-00:01:00"), (30.51, "1-06:30:00"), (1.999, "0-01:59:00")]
)
def test_slurm_time(hours, said):
    assert slurm_time(hours) == said


def test_sbatch_takes_the_deadline():
    text = text_of(render(complete({"goal.deadline_h": 36}), ["slurm"]), "slurm")
    assert sbatch_options(text)["--time"] == "1-12:00:00"
    assert "the plan's deadline" in text
    assert "default of 24 h" in text_of(render(complete(), ["slurm"]), "slurm")


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_sbatch_runs_and_hands_each_node_its_rank(tmp_path: Path):
    """The script under bash with Slurm's commands played by stubs: who is master, what each node is told."""
    text = text_of(
        render(complete({**devices(16), "name": 'x"; touch owned; $(touch owned) `touch owned`'}), ["slurm"]), "slurm"
    )
    (tmp_path / "job.sbatch").write_text(text)
    stubs = {
        "scontrol": "printf 'node1\\nnode2\\n'",
        "srun": 'while [[ $1 == --* ]]; do shift; done; for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@"; done',
        "llamafactory-cli": 'echo "$NODE_RANK $NNODES $NPROC_PER_NODE $MASTER_ADDR $MASTER_PORT $FORCE_TORCHRUN $*"',
    }
    for name, body in stubs.items():
        stub = tmp_path / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f"#!/bin/bash\n{body}\n")
        stub.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_ID": "12345",
        "SLURM_CPUS_PER_TASK": "64",
    }
    done = subprocess.run(
        ["bash", "job.sbatch"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{rank} 2 8 node1 22345 1 train llamafactory.yaml" for rank in (0, 1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "job.sbatch"]


def test_import_is_light():
    code = "import sys, launchers; sys.exit(len({'yaml', 'pydantic', 'numpy', 'knowledge'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"workload": {"framework": "torchtitan", "stage": "pretrain"}},
        {"workload": {"framework": "deepspeed"}, "cluster": {"count": 16, "per_node": 8}, "layout": {"dp": 16}},
        {"workload": {"method": "qlora"}},
        {"workload": {"framework": "maxtext"}},
        {"cluster": {"accelerator": "tpu-v7"}},
        {"workload": {"framework": "neuronx"}, "cluster": {"accelerator": "trainium2"}},
    ],
)
def test_the_targets_that_write_a_plan_are_those_whose_files_can_be_made(changes: dict[str, dict[str, object]]):
    """Asked one by one, with nothing left out."""
    plan = complete().patch(changes)
    wanted = []
    for name in TARGETS:
        with suppress(PlanError):
            render(plan, [name])
            wanted.append(name)
    assert able_targets(plan) == wanted
