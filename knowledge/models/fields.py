"""From a raw Hugging Face config to the canonical fields that `estimator.model.configs.build` reads.

A config.json says the sizes; the conventions (which biases, norms, gates) live in the code of its model_type.
`data/model_types.yaml` holds those conventions, one entry a model_type, with the class that each comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from estimator.errors import PlanError, nearest
from knowledge.data_files import document

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
TEXT_ALONE = "only the text decoder is counted, not the vision or audio towers"
_FLATTENED = ("attn_config", "ffn_config")
_DEFAULT_TYPE = "llama"
_NO_CONVENTIONS: dict[str, Any] = {"rename": {}, "when": [], "defaults": {}, "fixed": {}, "halve": [], "copy": {}}


def canonical(config: Mapping[str, Any]) -> dict[str, Any]:
    """Canonical fields of `config`: nested text configs followed, names and conventions of its model_type applied.

    Raises PlanError for a config that is not of a decoder-only language model. What had to be assumed is in `notes`.
    Fields that say `canonical: true` (the catalogue's) are taken as they are.
    """
    if config.get("canonical") is True:
        return dict(config)
    fields, is_nested = _text_part(config)
    written = fields.get("notes")
    notes: list[str] = list(written) if isinstance(written, list | tuple) else []
    kind = _model_type(fields)
    table = _table()
    _refuse(kind, config)
    if kind not in table["types"]:
        near = [name for name in nearest(kind, table["types"], 3) if kind]
        problem = f"model_type {kind!r} is not known" if kind else "model_type is not given"
        notes.append(f"{problem}: fields that the config leaves out follow Llama's conventions")
        entry = _entry(_DEFAULT_TYPE)
        if near:
            notes.append(f"nearest known model types: {', '.join(near)}")
        notes += _of_unknown(fields, kind, near)
    else:
        entry = _entry(kind)
        written_kind = str(fields.get("model_type") or "").lower()
        if written_kind not in ("", kind, kind.removesuffix("_text")):
            notes.append(f"model_type {written_kind[:60]!r} is not known: taken as {kind}, as its class says")
    fields = _as_numbers(_flattened(fields))
    original = dict(fields)
    for theirs, ours in entry["rename"].items():
        _rename(fields, theirs, ours)
    for ours, names in table["names"].items():
        for theirs in names:
            _rename(fields, theirs, ours)
    for rule in entry["when"]:
        _apply(rule, original, fields)
    left_out = {name: value for name, value in entry["defaults"].items() if fields.get(name) is None}
    fields |= left_out
    fields.update(entry["fixed"])
    _widths(fields, entry)
    _layer_lists(fields)
    if entry["sublayers"] and "num_layers" in config:
        _split_layers(fields, entry["sublayers"])
    if entry["approximate"]:
        notes.append(f"approximate: {entry['approximate']}")
    if is_nested or "vision_config" in config:
        fields["multimodal"] = True
    if fields.get("multimodal"):
        notes.append(TEXT_ALONE)
    if kind in table["types"]:
        fields["model_type"] = kind
    fields["notes"] = notes
    return fields


def _of_unknown(fields: dict[str, Any], kind: str, near: list[str]) -> list[str]:
    """What the fields of an unknown model_type say of its conventions. Raises PlanError where they are of layers that
    are no attention: what Llama has in their place is of another size."""
    unknown = _table()["unknown"]
    others = [name for name, value in fields.items() if value is not None and name.startswith(tuple(unknown["layers"]))]
    if kind and others and fields.get("mixer") is None:
        problem = (
            f"{kind[:60]!r} is not known, and it has layers that are no attention ({', '.join(sorted(others)[:3])})"
        )
        raise PlanError("model.model_type", problem, near)
    experts = next((name for name in _named("num_experts") if _is_many(fields.get(name))), None)
    if kind and experts and not any(fields.get(name) for name in _named("moe_intermediate_size")):
        problem = f"{kind[:60]!r} is not known, and its config says {experts}, but not how wide an expert is"
        raise PlanError("model.moe_intermediate_size", problem)
    if fields.get("hidden_act") in unknown["ungated"] and fields.get("mlp_gated") is None:
        fields["mlp_gated"] = False
        return [f"an MLP without a gate, as with {fields['hidden_act']} elsewhere"]
    return []


def _named(field: str) -> list[str]:
    """What configs call a field."""
    return [field, *_table()["names"][field]]


def _is_many(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 1


def _text_part(config: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The config of the language model: the nested one of a multimodal config, with what only the outer one says."""
    fields, is_nested = dict(config), False
    for _ in range(3):
        inner = next((fields[name] for name in NESTED if isinstance(fields.get(name), Mapping)), None)
        if inner is None:
            break
        outer, fields, is_nested = fields, dict(inner), True
        for name in ("tie_word_embeddings", "architectures"):
            if name in outer:
                fields.setdefault(name, outer[name])
        # What holds the text model says whether its head is tied; transformers 4 asked the text model alone.
        told = outer.get("tie_word_embeddings")
        if told is False or (told is True and _written_by(config) >= _TIED_OUTSIDE):
            fields["tie_word_embeddings"] = told
        if "model_type" not in fields and "model_type" in outer:
            fields["model_type"] = outer["model_type"]
    return fields, is_nested


_TIED_OUTSIDE = 5
_LONGEST_VERSION = 4


def _written_by(config: Mapping[str, Any]) -> int:
    """The main version of the transformers that wrote a config; 0 where it does not say."""
    version = str(config.get("transformers_version") or "").partition(".")[0]
    return int(version) if version.isdecimal() and len(version) < _LONGEST_VERSION else 0


def _model_type(fields: Mapping[str, Any]) -> str:
    """The model_type; where it is missing or unknown, what the class name in `architectures` implies, or the layer
    that mamba_ssm's own configs name."""
    kind = str(fields.get("model_type") or "").lower()
    if not kind and isinstance(scan := fields.get("ssm_cfg"), Mapping):
        return "mamba2" if scan.get("layer") == "Mamba2" else "mamba"
    types = _table()["types"]
    if kind in types or kind in _refused():
        return kind
    if f"{kind}_text" in types:
        return f"{kind}_text"
    classes = fields.get("architectures")
    for name in classes if isinstance(classes, list | tuple) else ():
        if known := _by_class().get(str(name)):
            return known
    return kind


def _flattened(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with the sections of DBRX- and MPT-like configs on one level."""
    flat = dict(fields)
    for section in _FLATTENED:
        inner = flat.pop(section, None)
        if isinstance(inner, Mapping):
            for name, value in inner.items():
                flat.setdefault(str(name), value)
    return flat


def _as_numbers(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with lists that say one number for every layer as that number (Hunyuan's moe_topk), and the vocabulary
    as mamba_ssm pads it."""
    layers = next((fields[name] for name in _named("num_hidden_layers") if isinstance(fields.get(name), int)), 0)
    single = {name for field in _table()["names"] for name in _named(field)}
    for name in single & set(fields):
        value = fields[name]
        alike = isinstance(value, list) and len(value) == layers and layers > 1 and len(set(map(str, value))) == 1
        fields[name] = value[0] if alike else value
    multiple, vocab = fields.get("pad_vocab_size_multiple"), fields.get("vocab_size")
    if isinstance(multiple, int) and isinstance(vocab, int) and _is_many(multiple):
        fields["vocab_size"] = -(-vocab // multiple) * multiple
    return fields


def _rename(fields: dict[str, Any], theirs: str, ours: str) -> None:
    """Move a field to its canonical name; a canonical value that is already there wins."""
    if theirs in fields:
        value = fields.pop(theirs)
        if fields.get(ours) is None and value is not None:
            fields[ours] = value


def _apply(rule: Mapping[str, Any], original: Mapping[str, Any], fields: dict[str, Any]) -> None:
    conditions = {rule["field"]: rule["is"], **rule.get("and", {})}
    if any(original.get(name) != value for name, value in conditions.items()):
        return
    for name, value in rule.get("set", {}).items():
        fields.setdefault(name, value)
    fields.update(rule.get("override", {}))
    for theirs, ours in rule.get("rename", {}).items():
        _rename(fields, theirs, ours)


def _widths(fields: dict[str, Any], entry: Mapping[str, Any]) -> None:
    """Feed-forward widths that a config doubles or leaves to a multiple of hidden_size."""
    for name in entry["halve"]:
        if isinstance(fields.get(name), int):
            fields[name] //= 2
    if fields.pop("block_auto_adjust_ff_dim", False) and isinstance(fields.get("intermediate_size"), int):
        multiple = int(fields.pop("block_multiple_of", None) or 256)  # Lfm2MLP
        width = int((fields.pop("block_ffn_dim_multiplier", None) or 1.0) * int(2 * fields["intermediate_size"] / 3))
        fields["intermediate_size"] = -(-width // multiple) * multiple
    if isinstance(both := fields.get("moe_intermediate_size"), list) and len(both) == 2:
        fields["moe_intermediate_size"], fields["vision_moe_intermediate_size"] = both  # ERNIE-4.5-VL: text, images
    for name, other in entry["copy"].items():
        if fields.get(name) is None and fields.get(other) is not None:
            fields[name] = fields[other]
    multiple = fields.pop("ffn_multiple", None) or entry["ffn_multiple"]
    hidden = fields.get("hidden_size")
    if isinstance(multiple, int | float) and fields.get("intermediate_size") is None and isinstance(hidden, int):
        fields["intermediate_size"] = int(multiple * hidden)


_PATTERN_LETTERS = {
    "mamba": "M", "linear_attention": "M", "attention": "*", "full_attention": "*", "mlp": "-", "moe": "E",
}  # fmt: skip


def _split_layers(fields: dict[str, Any], parts: int) -> None:
    """Each layer of several attentions and MLPs as that many layers, the first with the experts beside its MLP."""
    layers, width = fields.get("num_hidden_layers"), fields.get("intermediate_size")
    if isinstance(layers, int) and 0 < layers < 10_000 and isinstance(width, int):
        fields["num_hidden_layers"] = layers * parts
        fields["moe_layer_freq"] = [1, *[0] * (parts - 1)] * layers
        fields["shared_expert_intermediate_size"] = width


def _layer_lists(fields: dict[str, Any]) -> None:
    """The lists of `build` from those that others have instead: transformers 5 (mlp_layer_types, layers_block_type),
    Kimi Linear (numbers from 1), Laguna (heads of each layer), GLM-5 (every how many layers choose
    tokens), Step-3.5 (numbers of layers with experts, as text)."""
    feeds = fields.pop("mlp_layer_types", None)
    if isinstance(feeds, list) and "sparse" in feeds:
        fields["moe_layer_freq"] = [int(kind == "sparse") for kind in feeds]
    blocks = fields.pop("layers_block_type", None)
    if isinstance(blocks, list) and set(blocks) <= set(_PATTERN_LETTERS):
        fields.setdefault("hybrid_override_pattern", "".join(_PATTERN_LETTERS[kind] for kind in blocks))
    if fields.get("num_hidden_layers") is None:  # transformers 5 counts the list where there is one
        listed = (fields.get(name) for name in ("hybrid_override_pattern", "layer_types", "moe_layer_freq"))
        if told := next((kinds for kinds in listed if isinstance(kinds, str | list) and kinds), None):
            fields["num_hidden_layers"] = len(told)
    _layer_heads(fields)
    _of_single_layers(fields)
    _compressed_layers(fields)
    _numbered_experts(fields)
    layers, every = fields.get("num_hidden_layers"), fields.pop("index_topk_freq", None)
    if isinstance(every, int) and every > 1 and isinstance(layers, int) and 0 < layers < 10_000:
        first = fields.pop("index_skip_topk_offset", 2)
        shared = [max(i - first + 1, 0) % every for i in range(layers)]
        fields.setdefault("indexer_types", ["shared" if rest else "full" for rest in shared])
    _windows_and_scans(fields)
    linear = fields.pop("linear_attn_config", None)
    if not isinstance(linear, Mapping):
        return
    layers, full = fields.get("num_hidden_layers"), linear.get("full_attn_layers")
    if isinstance(layers, int) and 0 < layers < 10_000 and isinstance(full, list):
        kinds = ["full_attention" if i + 1 in full else "linear_attention" for i in range(layers)]
        fields.setdefault("layer_types", kinds)
    for theirs, ours in (
        ("head_dim", "linear_key_head_dim"),
        ("num_heads", "linear_num_key_heads"),
        ("short_conv_kernel_size", "linear_conv_kernel_dim"),
        ("use_full_rank_gate", "linear_full_output_gate"),
    ):
        if linear.get(theirs) is not None:
            fields.setdefault(ours, linear[theirs])


# What 0 and 1 mean in lists of layers: MiMo's, MiniMax-Text-01's.
_NUMBERED_LAYERS = {
    "hybrid_layer_pattern": ("full_attention", "sliding_attention"),
    "attn_type_list": ("linear_attention", "full_attention"),
}


def _windows_and_scans(fields: dict[str, Any]) -> None:
    """`layer_types` from MiMo's numbers (1 = sliding), EXAONE's letters (LLLG), and the numbers of Bamba's layers with
    attention."""
    layers = fields.get("num_hidden_layers")
    for name, kinds in _NUMBERED_LAYERS.items():
        pattern = fields.pop(name, None)
        if isinstance(pattern, list):
            fields.setdefault("layer_types", [kinds[bool(on)] for on in pattern])
    if not (isinstance(layers, int) and 0 < layers < 10_000):
        return
    letters = fields.get("sliding_window_pattern")
    if isinstance(letters, str) and set(letters) <= {"L", "G"} and letters:
        del fields["sliding_window_pattern"]
        kinds = [letters[i % len(letters)] for i in range(layers)]
        if fields.get("sliding_window"):
            sliding = ["sliding_attention" if kind == "L" else "full_attention" for kind in kinds]
            fields.setdefault("layer_types", sliding)
    numbers = fields.pop("attn_layer_indices", None)
    if isinstance(numbers, list) and fields.get("mixer"):
        fields.setdefault("layer_types", ["attention" if i in numbers else "mamba" for i in range(layers)])


_OF_SINGLE_LAYERS = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}


def _of_single_layers(fields: dict[str, Any]) -> None:
    """The widths of full or of sliding layers from transformers 5.24's `per_layer_config`, where it gives all layers of
    the kind the same ones. Raises PlanError where it does not: no one block is then all of them."""
    single, kinds = fields.pop("per_layer_config", None), fields.get("layer_types")
    if not isinstance(single, Mapping) or not single or not isinstance(kinds, list):
        return
    told = [(str(number), value) for number, value in single.items() if isinstance(value, Mapping)]
    numbers = {int(number) for number, _ in told if number.isdigit()}
    for kind in ("full_attention", "sliding_attention"):
        if numbers == {i for i, each in enumerate(kinds) if each == kind} and all(v == told[0][1] for _, v in told):
            for name, value in told[0][1].items():
                other = _OF_SINGLE_LAYERS.get(name) if kind == "full_attention" else f"swa_{name}"
                fields.setdefault(other or name, value)
            return
    problem = "gives layers of one kind of attention other sizes than each other: that is not planned for"
    raise PlanError("model.per_layer_config", problem)


def _compressed_layers(fields: dict[str, Any]) -> None:
    """DeepSeek-V4's `compress_ratios` from the kinds of layers that transformers 5.24 writes."""
    rates, kinds = fields.pop("compress_rates", None), fields.get("layer_types")
    if isinstance(rates, Mapping) and isinstance(kinds, list) and set(map(str, kinds)) & set(rates):
        fields.setdefault("compress_ratios", [rates.get(str(kind), 0) for kind in kinds])
        del fields["layer_types"]
    feeds = fields.get("mlp_layer_types")
    if isinstance(feeds, list) and set(map(str, feeds)) <= {"moe", "hash_moe"}:
        del fields["mlp_layer_types"]


def _numbered_experts(fields: dict[str, Any]) -> None:
    """`moe_layer_freq` from the numbers of the layers that have experts."""
    numbers, layers = fields.pop("moe_layers_enum", None), fields.get("num_hidden_layers")
    listed = numbers.split(",") if isinstance(numbers, str) else numbers
    if isinstance(listed, list | tuple) and isinstance(layers, int) and 0 < layers < 10_000:
        chosen = {str(number).strip() for number in listed}
        fields.setdefault("moe_layer_freq", [int(str(i) in chosen) for i in range(layers)])


def _layer_heads(fields: dict[str, Any]) -> None:
    """`swa_num_attention_heads` where a list of heads gives all sliding layers another number than the full ones, or
    these have a setting of their own (Step-3.5)."""
    other = fields.pop("attention_other_setting", None)
    if isinstance(other, Mapping) and other.get("attention_type") == "sliding_attention":
        for theirs, ours in (("num_attention_heads",) * 2, ("num_attention_groups", "num_key_value_heads")):
            if other.get(theirs) is not None:
                fields[f"swa_{ours}"] = other[theirs]
    heads, kinds = fields.pop("num_attention_heads_per_layer", None), fields.get("layer_types")
    if isinstance(heads, list) and isinstance(kinds, list) and len(heads) == len(kinds):
        sliding = {number for number, kind in zip(heads, kinds, strict=True) if kind == "sliding_attention"}
        full = {number for number, kind in zip(heads, kinds, strict=True) if kind != "sliding_attention"}
        if len(sliding) == len(full) == 1:
            fields["num_attention_heads"], fields["swa_num_attention_heads"] = full.pop(), sliding.pop()


@cache
def _table() -> dict[str, Any]:
    return document("model_types.yaml")


def model_types() -> frozenset[str]:
    """Values of model_type whose conventions are known."""
    return frozenset(_table()["types"])


@cache
def _refused() -> dict[str, str]:
    """What each model_type that is not planned for is."""
    return {kind: what for what, kinds in _table()["refused"].items() for kind in kinds}


def _refuse(kind: str, config: Mapping[str, Any]) -> None:
    """Raises PlanError for what is no decoder alone, or of layers that are not modelled: by its model_type, or where
    that is not known by its fields."""
    signs = {} if kind in _table()["types"] else _table()["unknown"]["signs"]
    outer = str(config.get("model_type") or "").lower()
    kind = outer if outer in _refused() else kind
    if what := _refused().get(kind) or next((what for field, what in signs.items() if config.get(field)), None):
        problem = (
            f"{kind or 'this config'} is {what}: only decoder-only language models of known layers are planned for"
        )
        raise PlanError("model.model_type", problem)


@cache
def _by_class() -> dict[str, str]:
    return {name: kind for kind, entry in _table()["types"].items() for name in entry.get("architectures", ())}


@cache
def _entry(kind: str) -> dict[str, Any]:
    """The conventions of a model_type with those of its `like` below them."""
    row = _table()["types"][kind]
    base = _entry(row["like"]) if "like" in row else _NO_CONVENTIONS
    return {
        "rename": {**base["rename"], **row.get("rename", {})},
        "when": [*base["when"], *row.get("when", [])],
        "defaults": {**base["defaults"], **row.get("defaults", {})},
        "fixed": {**base["fixed"], **row.get("fixed", {})},
        "halve": row.get("halve", base["halve"]),
        "copy": {**base["copy"], **row.get("copy", {})},
        "ffn_multiple": row.get("ffn_multiple", base.get("ffn_multiple")),
        "approximate": row.get("approximate"),
        "sublayers": row.get("sublayers"),
    }
