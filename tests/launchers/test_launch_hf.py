"""The trainers of the Hugging Face world: what their files say, read back, and plans at random with hostile names."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_plans import PREDICTION, complete, devices
from samples import examples

from estimator.errors import PlanError
from launchers.choice import usual_program
from launchers.families import layer_class_of
from launchers.pieces import Rendered
from launchers.render import render
from launchers.site import Site
from launchers.yaml_text import document
from tools import call

FRAMEWORKS = {"trl": "fsdp2", "llamafactory": "fsdp2", "axolotl": "axolotl", "torchtune": "torchtune"}


def texts(rendered: Rendered) -> dict[str, str]:
    """What the programs read, by target, without the scripts that start them."""
    return {file.target: file.text for file in rendered.files if file.path not in ("trl_resume.py", "torchtune.sh")}


def files(targets, changes=None, **arguments) -> dict[str, Any]:
    """By target, the YAML of its file."""
    rendered = render(complete(changes), targets, PREDICTION, **arguments)
    return {name: yaml.safe_load(text) for name, text in texts(rendered).items()}


def script(changes=None, **arguments) -> tuple[str, dict[str, dict[str, Any]]]:
    """Unsloth's script, and by called name the literal arguments of its calls."""
    base = {"workload.framework": "unsloth", "layout.zero_stage": 0}
    text = texts(render(complete(base).patch(changes or {}), ["unsloth"], **arguments))["unsloth"]
    calls: dict[str, dict[str, Any]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            calls[name] = {
                word.arg or "": ast.literal_eval(word.value) for word in node.keywords if _is_literal(word.value)
            }
    return text, calls


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("framework", "zero", "kind"),
    [
        ("hf-trainer", 0, "MULTI_GPU"),
        ("hf-trainer", 2, "DEEPSPEED"),
        ("deepspeed", 3, "DEEPSPEED"),
        ("fsdp1", 2, "FSDP"),
        ("fsdp2", 3, "FSDP"),
        ("fsdp2", 0, "MULTI_GPU"),
        ("ddp", 0, "MULTI_GPU"),
    ],
)
def test_trl_is_started_by_accelerate(framework, zero, kind):
    rendered = render(complete({"workload.framework": framework, "layout.zero_stage": zero}), ["trl"])
    names = list(dict.fromkeys(file.target for file in rendered.files))
    assert names == [*(["deepspeed"] if kind == "DEEPSPEED" else []), "accelerate", "trl"]
    config = yaml.safe_load(texts(rendered)["accelerate"])
    assert config["distributed_type"] == kind
    assert config["num_processes"] == 8
    # A DeepSpeed file says the precision itself; accelerate refuses both.
    assert ("mixed_precision" in config) == (kind != "DEEPSPEED")
    assert (
        rendered.launch_command == "accelerate launch --config_file accelerate.yaml trl_resume.py sft --config trl.yaml"
    )


@pytest.mark.parametrize(("accelerator", "kind"), [("arc-pro-b70", "MULTI_XPU"), ("gpu-max-1550", "MULTI_XPU")])
def test_devices_of_intel_are_started_as_such(accelerator, kind):
    several = {**devices(4, 4), "cluster.accelerator": accelerator, "workload.framework": "ddp", "layout.zero_stage": 0}
    rendered = render(complete(several), ["trl"])
    config = yaml.safe_load(texts(rendered)["accelerate"])
    assert config["distributed_type"] == kind
    assert yaml.safe_load(texts(rendered)["trl"])["attn_implementation"] == "sdpa"
    plan = call("import_config", {"text": texts(rendered)["accelerate"]})
    assert "is not read here" not in str(plan)


def test_several_nodes_meet():
    plan = complete({**devices(16), "workload.framework": "fsdp2", "layout.zero_stage": 3})
    for target in FRAMEWORKS:
        rendered = render(plan.patch({"workload.framework": FRAMEWORKS[target]}), [target])
        for word in ('"$NODE_RANK"', '"$MASTER_ADDR"', '"$MASTER_PORT"'):
            assert word in rendered.launch_command, target
        assert any("NODE_RANK" in need for need in rendered.needs_from_user)


@pytest.mark.parametrize("zero", [2, 3])
def test_stages_are_resharding(zero):
    read = files(["trl"], {"workload.framework": "fsdp2", "layout.zero_stage": zero})
    assert read["accelerate"]["fsdp_config"]["fsdp_reshard_after_forward"] is (zero == 3)
    read = files(["axolotl"], {"workload.framework": "axolotl", "layout.zero_stage": zero})
    assert read["axolotl"]["fsdp_config"]["reshard_after_forward"] is (zero == 3)
    read = files(["torchtune"], {"workload.framework": "torchtune", "layout.zero_stage": zero})
    assert read["torchtune"]["fsdp_reshard_after_forward"] is (zero == 3)


def test_trl_splits_sequences_with_accelerate():
    """With sdpa alone, in rows of which every rank gets two pieces, each a sample of its own."""
    workload = {"framework": "fsdp2", "attention": "flash", "packing": False}
    split = {"workload": workload, "layout": {"cp": 4, "dp": 2, "zero_stage": 3}}
    with pytest.raises(PlanError, match="mask"):
        files(["trl"], split | {"workload": workload | {"packing": True}})
    made = files(["trl", "accelerate"], split)
    assert made["accelerate"]["parallelism_config"]["parallelism_config_cp_size"] == 4
    assert made["trl"]["attn_implementation"] == "sdpa"
    assert made["trl"]["pad_to_multiple_of"] == 8
    whole = files(["trl", "accelerate"], split | {"layout": {"cp": 1, "dp": 8, "zero_stage": 3}})
    assert whole["trl"]["attn_implementation"] != "sdpa"
    assert "pad_to_multiple_of" not in whole["trl"]


def test_shard_groups_tensor_and_context_parallelism():
    changes = {**devices(16), "workload.framework": "pytorch", "layout": {"zero_stage": 3, "tp": 2, "cp": 2, "dp": 4}}
    sizes = files(["accelerate"], changes | {"layout.shard_group": 2})["accelerate"]["parallelism_config"]
    assert list(sizes.values()) == [2, 2, 2, 2]
    read = files(
        ["axolotl"], {**devices(16), "workload.framework": "axolotl", "layout": {"zero_stage": 3, "shard_group": 8}}
    )
    assert (read["axolotl"]["dp_replicate_size"], read["axolotl"]["dp_shard_size"]) == (2, 8)
    tensor = {"workload.framework": "torchtune", "layout": {"zero_stage": 3, "tp": 2, "dp": 4}}
    read = files(["torchtune"], tensor)["torchtune"]
    assert read["tensor_parallel_dim"] == 2
    assert read["optimizer"]["fused"] is False
    with pytest.raises(PlanError, match="Llama 3"):
        render(complete(tensor | {"model": "Qwen/Qwen2.5-7B"}), ["torchtune"])
    hybrid = {**devices(16), "workload.framework": "fsdp1", "layout": {"zero_stage": 3, "shard_group": 8}}
    assert files(["trl"], hybrid)["accelerate"]["fsdp_config"]["fsdp_sharding_strategy"] == "HYBRID_SHARD"
    with pytest.raises(PlanError, match="devices of a node"):
        render(complete(hybrid | {"layout": {"zero_stage": 3, "shard_group": 4}}), ["trl"])


def test_checkpointing_is_said_once():
    """The Trainer refuses its own and FSDP's together."""
    for recompute in ("none", "full"):
        changes = {"workload.framework": "fsdp2", "layout": {"zero_stage": 3, "recompute": recompute}}
        read = files(["trl"], changes)
        assert read["trl"]["gradient_checkpointing"] is False
        assert read["accelerate"]["fsdp_config"]["fsdp_activation_checkpointing"] is (recompute == "full")
        read = files(["llamafactory"], changes)
        assert read["llamafactory"]["disable_gradient_checkpointing"] is (recompute == "none")
        assert read["accelerate"]["fsdp_config"]["fsdp_activation_checkpointing"] is False
        read = files(["axolotl"], changes | {"workload.framework": "axolotl"})["axolotl"]
        assert read["gradient_checkpointing"] is False
        assert read["fsdp_config"]["activation_checkpointing"] is (recompute == "full")


def test_grpo_counts_whole_groups():
    changes = {"workload": {"stage": "grpo", "group_size": 16, "response_len": 1024, "rollout": "colocated"}}
    read = files(["trl"], changes)["trl"]
    assert (read["num_generations"], read["generation_batch_size"]) == (16, 32)
    assert (read["vllm_max_model_length"], read["max_completion_length"]) == (4096, 1024)
    assert (read["use_vllm"], read["vllm_mode"], read["vllm_gpu_memory_utilization"]) == (True, "colocate", 0.3)
    with pytest.raises(PlanError) as raised:
        render(complete(changes | {"workload": {"stage": "grpo", "group_size": 24}}), ["trl"])
    assert raised.value.valid == ["24", "48"]
    with pytest.raises(PlanError, match="no room for a prompt"):
        render(complete({"workload": {"stage": "grpo", "response_len": 4096}}), ["trl"])
    assert usual_program(complete({"workload.stage": "grpo"})) == "trl"


def test_steps_win_over_passes():
    changes = {"workload": {"steps": 77, "epochs": 2}}
    assert files(["llamafactory"], changes)["llamafactory"]["max_steps"] == 77
    assert files(["trl"], changes)["trl"]["max_steps"] == 77
    axolotl = {"workload.framework": "axolotl", "layout.zero_stage": 3}
    assert files(["axolotl"], changes | axolotl)["axolotl"]["max_steps"] == 77
    torchtune = {"workload.framework": "torchtune", "layout.zero_stage": 3}
    assert files(["torchtune"], changes | torchtune)["torchtune"]["max_steps_per_epoch"] == 77
    assert script(changes)[1]["SFTConfig"]["max_steps"] == 77
    with pytest.raises(PlanError, match="whole passes"):
        render(complete({**torchtune, "workload.epochs": 1.5}), ["torchtune"])


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_unsloth_says_the_method(method):
    text, calls = script({"workload.method": method})
    loaded = calls["from_pretrained"]
    assert loaded["full_finetuning"] is (method == "full")
    assert loaded["load_in_4bit"] is (method == "qlora")
    assert loaded["max_seq_length"] == calls["SFTConfig"]["max_length"] == 4096
    assert ("get_peft_model" in calls) == (method != "full")
    assert (
        calls["SFTConfig"]["per_device_train_batch_size"] * calls["SFTConfig"]["gradient_accumulation_steps"] * 8 == 32
    )
    assert text.index("from unsloth") < text.index("from trl")


def test_adapters_are_the_plans():
    lora = {"method": "lora", "lora": {"rank": 64, "alpha": 128, "dropout": 0.05, "targets": "attention"}}
    read = files(["trl"], {"workload": lora})["trl"]
    assert (read["lora_r"], read["lora_alpha"], read["lora_dropout"]) == (64, 128, 0.05)
    assert read["lora_target_modules"] == ["q_proj", "k_proj", "v_proj", "o_proj"]
    assert read["dtype"] == "bfloat16"
    axolotl = files(["axolotl"], {"workload": lora | {"framework": "axolotl"}, "layout.zero_stage": 3})["axolotl"]
    assert axolotl["lora_target_modules"] == read["lora_target_modules"]
    torchtune = files(["torchtune"], {"workload": lora | {"framework": "torchtune"}, "layout.zero_stage": 3})[
        "torchtune"
    ]
    assert torchtune["model"]["_component_"] == "torchtune.models.llama3_1.lora_llama3_1_8b"
    assert torchtune["model"]["lora_attn_modules"] == ["q_proj", "k_proj", "v_proj", "output_proj"]
    assert torchtune["model"]["apply_lora_to_mlp"] is False


def test_models_that_torchtune_has_not_are_refused():
    for model in ("Qwen/Qwen3-8B", "acme/own", "meta-llama/Llama-3.2-11B-Vision"):
        with pytest.raises(PlanError) as raised:
            render(complete({"model": model, "workload.framework": "torchtune", "layout.zero_stage": 3}), ["torchtune"])
        assert raised.value.field == "model"


def test_layer_classes_follow_the_family():
    known = {"meta-llama/Llama-3.1-8B": "LlamaDecoderLayer", "Qwen/Qwen3-30B-A3B": "Qwen3MoeDecoderLayer"}
    for model, layer in known.items():
        assert layer_class_of(model) == layer
    for model in ("acme/own", "meta-llama/Llama-3.2-11B-Vision", "Qwen/Qwen2.5-VL-7B", None):
        assert layer_class_of(model) is None


TARGETS = [("trl", "hf-trainer"), ("trl", "fsdp2"), ("accelerate", "pytorch"), ("axolotl", "axolotl")]
TARGETS += [("torchtune", "torchtune"), ("unsloth", "unsloth"), ("llamafactory", "fsdp2")]
workloads = st.fixed_dictionaries(
    {
        "stage": st.sampled_from(["pretrain", "sft", "dpo", "kto", "orpo", "simpo", "ipo", "rm", "grpo"]),
        "method": st.sampled_from(["full", "lora", "qlora", "dora"]),
        "precision": st.sampled_from(["bf16", "bf16", "bf16", "fp16", "fp32"]),
        "attention": st.sampled_from(["flash", "sdpa"]),
        "seq_len": st.integers(2, 2**20),
        "micro_batch": st.integers(1, 64),
        "packing": st.booleans(),
        "epochs": st.integers(1, 10),
    }
)


@settings(max_examples=examples(120), deadline=None)
@given(
    st.sampled_from(TARGETS),
    workloads,
    st.integers(0, 3),
    st.sampled_from([1, 2, 8, 16]),
    st.integers(1, 5),
    st.sampled_from(["none", "full"]),
)
def test_files_agree_with_the_plan_or_it_is_refused(target, workload, zero, count, rounds, recompute):
    name, framework = target
    batch = workload["micro_batch"] * count * rounds
    plan = complete(
        {
            "workload": workload | {"framework": framework, "global_batch": batch, "group_size": 2},
            "cluster": {"count": count, "per_node": min(8, count)},
            "layout": {"dp": count, "zero_stage": zero, "recompute": recompute},
        }
    )
    try:
        rendered = render(plan, [name])
    except PlanError:
        return
    read = texts(rendered)
    if name == "unsloth":
        _, calls = script(
            {"workload": plan.given()["workload"], "cluster": plan.given()["cluster"], "layout": plan.given()["layout"]}
        )
        (arguments,) = (words for call, words in calls.items() if call.endswith("Config"))
        found = arguments["per_device_train_batch_size"], arguments["gradient_accumulation_steps"]
        assert arguments["max_length"] == workload["seq_len"]
    elif name == "accelerate":
        config = yaml.safe_load(read[name])
        assert config["num_processes"] == count
        return
    else:
        config = yaml.safe_load(read[name])
        micro = ("per_device_train_batch_size", "micro_batch_size", "batch_size")
        found = next(config[key] for key in micro if key in config), config["gradient_accumulation_steps"]
        lengths = {"axolotl": "sequence_len", "llamafactory": "cutoff_len", "trl": "max_length"}
        if name == "torchtune":
            assert config["tokenizer"]["max_seq_len"] == workload["seq_len"]
        elif workload["stage"] == "grpo":
            assert config["max_prompt_length"] + config["max_completion_length"] == workload["seq_len"]
        else:
            assert config[lengths[name]] == workload["seq_len"]
    assert found == (workload["micro_batch"], rounds)


hostile = st.one_of(
    st.text(max_size=120),
    st.sampled_from(
        ["$(rm -rf ~)", "`id`", "a\n#!", "'; touch x; '", '"""', "\\", "a: b # c", "{x}", "${x}", "'\\'", "é/漢字"]
    ),
)


@settings(max_examples=examples(120), deadline=None)
@given(hostile, hostile, st.sampled_from(["trl", "axolotl", "unsloth"]))
def test_hostile_names_stay_inert(model, dataset, name):
    framework = {"trl": "hf-trainer"}.get(name, name)
    plan = complete(
        {"name": dataset[:200], "workload": {"framework": framework, "method": "lora"}, "layout.zero_stage": 0}
    )
    try:
        rendered = render(plan, [name], model_id=model or " ", site=Site(dataset=dataset))
    except PlanError:
        return
    text = texts(rendered)[name]
    if name == "unsloth":
        _, calls = script(
            {"name": dataset[:200], "workload.method": "lora"}, model_id=model, site=Site(dataset=dataset)
        )
        assert (calls["from_pretrained"]["model_name"], calls["load_dataset"]["path"]) == (model, dataset)
        plain = script({"workload.method": "lora"}, model_id="m", site=Site(dataset="d"))[0]
        shape = [type(node).__name__ for node in ast.walk(ast.parse(text))]
        assert shape == [type(node).__name__ for node in ast.walk(ast.parse(plain))]
        return
    config = yaml.safe_load(text)
    assert config.get("model_name_or_path", config.get("base_model")) == model
    assert (config["dataset_name"] if name == "trl" else config["datasets"][0]["path"]) == dataset
    assert re.fullmatch(r"saves/[A-Za-z0-9][A-Za-z0-9._-]*", config["output_dir"])
    assert "\n" not in rendered.launch_command


def test_nested_yaml_reads_back():
    value = {"a": {"b": [1, "x: y", None], "c": {}, "d": [{"e": "#", "f": {"g": 1e-05}}, {"e": True}]}, "h": []}
    assert yaml.safe_load(document(["# no"], {"all": value}, {"b": "why", "e": "which"})) == value
