"""torchtitan, Primus and MaxText files, read back by what reads their formats, over random plans."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from launch_plans import complete
from native_plans import DENSE, EXPERTS, LARGE, attempt, hostile, layouts, models, native, started, workloads, world
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.choice import usual_program
from launchers.render import render
from launchers.site import Site
from launchers.tables import table

PRIMUS = yaml.safe_load((Path(__file__).parent / "primus_options.yaml").read_text())


def titan_options(script: str, folder: Path) -> tuple[int, dict[str, str], str]:
    """(processes, options, the variant of activation checkpointing)."""
    _, *words = started(script, folder)
    place = words.index("torchtitan.train")
    *options, last = words[place + 1 :]
    pairs = dict(zip(options[0:4:2], options[1:4:2], strict=True))
    pairs |= {name: value for name, _, value in (word.partition("=") for word in options[4:])}
    return world(words[:place]), pairs, last


TITAN = table("torchtitan/fields")
MANY_EXPERTS = ["Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"]


@st.composite
def titan_plans(draw: st.DrawFn) -> Plan:
    """Of a model and a precision that torchtitan has a config of, in layouts that it can have."""
    model = draw(st.sampled_from([DENSE, LARGE, *MANY_EXPERTS]))
    configs = {name: config for name, config in TITAN["models"][model].items() if name != "module"}
    precision = draw(st.sampled_from(sorted(configs)))
    layout = draw(layouts((2, 3))) | {"etp": None, "offload": "none", "sequence_parallel": None}
    layout |= {"recompute": draw(st.sampled_from(sorted(TITAN["recompute"])))}
    pp, tp = min(layout["pp"], 2), min(layout["tp"], 4)
    layout |= {"pp": pp, "tp": tp, "vpp": 2 if layout["vpp"] and pp > 1 else None}
    # Experts are split over the ranks of a shard group, a shard group over the replicas.
    ranks = tp * layout["cp"] * layout["dp"] if model in MANY_EXPERTS else 1
    layout |= {"ep": draw(st.sampled_from([size for size in (1, 4, 8) if ranks % size == 0]))}
    layout |= {"shard_group": layout["shard_group"] if layout["dp"] > 1 and layout["ep"] == 1 else None}
    workload = draw(workloads) | {"precision": precision, "fused_loss": "auto", "moe_dispatcher": "auto"}
    compiled = draw(st.booleans()) or configs[precision] in TITAN["compiled"]
    return native("torchtitan", model, layout, 12, compile=compiled, **workload)


@settings(max_examples=examples(30), deadline=None)
@given(titan_plans())
def test_torchtitan_scripts_say_the_plan(plan):
    rendered = attempt(plan, "torchtitan")
    assert rendered
    with tempfile.TemporaryDirectory() as folder:
        processes, options, variant = titan_options(rendered.files[0].text, Path(folder))

    def size(name: str) -> int:
        return int(options[f"--parallelism.{name}"])

    split, training = plan.layout, plan.training
    assert processes == plan.cluster.count
    replicas = size("data_parallel_replicate_degree") * size("data_parallel_shard_degree")
    assert replicas == split.dp
    inner = size("tensor_parallel_degree") * size("context_parallel_degree") * size("pipeline_parallel_degree")
    assert replicas * inner == processes
    local, whole = int(options["--training.local_batch_size"]), int(options["--training.global_batch_size"])
    assert whole == training.global_batch
    assert whole % (local * replicas) == 0
    if (split.pp or 1) > 1:
        assert local == 12 * (training.micro_batch or 0)
        assert options["--parallelism.pipeline_parallel_microbatch_size"] == str(training.micro_batch)
    else:
        assert local == training.micro_batch
    assert ("--compile.enable" in options) == training.compile
    assert variant == f"activation_checkpoint:{split.recompute}"
    row = table("torchtitan/fields")["models"][plan.model]
    assert (options["--module"], options["--config"]) == (row["module"], row[training.precision])


@settings(max_examples=examples(30), deadline=None)
@given(models, layouts(), workloads, st.sampled_from([Site(), Site(profile="torch:2-4@0", dataset="synthetic")]))
def test_primus_overrides_say_the_plan(model, layout, workload, site):
    assume(layout["vpp"] is None or layout["pp"] > 1)
    plan = native("primus", model, layout, 12, **workload)
    rendered = attempt(plan, "primus", site=site)
    assume(rendered)
    assert rendered
    trainer = yaml.safe_load(rendered.files[0].text)["modules"]["pre_trainer"]
    found, split, training = trainer["overrides"], plan.layout, plan.training
    assert set(found) <= set(PRIMUS["overrides"])
    assert trainer["model"] == f"{table('primus/fields')['models'][model]}.yaml"
    assert found["tensor_model_parallel_size"] == split.tp
    assert found["pipeline_model_parallel_size"] == split.pp
    assert found["context_parallel_size"] == split.cp
    assert found.get("expert_model_parallel_size", 1) == split.ep
    assert (found["micro_batch_size"], found["global_batch_size"]) == (training.micro_batch, training.global_batch)
    assert found["use_distributed_optimizer"] is bool(split.zero_stage)
    assert found["recompute_granularity"] == {"none": None, "block:2": "full"}.get(
        split.recompute or "", split.recompute
    )
    assert found["bf16"] is (training.precision != "fp32")
    assert found.get("fp8") == {"fp8": "hybrid", "mxfp8": "e4m3"}.get(training.precision)
    assert f"GPUS_PER_NODE={min(plan.cluster.count or 0, 8)} " in rendered.launch_command


@settings(max_examples=examples(30), deadline=None)
@given(models, layouts((0, 3)), workloads, st.sampled_from([1, 3, 4]))
def test_maxtext_files_say_the_plan(model, layout, workload, accumulation):
    workload = workload | {"moe_dispatcher": "auto"}
    layout = layout | {"pp": 1, "vpp": None, "etp": None, "sequence_parallel": None}
    plan = native("maxtext", model, layout, accumulation, **workload)
    rendered = attempt(plan, "maxtext")
    assume(rendered)
    assert rendered
    found, training = yaml.safe_load(rendered.files[0].text), plan.training
    chips = 1
    for name, size in found.items():
        if name.endswith("_parallelism"):
            chips *= size
    assert chips == plan.cluster.count
    assert found["ici_tensor_parallelism"] == plan.layout.tp
    assert found["ici_expert_parallelism"] == plan.layout.ep
    product = found["per_device_batch_size"] * found["gradient_accumulation_steps"] * chips
    assert product == training.global_batch
    assert found["max_target_length"] == training.seq_len
    assert found.get("quantization") == {"fp8": "fp8_full"}.get(training.precision)


def test_slices_of_tpus_are_joined_by_the_data_network():
    plan = native("maxtext", DENSE, {"dp": 512, "zero_stage": 3}).patch({"cluster.accelerator": "tpu-v5e"})
    found = yaml.safe_load(render(plan, ["maxtext"]).files[0].text)
    assert (found["ici_fsdp_parallelism"], found["dcn_fsdp_parallelism"]) == (256, 2)
    grouped = yaml.safe_load(render(plan.patch({"layout.shard_group": 256}), ["maxtext"]).files[0].text)
    assert (grouped["ici_fsdp_parallelism"], grouped["dcn_data_parallelism"]) == (256, 2)


def test_models_of_primus_are_those_of_its_presets():
    assert set(table("primus/fields")["models"].values()) <= set(PRIMUS["models"])


def test_zero_bubble_schedules_of_primus():
    plan = native("primus", DENSE, {"pp": 4, "dp": 2, "schedule": "v-half"}, dp_overlap=False)
    found = yaml.safe_load(render(plan, ["primus"]).files[0].text)["modules"]["pre_trainer"]["overrides"]
    assert set(found) <= set(PRIMUS["overrides"])
    assert found["zero_bubble_v_schedule_mem_setup"] == "half"
    assert found["num_virtual_stages_per_pipeline_rank"] == 2
    assert found["overlap_grad_reduce"] is found["overlap_param_gather"] is False


@pytest.mark.parametrize(
    ("framework", "model", "layout", "workload", "field"),
    [
        ("torchtitan", "mistralai/Mistral-7B-v0.1", {"zero_stage": 3}, {}, "model"),
        ("torchtitan", DENSE, {"zero_stage": 3}, {"precision": "fp8"}, "workload.precision"),
        ("torchtitan", DENSE, {"zero_stage": 3}, {"precision": "mxfp8"}, "workload.compile"),
        ("torchtitan", LARGE, {"zero_stage": 0, "tp": 2, "dp": 4}, {}, "layout.zero_stage"),
        ("torchtitan", DENSE, {"zero_stage": 3, "pp": 2, "dp": 4}, {"cuda_graph": "full"}, "layout.pp"),
        ("torchtitan", LARGE, {"zero_stage": 3, "pp": 4, "dp": 2, "schedule": "zero-bubble"}, {}, "layout.schedule"),
        ("torchtitan", DENSE, {"zero_stage": 3, "ep": 2}, {}, "layout.ep"),
        ("primus", "mistralai/Mistral-7B-v0.1", {}, {}, "model"),
        ("maxtext", "bigscience/bloom", {"zero_stage": 3}, {}, "model"),
        ("maxtext", EXPERTS, {"zero_stage": 3, "tp": 2, "dp": 4, "etp": 1}, {}, "layout.etp"),
        ("maxtext", DENSE, {"zero_stage": 3, "tp": 3}, {}, "layout.tp"),
        ("maxtext", EXPERTS, {"zero_stage": 3}, {"optimizer": "muon"}, "workload.optimizer"),
        ("maxtext", "openai/gpt-oss-20b", {"zero_stage": 3}, {"moe_capacity": True}, "workload.moe_capacity"),
    ],
)
def test_contradictions_are_refused(framework, model, layout, workload, field):
    with pytest.raises(PlanError) as raised:
        render(native(framework, model, layout, **workload), [framework])
    assert raised.value.field == field


@pytest.mark.parametrize(("framework", "accelerator"), [("primus", "h100-sxm"), ("maxtext", "h100-sxm")])
def test_other_devices_are_refused(framework, accelerator):
    stage = {"zero_stage": 3 if framework == "maxtext" else 1}
    with pytest.raises(PlanError, match=r"cluster\.accelerator"):
        render(native(framework, DENSE, stage).patch({"cluster.accelerator": accelerator}), [framework])


@pytest.mark.parametrize("framework", ["primus", "maxtext"])
@settings(max_examples=examples(25), deadline=None)
@given(hostile, hostile)
def test_names_stay_inert(framework, name, dataset):
    plan = native(framework, DENSE, {"zero_stage": 3 if framework == "maxtext" else 1})
    plain = yaml.safe_load(render(plan, [framework]).files[0].text)
    try:
        found = yaml.safe_load(
            render(plan.patch({"name": name}), [framework], site=Site(dataset=dataset)).files[0].text
        )
    except PlanError:
        assume(False)
        raise
    if framework == "primus":
        plain, found = (each["modules"]["pre_trainer"]["overrides"] for each in (plain, found))
        assert found.pop("train_data_path") == dataset
        plain.pop("train_data_path")
        names = ["save"]
    else:
        assert found.pop("hf_path") == dataset
        plain.pop("hf_path")
        names = ["run_name"]
    assert {key: value for key, value in found.items() if key not in names} == {
        key: value for key, value in plain.items() if key not in names
    }


@pytest.mark.parametrize(
    ("framework", "program"),
    [
        ("megatron-lm", "megatron-lm"), ("mlperf-nemo", "megatron-lm"), ("megatron-bridge", "megatron-bridge"),
        ("nemo", "megatron-bridge"), ("primus", "primus"), ("torchtitan", "torchtitan"), ("maxtext", "maxtext"),
        ("pytorch", "torchrun"),
    ],
)  # fmt: skip
def test_frameworks_have_their_programs(framework, program):
    stage = {"zero_stage": 3 if framework in ("torchtitan", "maxtext", "pytorch") else 1}
    assert usual_program(native(framework, DENSE, stage)) == program


def test_shards_and_tensors_of_a_bare_framework_are_torchruns():
    assert usual_program(native("pytorch", DENSE, {"zero_stage": 3, "pp": 2, "dp": 4})) == "torchrun"


def test_blocks_are_counted_in_each_virtual_stage():
    layout = {"tp": 1, "pp": 2, "vpp": 2, "dp": 8, "zero_stage": 1}
    changes = {"workload.framework": "megatron-lm", "cluster.count": 16, "workload.global_batch": 32, "layout": layout}
    text = render(complete(changes).patch({"layout.recompute": "block:4"}), ["megatron-lm"]).files[0].text
    assert "--recompute-num-layers 2" in text
    assert "pp 2, vpp 2" in text
    with pytest.raises(PlanError, match=r"layout\.recompute.*block:2"):
        render(complete(changes).patch({"layout.recompute": "block:3"}), ["megatron-lm"])


@pytest.mark.parametrize(
    ("framework", "stage"), [("torchtitan", 3), ("primus", 1), ("maxtext", 3), ("megatron-bridge", 1)]
)
def test_a_checkpoint_has_the_files_of_its_architecture_under_its_own_name(framework: str, stage: int) -> None:
    layout = {"zero_stage": stage, "dp": 4 if framework == "maxtext" else 8}

    def files(model: str) -> dict[str, str]:
        return {file.path: file.text for file in render(native(framework, model, layout), [framework]).files}

    own, base = files(f"{DENSE}-Instruct"), files(DENSE)
    assert {path: text.replace("8B-Instruct", "8B") for path, text in own.items()} == base
    assert any(f"{DENSE}-Instruct" in text for text in own.values())
