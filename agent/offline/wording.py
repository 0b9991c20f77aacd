"""The user's text as plain English of the field: shorthand written out, typing errors of known words put right, and
the common questions of Spanish, German, French and Chinese in English words. Names and numbers stay as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from agent.offline import foreign_words

# 'A100 80', '80G A100', 'H100-80' and 'A100 with 80 GB' mean the memory of the card; 'A100 80 GPUs' does not.
_MEMORIES = {"a100": "40|80", "h100": "80|94|96", "v100": "16|32", "h20": "96|141", "gh200": "96|144"}
_CARD_MEMORY = re.compile(
    r"(?:\b|(?<=\dx))(?P<card>"
    + "|".join(rf"{card}(?:[- ](?:sxm|pcie))?(?=s?[\s-]+(?:with |a |@ |of )?(?:{sizes})(?!\d))"
               for card, sizes in _MEMORIES.items())
    + r")(?P<plural>s?)[\s-]+(?:with |a |@ |of )?(?P<size>\d{2,3})(?:\s?g(?:i?b|igs?)?)?s?(?: each| cards?(?= ))?"
    r"(?![\w.,]*\d)(?!\s*(?:gpus?|nodes?|devices?|x\b|k\b|m\b|b\b|tokens?|steps?|users?|concurrent|requests?|%|"
    r"/))(?!\w)",
    re.IGNORECASE,
)  # fmt: skip
_SIZE_FIRST = re.compile(r"\b(?P<size>40|80)\s?g(?:ig)?s?\s+(?P<card>a100|h100)(?P<plural>s?)\b", re.IGNORECASE)
# What can be on or off.
_SWITCHED = (
    r"packing|torch\.compile|compile|recompute|recomputation|(?:gradient|activation) checkpointing|"
    r"(?:cpu |optimizer |activation |param(?:eter)? )?offload(?:ing)?|flash[- ]?attention|sequence parallel(?:ism)?|"
    r"cuda[- ]?graphs?"
)


def _joined(match: re.Match[str]) -> str:
    return match[0].replace(" ", "")


_SHORTHAND: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), plain)
    for pattern, plain in (
        (r"(?<=\w)['’]s (?=with \d)", " "),
        (r"(?<=\w)['’]s(?=\s*[?!.]*\s*$)", ""),
        (r"\bw/o\s?", "without "),
        (r"\bw/\s?", "with "),
        (r"\b(?:ft|finetune|fintune)(?:ing)? of\b", "fine-tuning of"),
        (r"\bfull[- ]?ft\b|\bfft\b", "full fine-tuning"),
        (r"\b(min(?:imum)?|max(?:imum)?) (?:#|no\.?|num\.?) of\b", r"\1 number of"),
        (r"\btoks\b(?!/)", "tokens"),
        (r"\bpre[ -]train", "pretrain"),
        (r"\bhow'?d (?=you|we|it|that)", "how did "),
        (r"\bcompair", "compare"),
        (r"\bppl\b", "people"),
        (r"\battn(?= (?:only|layers?|modules?|proj))", "attention"),
        (r"\bmicro (?=\d)", "micro batch "),
        (r"\b(?:one|a single) (?:pass|epoch)\b", "1 epoch"),
        (r"\bgens\b", "generations"),
        (r"\bpara(?:l{1,2}e|le)l{1,2}(?=\b|ism\b)", "parallel"),
        (r"\btok(?:en|ne?)s?/(?=s)", "tokens/"),
        (r"\b(?:least expensive|most (?:affordable|inexpensive))(?:ly)?\b", "cheapest"),
        (r"\bbfloat16\b", "bf16"),
        (r"\bfloat16\b", "fp16"),
        # '3 ep' counts epochs, 'ep 8' and 'tp 4 ep 8' are parallel sizes
        (r"(?<![\w=.-])(?<!\b[tpcd]p )(\d+) eps?\b(?!\s?[=:]?\s?\d|-)", r"\1 epochs"),
        (r"(?<![-_])\bmem\b(?![-_])", "memory"),
        (
            r"\b(?:act|activations?|grad|gradients?)[- ]ckpt(?:ing|s)?\b|\b(?:act|grad)[- ]checkpoint(?:ing|s)?\b",
            "activation checkpointing",
        ),
        (r"\bds(?=[- ]?(?:zero|z[1-3])\b|[- ]zero)", "deepspeed"),
        # 'zero1 v zero2'
        (r"(?<=\w)(?<!\btitan) v (?=[a-z]|\d+\s?x)|(?<=\d) v (?=\d)", " vs "),
        (r"(?<=\d)\s?(k|m|b|t|mio|bn)?[ ]?tok\b(?!\s*(?:/|per))", r"\1 tokens"),
        (r"\bseq[- _]?lens?\b", "seq_len"),
        (r"(?<![\d,.])(\d+),(\d{1,2})(?=\s?[kmbt]\b)", r"\1.\2"),
        (r"\b(within|in|under) (?:a|one) second\b", r"\1 1 s"),
        (r"(?<=\d)\s?bucks\b", " dollars"),
        (r"(?<=\d)\s?grand\b", "k dollars"),
        (r"\b(?:seqence|sequnce|sequece|sequense|squence|sequenc)\b", "sequence"),
        (r"\b(?:lenght|lenth|lengh|legnth|lenghth)\b", "length"),
        (r"(?<![\w.=:])(\d+)\s+(gbs|mbs)\b(?!\s*(?:[=:]|(?:of )?\d|(?:of )?(?:v?ram|memory|hbm|disk)))", r"\2 \1"),
        (
            r"\b(?:each|every|one|a|per) (?:output )?token (?:must |should |has to |needs to |may |to )?"
            r"(?:come |arrive |appear |be (?:out|there) )?(?:with)?in (?=\d)",
            "tpot under ",
        ),
        (r"(?<![\d.\w])(\d+(?:\.\d+)?)\s?([km]?)\s?\$(?!\s?\d|\s*/)", r"$\1\2"),
        (r"\b(?:cuda|gpu) (?:out of memory|oom)\b", "out of memory"),
        (r"(?<=\bvs)\.", ""),
        (r"(?<=[a-z0-9])\s?/\s?gpu/h(?:r|our)?\b", " per gpu hour"),
        (r"\$\s?/\s?kwh\b", "usd per kwh"),
        (r"\b(\d+) of (?:them|those|these) (?=nodes|boxes|machines|servers|hosts)", r"\1 "),
        (r"\b(\d+) (?:of them|of those|in total)\b", r"\1 gpus"),
        (r"\b(\d{2,3}) ?gigs?\b", r"\1GB"),
        (r"\b\d{2}\s?gb\s+(?=[2-5]0[6-9]0s?\b)", ""),
        # '200 000 samples'
        (r"(?<![\d.,])(\d{1,3})((?: \d{3})*(?: 000)(?: \d{3})*)(?= [a-z])(?! ?000)", _joined),
        (
            r"(?<=\d )(thousand|million|billion|trillion)(?:s(?: of)?| of)"
            r"(?= (?:training )?(?:tok|sampl|exampl|pairs|doc))",
            r"\1",
        ),
        (r"(?<=\d)\s?(?:trn|tril|trill)\b", " trillion"),
        (r"(?<=\d)\s?(?:bln|bil|bill)\b", " billion"),
        (r"(?<=\d)\s?(?:mln|mil|mill)\b", " million"),
        (rf"\b({_SWITCHED}) (?:off|disabled)\b", r"no \1"),
        (rf"\b(?:disabl(?:e|ed|ing)|turn(?:ed|ing)? off|switch(?:ed|ing)? off) (?:the )?({_SWITCHED})\b", r"no \1"),
        (rf"\b({_SWITCHED}) (?:on|enabled)\b(?! (?:\d|an?\b|the\b|my\b|our\b))", r"with \1"),
        (rf"\b(?:enabl(?:e|ed|ing)|turn(?:ed|ing)? on|switch(?:ed|ing)? on) (?:the )?({_SWITCHED})\b", r"with \1"),
    )
)
# Words of the field that are worth correcting. Short ones only where two letters are swapped.
_TERMS = (
    "lora", "qlora", "finetune", "finetuning", "pretrain", "pretraining", "training", "sequence", "context", "tokens",
    "throughput", "parallelism", "pipeline", "deepspeed", "kubernetes", "slurm", "megatron", "compare", "memory",
    "gradient", "checkpointing", "recompute", "optimizer", "inference", "serving", "concurrent", "requests", "latency",
    "dataset", "epochs", "samples", "cheapest", "fastest", "longest", "largest", "explain", "recommend", "configure",
    "scenario", "precision", "spot", "reserved", "report", "layout", "efficiency", "bottleneck", "axolotl", "torchtune",
    "torchrun", "torchtitan", "llamafactory", "quantization",
    "activation", "activations", "weights", "batch", "global", "micro", "tensor",
    "expert", "offload", "adamw", "budget", "deadline", "minimum", "maximum", "estimate", "faster", "instead",
)  # fmt: skip
# English words that are one letter away from a term.
_ENGLISH = frozenset(
    [
        "request",
        "sample",
        "epoch",
        "token",
        "weight",
        "largely",
        "fast",
        "long",
        "largest",
        "larger",
        "longer",
        "faster",
        "patch",
        "match",
        "catch",
        "batches",
        "reports",
        "reporter",
        "reserve",
        "reserves",
        "compared",
        "compares",
        "compute",
        "computed",
        "context",
        "contexts",
        "content",
        "explained",
        "explains",
        "estimated",
        "estimates",
        "estimator",
        "finetuned",
        "pretrained",
        "trains",
        "trained",
        "straining",
        "raining",
        "draining",
        "training",
        "trainings",
        "model",
        "models",
        "sport",
        "spots",
        "report",
        "port",
        "exports",
        "expert",
        "experts",
        "export",
        "expect",
        "tensors",
        "sensor",
        "layouts",
        "payout",
        "minimal",
        "maximal",
        "instance",
        "instead",
        "latent",
        "latency",
        "lately",
        "memory",
        "memories",
        "serve",
        "serves",
        "served",
        "server",
        "servers",
        "serving",
        "severing",
        "configured",
        "configures",
        "precise",
        "precision",
        "decision",
        "decisions",
        "requested",
        "checkpoint",
        "globally",
        "macro",
        "micron",
        "recommended",
        "recommends",
        "optimizers",
        "optimiser",
        "optimise",
        "optimised",
        "concurrently",
        "fattest",
        "cheaper",
        "cheap",
        "lowest",
        "adam",
        "dataset",
        "datasets",
        "deadlines",
        "budgets",
        "gradients",
        "activations",
        "activate",
        "sequences",
        "pipelines",
        "efficient",
        "parallel",
        "quantized",
        "quantised",
        "quantisation",
        "loan",
        "loral",
        "floral",
        "moral",
        "oral",
        "lara",
        "lore",
        "load",
        "lord",
        "weighs",
        "weighted",
        "offloads",
        "offloaded",
        "largest",
        "estimates",
        "recomputed",
        "recomputes",
        "deep",
        "speed",
        "spot",
        "stop",
        "post",
        "pots",
        "tops",
        "optimized",
        "optimize",
        "optimizing",
        "optimal",
        "optimum",
        "bath",
        "both",
        "botch",
        "natch",
        "latch",
        "hatch",
    ]
)
_WORD = re.compile(r"(?<![\w.$/-])[a-z]{4,16}(?![\w/]|-\d|\.\w)", re.IGNORECASE)


# '8 -> 16 -> 32': three and more are a list of values.
_STEP = r"\s*(?:-+>|=>|→)\s*| - "
_STEPS = re.compile(rf"(?<![\w.])\d+k?(?:(?:{_STEP})\d+k?){{2,}}(?![\w.])", re.IGNORECASE)


# What stands around a question and says nothing of it.
_AROUND = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^\W*(?:(?:hi|hiya|hello|hey|yo|howdy|good (?:morning|afternoon|evening)|hallo|hola|buenas|bonjour|salut)\b"
        r"(?: (?:there|all|everyone|team|folks|guys|shardwise))?[\s,.!:;-]+)+(?=\w+\W+\w)",
        r"^\W*(?:(?:um+|uh+|uhm+|erm|hmm+|(?:can you )?tell me(?=[,:]))\b[\s,.:;!-]+)+(?=\w+\W+\w)",
        r"^\W*(?:(?:a )?(?:quick|short|simple|stupid|dumb|noob) (?:question|one)\b[\s,.:;-]+)(?=\w+\W+\w)",
        r"(?<=[\w?)])[\s,.;!-]+(?:many )?(?:thanks|thank you|thx|ty|tia|cheers)"
        r"(?: (?:in advance|a lot|so much|very much|a bunch|again))*\W*$",
        r"(?<=\w[\w?])[\s,]+(?:please|pls|plz)[\s.!?]*$",
    )
)
_MARKUP = re.compile(r"\*\*(?=\S)([^*\n]+)(?<=\S)\*\*|`([^`\n]+)`")
_EMOJI = re.compile(r" ?[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]+")
_DASH = re.compile(r"(?<=[\w).%]) - (?=\w)")
_BARE_NUMBER = re.compile(r"\d+[km]?", re.IGNORECASE)
_LONGEST_WORD = 40
_UNIFY = str.maketrans({"×": "x", "–": "-", "—": "-", "−": "-", "‑": "-", "\u00a0": " ", "’": "'", "“": '"', "”": '"'})
# A row of a table in Markdown.
_ROW = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)


# Lines drawn with signs, words longer than any name, numbers longer than any amount: patterns may take long over them.
_DRAWN = re.compile(r"([^\w\s`{}()\[\]\"'])\1{3,}")
_ENDLESS = re.compile(r"(\w{120})\w+|(\s{40})\s+")
_ENDLESS_NUMBER = re.compile(r"(?<!\w)\d{19,}")


def bounded(text: str) -> str:
    """`text` without what no question needs, so that reading it takes a time in proportion to its length."""
    text = _ENDLESS.sub(lambda long: long[1] or long[2], _DRAWN.sub(r"\1\1\1", text))
    return _ENDLESS_NUMBER.sub(" ", text)


def tidied(text: str) -> str:
    """`text` in plain characters, without marks of Markdown, pictures, and room and lines that part nothing."""
    text = _EMOJI.sub("", _MARKUP.sub(lambda marked: marked[1] or marked[2], text.translate(_UNIFY)))
    text = re.sub(r"(?<=,)\s*\n\s*", " ", re.sub(r"[ \t]+", " ", text))
    text = _ROW.sub(lambda row: ": ".join(cell.strip() for cell in row[1].split("|") if cell.strip(" :-")), text)
    return _DASH.sub(_parting, text)


def _parting(dash: re.Match[str]) -> str:
    """A comma for a dash that parts a word from what follows, or a number from a word; between numbers it may be a
    range."""
    before = dash.string[max(0, dash.start() - _LONGEST_WORD) : dash.start()].split()[-1]
    return dash[0] if _BARE_NUMBER.fullmatch(before) and dash.string[dash.end()].isdigit() else ", "


def plainly(text: str, names: frozenset[str] = frozenset()) -> str:
    """`text` for reading. `names` are words that name models and are left alone."""
    text = foreign_words.english(text)
    for around in _AROUND:
        text = around.sub("", text)
    text = _STEPS.sub(lambda match: re.sub(_STEP, ", ", match[0]), text)
    text = _CARD_MEMORY.sub(lambda match: f"{match['card']} {match['size']}GB", text)
    text = _SIZE_FIRST.sub(lambda match: f"{match['card']} {match['size']}GB", text)
    for pattern, plain in _SHORTHAND:
        text = pattern.sub(plain, text)
    return _WORD.sub(lambda match: _corrected(match[0], names), text)


def _corrected(word: str, names: frozenset[str]) -> str:
    lowered = word.lower()
    return word if lowered in names else (_term(lowered) or word)


def _inflected(word: str, term: str) -> bool:
    """Whether the two differ in their endings alone: 'concurrency' is no typing error of 'concurrent'."""
    alike = next((at for at, (a, b) in enumerate(zip(word, term, strict=False)) if a != b), min(len(word), len(term)))
    return sorted(word) != sorted(term) and alike >= len(term) - 2


@cache
def _term(word: str) -> str | None:
    """The one term that `word` is a typing error of, or None."""
    if word in _TERMS or word in _ENGLISH or len(word) < 4:
        return None
    from rapidfuzz.distance import OSA

    near = [
        term
        for term in _TERMS
        if term[0] == word[0]
        and (sorted(term) == sorted(word) or len(term) >= 6)
        and OSA.distance(word, term, score_cutoff=1 if len(term) < 9 else 2) <= (1 if len(term) < 9 else 2)
        and not _inflected(word, term)
    ]
    return near[0] if len(near) == 1 else None
