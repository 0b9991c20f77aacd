"""The field's words about serving: what shows that a question is about it, and what the words mean in a Plan."""

from __future__ import annotations

from typing import Any

# Verbs and nouns of training. What has been trained ("a fine-tuned model") may as well be served.
TRAINS = (
    r"\btrain(?!ed\b)\w*|\bfine-?\s?tun(?!ed\b)\w*|\bpre-?train(?!ed\b)\w*|\btun(?:e|ing)\b|\bsft\b|\bq?lora\b|"
    r"\bepochs?\b|\b(?:dpo|grpo|ppo|rlhf|kto|orpo|simpo)\b|\brollouts?\b|\boptimi[sz]er\b|\bgradients?\b|"
    r"\bmicro[- ]?batch\w*|\bglobal[- _]batch\w*|\bdeep-?speed\b(?![- ](?:mii|fastgen|inference))|\bfsdp\b|\bmfu\b|"
    r"\bmlperf[- ](?:training|nemo)\b"
)
# Each of these alone makes it a question about serving.
SERVES = (
    r"\bserv(?:e|es|ed|ing)\b|\bserver for\b|\binfer(?:ence|encing)?\b|\bvllm\b|\bsg-?lang\b|\btrt(?:-?llm)?\b|"
    r"\btensor-?rt\b|\bllama[-_. ]?cpp\b|\bexllama\w*|\bgpt-fast\b|\bmlc-llm\b|\bollama\b|\blmdeploy\b|\btgi\b|"
    r"\bttft\b|\btpot\b|\bitl\b|\btime[- ]to[- ](?:the )?first[- ]token\b|\btime per (?:output )?token\b|"
    r"\binter-?token\b|\bqps\b|\brps\b|\b(?:requests?|reqs?|queries|prompts)\s?(?:/|per |an? )\s?(?:s|m|h|d)\w*|"
    r"\bconcurren\w+|\bdeploy\w*|\blatency\b|\blatencies\b|\bchat-?bot\w*|\busers?\b|\bhow many (?:people|customers|"
    r"employees|developers|students)\b|\b[io]sl\b|"
    r"\b(?:input|output|prompt|new|generated)[- ]tokens?\b|\btokens? out\b|"
    r"(?<!per )\btokens? in\b(?! (?:\d|an?\b|the\b|under|"
    r"less|total|about|all|my|our|two|one))|"
    r"\d[km]? in\b(?=[^.?!]{0,24}\bout\b)|(?<![\w.-])(?<!zero )(?<!stage )\d[\d,]*(?:\.\d+)?[km]? out\b|"
    r"\btokens? (?:of )?prompts?\b|\bprompts? of\b|\btoken (?:prompts?|answers?|responses?|outputs?|inputs?)\b|"
    r"\bgguf\b|\bi?q[2-8]\b|\bi?q\d_(?:k|\d|x|n|m|s)\w*|\bawq\b|\bexl2\b|\bmlperf\b|\bdecod(?:e|ing)\b|\bprefill\b|"
    r"\b(?:people|persons?|colleagues|coworkers|lawyers|employees|students|customers)\b[^.?!]{0,24}\b(?:at once|"
    r"(?:at|in) the same time|simultaneously|in parallel|concurrently)\b|\bask (?:it )?questions (?:to|of)\b|"
    r"\bchat with (?:it|a|the|our)\b|"
    r"\bsingle[- ]stream\b|\bhost(?:ing)? (?:it|this|that|the model|[\ue000])|\bapi endpoint\b"
)
# These do where no training run is being talked about.
MAY_SERVE = (
    r"\bkv[- ]?cache\b|\bprefix[- ]cach\w+|\bspeculative\b|\bmtp\b|\beagle\b|\breplicas?\b|"
    r"\bgpu[-_ ]memory[-_ ]utili[sz]ation\b|\brequests?\b|\btok(?:en)?s? (?:per|an?|each) (?:day|month|hour)\b|"
    r"\bper million (?:output )?tokens\b|\bgenerat(?:e|es|ing|ion)\b(?! (?:an?|the|me|files?|configs?|all|my|scripts?|"
    r"slurm)\b)|\b(?:nv)?fp4\b|\blocally\b|\bon my (?:laptop|mac\w*|pc|desktop)\b|"
    r"\bday and night\b|\baround the clock\b|\b24/7\b|\b(?:per|an?|each|every) month\b|\bmonthly\b|"
    r"\b(?:in|the) operation\b|"
    r"\b(?:slack|discord|telegram|support|chat|our|my|the) ?bots?\b|"
    r"\bengines?\b|\btok(?:en)?s? (?:per|for an?) (?:dollar|buck)\b|\bdeliver\w*|\bat batch(?: size)? 1\b|\bconc\b|"
    r"\b(?:4|8)-?bit quanti\w+|\bquanti[sz]ed\b|\bint[48]\b|\bmxfp4\b"
)
# "Can I run Llama-3.1-8B on a 4090?" is about using the model.
RUNS = r"\brun(?:s|ning)?\b (?:(?:an?|the|my) )?[\ue000]"

# So is the speed of a card at home, where nobody speaks of training.
SPEED = r"\btok(?:en)?s?\s?(?:/|per|an?|for) ?(?:s|sec|second)\b|\bhow fast\b|\bt/s\b"
ENGINES: tuple[tuple[str, str], ...] = (
    (r"\bvllm\b", "vllm"),
    (r"\bsg-?lang\b", "sglang"),
    (r"\btensor-?rt(?:[-_ ]?llm)?\b|\btrt(?:-?llm)?\b|\b(?:nvidia )?nim\b", "trtllm"),
    (r"\bllama[-_. ]?cpp\b|\bollama\b|\blm ?studio\b", "llamacpp"),
    (r"\bexllama(?:[- ]?v?2)?\b", "exllamav2"),
    (r"\bgpt-?fast\b", "gpt-fast"),
    (r"\bmlc(?:-llm)?\b", "mlc"),
    (r"\b(?:hf|hugging ?face|transformers)(?: transformers| generate)?\b", "hf"),
)
# Engines that nothing is known about here; no other is taken in their place.
UNKNOWN_ENGINES = (
    r"\b(?:lmdeploy|tgi|text[- ]generation[- ]inference|mlx(?:-lm)?|deep-?speed[- ](?:mii|fastgen|inference)|"
    r"ctranslate2|aphrodite|lightllm|ktransformers|tabbyapi|openvino)\b"
)
# A format's name behind or before what it is of.
CACHE_FORMATS = {"fp8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "int8": "int8", "bf16": "bf16", "fp16": "fp16"}
FORMATS: tuple[tuple[str, str], ...] = (
    (r"\bmxfp4\b", "mxfp4"),
    (r"\bnvfp4\b|\bfp4\b", "nvfp4"),
    (r"\bfp8\b|\bfloat8\b|\bw8a8[- ]fp8\b|\be4m3\b", "fp8"),
    *(
        (
            rf"\b{name}(?:[- ](?:int-?4|4[- ]?bits?))?\b|\b(?:int-?4|4[- ]?bits?)[- ](?:with |using |via |"
            rf"in )?{name}\b",
            name,
        )
        for name in ("awq", "gptq")
    ),
    (r"\bexl2\b", "exl2"),
    (r"\bw4a16\b|\bu?int-?4\b|\b4[- ]?bits?\b(?! per weight)|\bnf4\b", "int4"),
    (r"\bw8a(?:8|16)\b|\bint-?8\b|\b8[- ]?bits?\b(?! per weight)", "int8"),
    (r"\bbf16\b", "bf16"),
    (r"\bfp16\b|\bf16\b|\bhalf[- ]precision\b", "fp16"),
    (r"\bfp32\b|\bfloat32\b|\bf32\b|\bfull[- ]precision\b", "fp32"),
)
# 'For Q3' and 'Q3:' are a quarter.
GGUF = r"\bi?q\d_\w+\b|(?<!for )(?<!by )\bq\d\b(?!:| 20\d\d)"
GGUF_SHORT = {"q2": "q2_k", "q3": "q3_k_m", "q4": "q4_k_m", "q5": "q5_k_m", "q6": "q6_k", "q8": "q8_0"}

# (regular expression, Plan path, value), matched on what is left of the text.
WORDS: tuple[tuple[str, str, Any], ...] = (
    (r"\b(?:no|without|disable|drop(?: the)?) (?:speculative(?: decoding)?|speculation|mtp|eagle|drafts?)\b",
     "workload.speculative_tokens", None),
    (r"\b(?:no|without|disable) chunked[- ]prefill\b", "workload.chunked_prefill", False),
    (r"\bchunked[- ]prefill\b", "workload.chunked_prefill", True),
    (r"\b(?:no|without|disable) cuda[- ]?graphs?\b|\benforce[-_ ]eager\b|\beager(?: mode)?\b",
     "workload.cuda_graph", False),
    (r"\bcuda[- ]?graphs?\b", "workload.cuda_graph", True),
    (r"\b(?:no|without|disable) prefix[- ]cach\w+", "workload.prefix_hit", 0.0),
    (r"\bstatic[- ]batch\w*", "workload.scenario", "static-batch"),
    (r"\b(?:single|1)\s*[- ]?\s*stream\b|\b1\s+request at a time\b|\bone at a time\b", "workload.scenario",
     "single-stream"),
    (r"\b(?:batch|bulk|offline) (?:inference|processing|jobs?|scenario|throughput|generation|mode)\b|"
     r"\boffline\b|\ball (?:requests )?at once\b", "workload.scenario", "offline"),
    (r"\binteractive(?: scenario)?\b", "workload.scenario", "interactive"),
    (r"\b(?:online|server) (?:scenario|serving|mode)\b|\bserver\b", "workload.scenario", "server"),
    (r"\bcheapest\b|\boptimi[sz]e (?:it )?for cost\b|\b(?:lowest|least|minimi[sz]e(?: the)?) (?:serving )?cost\b|"
    r"\bas cheap(?:ly)? as possible\b",
     "goal.objective", "cost"),
    (r"\b(?:lowest|least|best|minimi[sz]e(?: the)?|minim(?:al|um))[- ](?:possible )?latency\b|"
     r"\boptimi[sz]e (?:it )?for latency\b|"
     r"\bfastest (?:response|answer|repl)\w*|\blatency[- ]optimi[sz]ed\b", "goal.objective", "time"),
    (r"\b(?:highest|max(?:imum)?|best|most|maximi[sz]e(?: the)?) (?:possible )?(?:throughput|tok(?:en)?s?)\b|"
     r"\bthroughput[- ]optimi[sz]ed\b", "goal.objective", "throughput"),
)  # fmt: skip

_CHOICE = (
    r"(?:engine|precision|format|dtype|quanti[sz]ation|layout|parallelism|split|sharding|config\w*|set-?up|deployment|"
    r"strategy|way|option|tp(?: size)?|runtime|server)"
)
INTENTS: tuple[tuple[str, str], ...] = (
    ("mlperf", r"\bmlperf\b"),
    (
        "size",
        r"\b(?:what|which|how (?:big|large) an?) (?:fleet|cluster|setup|capacity)\b|\bsize (?:it|a|an|the|my|our) |"
        r"\bsizing\b|\bcapacity[- ]plan\w*|\bhow much hardware\b|"
        r"\bwhat (?:would|does|will) it take to (?:serve|host|run|deploy)\b|"
        r"\bhow many (?:replicas|nodes|servers|machines|instances|boxes)\b|\bwhat (?:do|would|will) (?:i|we) need\b|"
        r"\b(?:which|what) (?:gpus?|hardware|accelerators?|cards?|machines?|instances?)\b|"
        r"\bcheapest (?:gpus?|hardware|accelerators?|cards?|machines?|instances?|box|cluster) (?:to|that|for|which)\b",
    ),
    (
        "best",
        rf"\b(?:best|optimal|ideal|right|good|recommended|which|what|cheapest|fastest) (?:\w+ ){{0,2}}{_CHOICE}\b|"
        r"\bhow (?:should|do|can|would|best to) (?:i |we |you )?(?:best )?"
        r"(?:serve|deploy|host|split|shard|parallel\w+)\b|"
        r"\bhow to (?:best )?(?:serve|deploy|host)\b|\b(?:suggest|recommend)\b|"
        r"\b(?:highest|best|most|max(?:imum)?|maximi[sz]e(?: the)?) (?:possible )?"
        r"(?:throughput|tok(?:en)?s?\b|qps|rps)|"
        r"\boptimi[sz]e (?:it )?for (?:latency|cost|throughput)\b|"
        r"\b(?:lowest|least|best|minimi[sz]e(?: the)?)[- ](?:possible )?(?:latency|cost)\b|\bfastest responses?\b|"
        r"\bhow many (?:requests?|reqs?|queries)\s*(?:/|per|an?)\s*(?:s|sec|second|minute|hour|day)\b|"
        r"\b(?:is|are|works?|performs?) best\b|\bpareto\b|\bcheapest\b|\bmost tok(?:en)?s?\b",
    ),
    (
        "time",
        r"\bhow (?:fast|quick(?:ly)?|long)\b|\bttft\b|\btpot\b|\bitl\b|\blatenc\w+|\bthroughput\b|\bspeed\b|"
        r"\btok(?:en)?s?(?:/| per )s(?:ec(?:ond)?)?\b|\bfirst token\b|\bper token\b|\bestimate\b|\bresponse times?\b",
    ),
)
# Kept beside these: write, render, why, faster, fit and cost, whose words are those of training.
SHARED_INTENTS = ("need", "write", "render", "faster", "why", "fit", "cost")

_MOST = r"\b(?:longest|max(?:imum|imal)?|largest|biggest|greatest|highest|most)"
_NO_VALUE = r"(?!(?:[- _]?(?:sizes?|lengths?|len|window)\b)?\s*(?:of|=|:|is|are|to|at)?\s*\d)"
_USERS = (
    r"(?:dev(?:eloper)?s?|employees|students|analysts|agents|seats|users?|clients?|sessions?|streams?|conversations?|chats?|"
    r"people|customers?)\b"
)
_REQUESTS = r"(?:requests?|reqs?|prompts?|queries|sequences?)\b(?!\s*(?:/|per|an?)\s*(?:s|m|h|d)\w*)"
# '32k-token' before what there are many of is how long they are.
_ADJECTIVES = (
    r"(?:(?:concurrent|simultaneous|parallel|active|in-flight|such|\d[\d.,]*k?(?:[- ]tok(?:en)?s?)?(?:[- ]context)?) )"
)
_HOW_LARGE = r"\bhow (?:long|large|big|much|many)"
LIMITS: tuple[tuple[str, str], ...] = (
    ("context", r"\b(?:longest|largest|biggest) (?:single )?(?:requests?|queries|query|conversations?|chats?)\b"),
    (
        "concurrency",
        rf"\bhow many (?:of )?{_ADJECTIVES}*(?:{_USERS}|{_REQUESTS})|"
        rf"{_MOST} (?:number of )?(?:{_ADJECTIVES}*{_USERS}|{_ADJECTIVES}+{_REQUESTS}|concurrency\b|"
        rf"batch(?:es)?\b(?:[- _]?sizes?\b)?){_NO_VALUE}|{_HOW_LARGE} (?:an? |can )?(?:the |my )?batch\b|"
        r"\bhow (?:much|high(?: an?)?) concurrency\b",
    ),
    (
        "input_len",
        rf"{_MOST} (?:[\w-]+ )?(?:prompts?|inputs?)\b(?: len\w*)?{_NO_VALUE}|"
        r"\b(?:longest|largest|biggest) (?:single )?(?:documents?|articles?|texts?)\b|"
        rf"{_HOW_LARGE} (?:an? |of an? |can |could )?(?:the |my )?(?:prompts?|inputs?)\b(?! \w*tokens?){_NO_VALUE}",
    ),
)
