"""The field's words and what they mean in a Plan. Order matters: longer and more particular phrases stand first."""

from __future__ import annotations

from typing import Any

_ENGINES = r"(?:vllm|sglang|engine|rollouts?|generation|sampling)"
_FOR_SAMPLES = r" for (?:the )?(?:rollouts?|generation|sampling|samples)"
# Who generates the samples of reinforcement training.
ROLLOUTS = {
    "separate": (
        r"\b(?:separate|other) (?:vllm|sglang|inference|rollout|generation)"
        rf"(?: (?:server|engine|gpus?|devices?|nodes?))?(?:{_FOR_SAMPLES})?\b|"
        rf"\b(?:vllm|sglang)[- ]server(?: mode)?(?:{_FOR_SAMPLES})?\b|"
        rf"\b{_ENGINES}(?: \w+)? (?:on|in|to|onto) (?:an? |the )?(?:separate|other|different|(?:its|their) own) "
        r"(?:servers?|engines?|gpus?|devices?|cards?|nodes?|machines?|boxes|cluster)\b"
    ),
    "colocated": (
        r"\b(?:vllm |sglang )?(?:co-?locat(?:ed|e|ion))(?: mode)?(?: (?:vllm|sglang|engine|rollouts?|generation))?\b|"
        rf"\b(?:{_ENGINES}(?: \w+){{0,2}} on|back (?:on|to)) (?:the )?(?:same|training) "
        r"(?:gpus?|devices?|nodes?|cards?)\b|"
        rf"\b{_ENGINES} (?:that )?(?:shar\w+|us(?:es|ing)) (?:the |our )?(?:same |training )?"
        r"(?:gpus?|devices?|cards?)\b"
    ),
    "trainer": (
        r"\b(?:generat\w+|rollouts?|sampl(?:ing|es))(?: \w+){0,2} (?:in|by|with|inside) the trainer(?: itself)?\b"
        r"(?:,? (?:no|without|not) (?:vllm|sglang)\b)?|"
        rf"\b(?:no|without) (?:vllm|sglang){_FOR_SAMPLES}\b"
    ),
}

# Where offloaded states are: 'the optimizer kept in CPU memory'.
_ON_HOST = (
    r" (?:(?:is |are |to be )?(?:kept |held |put |moved |living |pushed )?(?:on|in|to) )(?:the )?"
    r"(?:cpu|host|system)(?: memory| ram)?\b"
)
# What can be taken back, to be chosen again, and its Plan path.
TAKEN_BACK: tuple[tuple[str, str], ...] = (
    (r"tp|tensor[- ]parallel\w*", "layout.tp"),
    (r"pp|pipeline[- ]parallel\w*", "layout.pp"),
    (r"cp|context[- ]parallel\w*", "layout.cp"),
    (r"ep|expert[- ]parallel\w*", "layout.ep"),
    (r"zero(?:[- ]stage)?", "layout.zero_stage"),
    (r"recompute|recomputation|(?:activation |gradient )?checkpointing", "layout.recompute"),
    (r"(?:global )?batch(?: size)?", "workload.global_batch"),
    (r"micro[- ]?batch(?: size)?", "workload.micro_batch"),
    (r"(?:sequence|context)(?: length)?|seq_len", "workload.seq_len"),
    (r"framework", "workload.framework"),
    (r"deadline", "goal.deadline_h"),
    (r"budget(?: limit)?", "goal.budget_usd"),
)
# (regular expression, Plan path, value); matched on what is left of the text, ignoring case.
WORDS: tuple[tuple[str, str, Any], ...] = (
    *(
        (
            rf"\b(?:drop|remove|unset|forget|leave out|get rid of|no more)(?: the| my)? (?:{words})\b"
            r"(?!\s*(?:[=\d]|(?:down |back |up )?to \d))",
            path,
            None,
        )
        for words, path in TAKEN_BACK
    ),
    # method
    (r"\b(?:without|no|drop(?: the)?|not) (?:q?-?lora|adapters?)\b", "workload.method", "full"),
    (r"\b(?:without|no|drop(?: the)?|disable) (?:fp8|float8|mxfp8|nvfp4|fp4)\b", "workload.precision", "bf16"),
    (r"\bq-?lora\b|\b4-?bit lora\b", "workload.method", "qlora"),
    (r"\b4-?bit\b(?![- ]adam)", "workload.method", "qlora"),
    (r"\bdora\b", "workload.method", "dora"),
    (r"\bpissa\b", "workload.method", "pissa"),
    (r"\blora\b|\bpeft\b|\badapters?\b", "workload.method", "lora"),
    (
        r"\bfreeze[- ]tun\w+|\bfrozen layers\b|\bfreeze\b(?: (?:the )?(?:lower |first |"
        r"most )?layers)?",
        "workload.method",
        "freeze",
    ),
    (
        r"\bfull(?:y)?[- ]?(?:parameter|weights?|param)?[- ]?(?=fine-?\s?tun|finetun|tun(?:e|ing)\b|training\b|"
        r"(?:sft|dpo|ppo|grpo|kto|orpo|simpo|ipo)\b)",
        "workload.method",
        "full",
    ),
    (r"(?<=tune) in full\b|(?<=tuning) in full\b|(?<=train) in full\b", "workload.method", "full"),
    (r"\bfully\b(?=\s+(?:on|with|in|for)\b|[,.?!]|$)", "workload.method", "full"),
    (
        r"\bfull[- ](?:ft|param(?:eter)?s?|weights?|finetune|fine-?tune)\b|"
        r"\ball (?:the )?(?:weights|param(?:eter)?s)\b",
        "workload.method",
        "full",
    ),
    (
        r"\bfull\b(?=\s*(?:[,.?!;)\ue001\ue000]|$|\d|seq|zero|bf16|fp8|fsdp|"
        r"(?:on|with|using|across|over|in|for|at|and then|instead)\b))",
        "workload.method",
        "full",
    ),
    # stage
    (r"\bcontinued? pre-?train\w*|\bpre-?train\w*|\bfrom scratch\b", "workload.stage", "pretrain"),
    (r"\bgrpo\b", "workload.stage", "grpo"),
    (r"\bsimpo\b", "workload.stage", "simpo"),
    (r"\borpo\b", "workload.stage", "orpo"),
    (r"\bdpo\b", "workload.stage", "dpo"),
    (r"\bppo\b", "workload.stage", "ppo"),
    (r"\bkto\b", "workload.stage", "kto"),
    (r"\bipo\b", "workload.stage", "ipo"),
    (r"\breward model\w*", "workload.stage", "rm"),
    (r"\brlhf\b", "workload.stage", "ppo"),
    (r"\bsft\b|\binstruction[- ]tun\w+|\bfine-?\s?tun\w*|\bsupervised\b", "workload.stage", "sft"),
    # what weights are held in, before the precision that has the same words
    (
        r"\bpure[- _]?bf16\b|\bbf16[- ]weights\b|\bweights (?:held |kept |all )?(?:in|as) bf16\b|"
        r"\b(?:no|without)(?: (?:an? )?fp32)? master (?:weights|cop(?:y|ies))\b",
        "workload.weights",
        "bf16",
    ),
    (r"\bfp32[- ]weights\b|\bweights (?:held |kept |all )?(?:in|as) fp32\b", "workload.weights", "fp32"),
    # adapters
    (r"\b(?:no|without|zero) (?:lora[- ])?dropout\b", "workload.lora.dropout", 0.0),
    (
        r"\b(?:no|not|don't|without) train(?:ing)? (?:the )?embeddings?(?: and (?:the )?(?:lm[-_ ]?)?head)?\b",
        "workload.lora.train_embeddings",
        False,
    ),
    (
        r"\btrain(?:s|ing)? (?:the |also the )?embeddings?(?:(?: layers?)?(?: and|,| \+) (?:the )?(?:lm[-_ ]?|output )?"
        r"head)?(?: too| as well| also)?\b|\bembeddings? (?:are |is |being )?(?:also )?train(?:ed|able)(?: too)?\b",
        "workload.lora.train_embeddings",
        True,
    ),
    (r"\bgptq(?:[- ](?:model|weights|base|checkpoint))?\b", "workload.lora.quantisation", "gptq"),
    (
        r"\b(?:no|without) double[- ]quanti[sz]\w+|\bsingle[- ]quanti[sz]\w+",
        "workload.lora.quantisation",
        "nf4-single",
    ),
    (r"\b(?:with )?double[- ]quanti[sz]\w+|\bnf4\b", "workload.lora.quantisation", "nf4"),
    (
        r"\b(?:on |for )?all[- ]linear(?: layers?| modules?)?\b|\b(?:on |for )?all (?:the )?linears?\b",
        "workload.lora.targets",
        "all-linear",
    ),
    (
        r"\b(?:on |only |just )*(?:the )?attention(?: (?:layers?|modules?|projections?))? (?:only|targets?|modules?)\b|"
        r"\b(?:only|just) (?:on )?(?:the )?attention\b|\bq_?k_?v_?o?(?: proj\w*)? only\b",
        "workload.lora.targets",
        "attention",
    ),
    (r"\b(?:only|just) (?:on )?(?:the )?mlps?\b|\bmlps?(?: layers?)? only\b", "workload.lora.targets", "mlp"),
    # where samples are generated
    *((pattern, "workload.rollout", who) for who, pattern in ROLLOUTS.items()),
    # precision
    (r"\bmxfp8\b", "workload.precision", "mxfp8"),
    (r"\bnvfp4\b|\bfp4\b", "workload.precision", "nvfp4"),
    (r"\bfp8\b|\bfloat8\b", "workload.precision", "fp8"),
    (r"\bbf16\b|\bmixed[- ]precision\b", "workload.precision", "bf16"),
    (r"\bfp16\b|\bhalf[- ]precision\b", "workload.precision", "fp16"),
    (r"\btf32\b", "workload.precision", "tf32"),
    (r"\bfp32\b|\bfloat32\b|\bfull[- ]precision\b|\bsingle[- ]precision\b", "workload.precision", "fp32"),
    # optimizer
    (
        r"\bpaged[-_ ]adamw?[-_ ]8-?bit\b|\b8-?bit paged[-_ ]adamw?\b|\bpaged 8-?bit adamw?\b",
        "workload.optimizer",
        "paged_adamw_8bit",
    ),
    (
        r"\bpaged[-_ ]adamw?(?:[-_ ]32-?bit)?\b|\b32-?bit paged[-_ ]adamw?\b",
        "workload.optimizer",
        "paged_adamw",
    ),
    (r"\b(?:adamw?[-_ ]?8[- ]?bits?|8-?bit[- ]adamw?)\b", "workload.optimizer", "adamw_8bit"),
    (r"\badam[-_ ]mini\b", "workload.optimizer", "adam_mini"),
    (r"\badamw?\b", "workload.optimizer", "adamw"),
    (r"\badafactor\b", "workload.optimizer", "adafactor"),
    (r"\bbadam\b", "workload.optimizer", "badam"),
    (r"\bgalore\b", "workload.optimizer", "galore"),
    (r"\bapollo\b", "workload.optimizer", "apollo"),
    (r"\bmuon\b", "workload.optimizer", "muon"),
    (r"\blomo\b", "workload.optimizer", "lomo"),
    (r"\blion\b", "workload.optimizer", "lion"),
    (r"\bsgd\b", "workload.optimizer", "sgd"),
    # how it is computed
    (r"\b(?:flash[- ]?attention|fa|flash)[- ]?3\b", "workload.attention", "flash3"),
    (r"\b(?:flash[- ]?attention|flash[- ]?attn|fa|flash)[- ]?2\b", "workload.attention", "flash2"),
    (r"\bflash[- ]?attention\b|\bflash[- ]?attn\b", "workload.attention", "flash"),
    (r"\beager(?: attention)?\b|\b(?:without|no) flash\w*(?:[- ]attention)?", "workload.attention", "eager"),
    (r"\bsdpa\b", "workload.attention", "sdpa"),
    (r"\b(?:no|without) packing\b|\bunpacked\b", "workload.packing", False),
    (r"\b(?:with )?packing\b|\bpacked\b", "workload.packing", True),
    (r"\b(?:no|without) (?:torch\.?)?compile\b", "workload.compile", False),
    (r"\btorch\.compile\b|\bcompiled\b|\bwith compile\b", "workload.compile", True),
    (r"\bliger\b|\b(?:fused|chunked) (?:cross[- ]entropy|loss|ce)\b", "workload.fused_loss", True),
    (r"\b(?:no|without) cuda[- ]?graphs?\b", "workload.cuda_graph", "none"),
    (r"\bfull(?:[- ]iteration)? cuda[- ]?graphs?\b", "workload.cuda_graph", "full"),
    (r"\bcuda[- ]?graphs?\b", "workload.cuda_graph", "layers"),
    (
        r"\b(?:tp|tensor[- ]parallel\w*)[- ](?:comm\w* )?overlap\b|\buserbuffers\b|\basync[- ]tp\b",
        "workload.tp_overlap",
        True,
    ),
    (r"\bdeep[- ]?ep\b|\bhybrid[- ]?ep\b", "workload.moe_dispatcher", "flex"),
    (r"\b(?:moe|expert|a2a|all-to-all)[- ](?:comm\w* )?overlap\b", "workload.moe_overlap", True),
    (r"\bdropless\b|\bno token[- ]drop\w*\b", "workload.moe_capacity", False),
    (r"\btoken[- ]drop\w*\b|\bdrop\w* tokens\b|\bcapacity factor\b", "workload.moe_capacity", True),
    # framework; LlamaFactory hands sharding to DeepSpeed in the files that are written for it
    (r"\bhf[- ]trainer\b|\bhugging ?face trainer\b|\btransformers trainer\b", "workload.framework", "hf-trainer"),
    (r"\bfsdp[- ]?2\b", "workload.framework", "fsdp2"),
    (r"\bfsdp[- ]?1\b", "workload.framework", "fsdp1"),
    (r"\bfsdp\b|\bfully sharded data parallel\w*", "workload.framework", "fsdp2"),
    (r"\bddp\b", "workload.framework", "ddp"),
    (r"\bmegatron[- ]deepspeed\b", "workload.framework", "megatron-deepspeed"),
    (r"\bmegatron[- ]bridge\b", "workload.framework", "megatron-bridge"),
    (r"\bmegatron(?:[- ]lm|[- ]core)?\b", "workload.framework", "megatron-lm"),
    (r"\bmlperf[- ]nemo\b", "workload.framework", "mlperf-nemo"),
    (r"\bnemo[- ]automodel\b", "workload.framework", "nemo-automodel"),
    (r"\bnemo\b", "workload.framework", "nemo"),
    (r"\bprimus\b", "workload.framework", "primus"),
    (r"\btorchtitan\b", "workload.framework", "torchtitan"),
    (r"\btorchtune\b", "workload.framework", "torchtune"),
    (r"\bllm[- ]foundry\b", "workload.framework", "llm-foundry"),
    (r"\blitgpt\b", "workload.framework", "litgpt"),
    (r"\bnanotron\b", "workload.framework", "nanotron"),
    (r"\baxolotl\b", "workload.framework", "axolotl"),
    (r"\bms-?swift\b", "workload.framework", "ms-swift"),
    (r"\bunsloth\b", "workload.framework", "unsloth"),
    (r"\blevanter\b", "workload.framework", "levanter"),
    (r"\bmaxtext\b", "workload.framework", "maxtext"),
    (r"\bneuronx\b", "workload.framework", "neuronx"),
    (r"\boptimum[- ]habana\b", "workload.framework", "optimum-habana"),
    (r"\bmlx\b", "workload.framework", "mlx"),
    (r"\bllama[-_ ]?factory\b", "workload.framework", "deepspeed"),
    (r"\bdeep-?speed\b", "workload.framework", "deepspeed"),
    # layout
    (
        r"\b(?:(?:without|drop|scrap|ditch|skip|lose)(?: the| any)?|no) (?:cpu |optimizer |activation |"
        r"param(?:eter)? )?off-?load(?:ing)?\b",
        "layout.offload",
        "none",
    ),
    (
        r"\b(?:activations?|act) off-?load\w*|\boff-?load\w* (?:of )?(?:the )?activations?\b|"
        rf"\bactivations{_ON_HOST}",
        "layout.offload",
        "activations",
    ),
    (
        r"\bparam(?:eter)?s? off-?load\w*|\boff-?load\w* (?:of )?(?:the )?param(?:eter)?s?\b|"
        rf"\b(?:param(?:eter)?s|weights){_ON_HOST}",
        "layout.offload",
        "params",
    ),
    (
        r"\boptimi[sz]er(?: states?)? off-?load\w*|\boff-?load\w* (?:of )?(?:the )?optimi[sz]er\b|"
        rf"\boptimi[sz]er(?: states?)?{_ON_HOST}|"
        r"\b(?:cpu[- ])?off-?load(?:ing)?\b",
        "layout.offload",
        "optimizer",
    ),
    (
        r"\bselective (?:recompute|recomputation|ac|(?:activation |gradient )?checkpointing)\b",
        "layout.recompute",
        "selective",
    ),
    (
        r"\b(?:no|without) (?:recompute|recomputation|(?:activation |gradient )?checkpointing)\b",
        "layout.recompute",
        "none",
    ),
    (
        r"\b(?:full )?(?:recompute|recomputation|(?:activation|gradient) (?:check-?pointing|"
        r"recomputation))\b|\bfull (?:ac|check-?pointing)\b",
        "layout.recompute",
        "full",
    ),
    (r"\b(?:no|without) sequence parallel\w*", "layout.sequence_parallel", False),
    (r"\bsequence parallel\w*", "layout.sequence_parallel", True),
    (r"\bfull[- ]shard(?:ing|ed)?\b", "layout.zero_stage", 3),
    (r"\b(?:no|without) zero\b", "layout.zero_stage", 0),
    (r"\binterleaved(?: 1f1b| schedule)?\b|\binterleaving (?=with \d)", "layout.schedule", "interleaved"),
    (r"\bzero[- ]bubble\b", "layout.schedule", "zero-bubble"),
    (r"\bv[- ]half\b", "layout.schedule", "v-half"),
    (r"\bdualpipe\b", "layout.schedule", "dualpipe"),
    (r"\bgpipe\b", "layout.schedule", "gpipe"),
    (r"\b1f1b\b", "layout.schedule", "1f1b"),
    # goal
    (
        r"\bcheapest\b|\b(?:lowest|least|minimi[sz]e(?: the)?) cost\b|"
        r"\bas cheap(?:ly)? as possible\b",
        "goal.objective",
        "cost",
    ),
    (
        r"\bfastest\b|\b(?:highest|max(?:imum)?|best) throughput\b|\bas fast as possible\b",
        "goal.objective",
        "throughput",
    ),
    (r"\b(?:least|lowest|minimi[sz]e(?: the)?) memory\b", "goal.objective", "memory"),
)

# Ways to name a provider other than its own name; the rest come from the price book.
PROVIDERS: tuple[tuple[str, str], ...] = (
    (r"\bamazon(?: web services)?\b", "AWS"),
    (r"\bgoogle cloud\b", "GCP"),
    (r"\bmicrosoft(?: azure)?\b", "Azure"),
    (r"\boracle(?: cloud)?\b", "OCI"),
    (r"\blambda(?: ?labs| cloud)\b", "Lambda"),
    (r"\btogether(?:\.ai| ai)\b", "Together"),
    (r"\bvast\.ai\b", "Vast"),
)
# Providers whose name is a common word: only after one of these do they mean the company.
PROVIDER_AFTER = r"(?:\b(?:on|at|from|via|with|using|rent(?:ed)?(?: from)?|prices? (?:of|at|from)) )"

# Nothing but filling words stands behind it: 'what's optimal here?'.
OPEN_END = r"(?: (?:one|instead|then|here|now|for (?:this|that|it|these|us|me)|on (?:this|that|these)|please))*\W*$"
_MEMORY = r"(?:(?:gpu |device |video |graphics )?(?:memory|vram|ram|hbm)|gi?b|gigs?|gigabytes?)"
# How much memory something takes, whatever it runs on.
NEED = (
    rf"\bhow (?:much|many) {_MEMORY}\b|\b(?:vram|memory|hbm) (?:footprint|requirements?|needs?|needed|required|usage|"
    rf"consumption|demand|estimate|size)\b|\b(?:needs?|requires?|takes?|uses?)\b[^.?!]{{0,24}}\b(?:vram|memory)\b|"
    rf"\bwhat (?:gpu |device )?(?:memory|vram)\b"
)
# Intents, each by the words that show it.
INTENTS: tuple[tuple[str, str], ...] = (
    (
        "write",
        r"\b(?:write|save|create|put|export|store)\b(?:(?!\?).)*?\b(?:files?|configs?|"
        r"configurations?|scripts?|yamls?|jsons?|them|it|launch\w*|disk|folder|sbatch|slurm|"
        r"llama-?factory|deepspeed)\b",
    ),
    (
        "render",
        r"\b(?:give|gimme|show|generate|make|print|render|produce|need|want|get|"
        r"prepare)\b(?:(?!\?).)*?\b(?:files?|configs?|configurations?|scripts?|yamls?|jsons?|"
        r"launch (?:command|script)s?|sbatch)\b",
    ),
    (
        "layout",
        r"\b(?:which|what) (?:tensor|pipeline|context|expert|data)[- ]parallel\w* (?:degree|size)s?\b(?!\s*[=\d])|"
        r"\b(?:best|better|another|optimal|ideal|right|good|recommended|which|what|fastest|quickest|leanest) "
        r"(?:[\w/+,]+ ){0,2}(?:layout|"
        r"parallelism|parallelisation|parallelization|split|sharding|strategy|"
        r"parallel\w* (?:strategy|config\w*)|config\w* of parallelism)\b|\bhow (?:should|do|can|"
        r"would) (?:i|we|you) (?:split|shard|paralleli[sz]e|distribute|lay)\b|\b[234]d[- ]parallel\w*|"
        r"\b(?:way|ways|how) to (?:best |optimally )?"
        r"(?:split|shard|paralleli[sz]e|distribute|partition|spread|lay out)\b|"
        r"\b(?:split|shard(?![-_ ](?:group|size))|distribute|partition|spread)\b(?:(?![.?!]).){0,48}?"
        r"\b(?:over|across|among|between)\b|"
        r"\b(?:tensor|pipeline|expert|context|data)[- ]parallel\w* (?:worth|better|or)\b|"
        r"\b(?:which|what|best|optimal) (?:tp|pp|cp|ep|dp)(?:\s*(?:/|,|and|x)\s*(?:tp|pp|cp|ep|dp))*\b(?!\s*[=\d])|"
        r"\b(?:tp|pp|cp|ep) or (?:tp|pp|cp|ep|dp|ddp|fsdp|zero)\b|\b(?:fsdp|zero|ddp) or (?:tp|pp|cp|ep)\b|"
        r"\bsuggest (?:\w+ ){0,2}(?:layout|parallelism|split)|\bparallelism\b|"
        rf"\b(?:what(?:'?s| is| would be)|find|use|give me|pick)(?: the)? (?:optimal|best){OPEN_END}",
    ),
    (
        "faster",
        r"\bwhat(?:'s| is| does)? (?:limit\w*|slow\w*|hold\w*|cap\w*|bound\w*)(?:(?![.?!]).)*?"
        r"\b(?:mfu|speed|throughput|fast|it|this|that|me|run|training|performance|step|down|back)\b|"
        r"\bwhy (?:is|are|am|does|do) (?:(?![.?!]).)*?\b(?:slow\w*|mfu|that long|so long)\b|"
        r"\b(?:low|poor|bad|only \d+ ?%) mfu\b|"
        r"\b(?:make|get|run|train|go|be) (?:(?![.?!]).){0,24}?\bfaster\b|"
        r"\bhow (?:can|do|could|to)(?:(?![.?!]).)*?\bfaster\b|"
        r"\btoo slow\b|\bonly (?:get\w*|see\w*|reach\w*|at|doing)\b(?:(?![.?!]).){0,24}?"
        r"(?:%|utili[sz]ation|mfu|tok(?:en)?s?/s)|"
        r"\b(?:tok(?:en)?s?/s\S*|mfu|step time)\b(?:(?![.!]).){0,24}?\b(?:is (?:that|this|it)|looks?|seems?) "
        r"(?:ok(?:ay)?|normal|good|low|right|expected|slow|bad|fine|reasonable)\b|"
        r"\bspeed (?:things |it |this |that |things |the (?:run |training ))?up\b|\broofline\b|"
        r"\b(?:improve|raise|increase|boost|optimi[sz]e)\b(?:(?![.?!]).){0,24}?"
        r"\b(?:mfu|throughput|speed|performance|utili[sz]ation)\b|"
        r"\b(?:compute|memory|communication|bandwidth)[- ]bound\b",
    ),
    (
        "why",
        r"\bwhy\b|\bwhat(?:'?s| is)? (?:stop|prevent|limit|block|keep|dominat)\w*\b|\bbubbles?\b|\bexplain\b|"
        r"\bbottleneck\b|"
        r"\bhow come\b|\bwhat limits\b",
    ),
    ("need", NEED),
    (
        "fit",
        r"(?<!\bhow )\bcan (?:i|we|it|this|that)\b|\bfits?\b|\boom\b|\bout of (?:gpu )?memory\b|\bmemory\b|"
        r"\bvram\b|\bpossible\b|\bfeasible\b|\benough\b|\b(?:does|will|would) (?:it|this|"
        r"that) (?:run|work)\b|\bheadroom\b|\b(?:largest|longest|max(?:imum)?|biggest) (?:context|seq\w*|batch|micro)",
    ),
    (
        "time",
        r"\bhow (?:long|fast|quick(?:ly)?)\b|\bhow many (?:hours|days|weeks)\b|\btime\b|"
        r"\bduration\b|\bthroughput\b|\btok(?:en)?s?(?:/| per )s(?:ec(?:ond)?)?\b|\bmfu\b|\bspeed\b|"
        r"\beta\b|\b(?:done|finish\w*|ready) (?:in|by|within)\b|\bestimate\b|\bstep time\b|"
        r"(?:\bgpu|[\ue001]+s?)[- ]?(?:hours|days)\b|"
        r"\bhow much time\b",
    ),
    ("device_hours", r"(?:\b(?:gpus?|devices?|cards?|accelerators?|chips?)|[\ue001]+s?)[- ]?(?:hours|hrs|days)\b"),
    # How long all of it takes, for which the size of the data has to be known.
    (
        "run",
        r"\bhow (?:long|quick(?:ly)?)\b|\bhow many (?:hours|days|weeks|months)\b|\bhow much time\b|\bduration\b|"
        r"\b(?:training|total|run|wall|whole) ?time\b|\btime (?:and|&) (?:cost|money)\b|"
        r"\b(?:cost|money) (?:and|&) time\b|\btime to (?:train|finish|complete)\b|(?<!step )\btime(?=\W*$)|"
        r"(?:\bgpu|[\ue001]+s?)[- ]?(?:hours|days)\b|\beta\b|\b(?:done|finish\w*|ready) (?:in|by|within)\b",
    ),
    (
        "cost",
        r"\bcosts?\b|\bmoney\b|\bprices?\b|\b(?:run|set) (?:me|us)(?: back)?\b|"
        r"\bgoing rate\b|\bprice tag\b|\bbill\b|\bexpensive\b|\bhow much (?:money|would|"
        r"will|does|do|is|for|to)\b|\bdollars?\b|\busd\b|\bcheap\w*|\bbudget\b|\bspend\b|\bpay(?:ing)?\b|\b(?:month|"
        r"hour|year)ly\b|"
        r"(?:\bper|/) ?(?:1 ?)?(?:m|million) (?:\w+ )?tok(?:en)?s?\b|"
        r"\b(?:per|an?|each) (?:month|year)\b|\b(?:what's|what is|for) an? hour of\b|\$",
    ),
)

# Questions about a thing in a catalogue, not about a run.
MODEL_FACTS = (
    r"\bhow many (?:\w+ )?(?:param\w*|layers?|heads?|experts?)\b|\bparam(?:eter)?s? (?:count|of|does|in)\b|"
    r"\bdescribe\b|\btell me about\b|\bwhat is\b|\bwhat's\b|"
    r"\barchitecture of\b|\bkv[- ](?:heads?|cache|memory|bytes|size)\b|\bmemory kv\b|\bhidden size\b|\blicen[cs]e\b|"
    r"\bvalid (?:tp|(?:tensor|pipeline|expert)[- ]parallel\w*)\b|\bhow (?:big|large) is\b|\bdetails\b|"
    r"\bcontext (?:length|window|size) (?:of|does)\b|\bspecs?\b|\bvocab\w*|\binfo\b"
)
# Of a device that is named, and no run: who offers it.
WHOSE = (
    r"\b(?:which|what|cheapest|best) (?:\w+ )?(?:clouds?|providers?|vendors?|places?)\b|"
    r"\bwho (?:has|rents|offers|sells)\b|\bwho(?:'s| is) (?:the )?cheapest\b"
)
HARDWARE_FACTS = (
    r"\bspecs?\b|\bspecifications?\b|\bbandwidth\b|\bt?flops\b|\btdp\b|\bnvlink\b|\bdescribe\b|"
    r"\btell me about\b|\bwhat is\b|\bwhat's\b|\bdetails\b|"
    r"\bhow much (?:memory|vram|hbm)\b|\bhow fast is\b|\bprices? (?:of|for)\b|\binfo\b|"
    r"\bhow much (?:does|is) (?:an?|one)\b|\brent\b|\bgoing rate\b|\bper (?:hour|day|month)\b|"
    rf"(?<!\bfit in )(?<!\bfits in )(?<!\binto )\b(?:memory|vram|hbm)\b|"
    rf"\b(?:power|watts?|cores|sparsity|released?)\b|\bprices?\b|\bcosts?\b|\bhourly\b|\ban hour\b|"
    rf"{WHOSE}"
)
TRAINING = (
    r"\btrain\w*|\btun\w+|\bfine-?\s?tun\w*|\bpre-?train\w*|\bsft\b|\blora\b|\bqlora\b|\bepochs?\b|"
    r"\bdpo\b|\bgrpo\b|\bbatch\b"
)
SERVING = (
    r"\bserv(?:e|ing|er for)\b|\binference\b|\bvllm\b|\bsglang\b|\btrt-?llm\b|\btensorrt\b|"
    r"\bllama\.cpp\b|\bttft\b|\btpot\b|\bqps\b|"
    r"\b(?:requests?|req)(?:/| per )s\w*|\bconcurren\w+|\bdeploy\w*|\blatency\b|\bchatbot\b|\busers\b"
)
