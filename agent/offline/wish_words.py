"""Words that ask for what only one tool gives: a cluster, a complete plan, strategies, advice, a scenario, a report."""

from __future__ import annotations

_HARDWARE = (
    r"(?:gpus?|cards?|hardware|hw|clusters?|accelerators?|instances?|clouds?|providers?|machines?|boxes|box|vms?|"
    r"nodes?|"
    r"chips?|setup)"
)
_RUN = r"(?:train|fine-?\s?tun|pre-?train|sft|lora|qlora|run|do|get|finish|serve|host)\w*"
RECOMMEND = (
    rf"\b(?:which|what) (?:\w+ (?:and|or|&|\+) )?(?:kind of |type of |sort of |cloud |combination of "
    rf")?{_HARDWARE}(?: (?:and|or|\+|&) \w+)*\b"
    rf"(?! (?:do you|are you|you|is (?:in|this)|am i|exactly do you))|"
    rf"\bwhat cloud\b|\bcheaper (?:gpus?|cards?|hardware|options?|setup|cluster|alternatives?)\b|"
    rf"\b(?:least|minimum|minimal|smallest|cheapest) (?:amount of )?(?:hardware|hw|cluster|setup|compute)\b|"
    rf"\bwhat (?:should|do|would|must|can) (?:i|we|you) (?:rent|buy|get|order|lease)\b|\bwhat to (?:rent|buy|order)\b|"
    rf"\bcheapest (?:way|option|cluster|setup|place|gpus?|hardware|cloud|provider|config\w*)\b|"
    rf"\bcheapest to {_RUN}|\bcheapest [\w -]{{0,20}}?{_HARDWARE}\b|"
    rf"\b(?:recommend|suggest)\b[^.?!]{{0,30}}\b{_HARDWARE}\b|\brecommended {_HARDWARE}\b|"
    rf"\bbest {_HARDWARE} (?:for|to)\b|\bwhere (?:should|can|do|to) (?:i |we )?(?:rent|train|run|buy|fine-?tune|"
    rf"host)\b|"
    rf"\bwhat (?:would|do) (?:i|we) need to (?:rent|buy)\b|\b(?:rent|buy) (?:for|to) {_RUN}|\bwho (?:rents|has) the "
    rf"cheapest\b|"
    rf"\bhow (?:can|do|could|should) (?:i|we) {_RUN}\b[^.?!]*\b(?:cheap\w*|least money)\b|"
    rf"\b(?:cost[- ](?:effective|efficient)|economical|affordable) [\w -]{{0,20}}?{_HARDWARE}\b|"
    rf"\b{_HARDWARE} (?:(?:is|are|the|would be) )*cheapest\b|\b(?:fastest|quickest|best) way to {_RUN}|"
    rf"\bcheapest(?=\W*$)|"
    rf"\bwhat (?:config\w*|setup|cluster|hardware|machine)[^.?!]{{0,12}}\b(?:recommend|suggest|advise)\w*|"
    rf"\bfind (?:me )?(?:a |the )?(?:cheapest |best |fastest )?{_HARDWARE}\b"
)
# After an answer: what would do where this does not.
ELSE = (
    r"\bif not\b[^.?!]{0,24}\bwhat\b|\bwhat else\b[^.?!]*\b(?:fit|work|run|do)\b|"
    r"\bwhat (?:hardware |gpus? |cluster |setup )?(?:would|will|could|does|can|is|do)(?: (?:i|we|it|"
    r"that))?(?: actually| then)? "
    r"(?:fit|work|do it|do the job|need|enough|suffice|take)\w*(?: (?:then|instead|it|this|that|for (?:it|this|"
    r"that)))*\W*$"
)
# These ask what one has or what is known, not what to get.
NOT_RECOMMEND = r"\b(?:do you (?:know|have|support)|are supported|in your (?:list|catalogu?e|db)|for slurm|spot or)\b"
CONFIGURE = (
    r"\bset (?:it|this|that|everything|things|all(?: of (?:it|this))?|the whole thing) (?:all )?up\b|\bset up "
    r"(?:everything|it all|"
    r"the whole thing)\b|\bsetup everything\b|\bauto-?\s?config\w*|\b(?:just )?config(?:ure)? (?:it |this "
    r")?(?:everything|all|the whole)\b|"
    r"\b(?:do|plan|decide|choose|pick|figure out|work out|sort out) (?:everything|it all|all of it|the rest|the "
    r"whole thing|all that)\b|"
    r"\bwhat (?:can|could) (?:i|we) (?:do|train|fine-?tune|afford|get)(?: \w+){0,4} (?:for|with) (?:only |just |"
    r"about |a budget of )?"
    r"(?:[$\ue003\d]|less than|under)|\bi don'?t care (?:which|what|about)\b|\bno idea what (?:settings|config|"
    r"hardware)\b|"
    r"\bcomplete (?:plan|setup|config\w*)\b|\bfull (?:plan|setup) for\b|"
    r"(?<!did )(?<!do )(?<!would )(?<!should )(?<!could )\byou (?:decide|choose|pick)\b|\bend[- ]to[- ]end (?:plan|"
    r"setup)\b|"
    r"\bpick (?:hardware|the hardware|an? engine|engine|gpus?)\b[^.?!]*,|\bwhat settings should i use\b|\bmake "
    r"(?:me )?a plan\b"
)
STRATEGIES: tuple[tuple[str, str], ...] = (
    ("maximum_performance", r"\bmax(?:imum|imal|imi[sz]e)?[- _]?perf(?:ormance)?\b"),
    (
        "truly_identical",
        r"\b(?:truly[- _])?identical\b(?: (?:config\w*|layout|settings))?|\bsame layout (?:everywhere|on both)\b",
    ),
    ("memory_optimized", r"\bmemory[- _]optimi[sz]ed\b"),
    ("minimal_communication", r"\bmin(?:imal|imum|imi[sz]e)?[- _]comm(?:unication|s)?\b"),
    (
        "balanced",
        r"\bbalanced\b(?=[^.?!]*\bstrateg|[- ](?:strateg|layout|config|setup|plan)|"
        r"\s*(?:[,/;?.!]|$|(?:vs|versus|or|and|for|on)\b))|(?<=strategy )balanced\b",
    ),
)
STRATEGY = r"\bstrateg(?:y|ies)\b"
ALL_STRATEGIES = (
    r"\b(?:named|all(?: the| named)?|benchmark|every|different|various) strateg\w+|\bstrateg\w+ (?:comparison|"
    r"table|suite)\b"
)
PEAK = (
    r"\bpeak (?:training |train )?(?:throughput|speed|tokens?|tok/s|performance)\b|\b(?:throughput|speed) table\b|"
    r"\btokens? (?:a|per|each|/) ?day\b|\bdaily token\w*|\bhow fast (?:can|could) (?:it|they|this|one|you) (?:ever "
    r")?get\b|"
    r"\b(?:what|which) mfu (?:is|would be|counts as) (?:good|normal|typical|realistic|reasonable|achievable)\b|"
    r"\bis (?:an? )?(?:mfu of )?\d+(?:\.\d+)? ?%(?: mfu)?(?: an?)? (?:good|ok|okay|normal|bad|decent|low|reasonable)\b|"
    r"\b(?:good|typical|realistic|achievable|reasonable|normal) mfu\b|\bat best\b[^.?!]*\btok|\btok\w*[^.?!]*\bat "
    r"best\b|\bhow many tokens (?:can|could|does)\b"
)
NODES_PAY = (
    r"\b(?:ideal|best|optimal|right) number of (?:nodes|machines|servers)\b|"
    r"\bhow many nodes (?:are |is |would be )?(?:worth|pay|make sense|still)\b|"
    r"\b(?:more|adding|additional|extra|further) nodes (?:\w+ ){0,2}(?:stop|cease|pay|worth|help|useful|make sense)\w*|"
    r"\b(?:efficiency|scaling) (?:drops?|falls?|goes|dips?|decays?)\b|\bdo more nodes (?:pay|help)\b|\bwhere (?:does|"
    r"do) (?:it|scaling) (?:stop|break)\w*|\bmore nodes\b[^.?!]*\bpay\b"
)
ADVISE = (
    r"\b(?:any |some |give me |more )?(?:tips|advice|recommendations|pointers|suggestions)\b|\bbest practices?\b|"
    r"\bwhat (?:would|should|could|can|do) (?:you|i|we) (?:do|change|try|tweak|tune|improve|recommend|suggest|"
    r"optimi[sz]e)\b|"
    r"\bwhat do you (?:recommend|suggest|advise)\b|\bhow (?:can|could|do|should|would) (?:i|we|you) (?:improve|"
    r"optimi[sz]e|tune)\b|"
    r"\banything (?:i|we) (?:can|could|should) (?:do|change|improve|tweak)\b|\badvise\b|\brecommend for\b|\blow[- "
    r"]hanging fruit\b|"
    r"\bwhat else (?:can|could|should)\b"
)
PLAYBOOK = (
    r"\bplaybook\b|\benv(?:ironment)?[- ]?var\w*|\bhow (?:do|should|can|to|would) (?:i |we |you |one )?(?:best |"
    r"properly )?"
    r"(?:set|configure|enable|disable|use|turn on|turn off|debug|fix|avoid|diagnos\w+|tune|handle|pick|choose|"
    r"resume|restart|monitor)\b|"
    r"\btroubleshoot\w*|\bchecklist\b|\bguide\b|\bwhat (?:does|is) (?:nccl|zero|fsdp|sequence parallel\w*|gradient "
    r"checkpointing)\b|"
    r"\b(?:hangs?|hanging|hung|stuck|nan(?:s)?|loss spikes?|diverg\w+|time(?:s|d)? ?-?outs?|timeouts?|crash\w*|"
    r"segfault\w*|watchdog|"
    r"unhandled|illegal memory|ecc|straggler\w*|fragmentation|deadlock\w*)\b|\bbest settings for\b|\bwhen (?:should|"
    r"to|do) (?:i|we)? ?use\b"
)
# What goes wrong on clusters, whatever is run there.
TROUBLE = (
    r"\b(?:hangs?|hanging|hung|nans?|explod\w+|blow(?:s|ing)? up|loss spikes?|diverg\w+|stragglers?|watchdog|"
    r"deadlocks?|segfaults?|xid|"
    r"timeouts?|node failures?|flaky nodes?)\b"
)
HELPS = r"\b(?:why|what|how|cause[sd]?|reasons?|fix|avoid|prevent|help|against)\b"
NO_MEMORY = r"\bout of memory\b|\booms?\b|\boom(?:ing|ed)\b"
# Which of two ways is better, where no run is spoken of.
GENERAL = (
    r"\brecommended\b|\b(?:is|are|works?) better\b|\bworth (?:it|using)\b|\bdifference between\b|\bpros and cons\b|"
    r"\bshould (?:i|we|one) (?:use|enable|prefer|pick|choose)\b|\bwhich (?:one|is)\b|\brule of thumb\b"
)
# Asks what something is.
WHAT_IS = (
    r"\b(?:tell me (?:more )?about|what(?: exactly| really)?(?:'s| is| are| does)(?: exactly| really)?|explain|"
    r"how (?:does|do)|describe|teach me)\b"
    r"(?! (?:the )?(?:best|fastest|cheapest|max\w*|most))"
)
CONCEPT = (
    r"\b(?:(?:tensor|pipeline|context|expert|data|sequence|model|3d|4d)[- ]parallel\w*|mixture[- ]of[- ]experts|moe|"
    r"(?:q|do)?lora|quanti[sz]ation|mfu|hfu|gradient accumulation|micro-?batch\w*|grpo|dpo|ppo|paged ?attention|"
    r"activation (?:checkpoint|recomput)\w*|ring attention|roofline|virtual pipeline|(?:zero|pipeline) bubbles?)\b"
)
# How to choose what a plan holds, and what a message means, where there is no plan.
SETTING = (
    r"\b(?:batch(?: size)?|micro-?batch\w*|parameters?|settings?|ttft|tpot|latency|throughput|utili[sz]ation|errors?|"
    r"exceptions?|loss scale|rank|precision|optimi[sz]er|checkpointing|recompute|(?:tensor|pipeline|expert|context|"
    r"data)"
    r"[- ]parallel\w*|tp|pp|zero(?:[- ]\w+)?|offload\w*|packing|warm-?up|nodes?|lora|quanti[sz]ation)\b"
)
CHOOSING = (
    r"^\W*(?:how|when|why|what|which|should|is|are|does|do|can|explain|tell|describe|where)\b|\bcause\b|\bmeans?\b|"
    r"\bshould (?:i|we|one)\b|\b(?:how|when|why|what|which)\b[^.?!]*\b(?:choose|set|pick|tune|use|prefer|enable|"
    r"avoid)\b"
)
# These are of a run that one has in mind, and wait for its model and its devices.
OF_A_RUN = (
    r"\bhow (?:long|much|many|fast|big)\b|\bcosts?\b|\bfits?\b|\boom\b|\bout of memory\b|\b(?:it|this|that)\b|"
    r"\bcan i\b|"
    r"\bbest (?:layout|parallel\w*|config\w*|setup)\b|\b(?:my|our|the) (?:run|model|training|job)\b"
)
# What the playbook knows and a plan does not say.
TECHNICAL = (
    r"\b(?:nccl|rccl|efa|roce|infiniband|ib|rdma|ethernet|sharp|nvlink|nvls|gdr|gpudirect|socket|ifname|cuda_|"
    r"pytorch_|nccl_|"
    r"allocator|pinned|data ?load(?:er|ing)s?|checkpoints?|checkpointing|offload\w*|zero-?\d?|fsdp|deepspeed|"
    r"megatron|fp8|fp4|mxfp8|"
    r"slurm|srun|torchrun|cgroups?|numa|affinity|warm-?up|learning rate|lr|loss|gradient clipping|clip\w*|packing|"
    r"chat template|"
    r"chunked[- ]prefill|prefix[- ]cach\w+|kv[- ]?cache|speculative|cuda graphs?|batching|continuous batching|"
    r"scheduler|topology|"
    r"overlap|bucket|buckets|recompute|activation|flash\w*|liger|compile|torch\.compile|vllm|sglang|drivers?|ecc|"
    r"xid|unsloth|axolotl|llama-?factory|torchtitan|torchtune|nemo|maxtext|trl|accelerate)\w*\b"
)
EXPLAIN = (
    r"\b(?:explain (?:me |to me )?)?where (?P<f10>(?:the|that|this|my|our|all) [^?.!,;]+?) comes? from\b|"
    r"\b(?:explain (?:me |to me )?)?where (?:do|does|did|is|are|comes?)(?: (?P<f1>(?:[^?.!,;]|\.(?=\d))+?))? (?:come|"
    r"coming|came|taken|calculated|"
    r"derived)(?: from)?\b|"
    r"\bwhere's (?P<f2>(?:[^?.!,;]|\.(?=\d))+?) (?:coming )?from\b|"
    r"\bhow (?:sure|certain|confident|accurate|reliable|precise|trustworthy|good)\b(?: are| is| do| can)?(?: you| "
    r"we| i| it)?(?: feel)?"
    r"(?: (?:about|of|on|in|with|that|is|are))*(?: (?P<f3>[^?.!;]+))?|"
    r"\bhow (?:did|do|is|are|was|were|have)(?: you| we)? (?P<f4a>[^?.!;]*?) ?(?:get|got|calculated?|computed?|"
    r"comput|deriv\w+|arriv\w+ at|come up with|estimat\w+|work\w* out)"
    r"\b(?: (?P<f4>[^?.!;]+))?|"
    r"\bwhy (?:does|do|is|are) [^?.!;]+? (?:need|take|use|cost|require)s? (?:so|that|this) (?:much|"
    r"many)(?: more)? (?P<f12>[^?.!;]+)|"
    r"\bwhy (?:is|are|does|do) (?P<f5>[^?.!;]+?) (?:so |that |this |as |only |such |take so |need so |use so |cost so )"
    r"(?:big|high|low|large|small|much|many|huge|long|expensive|little|bad|tiny|heavy|slow)\w*|"
    r"\bwhy (?:so much|that much|so many) (?P<f8>[^?.!;]+)|"
    r"\bexplain (?:me |to me )?(?:how you got |where .*? comes? from )?(?P<f6>[^?.!;]+)|"
    r"\b(?:derive|derivation of|walk me through|show (?:me )?the (?:math|formula|derivation)(?: (?:for|of|behind))?)\b"
    r"(?: (?P<f11>[^?.!;]+))?|\bbreak ?down (?:of "
    r")?(?P<f7>[^?.!;]+)|\bwhat(?:'s| is) in (?P<f9>the [^?.!;]+)"
)
SAVE = (
    r"\b(?:save|store|keep|remember|bookmark)\b(?: (?:this|that|it|the|my|current|plan|scenario|setup|config|run|"
    r"one|as is))*"
    r" (?:as|under|to|called|named)(?: the)?(?: (?:name|scenario|plan))? [\"'`]?(?P<n1>[\w.-]*[\w])[\"'`]?|"
    r"\b(?:call|name) (?:this|that|it)(?: (?:one|plan|scenario|setup))? [\"'`]?(?P<n2>[\w.-]*[\w])[\"'`]?|"
    r"\bsave (?:this|that|it|the|my|current)? ?(?:plan|scenario|setup)\b(?! (?:as|under|to))(?: "
    r"[\"'`]?(?P<n3>[\w.-]*[\w])[\"'`]?)?"
)
LIST = (
    r"\b(?:list|show|what are|see|display|which are)\b(?: me| all| of| my| the| our| saved| existing)* "
    r"(?:plans|stuff|things|scenarios|examples)\b|"
    r"\bwhat (?:have|did|do) (?:i|we) (?:have |got )?(?:saved?|stored?|kept|keep)\b|"
    r"\bmy (?:saved )?(?:plans|scenarios)\b|"
    r"\b(?:which|what) (?:plans|scenarios) (?:do i|are|have)\b|\bexample (?:plans|scenarios)\b|\bgive me an example "
    r"plan\b"
)
LOAD = (
    r"\b(?:load|open|restore|reload|bring back|pull up|go back to|switch to|use)\b(?: (?:the|my|our|"
    r"saved))*(?P<said> (?:plan|scenario))?"
    r"(?: (?:called|named))? [\"'`]?(?P<n1>[\w.-]*[\w])[\"'`]?(?P<after> (?:plan|scenario))?(?: again)?"
)
DELETE = (
    r"\b(?:delete|remove|drop|forget|trash|erase)\b(?: (?:the|my|our|saved|that))*(?: (?:plan|scenario))"
    r"(?: (?:called|named))? [\"'`]?(?P<n1>[\w.-]*[\w])[\"'`]?|\b(?:delete|remove|trash|erase)\b (?:the |my "
    r")?[\"'`]?(?P<n2>[\w.-]*[\w])[\"'`]? (?:plan|scenario)\b"
)
DIFF = (
    r"\bwhat(?:'s| is| has| have| did)?(?: (?:all|i|we|has|was))? (?:changed?|different|new)(?: here| now| in it)? "
    r"(?:against|since|from|compared (?:to|with)|to|versus|vs)"
    r"(?: the)?(?: (?:plan|scenario))? [\"'`]?(?P<a1>[\w.-]*[\w])[\"'`]?|"
    r"\bdiff(?:erences?|erent)?\b(?: (?:it|this|that|the plan|the current plan))? (?:to|from|with|against|vs|versus|"
    r"between)(?: the)?(?: (?:plans?|scenarios?))?"
    r" [\"'`]?(?P<a2>[\w.-]*[\w])[\"'`]?(?: (?:and|to|vs|versus|with) [\"'`]?(?P<b2>[\w.-]*[\w])[\"'`]?)?|"
    r"\b(?:compare|against)\b (?:this |it |that )?(?:with |to |against )?(?:the )?(?:plan |scenario "
    r")?[\"'`]?(?P<a3>[\w.-]*[\w])[\"'`]?(?: (?:and|to|vs\.?|versus|with|against) [\"'`]?(?P<b3>[\w.-]*[\w])[\"'`]?)?"
)
DROP = r"\b(?:delete|remove|trash|erase) (?:the |my )?[\"'`]?([\w.-]*\w)[\"'`]?"
DIFF_TWO = r"\bdiff(?:erences?)?(?: between)? (?:the two|both|them|these|those)\b"
CATALOGUE = (
    r"\b(?:which|what|list|show)(?: me)?(?: all| of)*(?: the| your| known| supported| available)* "
    r"(?P<q1>[^?.!]*?)\b(?P<k1>gpus?|accelerators?|hardware|cards?|devices|chips|tpus?|models?|llms?|prices?)\b"
    r"(?P<r1>[^?.!]*?)\b(?:do you (?:actually |really |even )?"
    r"(?:know|have|support|cover|list)|can you (?:estimate|plan|handle|simulate)|"
    r"are (?:known|supported|available|there|in)|you "
    r"(?:know|have|support)|in (?:your|the) (?:catalogu?e|list|database|db))\b(?P<t1>[^?.!]*)|"
    r"\b(?:list|show me|show) (?:me )?(?:all |the |your |every |known |available |supported "
    r")*(?P<q2>[^?.!]*?)\b(?P<k2>gpus?|accelerators?|cards?|models?|llms?|prices?|tpus?)\b(?! (?:for|on|that "
    r"fit))(?P<t2>[^?.!]*)"
)
KNOWN_DEVICE = r"\bdo you (?:know|have|support|cover)\b[^.?!]{0,24}\ue001+\W*$"
PRICES = (
    r"\bprice (?:list|book|table)\b|\b(?:all|every)(?: the| your)?(?: cloud)? prices?\b|\blist(?: \w+){0,2} prices?\b"
)
# Which of the options that were offered it shall be: 'let's take the second one'.
TAKES = (
    r"\b(?:go(?:ing)? with|take|use|pick|choose|i'?ll have|let'?s (?:go|use|take|do)|settle on|for)\b(?: with)? "
    r"(?:the |that )?(first|second|third|fourth|top|cheapest|best|recommended|1st|2nd|3rd|one|offer|option)\b"
)
# All of one family, not one of it: 'show me all Gemma models', 'any of the Nemotron models?'.
FAMILY = (
    r"\b(?:(?:list|show)(?: me)?(?: all| every)?|(?:which|what)|do you (?:know|have|support|cover)(?: any|"
    r" all)?(?: of)?)"
    r"(?: the| your)? \ue000+(?: models?| llms?| family| variants?| sizes)\b"
    r"(?! (?:fits?|can|should|would|is|for|on|to)\b)"
)
EXPORT = (
    r"\b(?:export|show|print|give|dump|render)\b[^.?!]{0,24}\b(?:plan|scenario)\b"
    r"[^.?!]{0,12}\b(?:as|in) (?:ya?ml|json)\b|"
    r"\b(?:export|dump|show|print|give me) (?:it|this|that|everything) (?:as|in) (?:ya?ml|json)\b|"
    r"\b(?:export|dump) (?:the |my |this |current )*(?:plan|scenario)\b"
)
REPORT = (
    r"\breport\b(?! (?:that|to|(?:an? )?(?:error|oom)))|\breports\b(?=\W*$| (?:for|of|on|as|in|to|please)\b)|"
    r"\bwrite[- ]?up\b|\bone[- ]?pager\b|\bsummary (?:document|pdf|file)\b|"
    r"(?<!'s )\bpdf\b(?! (?:says?|said|states?|claims?|from|that|with|of|we|i|they)\b)|"
    r"\b(?:make|create|give|get|build|write|export|generate|turn|convert|put|send|render)\b[^.?!]{0,16}\bpdf\b|"
    r"\b(?:make|create|write|prepare)\b[^.?!]{0,16}\b(?:page|document|slide)s?\b[^.?!]*\b(?:show|send|share|present|"
    r"hand)\b"
)
MATRIX = (
    r"\bbench(?:mark(?:ing)?)?[- ](?:matrix|suite|plan|grid|sweep)\b|\bmatrix of (?:benchmark\w*|runs|"
    r"configs)\b|\bbenchmark (?:runs|configs|scripts|jobs)\b"
)
MATRIX_RESULTS = (
    r"\bmatrix\b[^?!]*\b(?:results?|measured|accuracy|(?:is|are) (?:done|finished)|has (?:run|finished))\b|"
    r"\b(?:results?|measurements?|numbers) (?:of|from|in) (?:the|my|our|that)? ?(?:bench\w*|matrix)|"
    r"\b(?:bench(?:mark)?|matrix)[- ]results?\b|\b(?:ran|finished|done with|completed) (?:the|my|our|that|all) "
    r"(?:bench\w*|matrix)\b"
)
IMPORT = (
    r"\b(?:check|import|read|review|look at|analy[sz]e|estimate|parse|validate|load|what (?:about|"
    r"does))\b[^\n]{0,40}\b(?:this|my|the|following|attached|our)\b[^\n]{0,24}"
    r"\b(?:config\w*|ya?ml|json|script|file|sbatch|recipe|command)\b|\bwill this (?:config\w*|ya?ml|file|script) "
    r"(?:fit|run|work)\b|\bimport\b"
)
OWN = (
    r"\b(?:remember|note|keep) (?:an?|my|our|this|the|these)\b[^.?!]{0,16}\b(?P<k3>price|rate)s?\b|"
    r"\badd (?:an?|my|our|new|this|the)?[^.?!]{0,24}\b(?P<k1>accelerator|gpu|card|hardware|device|chip|model|price|"
    r"rate)s?\b|"
    r"\b(?P<k2>accelerator|gpu|card|hardware|device|chip|model|price)s?\b[^.?!]{0,24}\b(?:isn'?t|is not|not|"
    r"missing)\b[^.?!]{0,16}\b(?:in|from|on) (?:your|the) (?:list|catalogu?e|db|database)\b"
)
VENDORS: tuple[tuple[str, str], ...] = (
    (r"\bnvidia\b", "NVIDIA"), (r"\bamd\b", "AMD"), (r"\bintel\b", "Intel"), (r"\b(?:google )?tpus?\b", "Google"),
    (r"\btrainium\b|\bneuron\b", "AWS"), (r"\bapple\b", "Apple"),
)  # fmt: skip
