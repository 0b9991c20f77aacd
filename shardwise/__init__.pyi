# Written by `python -m shardwise.stub` from the tools' own schemas.
import datetime
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, Unpack

from estimator.errors import PlanError as PlanError
from pages.report.report import RenderedReport as RenderedReport
from pages.report.report import ReportFiles as ReportFiles
from pages.report.report import WrittenReport as WrittenReport
from planner.advice.advise import Advice as Advice
from planner.advice.playbook import PlaybookFound as PlaybookFound
from planner.clusters.results import AutoConfigured as AutoConfigured
from planner.clusters.results import RecommendedCluster as RecommendedCluster
from planner.compare.scaling import ScalingProjection as ScalingProjection
from planner.compare.scenarios import Comparison as Comparison
from planner.compare.sweep import Sweep as Sweep
from planner.explain.results import Explanation as Explanation
from planner.files.importing import ImportedConfig as ImportedConfig
from planner.history.results import RunHistory as RunHistory
from planner.history.results import RunRating as RunRating
from planner.history.results import RunReading as RunReading
from planner.layouts.peak import PeakThroughput as PeakThroughput
from planner.layouts.strategies import AppliedStrategies as AppliedStrategies
from planner.matrix.render import RenderedMatrix as RenderedMatrix
from planner.matrix.render import WrittenMatrix as WrittenMatrix
from planner.matrix.results import MatrixResults as MatrixResults
from planner.measuring.here import MachineDescription as MachineDescription
from planner.measuring.training import RenderedBenchmark as RenderedBenchmark
from planner.measuring.training import TrainingMeasurement as TrainingMeasurement
from planner.money.portfolio import Portfolio as Portfolio
from planner.money.results import CostEstimate as CostEstimate
from planner.records.catalogue import AddedRow as AddedRow
from planner.records.catalogue import CatalogueList as CatalogueList
from planner.records.catalogue import ShownRow as ShownRow
from planner.records.scenarios import DeletedScenario as DeletedScenario
from planner.records.scenarios import LoadedScenario as LoadedScenario
from planner.records.scenarios import RenderedScenario as RenderedScenario
from planner.records.scenarios import SavedScenario as SavedScenario
from planner.records.scenarios import ScenarioDiff as ScenarioDiff
from planner.records.scenarios import ScenarioList as ScenarioList
from planner.results import BestParallelism as BestParallelism
from planner.results import FitCheck as FitCheck
from planner.results import HardwareDescription as HardwareDescription
from planner.results import Limit as Limit
from planner.results import ModelDescription as ModelDescription
from planner.results import RenderedConfigs as RenderedConfigs
from planner.results import TrainingEstimate as TrainingEstimate
from planner.results import WrittenConfigs as WrittenConfigs
from planner.serving.results import BestServing as BestServing
from planner.serving.results import MlperfProjection as MlperfProjection
from planner.serving.results import ServingEstimate as ServingEstimate
from planner.serving.results import SizedServing as SizedServing

__version__: str

class _OwningTerms(TypedDict, total=False):
    capex_usd_per_device: float | None
    """What a device costs you to buy, with its part of server and network."""
    years: float | None
    """In which owned hardware is written off."""
    resale_share: float | None
    """Of devices' price, what they sell for after years."""
    utilisation: float | None
    """Part of all hours that owned hardware works."""
    usd_per_kwh: float | None
    """Electricity price of owned hardware."""
    pue: float | None
    """Power at the meter over that of the machines."""
    colocation_usd_per_kw_month: float | None
    """Room for owned hardware, without electricity."""
    maintenance_share: float | None
    """Of the purchase price, per year."""
    staff_usd_per_device_year: float | None
    """People who run owned hardware."""

class _HardwareQuestion(_OwningTerms, total=False):
    count: int | None
    """To rent, buy and power so many."""
    hours: float | None
    """Of use in all."""
    hours_per_year: float | None
    """Of use; all of a year's unless given."""
    region: str | None
    """Country or cloud region."""

class _PlanArguments(TypedDict, total=False):
    plan: Mapping[str, Any] | str | None
    """A whole or partial Plan, or the name of a saved scenario; flat arguments win over it."""

class _PlanRequest(_PlanArguments, total=False):
    name: str | None
    """A name for the plan."""
    overrides: Mapping[str, Any] | None
    """Figures that you know better than those estimated, of one device, of links one way: usable_gib, reserve_gib,
    weights_gib, gradients_gib, optimizer_gib, activations_gib, logits_and_loss_gib, extra_models_gib,
    communication_buffers_gib, step_temporaries_gib, framework_and_context_gib, allocator_slack_gib, host_gib,
    host_gb_per_s, scaleup_gb_per_s, network_gb_per_s, network_latency_us, mfu"""
    framework: Literal['auto', 'hf-trainer', 'fsdp1', 'fsdp2', 'ddp', 'deepspeed', 'megatron-lm', 'megatron-bridge', 'megatron-deepspeed', 'nemo', 'nemo-automodel', 'mlperf-nemo', 'primus', 'torchtitan', 'torchtune', 'llm-foundry', 'litgpt', 'nanotron', 'fms-fsdp', 'kempnerforge', 'axolotl', 'ms-swift', 'unsloth', 'levanter', 'maxtext', 'pathways', 'neuronx', 'optimum-habana', 'llmboost', 'mlx', 'pytorch', 'prime-rl', 'verl', 'openrlhf', 'nemo-rl', 'slime'] | None
    """Training framework; auto chooses one the plan can run on."""
    software_version: str | None
    """Version of the framework, where known, or of libraries: torch 2.1, bitsandbytes 0.41."""
    stage: Literal['pretrain', 'sft', 'dpo', 'ppo', 'grpo', 'kto', 'orpo', 'simpo', 'ipo', 'rm'] | None
    """Pretraining, fine-tuning or preference training."""
    method: Literal['full', 'lora', 'qlora', 'dora', 'pissa', 'freeze'] | None
    """Which weights are trained."""
    precision: Literal['bf16', 'fp16', 'fp32', 'tf32', 'fp8', 'mxfp8', 'mxfp4', 'nvfp4'] | None
    """Compute precision of the matmuls."""
    weights: Literal['auto', 'fp32', 'bf16'] | None
    """What weights are held in: as the framework does, in fp32, or all in 16 bits (no master copy)."""
    gradients: Literal['auto', 'fp32', 'bf16'] | None
    """What gradients are summed and reduced in: as the framework does, in fp32, or in 16 bits."""
    optimizer: Literal['adamw', 'paged_adamw', 'adamw_8bit', 'paged_adamw_8bit', 'sgd', 'adafactor', 'lion', 'galore', 'apollo', 'muon', 'soap', 'adam_mini', 'lomo', 'badam'] | None
    """Optimizer of the trained weights."""
    optimizer_in_backward: bool | None
    """Each weight is updated as soon as its gradient is there, which is then freed."""
    rollout: Literal['trainer', 'colocated', 'separate'] | None
    """Where ppo and grpo generate samples: trainer, an engine on the same devices, or elsewhere."""
    engine_share: float | None
    """Part of a device that a colocated engine takes."""
    group_size: int | None
    """Samples that grpo generates per prompt."""
    response_len: int | None
    """Tokens generated per sample; half of seq_len unless given."""
    seq_len: int | None
    """Tokens per sequence."""
    images: int | None
    """Images in each sequence."""
    image_size: str | None
    """Width x height of an image or frame in pixels, e.g. 768x768."""
    video_frames: int | None
    """Frames of video that are sampled in each sequence."""
    visual_tokens: int | None
    """Tokens of these together; by the model's own rule unless given."""
    vision: Literal['frozen', 'trained'] | None
    """Whether what reads images is trained too."""
    packing: bool | None
    """Short samples are packed to full sequences."""
    micro_batch: int | None
    """Sequences per device and micro-step."""
    global_batch: int | None
    """Sequences per optimizer step."""
    attention: Literal['flash', 'eager', 'sdpa', 'flash1', 'flash2', 'flash3'] | None
    """Attention kernel; flash is the framework's own choice on the device, flash1 that of 2022."""
    fp8_attention: bool | Literal['auto'] | None
    """Attention in 8 bits too where matmuls are in 8 or 4; the framework's default if auto."""
    fp8_healing: float | None
    """Part of the steps, the last ones, that run in 8 bits after those in 4 (FP8 healing)."""
    fused_loss: bool | Literal['auto'] | None
    """Fused or chunked cross-entropy (no full logits)."""
    tiled_mlp: bool | None
    """Dense MLPs go tile by tile over the sequence, and run again in the backward pass."""
    compile: bool | None
    """torch.compile (XLA always compiles)."""
    cuda_graph: Literal['auto', 'none', 'layers', 'full'] | None
    """CUDA graphs of layers' static parts or of a whole iteration; the framework's default if auto."""
    dp_overlap: bool | Literal['auto', 'gradients'] | None
    """Below ZeRO-3 too gradients are reduced, and weights gathered, beside the passes."""
    tp_overlap: bool | Literal['auto'] | None
    """Tensor-parallel communication overlaps with matmuls (userbuffers, async TP)."""
    moe_dispatcher: Literal['auto', 'alltoall', 'flex', 'deepep', 'hybridep'] | None
    """How tokens reach experts: a copy each, or once per node; flex: as the device has it."""
    moe_overlap: bool | Literal['auto'] | None
    """Expert dispatch overlaps with the compute of another micro-batch (1F1B overlap)."""
    moe_capacity: bool | Literal['auto'] | None
    """Tokens beyond an expert's capacity are dropped, so that shapes are fixed."""
    dataset_tokens: float | str | None
    """Tokens in the data set, e.g. 1B."""
    dataset_samples: float | str | None
    """Samples in the data set, e.g. 52k; preference pairs or prompts count as one."""
    sample_tokens: float | str | None
    """Mean tokens per sample; of a pair both answers, of grpo prompt and one answer."""
    steps: int | str | None
    """Optimizer steps of the run; wins over the size of the data."""
    epochs: float | None
    """Passes over the data set."""
    lora_rank: int | None
    """Adapter rank."""
    lora_alpha: float | None
    """Adapter scale numerator."""
    lora_targets: str | None
    """all-linear, attention, mlp, or module names joined by commas."""
    lora_dropout: float | None
    """On the inputs of adapters; the framework's default unless given."""
    quantisation: Literal['nf4', 'nf4-single', 'gptq'] | None
    """How qlora holds frozen weights: nf4 has its scales quantised too, nf4-single has not; the framework's default
    unless given."""
    train_embeddings: bool | None
    """Embedding and head are trained in full besides the adapters."""
    count: int | None
    """Accelerators in the run."""
    per_node: int | None
    """Accelerators per node."""
    beside: list[str] | None
    """Other devices of the same machine that hold layers too, e.g. rtx-3090 (one name for each); a processor, e.g.
    cpu-core-i9-13900k, holds what cards have no room for."""
    interconnect: str | None
    """Network between nodes, e.g. ib-ndr-400x8, roce-100x1, efa-v3."""
    tp: int | None
    """Tensor parallel size."""
    sequence_parallel: bool | None
    """Megatron sequence parallelism within the tp group."""
    pp: int | None
    """Pipeline parallel size."""
    vpp: int | None
    """Virtual pipeline stages per device (interleaving)."""
    schedule: Literal['1f1b', 'interleaved', 'zero-bubble', 'v-half', 'gpipe', 'dualpipe'] | None
    """Order of forward and backward passes in the pipeline."""
    cp: int | None
    """Context parallel size."""
    ep: int | None
    """Expert parallel size."""
    etp: int | None
    """Tensor parallel size inside experts."""
    dp: int | None
    """Data parallel size."""
    zero_stage: int | None
    """ZeRO stage; FSDP full shard is 3."""
    shard_group: int | None
    """HSDP: devices per shard group; dp x cp for one group of all."""
    recompute: str | None
    """none, selective, full or block:N."""
    recompute_modules: list[Literal['core_attn', 'layernorm', 'mla_up_proj', 'mlp', 'moe', 'moe_act', 'shared_experts']] | None
    """What selective recompute drops (core_attn)."""
    offload: Literal['none', 'optimizer', 'params', 'activations', 'optimizer+activations', 'params+activations'] | None
    """To host memory; params with the optimizer's states."""
    objective: Literal['throughput', 'cost', 'time', 'memory'] | None
    """What the best layout is best at."""
    deadline_h: float | None
    """Hours until the run must be done."""
    budget_usd: float | str | None
    """Most the run may cost."""
    budget_device_hours: float | str | None
    """Most device-hours it may take."""
    credits_usd: float | str | None
    """Credits that pay for the run first."""
    credits_end: str | None
    """Day on which the credits end, e.g. 2026-12-31."""
    provider: str | None
    """Price book to use, e.g. AWS."""
    hours_per_day: float | None
    """Hours a day the machines are free."""
    days_per_week: int | None
    """Days a week the machines are free."""
    usable_gib: float | None
    """Memory that a device can allocate."""
    reserve_gib: float | None
    """Memory that is to stay free."""
    host_gib: float | None
    """Memory of a node's host."""

class _EstimateRequest(_PlanRequest, total=False):
    improvements: bool
    """Whether to look for changes that would make the run faster; takes longer."""

class _EitherArguments(_PlanArguments, total=False):
    ...

class _EitherRequest(_EitherArguments, total=False):
    name: str | None
    """A name for the plan."""
    overrides: Mapping[str, Any] | None
    """Figures that you know better than those estimated, of one device, of links one way: usable_gib, reserve_gib,
    weights_gib, gradients_gib, optimizer_gib, activations_gib, logits_and_loss_gib, extra_models_gib,
    communication_buffers_gib, step_temporaries_gib, framework_and_context_gib, allocator_slack_gib, host_gib,
    host_gb_per_s, scaleup_gb_per_s, network_gb_per_s, network_latency_us, mfu"""
    framework: Literal['auto', 'hf-trainer', 'fsdp1', 'fsdp2', 'ddp', 'deepspeed', 'megatron-lm', 'megatron-bridge', 'megatron-deepspeed', 'nemo', 'nemo-automodel', 'mlperf-nemo', 'primus', 'torchtitan', 'torchtune', 'llm-foundry', 'litgpt', 'nanotron', 'fms-fsdp', 'kempnerforge', 'axolotl', 'ms-swift', 'unsloth', 'levanter', 'maxtext', 'pathways', 'neuronx', 'optimum-habana', 'llmboost', 'mlx', 'pytorch', 'prime-rl', 'verl', 'openrlhf', 'nemo-rl', 'slime'] | None
    """Training framework; auto chooses one the plan can run on."""
    software_version: str | None
    """Version of the framework, where known, or of libraries: torch 2.1, bitsandbytes 0.41."""
    stage: Literal['pretrain', 'sft', 'dpo', 'ppo', 'grpo', 'kto', 'orpo', 'simpo', 'ipo', 'rm'] | None
    """Pretraining, fine-tuning or preference training."""
    method: Literal['full', 'lora', 'qlora', 'dora', 'pissa', 'freeze'] | None
    """Which weights are trained."""
    precision: Literal['bf16', 'fp16', 'fp32', 'tf32', 'fp8', 'mxfp8', 'mxfp4', 'nvfp4'] | None
    """Compute precision of the matmuls."""
    weights: Literal['auto', 'fp32', 'bf16'] | None
    """What weights are held in: as the framework does, in fp32, or all in 16 bits (no master copy)."""
    gradients: Literal['auto', 'fp32', 'bf16'] | None
    """What gradients are summed and reduced in: as the framework does, in fp32, or in 16 bits."""
    optimizer: Literal['adamw', 'paged_adamw', 'adamw_8bit', 'paged_adamw_8bit', 'sgd', 'adafactor', 'lion', 'galore', 'apollo', 'muon', 'soap', 'adam_mini', 'lomo', 'badam'] | None
    """Optimizer of the trained weights."""
    optimizer_in_backward: bool | None
    """Each weight is updated as soon as its gradient is there, which is then freed."""
    rollout: Literal['trainer', 'colocated', 'separate'] | None
    """Where ppo and grpo generate samples: trainer, an engine on the same devices, or elsewhere."""
    engine_share: float | None
    """Part of a device that a colocated engine takes."""
    group_size: int | None
    """Samples that grpo generates per prompt."""
    response_len: int | None
    """Tokens generated per sample; half of seq_len unless given."""
    seq_len: int | None
    """Tokens per sequence."""
    images: int | None
    """Images in each sequence."""
    image_size: str | None
    """Width x height of an image or frame in pixels, e.g. 768x768."""
    video_frames: int | None
    """Frames of video that are sampled in each sequence."""
    visual_tokens: int | None
    """Tokens of these together; by the model's own rule unless given."""
    vision: Literal['frozen', 'trained'] | None
    """Whether what reads images is trained too."""
    packing: bool | None
    """Short samples are packed to full sequences."""
    micro_batch: int | None
    """Sequences per device and micro-step."""
    global_batch: int | None
    """Sequences per optimizer step."""
    attention: Literal['flash', 'eager', 'sdpa', 'flash1', 'flash2', 'flash3'] | None
    """Attention kernel; flash is the framework's own choice on the device, flash1 that of 2022."""
    fp8_attention: bool | Literal['auto'] | None
    """Attention in 8 bits too where matmuls are in 8 or 4; the framework's default if auto."""
    fp8_healing: float | None
    """Part of the steps, the last ones, that run in 8 bits after those in 4 (FP8 healing)."""
    fused_loss: bool | Literal['auto'] | None
    """Fused or chunked cross-entropy (no full logits)."""
    tiled_mlp: bool | None
    """Dense MLPs go tile by tile over the sequence, and run again in the backward pass."""
    compile: bool | None
    """torch.compile (XLA always compiles)."""
    cuda_graph: Literal['auto', 'none', 'layers', 'full'] | bool | Literal['auto'] | None
    """CUDA graphs of layers' static parts or of a whole iteration; the framework's default if auto."""
    dp_overlap: bool | Literal['auto', 'gradients'] | None
    """Below ZeRO-3 too gradients are reduced, and weights gathered, beside the passes."""
    tp_overlap: bool | Literal['auto'] | None
    """Tensor-parallel communication overlaps with matmuls (userbuffers, async TP)."""
    moe_dispatcher: Literal['auto', 'alltoall', 'flex', 'deepep', 'hybridep'] | None
    """How tokens reach experts: a copy each, or once per node; flex: as the device has it."""
    moe_overlap: bool | Literal['auto'] | None
    """Expert dispatch overlaps with the compute of another micro-batch (1F1B overlap)."""
    moe_capacity: bool | Literal['auto'] | None
    """Tokens beyond an expert's capacity are dropped, so that shapes are fixed."""
    dataset_tokens: float | str | None
    """Tokens in the data set, e.g. 1B."""
    dataset_samples: float | str | None
    """Samples in the data set, e.g. 52k; preference pairs or prompts count as one."""
    sample_tokens: float | str | None
    """Mean tokens per sample; of a pair both answers, of grpo prompt and one answer."""
    steps: int | str | None
    """Optimizer steps of the run; wins over the size of the data."""
    epochs: float | None
    """Passes over the data set."""
    lora_rank: int | None
    """Adapter rank."""
    lora_alpha: float | None
    """Adapter scale numerator."""
    lora_targets: str | None
    """all-linear, attention, mlp, or module names joined by commas."""
    lora_dropout: float | None
    """On the inputs of adapters; the framework's default unless given."""
    quantisation: Literal['nf4', 'nf4-single', 'gptq'] | None
    """How qlora holds frozen weights: nf4 has its scales quantised too, nf4-single has not; the framework's default
    unless given."""
    train_embeddings: bool | None
    """Embedding and head are trained in full besides the adapters."""
    count: int | None
    """Accelerators in the run."""
    per_node: int | None
    """Accelerators per node."""
    beside: list[str] | None
    """Other devices of the same machine that hold layers too, e.g. rtx-3090 (one name for each); a processor, e.g.
    cpu-core-i9-13900k, holds what cards have no room for."""
    interconnect: str | None
    """Network between nodes, e.g. ib-ndr-400x8, roce-100x1, efa-v3."""
    tp: int | None
    """Tensor parallel size."""
    sequence_parallel: bool | None
    """Megatron sequence parallelism within the tp group."""
    pp: int | None
    """Pipeline parallel size."""
    vpp: int | None
    """Virtual pipeline stages per device (interleaving)."""
    schedule: Literal['1f1b', 'interleaved', 'zero-bubble', 'v-half', 'gpipe', 'dualpipe'] | None
    """Order of forward and backward passes in the pipeline."""
    cp: int | None
    """Context parallel size."""
    ep: int | None
    """Expert parallel size."""
    etp: int | None
    """Tensor parallel size inside experts."""
    dp: int | None
    """Data parallel size."""
    zero_stage: int | None
    """ZeRO stage; FSDP full shard is 3."""
    shard_group: int | None
    """HSDP: devices per shard group; dp x cp for one group of all."""
    recompute: str | None
    """none, selective, full or block:N."""
    recompute_modules: list[Literal['core_attn', 'layernorm', 'mla_up_proj', 'mlp', 'moe', 'moe_act', 'shared_experts']] | None
    """What selective recompute drops (core_attn)."""
    offload: Literal['none', 'optimizer', 'params', 'activations', 'optimizer+activations', 'params+activations'] | None
    """To host memory; params with the optimizer's states."""
    objective: Literal['throughput', 'cost', 'time', 'memory'] | None
    """What the best layout is best at."""
    deadline_h: float | None
    """Hours until the run must be done."""
    budget_usd: float | str | None
    """Most the run may cost."""
    budget_device_hours: float | str | None
    """Most device-hours it may take."""
    credits_usd: float | str | None
    """Credits that pay for the run first."""
    credits_end: str | None
    """Day on which the credits end, e.g. 2026-12-31."""
    provider: str | None
    """Price book to use, e.g. AWS."""
    hours_per_day: float | None
    """Hours a day the machines are free."""
    days_per_week: int | None
    """Days a week the machines are free."""
    usable_gib: float | None
    """Memory that a device can allocate."""
    reserve_gib: float | None
    """Memory that is to stay free."""
    host_gib: float | None
    """Memory of a node's host."""
    input_len: int | float | None
    """Mean prompt tokens per request, without images."""
    output_len: int | float | None
    """Mean generated tokens per request."""
    output_spread: float | None
    """Standard deviation of the generated tokens over their mean; 0 if all are alike."""
    concurrency: int | None
    """Requests in flight, over all devices."""
    request_rate: float | None
    """Requests per second, arriving at random."""
    requests: int | None
    """Requests of the whole run, the first ones sent at once."""
    prefix_hit: float | None
    """Part of the prompt tokens found in the prefix cache."""
    weight_dtype: Literal['bf16', 'fp16', 'fp32', 'fp8', 'int8', 'int4', 'awq', 'gptq', 'gguf', 'mxfp4', 'nvfp4', 'exl2', 'q8_0', 'q6_k', 'q5_k_m', 'q5_k_s', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_0', 'q4_1', 'iq4_xs', 'iq4_nl', 'q3_k_l', 'q3_k_m', 'q3_k_s', 'iq3_m', 'iq3_s', 'iq3_xs', 'iq3_xxs', 'q2_k', 'iq2_m', 'iq2_s', 'iq2_xs', 'iq2_xxs', 'iq1_m', 'iq1_s'] | None
    """Format of the weights."""
    weight_bits: float | None
    """Mean bits per weight (exl2, gguf); the format's own unless given."""
    kv_dtype: Literal['auto', 'bf16', 'fp16', 'fp8', 'int8', 'fp4'] | None
    """Format of the KV cache; auto is the engine's for these weights."""
    engine: Literal['vllm', 'sglang', 'trtllm', 'llamacpp', 'ollama', 'mlx', 'hf', 'gpt-fast', 'exllamav2', 'mlc'] | None
    """Serving engine."""
    scenario: Literal['offline', 'server', 'interactive', 'single-stream', 'static-batch'] | None
    """offline: all requests at once; server and interactive: clients under latency limits; single-stream: one request
    at a time; static-batch: one batch in step."""
    max_batch: int | None
    """Most requests in one step of a replica."""
    max_batched_tokens: int | None
    """Most tokens in one step."""
    chunked_prefill: bool | Literal['auto'] | None
    """Prompts are read in pieces beside generation, not in steps of their own."""
    admission_steps: int | None
    """Steps between two looks at new requests (SGLang, --scheduler-recv-interval)."""
    memory_share: float | None
    """Part of the device that the engine claims; its default unless given."""
    max_context: int | None
    """Longest request that is to fit; prompt and output unless given."""
    device_layers: int | None
    """Layers on cards (llama.cpp, --gpu-layers); as many as fit unless given."""
    host_experts: int | None
    """Layers whose experts a processor of cluster.beside holds (llama.cpp, --n-cpu-moe); as few as have to be unless
    given."""
    expert_exchange: Literal['auto', 'gather', 'all_to_all'] | None
    """How tokens reach experts of other devices: all go everywhere, or each to its experts' ranks alone (DeepEP,
    pplx, NVLink one-sided)."""
    two_batch_overlap: bool | Literal['auto'] | None
    """A step is cut in two, so that one half computes while the other's tokens travel."""
    speculative_tokens: int | None
    """Tokens drafted per step."""
    draft_method: Literal['auto', 'mtp', 'eagle3', 'ngram'] | None
    """What drafts: layers of the checkpoint (mtp), a head trained for it (eagle3), or text that it has seen (ngram)."""
    acceptance: float | None
    """Chance that a drafted token is kept."""
    ttft_slo_ms: float | None
    """Time to first token to stay below."""
    tpot_slo_ms: float | None
    """Time per output token to stay below."""
    slo_statistic: Literal['mean', 'p99'] | None
    """Whether latency limits hold for the mean or the p99."""

class _SearchRequest(_PlanRequest, total=False):
    top: int
    """How many alternatives to return beside the best."""

class _LimitRequest(_EitherRequest, total=False):
    family: str | None
    """For goal model: a family such as llama or qwen2.5, or any; else that of the plan's model."""

class _SweepRequest(_EitherRequest, total=False):
    second_field: str | None
    """A second field: each of its values gives a curve."""
    second_values: list[Any] | Mapping[str, float] | str | None
    """Values of the second field."""
    scale_batch: bool
    """Weak scaling: global_batch grows with the devices; else it stays (strong scaling)."""
    usd_per_device_hour: float | None
    """Your own price, instead of the price book."""

class _ScalingRequest(_PlanRequest, total=False):
    nodes: int | list[Any] | Mapping[str, float] | str
    """Up to so many nodes, doubling from 1; or a list of numbers of nodes, or words: '1..64'."""
    scaling: Literal['strong', 'weak']
    """strong: the global batch stays; weak: it grows with the devices."""
    efficiency_threshold: float
    """Scaling efficiency below which more nodes no longer pay."""
    usd_per_device_hour: float | None
    """Your own price, instead of the price book."""

class _ServingArguments(_PlanArguments, total=False):
    ...

class _ServingRequest(_ServingArguments, total=False):
    name: str | None
    """A name for the plan."""
    overrides: Mapping[str, Any] | None
    """Figures that you know better than those estimated, of one device, of links one way: usable_gib, reserve_gib,
    host_gib, host_gb_per_s, scaleup_gb_per_s, network_gb_per_s, network_latency_us"""
    input_len: int | float | None
    """Mean prompt tokens per request, without images."""
    images: int | None
    """Images in each prompt."""
    image_size: str | None
    """Width x height of an image or frame in pixels, e.g. 768x768."""
    video_frames: int | None
    """Frames of video that are sampled in each prompt."""
    visual_tokens: int | None
    """Tokens of these together; by the model's own rule unless given."""
    output_len: int | float | None
    """Mean generated tokens per request."""
    output_spread: float | None
    """Standard deviation of the generated tokens over their mean; 0 if all are alike."""
    concurrency: int | None
    """Requests in flight, over all devices."""
    request_rate: float | None
    """Requests per second, arriving at random."""
    requests: int | None
    """Requests of the whole run, the first ones sent at once."""
    prefix_hit: float | None
    """Part of the prompt tokens found in the prefix cache."""
    weight_dtype: Literal['bf16', 'fp16', 'fp32', 'fp8', 'int8', 'int4', 'awq', 'gptq', 'gguf', 'mxfp4', 'nvfp4', 'exl2', 'q8_0', 'q6_k', 'q5_k_m', 'q5_k_s', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_0', 'q4_1', 'iq4_xs', 'iq4_nl', 'q3_k_l', 'q3_k_m', 'q3_k_s', 'iq3_m', 'iq3_s', 'iq3_xs', 'iq3_xxs', 'q2_k', 'iq2_m', 'iq2_s', 'iq2_xs', 'iq2_xxs', 'iq1_m', 'iq1_s'] | None
    """Format of the weights."""
    weight_bits: float | None
    """Mean bits per weight (exl2, gguf); the format's own unless given."""
    kv_dtype: Literal['auto', 'bf16', 'fp16', 'fp8', 'int8', 'fp4'] | None
    """Format of the KV cache; auto is the engine's for these weights."""
    engine: Literal['vllm', 'sglang', 'trtllm', 'llamacpp', 'ollama', 'mlx', 'hf', 'gpt-fast', 'exllamav2', 'mlc'] | None
    """Serving engine."""
    software_version: str | None
    """Version of the engine, where known."""
    scenario: Literal['offline', 'server', 'interactive', 'single-stream', 'static-batch'] | None
    """offline: all requests at once; server and interactive: clients under latency limits; single-stream: one request
    at a time; static-batch: one batch in step."""
    max_batch: int | None
    """Most requests in one step of a replica."""
    max_batched_tokens: int | None
    """Most tokens in one step."""
    chunked_prefill: bool | Literal['auto'] | None
    """Prompts are read in pieces beside generation, not in steps of their own."""
    admission_steps: int | None
    """Steps between two looks at new requests (SGLang, --scheduler-recv-interval)."""
    cuda_graph: bool | Literal['auto'] | None
    """Generation steps are replayed CUDA graphs."""
    memory_share: float | None
    """Part of the device that the engine claims; its default unless given."""
    max_context: int | None
    """Longest request that is to fit; prompt and output unless given."""
    device_layers: int | None
    """Layers on cards (llama.cpp, --gpu-layers); as many as fit unless given."""
    host_experts: int | None
    """Layers whose experts a processor of cluster.beside holds (llama.cpp, --n-cpu-moe); as few as have to be unless
    given."""
    expert_exchange: Literal['auto', 'gather', 'all_to_all'] | None
    """How tokens reach experts of other devices: all go everywhere, or each to its experts' ranks alone (DeepEP,
    pplx, NVLink one-sided)."""
    two_batch_overlap: bool | Literal['auto'] | None
    """A step is cut in two, so that one half computes while the other's tokens travel."""
    speculative_tokens: int | None
    """Tokens drafted per step."""
    draft_method: Literal['auto', 'mtp', 'eagle3', 'ngram'] | None
    """What drafts: layers of the checkpoint (mtp), a head trained for it (eagle3), or text that it has seen (ngram)."""
    acceptance: float | None
    """Chance that a drafted token is kept."""
    ttft_slo_ms: float | None
    """Time to first token to stay below."""
    tpot_slo_ms: float | None
    """Time per output token to stay below."""
    slo_statistic: Literal['mean', 'p99'] | None
    """Whether latency limits hold for the mean or the p99."""
    count: int | None
    """Accelerators in the run."""
    per_node: int | None
    """Accelerators per node."""
    beside: list[str] | None
    """Other devices of the same machine that hold layers too, e.g. rtx-3090 (one name for each); a processor, e.g.
    cpu-core-i9-13900k, holds what cards have no room for."""
    interconnect: str | None
    """Network between nodes, e.g. ib-ndr-400x8, roce-100x1, efa-v3."""
    tp: int | None
    """Tensor parallel size."""
    pp: int | None
    """Pipeline parallel size."""
    ep: int | None
    """Expert parallel size."""
    dp: int | None
    """Data parallel size."""
    provider: str | None
    """Price book to use, e.g. AWS."""
    usable_gib: float | None
    """Memory that a device can allocate."""
    reserve_gib: float | None
    """Memory that is to stay free."""
    host_gib: float | None
    """Memory of a node's host."""

class _InferenceRequest(_ServingRequest, total=False):
    usd_per_device_hour: float | None
    """Your own price, instead of the price book."""

class _BestServingRequest(_InferenceRequest, total=False):
    goal: Literal['throughput', 'latency', 'cost'] | None
    """throughput (default: most tokens/s per device), latency (shortest requests) or cost."""
    engines: list[Literal['vllm', 'sglang', 'trtllm', 'llamacpp', 'ollama', 'mlx', 'hf', 'gpt-fast', 'exllamav2', 'mlc']] | None
    """Engines to try; all servers that run on it unless given."""
    weight_dtypes: list[Literal['bf16', 'fp16', 'fp32', 'fp8', 'int8', 'int4', 'awq', 'gptq', 'gguf', 'mxfp4', 'nvfp4', 'exl2', 'q8_0', 'q6_k', 'q5_k_m', 'q5_k_s', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_0', 'q4_1', 'iq4_xs', 'iq4_nl', 'q3_k_l', 'q3_k_m', 'q3_k_s', 'iq3_m', 'iq3_s', 'iq3_xs', 'iq3_xxs', 'q2_k', 'iq2_m', 'iq2_s', 'iq2_xs', 'iq2_xxs', 'iq1_m', 'iq1_s']] | None
    """Weight formats to try; the usual unless given."""
    kv_dtypes: list[Literal['auto', 'bf16', 'fp16', 'fp8', 'int8', 'fp4']] | None
    """Cache formats to try; the engine's unless given."""
    accelerators: list[str] | None
    """Accelerators to compare, count of each."""
    top: int
    """How many alternatives to return beside the best."""

class _SizeServingRequest(_InferenceRequest, total=False):
    engines: list[Literal['vllm', 'sglang', 'trtllm', 'llamacpp', 'ollama', 'mlx', 'hf', 'gpt-fast', 'exllamav2', 'mlc']] | None
    """Engines to try; all servers that run on it unless given."""
    weight_dtypes: list[Literal['bf16', 'fp16', 'fp32', 'fp8', 'int8', 'int4', 'awq', 'gptq', 'gguf', 'mxfp4', 'nvfp4', 'exl2', 'q8_0', 'q6_k', 'q5_k_m', 'q5_k_s', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_0', 'q4_1', 'iq4_xs', 'iq4_nl', 'q3_k_l', 'q3_k_m', 'q3_k_s', 'iq3_m', 'iq3_s', 'iq3_xs', 'iq3_xxs', 'q2_k', 'iq2_m', 'iq2_s', 'iq2_xs', 'iq2_xxs', 'iq1_m', 'iq1_s']] | None
    """Weight formats to try; the usual unless given."""
    kv_dtypes: list[Literal['auto', 'bf16', 'fp16', 'fp8', 'int8', 'fp4']] | None
    """Cache formats to try; the engine's unless given."""
    accelerators: list[str] | None
    """Accelerators to compare; the plan's unless given."""
    top: int
    """How many sizes to return."""

class _CostTerms(_OwningTerms, total=False):
    price: Literal['on_demand', 'spot', 'flex_start', 'reserved', 'reserved_3y', 'community', 'owned', 'own'] | None
    """What to pay: on_demand, spot (with its interruptions), flex_start (queued, up to 7 days), reserved (up to a
    year), reserved_3y, community (marketplaces too), owned (bought) or own (your usd_per_device_hour)."""
    usd_per_device_hour: float | None
    """Your own price, instead of the price book."""
    providers: list[str] | None
    """Only these providers."""
    region: str | None
    """Country or cloud region, e.g. France or us-east-1: electricity and prices."""
    reserved_discount: float | None
    """Your discount on the on-demand price for reserved devices, e.g. 0.3."""
    interruptions_per_day: float | None
    """Of one spot instance."""
    device_hours_between_failures: float | None
    """Of your cluster: devices times hours per failure of any machine."""
    restart_minutes: float | None
    """From an interruption to training again."""
    checkpoint_interval_minutes: float | None
    """Of work; the best one unless given."""
    checkpoints_kept: int | None
    """Checkpoints in storage during the run."""
    usd_per_gb_month: float | None
    """Price of storage."""

class _CostRequest(_EitherRequest, _CostTerms, total=False):
    cheaper: bool
    """Ways to pay less for training too; takes longer."""
    faster: bool
    """Ways to be done sooner, with what they cost."""
    more_usd: float | None
    """What so much more money would buy, in USD."""
    api_usd: float | None
    """An API's price per million tokens."""
    api_input_usd: float | None
    """That of prompts, if another."""
    api_cached_usd: float | None
    """Of prompts in its cache."""
    currency: str | None
    """Your money at your rate in USD, for usd in it too: EUR=1.08."""

class _CompareRequest(_EitherRequest, total=False):
    scenarios: list[Mapping[str, Any]] | None
    """What to compare: changes to the plan of the other arguments, or plans of their own."""
    over: Mapping[str, list[Any] | Mapping[str, float] | str] | None
    """Short for scenarios: one or two fields with their values, {method: [full, lora, qlora]} or {accelerator: [h100,
    mi300x], count: '8..32'}; strategy is such a field too."""
    baseline: str | int | None
    """Name or place (from 0) of the row that others are set against; the first unless given."""
    include_base: bool | None
    """Whether the base plan is the first row: unless said, where it is whole and scenarios vary it."""
    usd_per_device_hour: float | None
    """Your own price, instead of the price book."""

class _Where(_EitherRequest, total=False):
    accelerators: list[str] | None
    """Accelerators to restrict the choice to."""
    vendors: list[str] | None
    """Vendors to restrict to: NVIDIA, AMD, Google …"""
    providers: list[str] | None
    """Providers to restrict to: AWS, GCP …; owned: machines to buy."""
    max_devices: int | None
    """Most devices."""
    max_nodes: int | None
    """Most nodes."""
    max_usd: float | None
    """Most that the run may cost; as budget_usd."""
    max_usd_per_hour: float | None
    """Most that an hour of the cluster may cost."""
    max_kw: float | None
    """Most power at the meter, devices at their limit, with hosts and cooling."""
    least_memory_gib: float | None
    """Least memory of a device, as vendors print it."""

class _ClusterRequest(_Where, total=False):
    sort: Literal['cost', 'time', 'balanced'] | None
    """cost, time or balanced (geometric mean of both); else objective, deadline and budget decide."""
    limit: int
    """Most options to return."""

class _ConfigureRequest(_Where, total=False):
    longest_sample_tokens: int | None
    """Tokens of the longest samples of the data; seq_len follows from it."""

class _PortfolioRequest(TypedDict, total=False):
    start: datetime.datetime | str | None
    """When the first may begin, e.g. 2026-12-01T09:00; for dates."""
    usd_per_device_hour: float | None
    """Your own price of the cluster."""

class _AdviseRequest(_EitherRequest, total=False):
    topics: list[str] | None
    """Only these topics of the playbook; all unless given."""
    limit: int
    """How many pieces of advice to return."""
    all: bool
    """Whether to return every entry that applies, changes that gain nothing included."""

class _ExplainRequest(_EitherRequest, _CostTerms, total=False):
    depth: int
    """How far terms are explained in turn."""
    nearest: int
    """How many of the nearest measured runs to show."""

class _SiteArguments(TypedDict, total=False):
    partition: str | None
    """Slurm partition."""
    account: str | None
    """Slurm account."""
    image: str | None
    """Container image to run in, e.g. nvcr.io/nvidia/pytorch:25.10-py3."""
    namespace: str | None
    """Kubernetes namespace."""
    queue: str | None
    """Kueue queue of the Kubernetes cluster."""
    dataset: str | None
    """Name or path of the data as the program takes it, or synthetic."""
    time_limit_h: float | None
    """Time limit of the job, instead of the deadline."""

class _RunArguments(_SiteArguments, total=False):
    profile: str | None
    """Profiler, its steps and ranks: torch:10-12@0, nsys or auto."""

class _RenderRequest(_RunArguments, _EitherRequest, total=False):
    targets: list[str] | None
    """What to write; by default the usual program of the plan's framework or engine, and Slurm. Of: deepspeed,
    accelerate, llamafactory, trl, axolotl, torchtune, unsloth, ms-swift, verl, openrlhf, nemo-rl, slime, prime-rl,
    torchrun, megatron-lm, torchtitan, megatron-bridge, nemo-automodel, nanotron, primus, mlx, optimum-habana,
    optimum-neuron, vllm, sglang, trtllm, llamacpp, mlx-server, mlperf, maxtext, slurm, kubernetes-trainjob,
    kubernetes-pytorchjob, kubernetes-jobset, kubernetes-volcano, kubernetes-rayjob, kubernetes-lws, kubernetes-
    deployment, kubernetes-kserve, production-stack, dynamo, llm-d, xpk, torchx, skypilot, dstack, ssh, compose,
    parallelcluster, hyperpod, namespace."""

class _WriteRequest(_RenderRequest, total=False):
    folder: str | None
    """Where to write; ./runs/<name of the plan> by default."""
    overwrite: bool
    """Replace files that exist with other contents."""

class _ImportRequest(_EitherRequest, total=False):
    text: str | None
    """One config, script or command line."""
    files: Mapping[str, str] | None
    """Files that belong together, text by name."""
    file_paths: list[str] | None
    """Files below the working folder; those that they name are read, too."""

class _ReportRequest(_CompareRequest, total=False):
    title: str | None
    """Of the report; the plan's name unless given."""

class _ReportFileRequest(_ReportRequest, total=False):
    file: str | None
    """Where to write, ending in .html, .md or .pdf; ./reports/<name>.html unless given."""
    format: Literal['html', 'markdown', 'pdf'] | None
    """Follows from the file's ending."""

class _WriteReportRequest(_ReportFileRequest, total=False):
    overwrite: bool
    """Replace files that exist with other contents."""

class _RenderScenarioRequest(_EitherRequest, total=False):
    text: str | None
    """The plan as YAML or JSON text, instead of plan."""
    format: Literal['yaml', 'json']
    """Of the text."""

class _SaveRequest(_EitherRequest, total=False):
    text: str | None
    """The plan as YAML or JSON text (to import one), instead of plan."""
    overwrite: bool
    """Replace the scenario of that name."""

class _ListRequest(TypedDict, total=False):
    query: str | None
    """Words that must be in the name, model or accelerator."""
    figures: bool
    """Estimate each of them, too."""

class _LoadRequest(TypedDict, total=False):
    format: Literal['yaml', 'json']
    """Of the text: the file as it is, or the plan as JSON."""

class _CatalogueQuestion(TypedDict, total=False):
    query: str | None
    """Words that must be in its names, vendor or family."""
    only_own: bool
    """Only what the user added."""
    limit: int
    """Most rows to list."""

class _UserRow(TypedDict, total=False):
    replaces: bool
    """It stands in place of the catalogue's row of that name."""
    notes: str | None
    """Anything to remember."""

class _HardwareRow(_UserRow, total=False):
    like: str | None
    """An accelerator of the catalogue: what is left out here is taken from it, timings too."""
    name: str | None
    """Its full name."""
    aliases: list[str] | None
    """Other names of it."""
    vendor: str | None
    """Maker: NVIDIA, AMD, Intel, Google, AWS, Apple or another."""
    family: str | None
    """Family whose measured behaviour is taken, e.g. Hopper; its own, unmeasured, unless given."""
    memory_gib: float | None
    """Device memory, GiB."""
    usable_gib: float | None
    """GiB that the driver shows."""
    memory_bandwidth_gb_per_s: float | None
    """Of device memory, GB/s."""
    bf16_tflops: float | None
    """Dense bf16 matrix rate, TFLOP/s."""
    fp16_tflops: float | None
    """Dense fp16 matrix rate, TFLOP/s."""
    fp32_tflops: float | None
    """fp32 vector rate, TFLOP/s."""
    tf32_tflops: float | None
    """Dense tf32 matrix rate, TFLOP/s."""
    fp8_tflops: float | None
    """Dense fp8 matrix rate, TFLOP/s."""
    fp4_tflops: float | None
    """Dense fp4 matrix rate, TFLOP/s."""
    int8_tops: float | None
    """Dense int8 matrix rate, TOP/s."""
    int4_tops: float | None
    """Dense int4 matrix rate, TOP/s."""
    scaleup_link: str | None
    """Link inside a node, e.g. NVLink 4, PCIe."""
    scaleup_gb_per_s: float | None
    """All links of one device, GB/s one way."""
    peer_gb_per_s: float | None
    """What one pair of devices gets, GB/s one way."""
    scaleup_domain: int | None
    """Devices that these links join."""
    topology: Literal['switch', 'mesh', 'torus', 'pcie', 'none'] | None
    """How they join them."""
    per_node: int | None
    """Devices in a usual node."""
    interconnect: str | None
    """Usual network between nodes, e.g. ib-ndr-400x8."""
    host_gb_per_s: float | None
    """Link to the host, GB/s one way."""
    tdp_w: float | None
    """Power limit, W."""
    usd_per_hour: float | None
    """What one device costs you an hour, USD."""
    price_date: datetime.date | str | None
    """When that price was had, e.g. 2026-11-01."""

class _HardwareToShow(_HardwareRow, total=False):
    where: Literal['user', 'project']
    """For all the user's projects, or for the one in the working folder (./.shardwise)."""

class _HardwareToAdd(_HardwareToShow, total=False):
    overwrite: bool
    """Replace the file of that name."""

class _ModelRow(_UserRow, total=False):
    family: str | None
    """Family; its model_type unless given."""
    aliases: list[str] | None
    """Other names of it."""
    license: str | None
    """Its licence."""

class _ModelToShow(_ModelRow, total=False):
    where: Literal['user', 'project']
    """For all the user's projects, or for the one in the working folder (./.shardwise)."""

class _ModelToAdd(_ModelToShow, total=False):
    overwrite: bool
    """Replace the file of that name."""

class _PriceRow(_UserRow, total=False):
    usd_per_hour: float | None
    """On demand or as agreed, USD an hour for the whole machine."""
    spot_usd_per_hour: float | None
    """Interruptible, USD an hour for the whole machine."""
    reserved_usd_per_hour: float | None
    """Reserved for a year, USD an hour."""
    reserved_3y_usd_per_hour: float | None
    """Reserved for three years, USD an hour."""
    price_date: datetime.date | str | None
    """When the price was had, e.g. 2026-11-01."""
    region: str | None
    """Where it stands, e.g. us-east-1."""
    currency: Literal['USD']
    """Prices are in USD."""
    ram_gib: float | None
    """Host memory, GiB."""

class _PriceToShow(_PriceRow, total=False):
    where: Literal['user', 'project']
    """For all the user's projects, or for the one in the working folder (./.shardwise)."""

class _PriceToAdd(_PriceToShow, total=False):
    overwrite: bool
    """Replace the file of that name."""

class _PlaybookRequest(TypedDict, total=False):
    query: str
    """Words to look for; left out, the topic is listed."""
    topic: str | None
    """Only this topic, e.g. nccl, oom, fp8, serving-batching."""
    limit: int
    """How many entries to return."""

class _MachineQuestion(TypedDict, total=False):
    torch: bool
    """Ask PyTorch as well, which takes seconds to start."""

class _ReadRequest(_PlanRequest, total=False):
    path: str | None
    """A log, an event file, or a folder of wandb, MLflow or TensorBoard."""
    text: str | None
    """The text of a log, in place of a path."""

class _RateRequest(_EitherRequest, total=False):
    tokens_per_s: float | None
    """Measured tokens per second of all devices together."""
    tokens_per_s_per_device: float | None
    """Measured tokens per second and device."""
    samples_per_s: float | None
    """Measured sequences per second of all devices."""
    step_s: float | None
    """Measured seconds per optimizer step."""
    mfu: float | None
    """Measured model FLOP utilisation: 0.4, or 40 for percent."""
    tflops_per_device: float | None
    """Measured model TFLOP/s per device."""
    tpot_s: float | None
    """Of serving: measured seconds per output token."""
    run: str | None
    """A run of the history by its id or name, in place of a figure."""

class _HistoryRequest(TypedDict, total=False):
    model: str | None
    """Only runs whose model has this in its name."""
    accelerator: str | None
    """Only runs on accelerators with this in their name."""
    software: str | None
    """Only runs on software with this in its name or version."""
    tag: str | None
    """Only runs with this tag."""
    runs: list[str]
    """These alone, by id or name."""
    since: str | None
    """Only runs from this day on, 2026-01-31."""
    estimates: bool
    """Whether each is estimated too."""

class _StrategiesRequest(_PlanRequest, total=False):
    strategies: list[str] | None
    """Of maximum_performance, truly_identical, memory_optimized, minimal_communication, balanced, custom, data,
    model, pipeline, hybrid; the first five unless given, custom where custom_layout is."""
    accelerators: list[str] | None
    """Platforms; the plan's accelerator unless given."""
    models: list[str] | None
    """Models; the plan's model unless given."""
    custom_layout: Mapping[str, Any] | None
    """For custom, e.g. {tp: 4, pp: 2, recompute: full}."""
    usd_per_device_hour: float | None
    """Your own price, instead of the price book."""

class _PeakRequest(_PlanRequest, total=False):
    models: list[str] | None
    """Models; the plan's model unless given."""
    accelerators: list[str] | None
    """Accelerators; the plan's, else of each vendor those with the most measured runs."""
    precisions: list[Literal['bf16', 'fp16', 'fp32', 'tf32', 'fp8', 'mxfp8', 'mxfp4', 'nvfp4']] | None
    """Precisions; the plan's, else bf16, and fp8 where a device has it."""
    usd_per_device_hour: float | None
    """Your own price, instead of the price book."""

class _MlperfRequest(TypedDict, total=False):
    scenario: Literal['offline', 'server', 'interactive', 'single-stream']
    """offline: all samples at once; server and interactive: the most within the p99 limits."""
    nodes: int | None
    """Nodes; one unless given."""
    count: int | None
    """Accelerators in all, instead of nodes."""
    per_node: int | None
    """Accelerators per node, as usual unless given."""
    engine: Literal['vllm', 'sglang', 'trtllm', 'llamacpp', 'ollama', 'mlx', 'hf', 'gpt-fast', 'exllamav2', 'mlc'] | None
    """Serving engine; that of most submissions unless given."""
    software_version: str | None
    """Version of the engine, where known."""
    weight_dtype: Literal['bf16', 'fp16', 'fp32', 'fp8', 'int8', 'int4', 'awq', 'gptq', 'gguf', 'mxfp4', 'nvfp4', 'exl2', 'q8_0', 'q6_k', 'q5_k_m', 'q5_k_s', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_0', 'q4_1', 'iq4_xs', 'iq4_nl', 'q3_k_l', 'q3_k_m', 'q3_k_s', 'iq3_m', 'iq3_s', 'iq3_xs', 'iq3_xxs', 'q2_k', 'iq2_m', 'iq2_s', 'iq2_xs', 'iq2_xxs', 'iq1_m', 'iq1_s'] | None
    """Weight format; the usual of submissions unless given."""
    kv_dtype: Literal['auto', 'bf16', 'fp16', 'fp8', 'int8', 'fp4'] | None
    """Format of the KV cache."""
    tp: int | None
    """Tensor parallel size; searched unless given."""
    pp: int | None
    """Pipeline parallel size; searched unless given."""
    ep: int | None
    """Expert parallel size; searched unless given."""
    dp: int | None
    """Data-parallel attention; searched unless given."""
    plan: Mapping[str, Any] | None
    """Other fields of a serving Plan; they win over the above."""

class _MatrixRequest(_RunArguments, _StrategiesRequest, total=False):
    custom_layouts: Mapping[str, Mapping[str, Any]] | None
    """More strategies, layouts of your own by name: {tp4: {tp: 4}}; strategies may then be []."""
    platforms: Mapping[str, Mapping[str, Any]] | None
    """By accelerator what differs there: framework, partition, account, image, namespace, queue, dataset,
    time_limit_h."""
    scheduler: str
    """What runs a cell and waits for its end: none, slurm, ssh, compose, skypilot, kubernetes-trainjob, kubernetes-
    pytorchjob, kubernetes-jobset."""
    cooldown_s: float
    """Pause between two cells."""

class _WriteMatrixRequest(_MatrixRequest, total=False):
    folder: str | None
    """Where to write; ./runs/<name of the plan>-matrix by default."""
    overwrite: bool
    """Replace files that exist with other contents."""

class _MatrixQuestion(TypedDict, total=False):
    source: str
    """What to call these runs in the measurement rows."""

class _BenchmarkRequest(_SiteArguments, _PlanRequest, total=False):
    layers: int | None
    """Layers of the model to run; all unless given."""
    warmup_steps: int
    """Steps after the first that do not count."""
    measured_steps: int
    """Steps that count, in each repeat."""
    repeats: int
    """How often these are timed."""
    cooldown_s: float
    """Pause between two repeats."""
    profile: bool
    """Write a trace of one more step (trace.json, for Perfetto)."""
    device: Literal['auto', 'cuda', 'mps', 'cpu']
    """What PyTorch computes on."""
    threads: int | None
    """Threads of each process on a CPU."""
    scheduler: str
    """none runs it here; slurm, ssh … as those of a matrix."""

def describe_model(model: str | Mapping[str, Any]) -> ModelDescription:
    """Exact parameter count and dimensions of a model from the catalogue or any Hugging Face config.json: active
    parameters, layers, heads, experts, context, KV cache per token and the tensor-parallel sizes that divide it."""

def describe_hardware(accelerator: str, **arguments: Unpack[_HardwareQuestion]) -> HardwareDescription:
    """Memory, bandwidth, dense peak rates, links, node size and prices of an accelerator in the catalogue, and what
    so many of it cost to rent, buy or power, on estimate_cost's terms of owning."""

def estimate_training(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_EstimateRequest]) -> TrainingEstimate:
    """Memory by component, fit, step time, throughput, MFU, what limits the step and run length of one training or
    fine-tuning plan. Use it for "does it fit", "how long does it take", "how fast", and with improvements=true for
    "why is it slow", "what limits my MFU" and "how do I get it faster". What the layout leaves open is chosen by
    the search; every default is listed in assumptions."""

def check_fit(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_EitherRequest]) -> FitCheck:
    """Whether a plan for training or serving fits in device memory with margin, how far it could grow (largest micro-
    batch and sequence length of the same layout; of serving, most requests at once and the longest one), what
    would make it fit (two changes at once where no single one does) and what a plan that fits could give up for
    speed, each as a Plan patch with its memory and slowdown. Use it for out-of-memory questions."""

def best_parallelism(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_SearchRequest]) -> BestParallelism:
    """The best split of a training plan over its devices for its goal, of all valid ones: tensor, sequence, pipeline
    (with virtual stages), context, expert and data parallel sizes, ZeRO stage and shard groups, recompute of
    single layers, micro-batch, and offloading where nothing fits without. With alternatives of other kinds, the
    Pareto front of speed against memory, and why each neighbour lost. Use it when the user asks how to parallelise
    or for the fastest setup."""

def find_limit(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, *, goal: Literal['seq_len', 'micro_batch', 'model', 'devices', 'accelerator', 'tokens', 'context', 'input_len', 'concurrency'], **arguments: Unpack[_LimitRequest]) -> Limit:
    """The most that still fits in memory with margin: goal seq_len (longest context), micro_batch (largest), model
    (largest of the catalogue or of a family; needs no model), devices (fewest) or accelerator (smallest card); for
    serving also context (longest request), input_len, concurrency (most users at once, within latency limits).
    What the layout leaves open is searched at every value, what is given stays. Use it for "longest context",
    "largest model on", "how many GPUs at least", "smallest GPU for", "how many users fit". Gives the plan there,
    the next value that does not fit and what of the memory decides."""

def sweep(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, *, field: str, values: list[Any] | Mapping[str, float] | str, **arguments: Unpack[_SweepRequest]) -> Sweep:
    """A training plan over values of one or two fields (count, seq_len, global_batch, micro_batch, accelerator,
    model, precision, tp, zero_stage, recompute …): at each point the layout, step time, tokens/s, MFU, memory,
    cost and scaling efficiency. Or a serving plan (concurrency, request_rate, input_len, weight_dtype, engine, tp,
    count …): time to first token and per token, tokens/s, requests at once, memory and cost. Use it for "how does
    it scale to 512 GPUs" (field=count), "throughput against concurrency". What the layout leaves open is chosen
    anew at every point; a point that cannot be says why."""

def project_scaling(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_ScalingRequest]) -> ScalingProjection:
    """A training plan on 1 to N nodes (strong scaling: the batch stays; weak: it grows along): tokens/s, step time,
    efficiency against the first, hours, USD, what limits each point, and where more nodes stop paying. Use it for
    "how does it scale to 64 nodes" and "how many nodes are worth it"; for serving use size_serving or sweep."""

def estimate_inference(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_InferenceRequest]) -> ServingEstimate:
    """Memory, fit, KV cache room, most requests at once, time to first token, time per output token, request latency,
    tokens/s, cost per million tokens and what limits it, of one LLM serving deployment under a load: concurrency
    (clients) or request_rate, offline (all at once) or single-stream. Use it for "how fast does it serve", "TTFT
    and TPOT", "how many users", "does it fit for inference". What the layout leaves open is chosen by the search;
    every default is listed in assumptions."""

def best_serving(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_BestServingRequest]) -> BestServing:
    """The best deployment of a model for serving on given devices, of all layouts (tensor, pipeline, expert, data
    parallel, replicas), engines, weight formats and loads (concurrency up to the limits unless given) under limits
    of latency (ttft_slo_ms, tpot_slo_ms): the most throughput, the least latency or the cheapest tokens. With
    alternatives, the Pareto fronts of throughput per device and of cost against time per token, and why each
    neighbour lost. Use it for "how should I serve it", "best engine or precision", "H100 or MI300X for serving"."""

def size_serving(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_SizeServingRequest]) -> SizedServing:
    """How many devices and replicas serve a load (request_rate, or concurrency as users at once) within limits of
    latency (ttft_slo_ms, tpot_slo_ms), for each layout, engine, weight format and accelerator: the most that one
    replica takes, replicas, devices, USD per hour and per million tokens, the cheapest first. A given count is the
    most devices there are. Use it for "how many GPUs for 50 requests/s", "what does it cost to serve", "which GPU
    is cheapest per million tokens"."""

def estimate_cost(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_CostRequest]) -> CostEstimate:
    """Hours, device-hours, USD by provider and part, energy and CO2 of a whole training run (needs dataset_tokens,
    dataset_samples or steps), or of serving: USD per hour, month and million tokens. On demand, spot with its
    interruptions, reserved, at your own price, or owned (hardware, power, room, staff). Use it for "what does it
    cost", "what on spot instances", "buy or rent", "cost per million tokens" and "which provider is cheapest";
    prices come with date and age."""

def compare(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_CompareRequest]) -> Comparison:
    """Scenarios side by side: hardware, methods, ZeRO stages, precisions, models, strategies, engines, of training or
    of serving. Each row is a plan of its own with memory, speed, hours, cost and energy, and what it is against
    the baseline; with the settings that differ, what matters about them in sentences, and the best by time, cost
    and memory. Use it for "A or B", "LoRA against full", "H100 vs MI300X"; for ranges of numbers use sweep."""

def recommend_cluster(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_ClusterRequest]) -> RecommendedCluster:
    """Which accelerators, how many, from which provider and instance, with which layout: for a training plan (hours
    and USD of the run where dataset_tokens is given) or a serving plan (request_rate or concurrency, ttft_slo_ms,
    tpot_slo_ms), over the whole catalogue and price book, under budget_usd, deadline_h and filters. Use it for
    "which GPU should I rent", "cheapest way to train", "what finishes in 24 hours". Each option has a patch that
    makes it the plan; rejected says why others fell out."""

def auto_configure(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_ConfigureRequest]) -> AutoConfigured:
    """A complete plan in one call from a model and a goal: method (full, else LoRA, else QLoRA), precision, sequence
    length, batch, framework, cluster and layout for training (dataset_tokens, budget_usd, deadline_h), or engine,
    weight format, devices and layout for serving (request_rate or concurrency, ttft_slo_ms, tpot_slo_ms). What is
    given (accelerator, count, method …) is kept. Use it for "set it all up", "I have 8 A100 and want to fine-
    tune", "what can I do for 500 USD"."""

def schedule_runs(accelerator: str, count: int, runs: list[Mapping[str, Any]], **arguments: Unpack[_PortfolioRequest]) -> Portfolio:
    """When each of several training runs on one cluster is done. They go by priority, order and the devices of each;
    with the latest ends, what the cluster costs until then, how busy it is, and where a run is late or does not
    fit how many devices are enough. Use it for "run A, then B"."""

def advise(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_AdviseRequest]) -> Advice:
    """What an experienced engineer would tell about a plan for training or serving: the entries of the playbook that
    apply to it, each with its source and settings (flags, NCCL and Slurm variables), and where it can be computed
    with a Plan patch and its estimated gain. Use it for "how do I improve this", "any tips", "best practices", "it
    runs out of memory, what now", and "what should I watch out for"."""

def explain(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, *, figure: str, **arguments: Unpack[_ExplainRequest]) -> Explanation:
    """Where a figure of an estimate comes from: its formula, every input with its value and origin (plan, assumption,
    model config, catalogue, fitted factor with the runs behind it), the arithmetic done again, the operators or
    collectives behind it, how its interval came about, and the nearest measured runs with what Shardwise says of
    them. Use it for "why is it so much", "how did you get that", "where does this number come from", "how sure are
    you"."""

def render_configs(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_RenderRequest]) -> RenderedConfigs:
    """Launch files of a training or serving plan as text (configs of training frameworks, engine commands, Slurm,
    Kubernetes and other launchers), the command that starts them, and what the user still has to fill in. Nothing
    is written to disk. Use it for "show me the config", "the Slurm script", "which command starts it"."""

def write_configs(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_WriteRequest]) -> WrittenConfigs:
    """Writes the launch files of a plan into a folder below the working folder, all of them or none. Use it only when
    the user asked for files on disk; existing files are kept unless overwrite is set."""

def import_config(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_ImportRequest]) -> ImportedConfig:
    """Reads existing launch files and tells whether they fit, how fast and at what cost: configs and scripts of
    LlamaFactory, Axolotl, TRL, Unsloth, torchtune, ms-swift, verl, DeepSpeed, accelerate, torchtitan, Megatron-LM,
    NeMo, Primus, MaxText; vLLM, SGLang, TensorRT-LLM, llama.cpp; sbatch, Kubernetes, SkyPilot, Compose. Use it for
    a config or script that is named or pasted. Arguments (accelerator, count …) complete the files and win over
    them; nothing is executed."""

def render_report(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_ReportRequest]) -> RenderedReport:
    """A report on a plan for training or serving, or on a comparison where scenarios or over are given, as Markdown
    text: memory, time, scaling, cost, advice, assumptions and evidence. Nothing is written to disk."""

def preview_report(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_ReportFileRequest]) -> ReportFiles:
    """The files that report would write, as they would be written. What a report says is shorter in render_report."""

def report(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_WriteReportRequest]) -> WrittenReport:
    """Writes a report with plots on a plan for training or serving, or on a comparison where scenarios or over are
    given, below the working folder: a self-contained HTML page, Markdown with pictures, or PDF. Use it only when
    the user asked for a report, a page or a document to hand on."""

def render_scenario(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_RenderScenarioRequest]) -> RenderedScenario:
    """A plan as the text of a scenario file, YAML or JSON, with its figures. Use it to export a plan or to show what
    save_scenario would write; nothing is saved."""

def save_scenario(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_SaveRequest]) -> SavedScenario:
    """Keeps a plan under a name in the user's data folder, so that it can be loaded, compared and named as plan
    later. Use it for "save this plan as …" and, with text, to import a plan. An existing one stays unless
    overwrite is set."""

def list_scenarios(**arguments: Unpack[_ListRequest]) -> ScenarioList:
    """The saved plans and the ready examples by name. Use it for "what have I saved", "show my scenarios" or "give me
    an example"; figures=true estimates each."""

def load_scenario(name: str, **arguments: Unpack[_LoadRequest]) -> LoadedScenario:
    """A saved plan or a ready example, ready to be passed on as plan, and as text to export it. Use it for "open my
    scenario …"; other tools take the scenario's name as plan, too."""

def delete_scenario(name: str) -> DeletedScenario:
    """Deletes a saved plan. Use it only when the user asked for it; ready examples stay."""

def diff_scenarios(a: str | Mapping[str, Any], b: str | Mapping[str, Any]) -> ScenarioDiff:
    """Which fields of two plans differ, as given and as completed, and what that does to memory, step time, tokens/s,
    MFU, hours and USD (or latency and tokens/s of serving). Use it for "what is different between … and …"."""

def list_catalogue(kind: Literal['hardware', 'models', 'prices'], **arguments: Unpack[_CatalogueQuestion]) -> CatalogueList:
    """Accelerators, models or prices that are known, the user's own among them (source: yours), and the user's files
    that cannot be used. Use it for "which GPUs do you know", "list Qwen models" and "why is my hardware not
    there"."""

def preview_hardware(id: str, **arguments: Unpack[_HardwareToShow]) -> ShownRow:
    """What add_hardware would write, checked: the file and what is taken for figures left open. Nothing is written."""

def add_hardware(id: str, **arguments: Unpack[_HardwareToAdd]) -> AddedRow:
    """Adds an accelerator that the catalogue does not have, or has otherwise, to the user's own: from then on plans
    can name it. `like` takes everything that is left out from one of the catalogue; without it give vendor,
    memory, bandwidth and a matrix rate. Only figures that the user gave."""

def preview_model(id: str, config: Mapping[str, Any] | str, **arguments: Unpack[_ModelToShow]) -> ShownRow:
    """What add_model would write, checked, with the parameters counted. Nothing is written."""

def add_model(id: str, config: Mapping[str, Any] | str, **arguments: Unpack[_ModelToAdd]) -> AddedRow:
    """Adds a model to the user's own under an id that plans can name, from the fields of its Hugging Face config or
    the path of its config.json. For a single question a config can be passed as model without adding it."""

def preview_price(provider: str, instance: str, accelerator: str, count: int, **arguments: Unpack[_PriceToShow]) -> ShownRow:
    """What add_price would write, checked. Nothing is written."""

def add_price(provider: str, instance: str, accelerator: str, count: int, **arguments: Unpack[_PriceToAdd]) -> AddedRow:
    """Adds what a machine costs the user (USD per hour for the whole instance, on demand or spot) to the price book
    that costs and recommendations are taken from; a plan can name its provider. Only prices that the user gave."""

def search_playbook(**arguments: Unpack[_PlaybookRequest]) -> PlaybookFound:
    """Practical knowledge on training and serving LLMs at scale, with sources: parallelism, ZeRO and FSDP, OOM,
    precision, networks, NCCL and Slurm settings, fine-tuning, troubleshooting (hangs, NaN, slow nodes), serving.
    Use it for "how do I set", "what is NCCL_IB_HCA for" and practice that needs no plan; advise has tips on a
    plan."""

def describe_machine(**arguments: Unpack[_MachineQuestion]) -> MachineDescription:
    """What the machine that Shardwise runs on is: accelerators by their drivers' programs and which of the
    catalogue's they are, links, driver, processor, memory, disk, network ports, PyTorch, and what would disturb a
    measurement. Use it for "what GPU is in this machine", "what do I have here", and before plans for "here" or
    "this machine"."""

def read_run(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_ReadRequest]) -> RunReading:
    """What a training log or a tracker's folder says of a run: its plan as far as it is printed, steady step time,
    tokens/s, loss, memory, start-up and slow steps apart, out-of-memory errors, what contradicts itself; and how
    good that is. Reads Megatron, Primus, NeMo, DeepSpeed, HF Trainer, torchtitan, torchtune, MaxText, verl, MLPerf
    logs, TensorBoard, wandb, MLflow. Use it for "read this log"; plan fields fill what it lacks."""

def rate_run(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_RateRequest]) -> RunRating:
    """Whether a measured speed of training or serving is good: what is expected, the percentile among runs like it,
    the likely cause where it is low, and what a change would give. Use it for "40,000 tokens/s, is that good?",
    "is 35 % MFU normal?", "why only 15 tok/s?"."""

def list_runs(**arguments: Unpack[_HistoryRequest]) -> RunHistory:
    """The history of the user's own measured runs, each beside what is estimated of it now, and how far estimates are
    off by version of software. Use it for "my runs"."""

def apply_strategies(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_StrategiesRequest]) -> AppliedStrategies:
    """The layout that each named strategy takes for a training plan, for every model on every accelerator, with its
    figures: maximum_performance, truly_identical (one layout that fits everywhere), memory_optimized,
    minimal_communication, balanced, and custom. Use it to compare platforms fairly ("H100 against MI300X under the
    same layout") and for benchmark suites. Layout fields of the plan are kept by every strategy."""

def peak_throughput(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_PeakRequest]) -> PeakThroughput:
    """What models reach at best in training on each accelerator and precision, each with its best layout: tokens/s
    per device and in all, TFLOPS, MFU, tokens a day, and whether that is good, average or poor against measured
    runs. Use it for "how fast can it get", "tokens per day on MI300X against H100"."""

def project_mlperf(benchmark: str, accelerator: str, **arguments: Unpack[_MlperfRequest]) -> MlperfProjection:
    """What accelerators would score in an MLPerf Inference benchmark (Llama 2 70B, Llama 3.1 8B and 405B, Mixtral
    8x7B, DeepSeek-R1, gpt-oss-120b): samples/s, tokens/s and whole-dataset time offline, or the highest rate
    within the p99 limits of server or interactive; one node against many with scaling efficiency. Use it for
    "MLPerf projection", "tokens/s in MLPerf server"."""

def render_matrix(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_MatrixRequest]) -> RenderedMatrix:
    """All files of a benchmark matrix as text, without writing any: what benchmark_matrix would write. For the
    layouts and figures alone use apply_strategies."""

def benchmark_matrix(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_WriteMatrixRequest]) -> WrittenMatrix:
    """Writes a benchmark suite below the working folder: every model under every named strategy or custom layout on
    every accelerator, each with its launch files, a script that runs them one after another, and a manifest with
    what is predicted. Use it to measure platforms or layouts against each other."""

def matrix_results(folder: str, **arguments: Unpack[_MatrixQuestion]) -> MatrixResults:
    """What was measured of a benchmark matrix (the result.json files in its folders, else what the programs' own logs
    there say) against what was predicted: errors by cell, accuracy over all, and the runs as rows for the table of
    measurements."""

def render_benchmark(model: str | Mapping[str, Any] | None = None, accelerator: str | None = None, **arguments: Unpack[_BenchmarkRequest]) -> RenderedBenchmark:
    """A training plan as a PyTorch program that times its steps on synthetic data, with how it is started: DDP, FSDP2
    or tensor parallel; layers scaled when asked. Nothing is run: `shardwise measure training` runs it. Use it for
    "benchmark this plan", "how would I measure it myself"."""

def benchmark_result(folder: str) -> TrainingMeasurement:
    """What was measured of a training benchmark (step time with its spread, tokens/s, MFU, peak memory, power) beside
    what was predicted of it before. Use it for the folder of a `measure training` run."""
