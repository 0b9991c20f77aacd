"""Reading names of models: words and numbers of the architecture, what was done to it, and how it is held.

The words are data (`data/name_words.yaml`); what is no language model is refused by `data/other_models.csv`.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache, lru_cache

from knowledge.data_files import document, rows
from knowledge.names import Form, form_of

_LEAST_BARE_SIZE = 20
"""Smaller numbers without a unit are versions."""
_LIKE_SAID = 0.2
"""Share by which a size in a name may differ from the count and be meant for it."""
_TRILLION = 950
"""Billions from which a size is told in trillions."""
SIZE = r"\d+(\.\d+)?[bt]|\d+x\d+b"
"""Numbers of parameters: with one of them said, only the version of a model is open."""
# A tag of Ollama (name:size...) that says no format, and the format and tuning of what it loads (ollama.com/library).
_TAG = re.compile(r"[a-z0-9._-]+:[a-z0-9._-]+")
_TAGGED_FORMAT, _TAGGED_TUNING = "q4_k_m", "instruct"
# Weights with one scale, and the bits of each, in names of quantised files: '4b-128g', 'g128', 'w4g64', '4.0bpw'.
_GROUP = re.compile(
    r"(?<![a-z0-9])(?:([34])b(?:it)?[-_](?:gs)?\d+g|w([348])g\d+|gs?\d{2,3}|\d{2,3}g|[2-8][._]\d+bpw)(?![a-z0-9])"
)


_REVISION = re.compile(r"-v\d:\d$")
"""The revision at the end of an id of Amazon Bedrock: meta.llama3-1-8b-instruct-v1:0."""
_REGION = re.compile(r"^(?:us(?:-gov)?|eu|apac|ap|jp|au|ca|sa|global)\.(?=[a-z]\w*\.)")
"""Regions in front of one, where any of them answers: us.meta.llama3-3-70b-instruct-v1:0."""
_DASHED = re.compile(r"(?<![\d.])(\d)-(\d)(?![\da-z._])")
"""A version whose point is a dash where ids may have none: llama-3-1-8b."""


# What stands around names of models: the folder of a cache (models--Qwen--Qwen3-8B), the route of a provider (:free).
_CACHED = re.compile(r"models--([^-/\s][^/\s]*?)--([^/\s]+)")
_ROUTE = re.compile(r":(free|nitro|floor|exacto|online|beta|extended)$")
_FILE = re.compile(r"\.(?:gguf|ggml|bin|safetensors)$")
_POINT = re.compile(r"(?<=\d)p(?=\d)")
"""A point as Fireworks writes it: deepseek-v3p1."""


def _parted(name: str) -> tuple[str, str]:
    """(Whose a model is, '' where the name does not say; the rest of it), in lower case. Quantisers and folders of
    downloads have the owner in front: mistralai_Mistral-7B, TheBloke_Llama-2-13B-GPTQ."""
    text = _REGION.sub("", _ROUTE.sub("", _CACHED.sub(r"\1/\2", name.strip().casefold())))
    before, _, tail = text.rpartition("/")
    maker, mark, rest = tail.partition("_")
    return before.rpartition("/")[2], rest if mark and maker in _owners() else tail


def model_form(name: str) -> Form:
    """'Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf' -> words {llama}, numbers {3.1, 8b}, marks {instruct, q4_k_m}."""
    owner, text = _parted(name)
    text = re.sub(r"-\d{5}-of-\d{5}$", "", _FILE.sub("", text)).replace("+", " plus ")
    text = _spelled_pattern().sub(lambda match: str(_in_digits(match[0])), text)
    text = re.sub(r"(?<=\d) point (?=\d)", ".", text)
    if not re.search(r"[-\s:]", text):
        text = text.replace("_", "-")  # what parts the words; beside other marks it is a point: Llama-3_3
    text = _POINT.sub(".", _DASHED.sub(r"\1.\2", _REVISION.sub("", text)))
    text = _GROUP.sub(lambda match: " int4" if match[1] else "", text)
    held = _formats_said(_format_pattern().findall(text))
    plain = _format_pattern().sub(" ", text)
    plain = re.sub(r"(?<=\d)_(?=\d)", ".", plain)
    plain = re.sub(r"(?<=\d)\s+(billion|b)\b", "b", plain)
    plain = re.sub(r"\b(\d+)b(\d)\b", r"\1.\2b", plain)
    plain = re.sub(r"(?<=\d)\.0(?=b?\b)(?!\.)", "", plain)
    words = _words()
    pieces = (piece.strip(".") for piece in re.findall(r"[a-z0-9.]+|[^\W\d_a-z]+", plain))
    tokens = [words["short"].get(token, token) for piece in pieces for token in _pieces(piece)]
    tuned = {words["tuning"][token] for token in tokens if token in words["tuning"]}
    is_served = bool(_TAG.fullmatch(text)) or any(token in words["served"] for token in tokens)
    implied = {_TAGGED_TUNING} if is_served and not tuned else set[str]()
    rest = [token for token in tokens if token and token not in _idle()]
    form = form_of(rest)
    marks = frozenset(tuned | held | implied)
    return replace(form, marks=marks, formats=frozenset(held), owner=owner, implied=frozenset(implied))


def _in_digits(text: str) -> int:
    """'seventy' -> 70, 'four hundred five' -> 405."""
    total = 0
    for word in re.findall(r"[a-z]+", text):
        number = int(_words()["spelled"].get(word, 0))
        total = total * number if number == 100 else total + number
    return total


def _formats_said(words: list[str]) -> set[str]:
    """The formats that words say; what only a kind of file or a way to make one means counts where no other word says
    it: Q5_K_M-GGUF, bnb-8bit."""
    keys = [word.replace("-", "_") for word in words]
    plain = [key for key in keys if key not in _words()["containers"]]
    return {_formats()[key] for key in plain or keys}


_OWN_MIX = re.compile(r"(?<![a-z0-9])(ud[-_](?:i?q\d\w*)|q[4-8]_k_xl)(?![a-z0-9])")


def own_mix(name: str) -> str:
    """What is said of a GGUF file whose types somebody chose layer by layer (Unsloth's UD); '' of others."""
    mix = _OWN_MIX.search(_parted(name)[1])
    if not mix:
        return ""
    return (
        f"{mix[1].upper()} is a mix of Unsloth's own, chosen for each model: sizes are those of llama.cpp's nearest "
        "type, some per cent off; the path of the file has them exactly"
    )


def tag_format(name: str, published: str = "") -> str:
    """The format of what a tag of Ollama loads where it says none, of a checkpoint that is `published` in one: its
    library holds those of 16 and of 8 bits in fewer (deepseek-r1:671b is 404 GB), others as they are, and what ends in
    cloud is not loaded. That of the checkpoint for other names."""
    owner, text = _parted(name)
    is_tag = not owner and not text.endswith("cloud") and _TAG.fullmatch(_REVISION.sub("", text))
    if not is_tag or (published and "8" not in published):
        return published
    loaded, parts = _loaded_formats(), re.split("-", text)
    starts = ("-".join(parts[:end]) for end in range(len(parts), 0, -1))
    of_tag = next((loaded[start] for start in starts if ":" in start and start in loaded), None)
    return of_tag or loaded.get(text.partition(":")[0], _TAGGED_FORMAT)


@cache
def _loaded_formats() -> dict[str, str]:
    """Formats that tags of Ollama without one load, by the tag or by its name, where that is not the usual one."""
    return {name: row["format"] for row in rows("ollama_tags.csv") for name in row["names"].split(";")}


def size_words(id: str, *parameters: float | None) -> frozenset[str]:
    """What is said of the size of a model whose name has none, or another: phi-4 is '14b' (of 14.7e9), Kimi-K2 '1t',
    Llama-4-Scout-17B-16E '109b'."""
    counts = [count / 1e9 for count in parameters if count]
    written = (re.fullmatch(r"(\d+(?:\.\d+)?)([bt])", number) for number in model_form(id).numbers)
    sizes = [float(match[1]) * (1000 if match[2] == "t" else 1) for match in written if match]
    if any(abs(size - billions) <= _LIKE_SAID * billions for size in sizes for billions in counts):
        return frozenset()
    # Gemma's E4B is said to have 4 billion, or all that its file has (8).
    effective = {number[1:] for number in model_form(id).numbers if re.fullmatch(r"e[\d.]+b", number)}
    counts = [max(counts)] if effective and counts else counts
    words = effective | {f"{n}b" for count in counts for n in (math.floor(count), round(count), round(count, 1))}
    return frozenset(words | {f"{count / 1000:.0f}t" for count in counts if count >= _TRILLION})


def bare_size(number: str, numbers: frozenset[str]) -> str | None:
    """The size of those that a number without its unit means: '405' is 405b, '8x22' 8x22b."""
    sized = f"{number}b"
    is_plain = number.isascii() and number.isdigit()
    is_large = re.fullmatch(r"\d+x\d+", number) or (is_plain and int(number) >= _LEAST_BARE_SIZE)
    return sized if is_large and sized in numbers else None


def short_words() -> dict[str, str]:
    """What people write for a word, and the word."""
    return _words()["short"]


@cache
def maker_words(id: str) -> frozenset[str]:
    """What the maker of a model, by its id, is called."""
    return frozenset(_words()["makers"].get(id.partition("/")[0].casefold(), "").split())


def words_of(name: str) -> frozenset[str]:
    """Words of a name as it is written, parts of CamelCase too; what is before a slash is no part of them."""
    tail = name.strip().rpartition("/")[2]
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tail)
    return frozenset(re.findall(r"[^\W_]+", f"{tail} {split}".casefold()))


@cache
def _owners() -> frozenset[str]:
    """Who publishes models, in lower case."""
    published = (row["name"].partition("/")[0].casefold() for row in rows("checkpoints.csv"))
    return frozenset({*_words()["makers"], *published})


@cache
def refused_models() -> dict[str, str]:
    """Words of names of models that are no language models, or of whose config too little is known, and what is said of
    them."""
    reasons = {
        word: f"is {row['kind']}: only language models with published weights are planned for"
        for row in rows("other_models.csv")
        for word in row["words"].split(";")
    }
    for row in rows("unplanned_models.csv"):
        for name in row["names"].split(";"):
            form = model_form(name)
            reasons[" ".join(sorted(form.words | form.numbers))] = f"cannot be planned for by name: {row['why']}"
    return reasons


def _pieces(piece: str) -> list[str]:
    """'qwen2.5' -> qwen, 2.5; 'v3' -> 3; '2.5vl' -> 2.5, vl; '8x7b', '70b', 'a3b' and 'e4b' stay whole."""
    parts = [part for part in re.split(r"(?<=[a-z])\.|\.(?=[a-z])", piece) if part]
    if len(parts) > 1:
        return [token for part in parts for token in _pieces(part)]
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]{2,})", piece):
        return [*match.groups()]
    if re.fullmatch(r"[ae]\d+(\.\d+)?b", piece) or not (match := re.fullmatch(r"([a-z]+?)(\d[a-z0-9.]*)", piece)):
        return parts
    head, rest = match.groups()
    short = head.removesuffix("v")
    return [*([] if head == "v" else [short if short in _words()["short"] else head]), *_pieces(rest)]


@cache
def _words() -> dict[str, dict[str, str]]:
    return document("name_words.yaml")


@cache
def _idle() -> frozenset[str]:
    """Words that are no part of what a model is."""
    return frozenset(_words()["noise"]) | frozenset(_words()["served"]) | _words()["tuning"].keys()


@cache
def _formats() -> dict[str, str]:
    return _words()["formats"] | _words()["containers"]


@lru_cache(maxsize=1)
def _spelled_pattern() -> re.Pattern[str]:
    """Numbers in words: hundreds, tens and units in this order, each left out where it is."""
    words: dict[str, list[str]] = {"units": [], "teens": [], "tens": []}
    for word, number in _words()["spelled"].items():
        kind = "units" if int(number) < 10 else "teens" if int(number) < 20 else "tens"
        if int(number) < 100:
            words[kind].append(word)
    units, teens, tens = ("|".join(group) for group in words.values())
    below = rf"(?:(?:{tens})(?:[\s-](?:{units}))?|{teens}|{units})"
    return re.compile(rf"\b(?:(?:{units})[\s-]hundred(?:[\s-](?:and[\s-])?{below})?|{below})\b")


@lru_cache(maxsize=1)
def _format_pattern() -> re.Pattern[str]:
    longest_first = sorted(_formats(), key=len, reverse=True)
    either = "|".join(re.escape(word).replace("_", "[-_]") for word in longest_first)
    return re.compile(rf"(?<![a-z0-9])({either})(?![a-z0-9])")
