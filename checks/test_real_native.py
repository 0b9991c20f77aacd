"""torchtitan, NeMo AutoModel, MaxText and xpk read what the plans say, with their own configuration classes."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import yaml
from hf_plans import SITES, rendered_with

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.render import render
from launchers.tables import table

EXPERTS = "mistralai/Mixtral-8x7B-v0.1"
DEVICES = {"torchtitan": ("h100-sxm", 8), "maxtext": ("tpu-v5p", 4), "nemo-automodel": ("h100-sxm", 8)}


def native(framework: str, model: str, layout: dict[str, Any], workload: dict[str, Any]) -> Plan:
    split = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 1, "offload": "none", "recompute": "full"} | layout
    count = split["tp"] * split["pp"] * split["cp"] * split["dp"]
    accelerator, per_node = DEVICES[framework]
    return Plan.parse(
        {
            "model": model,
            "workload": {
                "framework": framework, "stage": "pretrain", "seq_len": 4096, "micro_batch": 2,
                "global_batch": 2 * 4 * split["dp"], **workload,
            },
            "cluster": {"accelerator": accelerator, "count": count, "per_node": min(per_node, count)},
            "layout": split,
        }
    )  # fmt: skip


def made(framework: str, folder: Path, plans: list[Plan]) -> list[tuple[Plan, Path]]:
    """Those that are not refused, written below `folder`."""
    written = []
    for number, plan in enumerate(plans):
        try:
            file = rendered_with(plan, framework, SITES[number % len(SITES)]).files[0]
        except PlanError:
            continue
        place = folder / f"{len(written)}-{file.path}"
        place.write_text(file.text)
        written.append((plan, place))
    return written


def options_of(script: Path) -> list[str]:
    """The words after torchtitan.train, which stand in the script without variables."""
    text = "\n".join(line for line in script.read_text().splitlines() if not line.startswith("#"))
    words = shlex.split(text.replace("\\\n", " "))
    return words[words.index("torchtitan.train") + 1 :]


def titan_plans() -> list[Plan]:
    layouts = [
        {"dp": 8, "zero_stage": 3}, {"dp": 8, "zero_stage": 2, "recompute": "none"}, {"dp": 8, "zero_stage": 0},
        {"dp": 8, "zero_stage": 3, "shard_group": 4, "offload": "params"}, {"tp": 4, "dp": 4, "zero_stage": 3},
        {"tp": 2, "cp": 2, "dp": 4, "zero_stage": 3, "recompute": "selective", "sequence_parallel": False},
        {"tp": 2, "pp": 4, "dp": 2, "zero_stage": 2}, {"pp": 4, "vpp": 2, "dp": 2, "zero_stage": 3},
        {"pp": 4, "vpp": 2, "dp": 2, "zero_stage": 3, "schedule": "zero-bubble"},
        {"pp": 4, "dp": 2, "zero_stage": 3, "schedule": "gpipe"}, {"dp": 8, "ep": 8, "zero_stage": 3},
        {"tp": 4, "dp": 8, "ep": 4, "zero_stage": 3, "shard_group": 4},
    ]  # fmt: skip
    plans = []
    turns = itertools.cycle(layouts)
    models = [each for each in table("torchtitan/fields")["models"].items() for _ in range(4)]
    for model, row in models:
        layout = next(turns)
        for number, precision in enumerate(name for name in row if name != "module"):
            compiled = precision in ("fp8", "mxfp8") or number == 1
            workload = {"precision": precision, "compile": compiled, "tp_overlap": compiled and layout.get("tp", 1) > 1,
                        "fused_loss": True,
                        "steps": 7, "weights": "bf16" if precision == "bf16" and compiled else "auto"}  # fmt: skip
            plans.append(native("torchtitan", model, layout, workload))
    return [*plans, native("torchtitan", "Qwen/Qwen3-14B", layouts[0], {"cuda_graph": "full", "fused_loss": True})]


def test_torchtitan_reads_the_plan(ask, tmp_path):
    written = made("torchtitan", tmp_path, titan_plans())
    assert len(written) > 50
    assert {str(plan.model) for plan, _ in written} == set(table("torchtitan/fields")["models"])
    answers = ask("titan", "torchtitan", [{"options": options_of(place)} for _, place in written])
    recompute = {"none": "NoneType", "selective": "SelectiveAC", "full": "FullAC"}
    for (plan, place), read in zip(written, answers, strict=True):
        split, training = plan.layout, plan.training
        assert read["error"] is None, (read["error"], place.read_text())
        assert read["replicas"] * read["shards"] == split.dp
        assert read["shards"] == (split.shard_group or split.dp if split.zero_stage else 1)
        assert read["reshard"] == ("always" if split.zero_stage == 3 else "never")
        assert (read["tp"], read["pp"], read["cp"], read["ep"]) == (split.tp, split.pp, split.cp, split.ep)
        assert read["sequence_parallel"] == (split.sequence_parallel is not False)
        assert (read["global"], read["length"]) == (training.global_batch, 4096)
        assert read["local"] == (8 if (split.pp or 1) > 1 else 2)
        if (split.pp or 1) > 1:
            stages = -(-read["layers"] // read["layers_per_stage"])
            assert stages == (split.pp or 1) * (split.vpp or 1)
            assert read["micro_batch"] == training.micro_batch
        assert read["compile"] == training.compile
        assert read["async_tp"] == (training.tp_overlap is True)
        assert read["dtype"] == ("bfloat16" if training.weights == "bf16" else "float32")
        assert read["cuda_graphs"] == (training.cuda_graph == "full")
        assert read["offload"] == (split.offload == "params")
        assert read["recompute"] == recompute[split.recompute or ""]


def test_torchtitan_refuses_what_is_wrong(ask, tmp_path):
    ((_, place),) = made("torchtitan", tmp_path, titan_plans()[:1])
    good = options_of(place)
    wrong = [
        [*good[:-1], "--training.local_batchsize=2", good[-1]],
        [*good[:-1], "--training.seq_len=many", good[-1]],
        ["--module", "llama3", "--config", "llama3_9b"],
        [*good[:-1], "activation_checkpoint:some"],
    ]
    assert all(read["error"] for read in ask("titan", "torchtitan", [{"options": options} for options in wrong]))


def devices(chips: int) -> dict[str, str]:
    """What gives JAX's CPU backend as many devices."""
    return {"XLA_FLAGS": f"--xla_force_host_platform_device_count={chips}"}


def tpu_plans(chips: int) -> list[Plan]:
    layouts = [
        {"dp": chips, "zero_stage": 3}, {"dp": chips, "zero_stage": 0},
        {"dp": chips, "zero_stage": 3, "shard_group": 4},
        {"tp": 4, "dp": chips // 4, "zero_stage": 3, "recompute": "selective"},
        {"cp": 2, "dp": chips // 2, "zero_stage": 3, "recompute": "none"},
        {"dp": chips, "ep": 8, "zero_stage": 3}, {"tp": 2, "dp": chips // 2, "ep": 4, "etp": 2, "zero_stage": 3},
        {"dp": chips, "zero_stage": 3, "offload": "params"}, {"dp": chips, "zero_stage": 3, "offload": "activations"},
    ]  # fmt: skip
    settings = itertools.cycle(
        [{}, {"precision": "fp32"}, {"weights": "bf16", "steps": 9}, {"fused_loss": True}, {"optimizer": "muon"},
         {"moe_capacity": True}, {"attention": "eager"}, {"precision": "fp8"}]
    )  # fmt: skip
    turns = itertools.cycle(layouts)
    models = list(table("maxtext/fields")["models"])
    plain = [native("maxtext", model, layouts[0], {}) for model in models]
    # Experts are split in few of the models: those have all layouts.
    varied = [native("maxtext", model, next(turns), next(settings)) for model in models]
    return [*plain, *varied, *(native("maxtext", EXPERTS, layout, next(settings)) for layout in layouts)]


def test_maxtext_reads_the_plan(ask, tmp_path):
    chips = 16
    written = made("maxtext", tmp_path, tpu_plans(chips))
    assert len(written) > 60
    assert {str(plan.model) for plan, _ in written} == set(table("maxtext/fields")["models"])
    answers = ask("maxtext", "maxtext", [{"path": str(place)} for _, place in written], **devices(chips))
    for (plan, place), read in zip(written, answers, strict=True):
        split, training = plan.layout, plan.training
        file = yaml.safe_load(place.read_text())
        assert read["error"] is None, (read["error"], plan.model, split, training)
        assert read["model"] == table("maxtext/fields")["models"][str(plan.model)]
        assert (read["batch"], read["accumulation"], read["length"]) == (training.global_batch, 4, 4096)
        assert read["micro_batch"] == (training.micro_batch or 0) * (split.dp or 0)
        product = 1
        for size in read["axes"].values():
            product *= size
        assert product == chips
        assert read["axes"].get("ici_tensor_parallelism", 1) == split.tp
        assert read["axes"].get("ici_context_parallelism", 1) == split.cp
        assert read["axes"].get("ici_expert_parallelism", 1) == split.ep
        assert read["remat"] == file["remat_policy"]
        assert read["dtype"] == ("float32" if training.precision == "fp32" else "bfloat16")
        assert read["weights"] == ("bfloat16" if training.weights == "bf16" else "float32")
        assert read["quantization"] == ("fp8_full" if training.precision == "fp8" else "")
        assert read["optimizer"] == training.optimizer
        assert read["steps"] == (training.steps or 1000)


def test_maxtext_refuses_what_is_wrong(ask, tmp_path):
    chips = 16
    ((_, place),) = made("maxtext", tmp_path, tpu_plans(chips)[:1])
    wrong = []
    for name, old, new in (
        ("key", "packing:", "paking:"), ("model", "model_name:", "model_name: llama9 #"),
        ("mesh", "ici_fsdp_parallelism: 16", "ici_fsdp_parallelism: 12"),
        ("remat", "remat_policy: full", "steps: many"),
    ):  # fmt: skip
        text = place.read_text()
        assert old in text
        other = tmp_path / f"{name}.yml"
        other.write_text(text.replace(old, new))
        wrong.append({"path": str(other)})
    answers = ask("maxtext", "maxtext", wrong, **devices(chips))
    # The mesh is compared with the devices when the trainer makes it, not by the configuration.
    assert [bool(read["error"]) for read in answers] == [True, True, False, True]
    axes = answers[2]["axes"]
    assert axes["ici_fsdp_parallelism"] != chips


def slices() -> list[tuple[Plan, list[str]]]:
    """Plans of MaxText on every TPU that xpk has slices of, and the words of their commands."""
    written = []
    for device, count in itertools.product(table("data/devices")["xpk"], (4, 8, 16, 64, 256, 512)):
        changes = {"cluster": {"accelerator": device, "count": count, "per_node": min(4, count)}}
        plan = native("maxtext", "meta-llama/Llama-3.1-8B", {"dp": count, "zero_stage": 3}, {"packing": True})
        try:
            files = render(plan.patch(changes), ["maxtext", "xpk"]).files
        except PlanError:
            continue
        (text,) = [file.text for file in files if file.path == "xpk.sh"]
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        text = re.sub(r"\$\{(\w+):\?\}", lambda name: name[1].lower(), "\n".join(lines).replace("\\\n", " "))
        words = shlex.split(text)
        assert words[0] == "xpk"
        written.append((plan.patch(changes), words[1:]))
    return written


def test_xpk_takes_the_commands_and_has_as_many_chips(ask):
    written = slices()
    # tpu-v7 has no count of devices that MaxText files are written for.
    assert {plan.cluster.accelerator for plan, _ in written} == set(table("data/devices")["xpk"]) - {"tpu-v7"}
    good = written[0][1]
    broken = [
        [word.replace("--device-type=v", "--device-type=v9") for word in good],
        [word.replace("--num-slices", "--num-slice-count") for word in good],
        [word for word in good if not word.startswith("--workload=")],
    ]
    answers = ask("xpk", "xpk", [{"words": words} for words in [*(words for _, words in written), *broken]])
    for (plan, words), read in zip(written, answers, strict=False):
        assert read["error"] is None, (read["error"], words)
        assert read["chips"] == plan.cluster.count
        assert "exec env " in read["command"]
    assert all(read["error"] for read in answers[len(written) :])


def automodel_plans() -> list[Plan]:
    layouts = [
        {"dp": 8, "zero_stage": 3}, {"dp": 8, "zero_stage": 2, "recompute": "none"}, {"dp": 8, "zero_stage": 0},
        {"dp": 16, "zero_stage": 3, "shard_group": 8}, {"tp": 2, "dp": 4, "zero_stage": 3},
        {"cp": 2, "dp": 4, "zero_stage": 2}, {"dp": 8, "zero_stage": 3, "offload": "params"},
    ]  # fmt: skip
    settings = [
        {}, {"packing": False}, {"method": "lora"}, {"method": "qlora"}, {"method": "dora", "steps": 50},
        {"optimizer": "sgd", "weights": "fp32"}, {"fused_loss": True, "attention": "sdpa"}, {"precision": "fp8"},
    ]  # fmt: skip
    usual = {"stage": "sft", "packing": True}
    pairs = itertools.product(layouts, settings)
    return [native("nemo-automodel", "meta-llama/Llama-3.1-8B", layout, usual | more) for layout, more in pairs]


def test_automodel_reads_the_plan(ask, tmp_path):
    written = made("nemo-automodel", tmp_path, automodel_plans())
    assert len(written) > 40
    answers = ask("titan", "automodel", [{"path": str(place)} for _, place in written])
    for (plan, place), read in zip(written, answers, strict=True):
        split, training = plan.layout, plan.training
        assert read["error"] is None, (read["error"], place.read_text())
        assert read["recipe"].endswith(".TrainFinetuneRecipeForNextTokenPrediction")
        assert read["strategy"] == ("FSDP2Config" if split.zero_stage else "DDPConfig")
        assert (read["tp"], read["cp"]) == (split.tp, split.cp)
        assert (read["replicas"] or 1) == (split.dp or 1) // (split.shard_group or split.dp or 1)
        # Unless told not to it reshards.
        assert (read["reshard"] is False) == (split.zero_stage == 2)
        assert read["offload"] == ("CPUOffloadPolicy" if split.offload == "params" else "NoneType")
        assert read["recompute"] == (split.recompute == "full")
        assert (read["batch"], read["micro_batch"]) == (training.global_batch, training.micro_batch)
        assert (read["steps"], read["length"]) == (training.steps, 4096)
        assert read["packed"] == (4096 if training.packing else None)
        assert read["optimizer"] == {"adamw": "AdamW", "sgd": "SGD"}[training.optimizer]
        assert read["loss"].startswith("FusedLinear" if training.fused_loss is True else "Masked")
        adapted = [training.lora.rank, training.lora.alpha, training.method == "dora"]
        assert read["adapter"] == (None if training.method == "full" else adapted)
        assert read["kept"]


def test_automodel_refuses_what_is_wrong(ask, tmp_path):
    ((_, place),) = made("nemo-automodel", tmp_path, automodel_plans()[:1])
    text, wrong = place.read_text(), []
    for name, old, new in (
        ("strategy", "strategy: fsdp2", "strategy: fsdp3"), ("key", "sequence_parallel:", "sequence_parallels:"),
        ("class", "torch.optim.AdamW", "torch.optim.AdamX"), ("batch", "global_batch_size:", "global_batchsize:"),
    ):  # fmt: skip
        assert old in text
        other = tmp_path / f"{name}.yaml"
        other.write_text(text.replace(old, new))
        wrong.append({"path": str(other)})
    assert all(read["error"] for read in ask("titan", "automodel", wrong))
