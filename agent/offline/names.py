"""Spots names of models, accelerators and rentable machines in text; it never decides what they mean."""

from __future__ import annotations

import re
from functools import cache

from agent.offline.catalogue import Catalogue, folded, name_words
from agent.offline.page import ACCELERATOR, INSTANCE, MODEL, Page
from agent.offline.target_words import ASKS, folder_of
from estimator.errors import PlanError

# Family names that are also plain English (or a hyperparameter): they count as a model only if the look-up agrees.
_ORDINARY = re.compile(
    "code|distill|command|seed|step|opt|solar|bloom|falcon|yi|phi|palm|grok|mt|paper|meta|hf|zephyr|granite|mpt|stable|ernie|"
    "nvidia|megatron"
)
# Words that stand before a size without being a family: "a sub-7B model", "my 13B".
_NOT_A_FAMILY = re.compile(
    "a|an|the|my|our|your|this|that|some|any|sub|non|pre|multi|full|small|large|tiny|big|dense|moe|about|roughly|over|"
    "under|"
    "train|training|finetune|pretrain|tune|fit|run|lora|qlora|with|on|of|for|and|or|to|in|from|is|are|model|models|"
    "only|"
    "need|needs|want|wants|have|has|got|get|through|into|until|just|plus|say|push|process|same|another|use|using|"
    "between|than|at|what|how|did|does|do|can|could|will|would|should|i|we|me|it|its"
)
_NOUN_AFTER = (
    r"(?:\s*(?:x\b|x(?=\d|[a-z]\d)|[\ue001\ue002]|gpus?\b|cards?\b|nodes?\b|epochs?\b|chips?\b|"
    r"tokens?\b|k\b|hours?|days?|%|\$))"
)

_PATH = re.compile(
    r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\.json\b|(?<!\S)(?:~|"
    r"\.{1,2})?/(?!\d+[km]?\b(?!/))[\w./@+-]*[\w@+-]|(?<!\S)[\w.-]+\.json\b"
)
_HUB_ID = re.compile(r"(?<![\w/.])[A-Za-z][\w.-]*/[A-Za-z][\w.-]*[\w](?![\w/])")
_WORD = re.compile(r"[A-Za-z]+")
_NEXT = re.compile(
    r"(?P<gap>[-_. ]?)(?P<word>v\d+(?:\.\d+)*|\d+x\d+(?:\.\d+)?b|[aA]?\d+(?:\.\d+)*[a-z]*|[a-z]+)(?![a-z])",
    re.IGNORECASE,
)
_SIZE_BEFORE = re.compile(r"(?<![\w.$-])(\d+(?:\.\d+)?[bB])[ -]$")
_VERSION_BEHIND = re.compile(r"^([A-Za-z]+)[- ](\d+(?:\.\d+)?[bB]) (\d+\.\d+)$")
_SIZE_WORD = re.compile(r"\d+(?:\.\d+)?[bm]|\d+x\d+(?:\.\d+)?b", re.IGNORECASE)
_MADE_UP = re.compile(r"(?<![\w/.-])([A-Za-z][A-Za-z]*[\w.]*)(?:-[\w.]+)*?-\d+(?:\.\d+)?[bB](?:-[A-Za-z]\w*)*(?![\w])")
_CAMEL = re.compile(r"(?<![\w/.-])(?=[A-Za-z]*[a-z])(?:[A-Z][a-z]*){2,}\d*(?:[ -]\d+(?:\.\d+)?)? \d+(?:\.\d+)?[bB]\b")
_MIXTURE = re.compile(r"(?<![\w.-])\d+x\d+(?:\.\d+)?[bB]\b(?:-v0\.\d)?")
_GENERIC = re.compile(
    r"(?<![\w.$-])(\d+(?:\.\d+)?)\s?([bm])(?:illion)?[- ]?(?:param(?:eter)?s?\b(?: model)?|models?\b|llms?\b|dense\b)",
    re.IGNORECASE,
)
_MODEL_OF = re.compile(r"\bmodels? (?:of|with|having) (\d+(?:\.\d+)?)(b)\b(?! tok)", re.IGNORECASE)
_PLAIN_SIZE = re.compile(
    r"\b(?:a|an|the|my|our|tune|train|pretrain|finetune|for) (\d+(?:\.\d+)?)(b)\b(?! tokens?)", re.IGNORECASE
)

_MEMORY = r"\d{2,3}\s?gi?b?(?![\w/])"
_TAIL = (
    rf"(?:[- ]?(?:\(?(?:sxm\d?|pcie|nvl(?:72)?|hbm\d?e?|oam)\b\)?|{_MEMORY}|ultra\b|super\b|"
    r"ti\b|ada\b|d\b(?=s?\b)|(?<=m\d[- ])max\b|pro\b|"
    r"blackwell\b|workstation\b|"
    r"server(?= (?:edition|cards?|gpus?|cores?)\b|(?! )\b)|grace hopper\b|spark\b|gpus?(?=[- ]\d+gb)))*"
)
_PREFIX = (
    r"(?:(?:nvidia|amd|intel|google|aws|apple|instinct|tesla|geforce|radeon|quadro|"
    rf"{_MEMORY})[ -])*(?P<box>(?:dgx|hgx)[ -])?"
)
_CARD = (
    r"(?:[ahblv]\d{2,4}[a-z]{0,2}|[hab][1-9][0o]{2}|(?:gb|gh|mi|mx)[- ]?\d{2,4}[a-z]{0,2}|"
    r"(?:rtx|gtx|rx)[- ]?(?:pro[- ]?)?[a-z]?\d{3,4}[a-z]*|"
    r"titan[ -](?:rtx|v|xp?)|k80|p40|p100|t4|l4|trn\d?n?|trainium[- ]?\d?|inferentia[- ]?\d?|"
    r"inf\d|gaudi[- ]?\d?|trillium|ironwood|"
    r"tpu[- ]?v?\d[a-z]?(?:-\d+)?|tpus?[- ]v\d[a-z]?(?:-\d+)?|v[2-7][epx](?:-\d+)?|v[2-4](?=-\d)-\d{1,4}|cloud tpus?|"
    r"m[1-9](?= (?:pro|max|ultra|mac\w*|mini|air)\b)|"
    r"epyc[- ]?\d{4}[a-z]?|xeon(?: \w+)? \d{4}\w*|apple m\d|wse-?\d|cs-[23]|groq(?: lpu)?|"
    r"sn40l|(?:wormhole[ -])?n[13]\d0|blackhole(?:[ -]p1\d0)?|arc[ -][ab]\d{3}|"
    r"(?:data center )?gpu max \d{4}|ponte vecchio|"
    r"jetson(?: agx)?(?: orin| thor)?|dgx spark|gb10|rubin|w7900|\d{4} (?:ti|xtx|super|ada)\b)"
)
_PLURAL = r"(?:s(?=[- ](?:sxm|pcie|nvl)))?"
_END = r"(?:(?![\w]|\.\d)|(?=x\d))"
_ACCELERATOR = re.compile(
    rf"(?<![\w./])(?:(?<=\dx)|(?<![a-z0-9.-])){_PREFIX}(?P<card>{_CARD}){_PLURAL}{_TAIL}s?(?:\s?\({_MEMORY}\))?{_END}",
    re.IGNORECASE,
)
_GLUED = re.compile(rf"(?<=\dx){_PREFIX}(?P<card>{_CARD}){_PLURAL}{_TAIL}s?(?:\s?\({_MEMORY}\))?{_END}", re.IGNORECASE)
_BARE_CARD = re.compile(
    r"(?:(?<![\w.$-])|(?<=\d[xX]))(?:(?i:nvidia|geforce) )?(\d{4})([sS]?)(?!\w|\.\d|"
    r"\s*(?:(?:daily|active|concurrent|simultaneous|parallel) )*(?:users?|clients?|requests?|people|customers?|"
    r"employees|prompts?|q(?:ps|ueries)|rps|tokens?|steps?|samples?)\b)"
)
# Behind other product numbers these make them a length.
_LENGTH_AFTER = re.compile(r"\s*(?:context|ctx|seq|in\b|out\b|input|output)", re.IGNORECASE)

_WRITES = re.compile(r"\b(?:writ\w+|sav\w+|put|export\w*|stor\w+|dump\w*)\b", re.IGNORECASE)
# Numbers that are nothing else in this field: '3090 or 4090?'.
_GAMING = re.compile(r"[2-5]0[6-9]0")


def spot(page: Page, catalogue: Catalogue) -> None:
    """Marks every name on the page: paths and hub ids, machines, models, accelerators, in that order."""
    folder = folder_of(page.text)
    for match in page.find(_PATH):
        if match[0] != folder or match[0].endswith(".json") or not _WRITES.search(page.text):
            page.spot("path", match.start(), match.end(), MODEL)
    for match in page.find(_HUB_ID):
        is_folder = match[0] == folder and re.search(ASKS, page.text.lower())
        if _looks_like_an_id(match[0], catalogue) and (match[0].lower() in _ids(catalogue) or not is_folder):
            page.spot("model", match.start(), match.end(), MODEL)
    _spot_instances(page, catalogue)
    _spot_families(page, catalogue)
    _spot_unknown_models(page)
    for pattern in (_GLUED, _ACCELERATOR):
        for match in page.find(pattern):
            if (end := _card_end(match, catalogue)) is not None:
                page.spot("accelerator", match.start(), end, ACCELERATOR, bool(match["box"]))
    for match in page.find(_BARE_CARD):
        gaming = _GAMING.fullmatch(match[1])
        counted = gaming or match[2] or _counted(page.rest, match.start())
        if not gaming and _LENGTH_AFTER.match(page.rest, match.end()):
            continue
        if match[1] in catalogue.card_numbers and counted:
            page.spot("accelerator", match.start(), match.end(), ACCELERATOR, False)


def _looks_like_an_id(text: str, catalogue: Catalogue) -> bool:
    """'org/Name-7B' is an id; 'and/or', 'tokens/s', 'LoRA/QLoRA' and 'H100/H200' are not."""
    if text.lower() in _ids(catalogue):
        return True
    owner, _, name = text.partition("/")
    if _ACCELERATOR.fullmatch(owner) or _ACCELERATOR.fullmatch(name):
        return False
    return bool(re.search(r"\d", name) and re.search(r"[-_.]|\d[bB]\b", name))


@cache
def _ids(catalogue: Catalogue) -> frozenset[str]:
    return frozenset(name.lower() for name in catalogue.model_names)


def _spot_instances(page: Page, catalogue: Catalogue) -> None:
    names = {instance.name.lower(): instance for instance in catalogue.instances}
    short = {name.removeprefix("standard_"): instance for name, instance in names.items()}
    for match in page.find(re.compile(r"(?<![\w./])[\w]+(?:[.-][\w]+)*(?=x\s*\d|(?<!x)\s*x\s*\d|[^\w.-]|[.](?!\w)|$)")):
        word = match[0].lower()
        # '2xp5.48xlarge' is two of them.
        for name in (word, re.sub(r"^\d+x(?=[a-z])", "", word)):
            if instance := names.get(name) or short.get(name):
                page.spot("instance", match.end() - len(name), match.end(), INSTANCE, instance)
                break


def _spot_families(page: Page, catalogue: Catalogue) -> None:
    heads = catalogue.model_words
    for match in page.find(_WORD):
        head = match[0].lower()
        before = page.rest[match.start() - 1 : match.start()]
        if before and (before.isalnum() or before in "._/"):
            continue
        typo = None
        if head not in heads:
            typo = _meant(head, heads)
            if typo is None:
                continue
        end = _name_end(page.rest, match.end(), heads[typo or head])
        if page.rest[end : end + 1] == "+" and _resolves(page.rest[match.start() : end + 1], catalogue):
            end += 1
        words = name_words(page.rest[match.start() : end])
        sized = any(_SIZE_WORD.fullmatch(word) for word in words[1:])
        if (typo and not sized) or (
            not typo and end == match.end() and not _stands_alone(page, match, head, catalogue)
        ):
            continue
        if _ORDINARY.fullmatch(head) and not sized and not _resolves(page.rest[match.start() : end], catalogue):
            continue
        # '70b llama' names the same as 'llama 70b'.
        if not sized and (lead := _SIZE_BEFORE.search(page.rest, 0, match.start())):
            page.spot("model", lead.start(), end, MODEL, f"{page.rest[match.start() : end]} {lead[1]}")
        else:
            # 'qwen 14b 2.5' names the same as 'qwen 2.5 14b'.
            turned = _VERSION_BEHIND.sub(r"\1 \3 \2", page.rest[match.start() : end])
            page.spot("model", match.start(), end, MODEL, turned if turned != page.rest[match.start() : end] else None)


def _meant(word: str, heads: dict[str, frozenset[str]]) -> str | None:
    """The family one typing error away from `word`, for words long enough that this means something."""
    if len(word) < 3 or _NOT_A_FAMILY.fullmatch(word):
        return None
    from rapidfuzz.distance import DamerauLevenshtein

    near = [head for head in heads if len(head) > 3 and DamerauLevenshtein.distance(word, head, score_cutoff=1) <= 1]
    return min(near, key=len) if near else None


def _name_end(text: str, position: int, known: frozenset[str]) -> int:
    """Where a model name that begins with a family word ends."""
    sized = False
    while match := _NEXT.match(text, position):
        word, gap = match["word"].lower(), match["gap"]
        if gap == "." and not word[0].isdigit():
            break
        if not re.search(r"\d", word):
            if word not in known:
                break
        elif _SIZE_WORD.fullmatch(word):
            if sized and gap in ("", " "):
                break
            sized = True
        elif not word[0].isdigit():
            if word not in known and not re.fullmatch(r"v\d+(?:\.\d+)*|a\d+b", word):
                break
        else:
            if re.match(_NOUN_AFTER, text[match.end() :], re.IGNORECASE) and gap == " ":
                break
            bare = re.fullmatch(r"\d+(?:\.\d+)*", word)
            sized_next = re.match(r"[- ]?\d+(?:\.\d+)?b\b", text[match.end() :], re.IGNORECASE)
            behind = sized and bare and "." in word and word in known
            if gap == " " and not behind and (sized or not (word in known or (bare and sized_next))):
                break
            if not bare and word not in known and gap == " ":
                break
        position = match.end()
    return position


def _stands_alone(page: Page, match: re.Match[str], head: str, catalogue: Catalogue) -> bool:
    """A bare family word is a model only where it is nothing else: 'fine-tune llama', not 'the next step'."""
    after = page.rest[match.end() : match.end() + 9].lower()
    return (
        not _ORDINARY.fullmatch(head) and len(head) > 3 and not re.match(r"[- ]?(?:factory|\.?cpp|board|format)", after)
    )


def _resolves(text: str, catalogue: Catalogue) -> bool:

    try:
        catalogue.find_model(text)
    except PlanError as error:
        return "ambiguous" in error.problem
    return True


def _spot_unknown_models(page: Page) -> None:
    """What looks like a model of no known family, and sizes without a name ('a 13B model')."""
    for match in page.find(_MIXTURE):
        page.spot("model", match.start(), match.end(), MODEL)
    for match in page.find(_MADE_UP):
        if not _NOT_A_FAMILY.fullmatch(match[1].lower()):
            page.spot("model", match.start(), match.end(), MODEL)
    for match in page.find(_CAMEL):
        page.spot("model", match.start(), match.end(), MODEL)
    for pattern in (_GENERIC, _MODEL_OF, _PLAIN_SIZE):
        for match in page.find(pattern):
            scale = 1e9 if match[2].lower() == "b" else 1e6
            page.spot("size", match.start(), match.end(2), MODEL, float(match[1]) * scale)


def _card_end(match: re.Match[str], catalogue: Catalogue) -> int | None:
    """Where the accelerator's name ends, without a plural s; None when it is something else after all."""
    card = folded(match["card"])
    if re.fullmatch(r"v\d{3,}[a-z]?|[ahbl]\d{2,}[a-z]*|[hab]\d[o0]{2}|m\d", card) or len(card) > 2:
        return match.end()
    return match.end() if card in catalogue.accelerator_tokens or card in ("t4", "l4") else None


def _counted(text: str, start: int) -> bool:
    """Whether the words before position make a bare product number a thing: 'on a 4090', '2x 3090', 'my 4090'."""
    return bool(
        re.search(r"(?:\b(?:a|an|one|single|two|my|the|on|with|per|each)\s|\dx?\s?|\dx)$", text[:start], re.IGNORECASE)
    )


def accelerator_text(text: str) -> str:
    """The name to look up: without DGX/HGX, plural s, and with a leading memory size moved behind ('40GB A100')."""
    text = re.sub(r"\b(?:dgx|hgx)[ -](?!spark)", "", text.strip(), flags=re.IGNORECASE)
    text = re.sub(r"(?<=\w)s?\s?\((\d+\s?gi?b?)\)$", r" \1", text, flags=re.IGNORECASE)
    if lead := re.match(rf"({_MEMORY})[ -](.+)", text, re.IGNORECASE):
        text = f"{lead[2]} {lead[1]}"
    return text
