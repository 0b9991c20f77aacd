"""Over random plans and hostile names: the files read back as the plan, or the plan is refused."""

from __future__ import annotations

import json
import re

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_plans import complete
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.pieces import Rendered
from launchers.render import render
from launchers.yaml_text import scalar


def content(rendered: Rendered) -> dict[str, str]:
    return {file.target: file.text for file in rendered.files}


def attempt(plan: Plan, model_id: str | None = None) -> tuple[dict[str, str], PlanError | None]:
    try:
        return content(render(plan, ["slurm"], model_id=model_id)), None
    except PlanError as error:
        return {}, error


def mostly(usual, *others):
    """`usual` nine times in ten: plans with one or two oddities try the rules, plans with many only the first."""
    return st.integers(0, 9).flatmap(lambda draw: st.sampled_from(others) if draw == 7 else st.just(usual))


powers = st.sampled_from([1, 2, 4, 8, 16, 24])
plans = st.fixed_dictionaries(
    {
        "workload": st.fixed_dictionaries(
            {
                "stage": st.sampled_from(["pretrain", "sft", "dpo", "ppo", "kto", "orpo", "simpo", "ipo", "rm"]),
                "method": st.sampled_from(["full", "lora", "qlora", "dora", "freeze"]) | mostly("full", "pissa"),
                "precision": mostly("bf16", "fp16", "fp32", "tf32", "fp8", "nvfp4"),
                "weights": mostly("auto", "fp32", "bf16"),
                "lora": st.fixed_dictionaries(
                    {
                        "dropout": mostly(0.0, 0.05),
                        "quantisation": st.sampled_from(["nf4", "nf4-single", "gptq"]),
                        "train_embeddings": mostly(False, True),
                    }
                ),
                "rollout": mostly("trainer", "colocated"),
                "optimizer": mostly(
                    "adamw", "paged_adamw", "adamw_8bit", "galore", "muon", "lomo", "lion", "adafactor"
                ),
                "seq_len": st.integers(1, 2**20),
                "micro_batch": st.integers(1, 64),
                "global_batch": st.integers(1, 4096),
                "packing": st.booleans(),
                "attention": st.sampled_from(["flash", "sdpa", "eager"]) | mostly("sdpa", "flash3"),
                "fused_loss": mostly("auto", True, False),
                "epochs": st.floats(1e-6, 1e6),
            }
        ),
        "cluster": st.fixed_dictionaries({"count": powers, "per_node": powers}),
        "layout": st.fixed_dictionaries(
            {
                "tp": mostly(1, 2),
                "pp": mostly(1, 2),
                "dp": powers,
                "zero_stage": st.integers(0, 3),
                "shard_group": mostly(None, 1, 2, 8),
                "recompute": st.sampled_from(["none", "full"]) | mostly("full", "selective", "block:3"),
                "offload": mostly("none", "optimizer", "params", "activations"),
            }
        ),
    }
)


def consistent(changes: dict) -> dict:
    """The same plan with count and global batch made to agree with the rest, so that rules and not sums are tried."""
    layout, workload, cluster = changes["layout"], changes["workload"], changes["cluster"]
    cluster["count"] = layout["tp"] * layout["pp"] * layout["dp"]
    cluster["per_node"] = min(cluster["per_node"], cluster["count"])
    workload["global_batch"] = workload["micro_batch"] * layout["dp"] * (workload["global_batch"] % 7 + 1)
    return changes


@settings(max_examples=examples(150), deadline=None)
@given(plans, st.booleans())
def test_files_read_back_as_the_plan_or_it_is_refused(changes, repair):
    plan = complete(consistent(changes) if repair else changes)
    texts, error = attempt(plan)
    if error:
        assert error.field.split(".")[0] in ("workload", "cluster", "layout")
        return
    training, cluster, layout = plan.training, plan.cluster, plan.layout
    if "llamafactory" not in texts:
        # It has no word for that, and another program has.
        assert layout.offload == "activations" or training.attention == "flash3"
        return
    config = yaml.safe_load(texts["llamafactory"])
    assert layout.tp == layout.pp == 1
    assert config["cutoff_len"] == training.seq_len
    assert config["num_train_epochs"] == training.epochs
    assert config["per_device_train_batch_size"] == training.micro_batch
    product = config["per_device_train_batch_size"] * config["gradient_accumulation_steps"] * (cluster.count or 0)
    assert product == training.global_batch
    assert config["disable_gradient_checkpointing"] == (layout.recompute == "none")
    assert ("deepspeed" in config) == ("deepspeed" in texts) == bool(layout.zero_stage)
    assert config.get("pure_bf16", False) == (training.weights == "bf16")
    adapters = training.lora if training.method in ("lora", "qlora", "dora", "pissa") else None
    assert config.get("lora_dropout", 0.0) == (adapters.dropout if adapters else 0.0)
    assert ("additional_target" in config) == bool(adapters and adapters.train_embeddings)
    packed = training.lora.quantisation if training.method == "qlora" else None
    assert config.get("double_quantization") == {"nf4": True, "nf4-single": False}.get(packed or "")
    assert config["model_name_or_path"].startswith("SET_ME") == (packed == "gptq")
    if "deepspeed" in texts:
        sharding = json.loads(texts["deepspeed"])
        assert sharding["zero_optimization"]["stage"] == layout.zero_stage
        assert sharding["train_batch_size"] == training.global_batch
        assert sharding["gradient_accumulation_steps"] == config["gradient_accumulation_steps"]
        assert ("offload_param" in sharding["zero_optimization"]) == (layout.offload == "params")
    nodes = int((re.search(r"^#SBATCH --nodes=(\d+)$", texts["slurm"], re.M) or [0, 0])[1])
    gpus = int((re.search(r"^#SBATCH --gres=gpu:(\d+)$", texts["slurm"], re.M) or [0, 0])[1])
    assert nodes * gpus == cluster.count


hostile = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="$(){}`'\"\\;&|<>#!\n\r\t\0 \u2028\u202e\x85~*SBATCH-=", max_size=80),
    st.sampled_from(["$(rm -rf ~)", "`id`", "a\n#SBATCH --nodes=99", "'; touch x; '", "--help", "..", "null", "1e5"]),
)
PLAIN = content(render(complete({"name": "plain"}), ["slurm"]))


@settings(max_examples=examples(150), deadline=None)
@given(hostile)
def test_names_stay_inert(name):
    texts = content(render(complete({"name": name}), ["slurm"]))
    expected, found = yaml.safe_load(PLAIN["llamafactory"]), yaml.safe_load(texts["llamafactory"])
    assert re.fullmatch(r"saves/[A-Za-z0-9][A-Za-z0-9._-]*", found.pop("output_dir"))
    expected.pop("output_dir")
    assert found == expected
    assert texts["deepspeed"] == PLAIN["deepspeed"]

    def parts(text: str) -> tuple[list[str], list[str], int]:
        lines = text.split("\n")
        options = [line for line in lines if line.startswith("#SBATCH") and "--job-name" not in line]
        return options, [line for line in lines if not line.startswith("#")], len(text.splitlines())

    assert parts(texts["slurm"]) == parts(PLAIN["slurm"])
    job_name = re.search(r"^#SBATCH --job-name=(.*)$", texts["slurm"], re.M)
    assert job_name
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", job_name[1])


@settings(max_examples=examples(150), deadline=None)
@given(hostile)
def test_model_names_go_through_unchanged_or_are_refused(model):
    texts, error = attempt(complete(), model_id=model or " ")
    if error:
        assert error.field == "model"
        return
    found = yaml.safe_load(texts["llamafactory"])
    assert found["model_name_or_path"] == model
    assert "${" not in texts["llamafactory"]


@settings(max_examples=examples(300), deadline=None)
@given(st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()))
def test_scalars_survive_yaml(value):
    text = scalar(value)
    if isinstance(value, str) and any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        return  # not text: names with them are refused before they get here
    found = yaml.safe_load(f"key: {text}")["key"]
    assert found == value
    assert type(found) is type(value)
