"""Numbers with a noun beside them: tokens, context, batches, parallel sizes, money, deadlines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agent.offline.bare_numbers import LENGTHS
from agent.offline.numbers import amount, context_length, count, short
from agent.offline.page import Page
from agent.offline.rules import ANSWERS, OF, rule
from agent.offline.sampling_quantities import read_sampling
from agent.offline.slots import Question, Slot

# Device memory in GB means what vendors mean by it, 2**30 bytes.
_GIB = r"\s?gi?b"
_OF_MEMORY = r"(?:\s+of)?(?:\s+(?:the )?(?:device |gpu )?(?:memory|vram|hbm))?"
_FREE = r"(?:free|unused|empty|spare|aside)"
_EACH = r"(?:\s*(?:per|on each|on every|/)\s*(?:device|gpu|card)\b)?"
_SAMPLE = (
    r"(?:sample|example|row|conversation|convo|dialog(?:ue)?|document|doc|pair|prompt|instruction|chat|record|completion|"
    r"ticket|article|demonstration|preference pair|item|text|e-?mail|review|transcript|abstract|letter|page)"
)
_SAMPLES = rf"{_SAMPLE}s?"
# Between a number and what it counts: 'scanned', 'Q&A', and no unit of bytes.
_KIND_OF = r"(?:(?![kmgt]i?b\b)[a-z][a-z&/'-]* )"
_PER_DEVICE = r"(?:per[- _](?:device|gpu|card|rank)[- _]?(?:train[- _])?|micro[- _]?|local )"


def _percent(text: str) -> float | None:
    value = amount(text)
    return None if value is None else value / 100.0


# (rule, Plan path or reading, how the number is read). The first rules take the numbers that later ones would misread.
_RULES: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    (
        rule(rf"\b(?:keep|leave)(?: about| at least)? F_{_GIB}{_OF_MEMORY}{_EACH} {_FREE}\b{_EACH}"),
        "overrides.reserve_gib",
        amount,
    ),
    (rule(rf"\breserve(?: about| at least)? F_{_GIB}\b{_OF_MEMORY}{_EACH}"), "overrides.reserve_gib", amount),
    (
        rule(rf"F_{_GIB}{_OF_MEMORY}(?: as| in)? (?:headroom|reserve|margin|kept free|left free|to spare)\b{_EACH}"),
        "overrides.reserve_gib",
        amount,
    ),
    (
        rule(rf"(?:\bassum(?:e|ing) |\bonly )?F_{_GIB}{_OF_MEMORY} (?:(?:is|are) )?(?:usable|allocatable)\b{_EACH}"),
        "overrides.usable_gib",
        amount,
    ),
    (rule(rf"\bonly F_{_GIB}{_OF_MEMORY} (?:(?:is|are) )?available\b{_EACH}"), "overrides.usable_gib", amount),
    (rule(rf"\busable(?: memory)?{OF}F_{_GIB}\b{_EACH}"), "overrides.usable_gib", amount),
    (
        rule(rf"N_ (?:samples?|{ANSWERS}) (?:per|for each|for every|a) (?:prompt|question)\b"),
        "workload.group_size",
        count,
    ),
    (rule(r"(?:global[- _]?)?batch(?:[- _]size)?\s*(?:of|=|:|is)?\s*A_[- ]?tokens?\b"), "batch_tokens", amount),
    (
        rule(rf"\b(?:global[- _]?)?batch(?:[- _]size)?{OF}N_ (?:seqs?|sequences?|samples?)\b(?! (?:per|a|each)\b)"),
        "workload.global_batch",
        count,
    ),
    (rule(r"A_[- ]?tokens?\s*(?:per|/|a|global)\s*(?:batch|step|optimizer step)\b(?: size)?"), "batch_tokens", amount),
    (rule(r"A_[- ]?tokens? batch(?:es)?(?: size)?\b"), "batch_tokens", amount),
    (
        rule(rf"N_ (?:{_SAMPLES}|sequences?) (?:per|/|a|each) (?:batch|step|update|optimi[sz]er step)\b"),
        "workload.global_batch",
        count,
    ),
    (
        rule(rf"{ANSWERS}(?: (?:of|up to|to|are|with|max(?:imum)?))*(?: about| ~)? L_[- ]?tok(?:en)?s?\b"),
        "workload.response_len",
        context_length,
    ),
    (rule(rf"L_[- ]?tok(?:en)?s? {ANSWERS}"), "workload.response_len", context_length),
    (
        rule(rf"L_[- ]?(?:tok(?:en)?s?[- ])?(?:max(?:imum)?[- ])?{ANSWERS}[-_ ]?(?:len(?:gth)?s?|tokens)\b"),
        "workload.response_len",
        context_length,
    ),
    (
        rule(rf"(?:max(?:imum)?[-_ ])?{ANSWERS}[-_ ]?(?:len(?:gth)?s?|tokens){OF}L_"),
        "workload.response_len",
        context_length,
    ),
    # "Each 1024 tokens", "avg length 900".
    (
        rule(r"\b(?:each|averag(?:e|ing)|avg\.?|mean)(?: (?:has|is|of|about|around|being))* A_[- ]tok(?:en)?s?\b"),
        "workload.sample_tokens",
        amount,
    ),
    (
        rule(r"\b(?:average|avg\.?|mean) len(?:gth)?s?(?: (?:is|of|about|around))* A_(?:[- ]tok(?:en)?s?)?\b"),
        "workload.sample_tokens",
        amount,
    ),
    (
        rule(rf"A_[- ]*(?:tok(?:en)?s?)?[- ]*(?:each|apiece|per {_SAMPLE}|/{_SAMPLE}|on average|avg|average)\b"),
        "workload.sample_tokens",
        amount,
    ),
    (rule(rf"A_[- ]?tok(?:en)?s? an? {_SAMPLE}\b"), "workload.sample_tokens", amount),
    (rule(rf"Q_{OF}L_(?:[- ]?tokens?)?"), "workload.seq_len", context_length),
    (rule(r"L_(?:[- ]?tokens?)?[- ]*(?:long |max )?Q_"), "workload.seq_len", context_length),
    (rule(r"L_[- ]?tokens?\s*(?:per|/|a)\s*(?:sequence|seq)\b"), "workload.seq_len", context_length),
    (
        rule(r"(?<=[,;?.] )(?:max(?:imum)? )?length(?: (?:of|is))? L_(?:[- ]?tokens?)?"),
        "workload.seq_len",
        context_length,
    ),
    (
        rule(
            r"(?:(?<=sequences)|(?<=samples)|(?<=examples)|(?<=documents)|(?<=pairs)|(?<=prompts)|(?<=rows))"
            r" (?:of|up to) L_(?:[- ]?tokens?)?"
        ),
        "workload.seq_len",
        context_length,
    ),
    (
        rule(r"A_(?:[- ]?training)?[- ](?:tokens?|tok)\b(?!\s*(?:/|per\b))(?: (?:of )?data(?:set)?)?"),
        "workload.dataset_tokens",
        amount,
    ),
    (
        rule(r"(?:(?:dataset[_ ]|number of )?tokens|token counts?)\s*(?:is|are|[=:])\s*A_(?! ?(?:per|/))"),
        "workload.dataset_tokens",
        amount,
    ),
    (rule(r"A_[- ](?:training |optimi[sz]er )?steps\b(?! (?:per|an?)\b| of \d)"), "workload.steps", count),
    (
        # A few pages are those of a report.
        rule(rf"(?!\d{{1,2}}\s+pages)A_\s+{_KIND_OF}?{_SAMPLE}s\b"),
        "workload.dataset_samples",
        amount,
    ),
    (rule(r"F_\s*(?:epochs?|passes)\b"), "workload.epochs", amount),
    (rule(r"epochs?(?:\s*[=:]\s*| )F_"), "workload.epochs", amount),
    (
        rule(r"batch(?:[- _]size)?(?: of)? N_ ?x ?(?:512|1024|2048|4096|8192|16384|32768|[1-9]\d?k)\b"),
        "workload.global_batch",
        count,
    ),
    (
        rule(rf"{_PER_DEVICE}batch(?:[- _]size)?{OF}N_|\bmbs{OF}N_|\bmicro_batch{OF}N_"),
        "workload.micro_batch",
        count,
    ),
    (
        rule(
            r"batch(?:[- _]size)?\s*(?:of\s*)?N_\s*(?:per|/|a|each)\s*(?:device|gpu|card|rank)\b|"
            rf"\bbatch(?:[- _]size)?\s*(?:per|/)\s*(?:device|gpu|card|rank){OF}N_"
        ),
        "workload.micro_batch",
        count,
    ),
    (rule(r"N_\s*(?:sequences?|samples?)\s*(?:per|/)\s*(?:device|gpu)\b"), "workload.micro_batch", count),
    (rule(r"\b(?:at|with|to) N_\s*(?:per|/|a)\s*(?:device|gpu|card)\b(?!\s*-?/?\s*h)"), "workload.micro_batch", count),
    (
        rule(rf"\b(?:bs|batch(?:[- _]size)?){OF}N_ (?:global(?:ly)?|(?:in )?total|overall|effective)\b"),
        "workload.global_batch",
        count,
    ),
    (rule(r"N_[- ](?:global|total|effective)[- _]?(?:batch(?:[- _]size)?|bs)\b"), "workload.global_batch", count),
    (rule(r"(?<!global )\bbs\s*[=:]?\s*N_"), "workload.micro_batch", count),
    (rule(rf"\b(?:grad(?:ient)?[- _]?)?accum(?:ulation)?(?:[- _]?steps)?{OF}N_"), "accumulation", count),
    (rule(r"N_\s*(?:x )?(?:grad(?:ient)?[- _]?)?accum(?:ulation)?(?:[- _]?steps)?\b"), "accumulation", count),
    (
        rule(
            r"\b(?:global[- _]?batch(?:[- _]size)?|gbs|global bs|effective batch(?: size)?|total batch(?: size)?)"
            rf"{OF}N_"
        ),
        "workload.global_batch",
        count,
    ),
    (rule(rf"\bbatch(?:[- _]size)?{OF}N_"), "batch", count),
    (rule(r"N_\s+(?:sequences?|samples?) (?:per|a|/) (?:batch|step)\b"), "workload.global_batch", count),
    (rule(rf"\b(?:v-?pp|vpp|virtual (?:pipeline )?stages?){OF}N_"), "layout.vpp", count),
    (rule(r"N_\s+(?:virtual (?:pipeline )?(?:stages?|chunks?)|model chunks?)\b"), "layout.vpp", count),
    (rule(r"N_\s+pipeline stages?"), "layout.pp", count),
    (rule(r"\b(?:shard[_ ]group|hsdp)(?: (?:of|size))?\s*[=:]?\s*N_"), "layout.shard_group", count),
    (
        r"\bzero(?:[- _]?stage)?\s*(?:[-_=:]|(?:(?:back|down|up) )?to |at )?\s*([0-3])\b|"
        r"\bstage[- ]?([0-3])\b|\bz([1-3])\b",
        "layout.zero_stage",
        count,
    ),
    (r"\bblock:(\d+)\b|\brecompute (\d+) (?:layers|blocks)\b", "recompute_block", count),
    (rule(rf"(?<!on )(?<!gpu )\b(?:lora[- _])?rank{OF}(?!0\b)N_|\br\s*=\s*N_"), "workload.lora.rank", count),
    (r"\br[- ]?(8|16|24|32|48|64|96|128|192|256|512)\b(?! ?(?:k\b|gb|gpus?|cards?))", "workload.lora.rank", count),
    (rule(rf"\b(?:lora[- _])?alpha{OF}N_"), "workload.lora.alpha", count),
    (rule(rf"\b(?:lora[- _])?dropout(?:[- _]rate)?{OF}F_\s?%"), "workload.lora.dropout", _percent),
    (rule(r"F_\s?% (?:lora[- ])?dropout\b"), "workload.lora.dropout", _percent),
    (rule(rf"\b(?:lora[- _])?dropout(?:[- _]rate)?{OF}F_"), "workload.lora.dropout", amount),
    (rule(r"F_ (?:lora[- ])?dropout\b"), "workload.lora.dropout", amount),
    (rule(rf"\b(?:grpo[- ])?(?:group[- _]size|num[- _]generations){OF}N_"), "workload.group_size", count),
    (
        rule(r"\b(?:takes?|gets?|uses?|taking|using) F_\s?% of (?:each|every|the)\b(?: (?:gpu|card|device)s?)?"),
        "workload.engine_share",
        _percent,
    ),
    (
        rule(
            r"\b(?:give|giving|let|leave|with|takes?|gets?|uses?|using|at)(?: (?:it|vllm|sglang|the engine))?"
            r"(?: (?:have|take|use))? F_\s?% (?:of )?(?:the |its |each )?(?:gpu |device |card )?(?:memory|vram|hbm)\b"
        ),
        "workload.engine_share",
        _percent,
    ),
    (rule(rf"\b(?:vllm_)?gpu[-_ ]memory[-_ ]utili[sz]ation{OF}F_"), "workload.engine_share", amount),
)

# "40k dialogues of about 600 tokens", "60k pairs a 1k tokens", "30k samples, 900 tok each".
_COUNTED = rule(
    rf"A_\s+{_KIND_OF}{{0,2}}?{_SAMPLES}\b(?:,|\s|\(|~|@|\*|×|\bx\b|\b(?:of|with|at|an?|à|averaging|around|about|"
    rf"roughly|each|length|long|"
    r"avg|average|mean|up to|having|are|is)\b)*?A_[- ]?(?:tok(?:en)?s?\b(?! (?:in )?total)|(?=\s+(?:each|"
    rf"long)\b))(?:\s+(?:each|long|on average|avg|(?:an?|per) {_SAMPLE}\b))?\)?"
)

# Sizes by their short names: glued (TP8, pp4), with a sign (DP=16) or with words (tp size of 8); then by long names.
_SHORT = re.compile(
    r"(?<![A-Za-z0-9])(tp|pp|vpp|cp|etp|ep|dp|gbs|mbs|mb)(?:[- _](?:size|degree))?"
    r"\s*(?:(?:fixed|kept|set|held|pinned) )?(?:of|=|:|is|to|at)?\s*[-_]?(\d{1,7})(?!\w|\.\d)",
    re.IGNORECASE,
)
_LONG = rule(
    rf"\b(tensor|pipeline|context|expert[- _]tensor|expert|data)(?:[-_]model)?[- _]parallel\w*(?:[- _](?:size|degree))?"
    rf"{OF}[-_]?N_"
)
_WAY = rule(r"N_[- ]way (tensor|pipeline|context|expert|data)[- ]parallel\w*")
_LONG_NAMES = {"tensor": "tp", "pipeline": "pp", "context": "cp", "expert": "ep", "data": "dp"}
_SPLIT = r"(?:tp|pp|cp|ep|pipeline(?:[- ]parallel\w*)?|(?:tensor|context|expert)[- ]parallel\w*)"
_UNSPLIT = re.compile(
    rf"\b(?:without|no)(?: any)? ({_SPLIT}(?:(?:,? (?:or|and) |/|, ){_SPLIT})*)\b(?!\s*(?:of|=|:|to|at)?\s*\d)",
    re.IGNORECASE,
)
_SHORT_PATHS = {"gbs": "workload.global_batch", "mbs": "workload.micro_batch", "mb": "workload.micro_batch"}
_CLIENT_PATHS = dict.fromkeys(_SHORT_PATHS, "workload.concurrency")
_OF_SERVING = ("overrides.", "layout.pp", "layout.vpp")

# Text by its size: OpenAI's rule of thumb is four characters of English a token.
_TEXT = re.compile(
    r"(?<![\w.$-])(\d+(?:\.\d+)?)\s?([gmt])i?(?:b|igs?|igabytes?|egabytes?|erabytes?)\b"
    r"(?: of (?:(?!v?ram\b|memory\b)[\w-]+ ){0,3}?| (?:raw |plain |clean(?:ed)? )?)"
    r"(?:text|jsonl|corpus|corpora|documents|books|articles|(?:training )?data|dataset)\b(?! ?(?:per|/))",
    re.IGNORECASE,
)
_BYTES = {"m": 1e6, "g": 1e9, "t": 1e12}
_BYTES_OF_A_TOKEN = 4

_MONEY = (
    re.compile(
        r"(?<!\w)\$\s?((?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d+)?(?:\s?(?:k|m|thousand|million))?)\b(?!\s*(?:/|per\b|"
        r"an?\b)\s*(?:gpu|card|chip|device|h(?:ou)?r?\b|hour))",
        re.IGNORECASE,
    ),
    rule(r"A_ ?(?:dollars?|usd|bucks)\b(?!\s*(?:/|per\b|an? )\s*(?:gpu|h))"),
    rule(r"\bbudget(?: of| is|:|=)?\s*(?:about |at most )?\$?A_"),
    rule(
        r"\b(?:below|under|less than|at most|max(?:imum)?|up to)\s+A_(?![\w.]|"
        r"\s*(?:[a-z\ue000-\ue003%]))"
    ),
)
_PIECE = r"(?:gpu|card|chip|device)"
_RATE = re.compile(
    rf"\$\s?(\d+(?:\.\d+)?)\s*(?:/|per|an?)\s*(?:{_PIECE}[- /]?)?h(?:(?:ou)?r)?s?\b"
    rf"(?:\s?(?:/|per|a)\s?{_PIECE}\b)?",
    re.IGNORECASE,
)
_MACHINE = r"(?:box|node|machine|server|instance|vm)\b"
# '… $98/hour for the whole box', '… on an 8xH100 node'; 'the box costs us $98/hour'
_FOR_A_MACHINE = re.compile(
    r"[\s,]*(?:/\s*|(?:on|for|per|of|a|an|the|our|my|this|each|whole|full|entire|one|single)\s+)+"
    rf"(?:\d+\s*[x*]?\s*)?(?:[\w-]+\s+){{0,2}}?{_MACHINE}",
    re.IGNORECASE,
)
_MACHINE_COSTS = re.compile(
    rf"\b{_MACHINE}(?: [a-z]+){{0,2}}? (?:costs?|is|at|goes for|runs?|for|@)(?: us| me)?(?: about| around)?\s*$",
    re.IGNORECASE,
)
_HOURS = {
    "minute": 1 / 60,
    "min": 1 / 60,
    "hour": 1.0,
    "hr": 1.0,
    "h": 1.0,
    "day": 24.0,
    "d": 24.0,
    "week": 168.0,
    "month": 720.0,
}
_WITHIN = rule(
    r"\b(?:in|within|under|less than|at most|deadline(?: of| is|:)?|by|before|"
    r"max(?:imum)?|had|have|got|say|overnight,?(?: say)?|"
    r"give (?:it|me|us)|allow(?:ed)?|takes?(?: up to)?|(?<=dollars) and|(?<=usd) and|(?<=\d) and|(?<=\dk) and)"
    r"\s+(?:only |just |about )?"
    r"(?:under |less than |at most |up to )?(?:F_\s*|(?:an?|the)\s+)"
    r"(minute|min|hour|hr|h|day|d|week|month)s?\b(?! of (?:each|it|that)\b)"
)

_WEEKEND = re.compile(
    r"\b(?:(?:in|within|over|during|had|have|got) (?:only |just )?(?:an?|the|this|1)\s+(?:long |whole |single )?|this )"
    r"weekend\b",
    re.IGNORECASE,
)
_FROM_NOW = rule(r"F_\s*(minute|min|hour|hr|h|day|d|week|month)s? (?:from now|left)\b")
_NETWORK = re.compile(
    r"(?<![\w.])(?:(\d+)\s*x\s*)?(\d+)\s?(?!gib\b)(gb?it/?s?|gbps|gb/s|gbe|gb|g|tb?it/?s?|"
    r"tbps)[- ]?(ethernet|infiniband|ib|roce(?:v2)?|efa|network\w*)?\b",
    re.IGNORECASE,
)
_KINDS = {"ethernet": "ethernet", "infiniband": "ib", "ib": "ib", "roce": "roce", "rocev2": "roce", "efa": "efa"}
_NETWORK_KIND = re.compile(
    r"\b(?:over|on|via|with|is|it'?s|have|use|using|only|just|plain|through)\s+(?:an? |plain |only |just )?"
    r"(roce(?: ?v2)?|infiniband|ethernet|efa)\b(?![- ]\w*\d)",
    re.IGNORECASE,
)
_NETWORK_NAME = re.compile(r"\b((?:ib|roce|efa|ethernet)-[\w]+(?:-[\w]+)?)\b|\b(efa)[- ]?v([2-4])\b", re.IGNORECASE)


# What is too little to be data for training.
_LEAST_DATA = 2**15
# '40k dialogues, 40M tokens': no sample has so many, all of them together do.
_LONGEST_SAMPLE = 2**20
# "Cost per 1M tokens" names a unit, not data.
_OF_A_RATE = re.compile(r"(?:\bper|\beach|/)\s*$", re.IGNORECASE)
_SOME_NUMBER = re.compile(r"\d|\b(?:half|quarter)\b", re.IGNORECASE)


def read_numbers(page: Page, serving: bool = False, sampling: bool = False) -> tuple[list[Slot], list[Question]]:
    """Every number with a noun. Paths such as batch_tokens, samples and recompute_block become Plan fields later.

    `sampling` tells a training that samples answers. Of serving only devices, layout and memory are read here: its
    requests have nouns of their own.
    """
    slots: list[Slot] = []
    questions: list[Question] = []
    _network(page, slots)
    for match in page.find(_UNSPLIT):
        words = page.take(*match.span())
        slots += [
            Slot(f"layout.{_LONG_NAMES.get(name, name)}", 1, words)
            for name in re.findall(r"\b(?:tp|pp|cp|ep|pipeline|tensor|context|expert)\b", match[1].lower())
        ]
    if not _SOME_NUMBER.search(page.rest):
        return slots, questions
    slots += [] if serving else read_sampling(page, sampling)
    for match in () if serving else page.find(_COUNTED):
        samples, tokens = amount(match[1]), amount(match[2])
        if samples and tokens:
            words = page.take(match.start(), match.end()).strip()
            slots.append(Slot("workload.dataset_samples", samples, words))
            path = "workload.sample_tokens" if tokens <= _LONGEST_SAMPLE else "workload.dataset_tokens"
            slots.append(Slot(path, tokens, words))
    for match in page.find(_SHORT):
        path = (_CLIENT_PATHS if serving else _SHORT_PATHS).get(match[1].lower(), f"layout.{match[1].lower()}")
        slots.append(Slot(path, int(match[2]), page.take(match.start(), match.end())))
    for pattern, kind, number in ((_LONG, 1, 2), (_WAY, 2, 1)):
        for match in page.find(pattern):
            name = match[kind].lower()
            path = "layout." + ("etp" if name.endswith("tensor") and name != "tensor" else _LONG_NAMES[name])
            slots.append(Slot(path, count(match[number]), page.take(match.start(), match.end())))
    for pattern, path, read in _RULES:
        if serving and not path.startswith(_OF_SERVING):
            continue
        for match in page.find(pattern):
            if path == "workload.dataset_tokens" and _OF_A_RATE.search(page.rest, 0, match.start()):
                continue
            value = read(next(group for group in match.groups() if group))
            short = path == "workload.dataset_tokens" and _is_length(value, page.rest[: match.start()])
            words = page.take(match.start(), match.end()).strip()
            if short:
                slots.append(Slot("workload.seq_len", int(value), words, f"{words!r} read as the sequence length"))
                continue
            if value is None:
                questions.append(Question(path, f"{words!r} gives no number that can be used; what should it be?"))
            else:
                in_gb = path.startswith("overrides.") and "gib" not in words.lower()
                note = f"{words!r} read as {value:g} GiB per device" if in_gb else None
                if words.lower().startswith("bs"):
                    note = f"{words!r} read as the batch per device"
                slots.append(Slot(path, value, words, note))
    if not (serving or {"workload.dataset_tokens", "workload.dataset_samples"} & {slot.path for slot in slots}):
        slots += _by_size(page)
    return slots, questions


def _by_size(page: Page) -> list[Slot]:
    """The tokens of '12 GB of raw text', which are assumed."""
    match = _TEXT.search(page.rest)
    if match is None:
        return []
    tokens = float(match[1]) * _BYTES[match[2].lower()] / _BYTES_OF_A_TOKEN
    words = page.take(*match.span())
    note = f"{words!r} taken as {short(tokens)} tokens, at {_BYTES_OF_A_TOKEN} bytes a token"
    return [Slot("workload.dataset_tokens", tokens, words, note)]


def _is_length(tokens: Any, before: str) -> bool:
    """Whether so few tokens are those of one sequence: nobody trains on 2048 tokens, nor says 'at' of a data set."""
    if not tokens or tokens != int(tokens):
        return False
    at = re.search(r"(?:\b(?:at|with|max(?:imum)?|up to)|@)\s*$", before, re.IGNORECASE)
    return tokens <= _LEAST_DATA or (at is not None and tokens <= max(LENGTHS))


def _of_a_machine(page: Page, rate: re.Match[str]) -> bool:
    """Whether a price per hour is that of a machine with its devices."""
    return bool(
        _FOR_A_MACHINE.match(page.text, rate.end())
        or _MACHINE_COSTS.search(page.text[: rate.start()])
        or page.of("instance")
    )


def read_goal(page: Page, deadline: Callable[[str], tuple[float, str] | None]) -> list[Slot]:
    """Budget, deadline and the user's own price; `deadline` reads dates ('by Friday') as hours from now."""
    slots: list[Slot] = []
    for match in page.find(_RATE):
        path, note = "usd_per_device_hour", f"{match[0]} taken as the price of one device"
        if not re.search(_PIECE, match[0], re.IGNORECASE) and _of_a_machine(page, match):
            path, note = "usd_per_node_hour", None
        slots.append(Slot(path, amount(match[1]), page.take(match.start(), match.end()), note))
    for pattern in (_FROM_NOW, _WITHIN):
        for match in page.find(pattern):
            number = amount(match[1]) if match[1] else 1.0
            if number:
                hours = number * _HOURS[match[2].lower()]
                slots.append(Slot("goal.deadline_h", hours, page.take(match.start(), match.end())))
    for match in page.find(_WEEKEND):
        words = page.take(*match.span())
        slots.append(Slot("goal.deadline_h", 48.0, words, f"{words!r} read as 48 hours"))
    for pattern in _MONEY:
        for match in page.find(pattern):
            value = amount(match[1])
            if value:
                slots.append(Slot("goal.budget_usd", value, page.take(match.start(), match.end()).strip()))
    if any(slot.path == "goal.deadline_h" for slot in slots):
        return slots
    if found := deadline(page.rest):
        hours, words = found
        start = page.rest.find(words)
        page.take(start, start + len(words))
        slots.append(Slot("goal.deadline_h", hours, words, f"{words!r} read as {hours:g} hours from now"))
    return slots


def _network(page: Page, slots: list[Slot]) -> None:
    for match in page.find(_NETWORK_NAME):
        name = f"efa-v{match[3]}" if match[2] else match[1].lower()
        slots.append(Slot("cluster.interconnect", name, page.take(match.start(), match.end())))
    for match in page.find(_NETWORK):
        kind = "ethernet" if match[3].lower() == "gbe" else _KINDS.get((match[4] or "").lower())
        if kind is None:
            continue
        speed = int(match[2]) * (1000 if match[3].lower().startswith("t") else 1)
        if match[3] == "GB/s":
            speed *= 8
        name = f"{kind}-{speed}" + (f"x{match[1]}" if match[1] else "")
        slots.append(Slot("cluster.interconnect", name, page.take(match.start(), match.end())))
    if any(slot.path == "cluster.interconnect" for slot in slots):
        return
    for match in page.find(_NETWORK_KIND):
        kind = _KINDS[match[1].lower().replace(" ", "")]
        slots.append(Slot("cluster.interconnect", kind, page.take(match.start(), match.end())))
