"""What a person refuses is never switched on, in whatever words and language it is said."""

from __future__ import annotations

import pytest

from agent.offline.catalogue import known
from agent.offline.language import read

FEATURES = {
    "lora": ("method", "lora"), "qlora": ("method", "qlora"), "deepspeed": ("framework", "deepspeed"),
    "fsdp": ("framework", "fsdp2"), "megatron": ("framework", "megatron-lm"), "fp8": ("precision", "fp8"),
    "packing": ("packing", True), "flash attention": ("attention", "flash"),
    "gradient checkpointing": ("recompute", "full"), "cpu offload": ("offload", "optimizer"),
    "zero 3": ("zero_stage", 3), "torch.compile": ("compile", True),
}  # fmt: skip
WAYS = {
    "fine-tune llama 3.1 8b on 8 h100, {}": [
        "no {}", "without {}", "don't use {}", "we can't use {}", "please avoid {}", "not {}", "{} is not allowed",
        "never {}", "skip {}", "disable {}", "anything but {}", "{} is not an option", "do not use {}",
        "we do not want {}", "instead of {} something else", "i'd rather not use {}", "{} is out",
    ],
    "llama 3.1 8b auf 8 H100 trainieren, {}": [
        "ohne {}", "kein {}", "bitte kein {} verwenden", "wir dürfen {} nicht verwenden", "{} ist nicht erlaubt",
        "{} ist verboten", "vermeide {}", "auf {} verzichten", "nicht mit {}", "{} kommt nicht in Frage",
        "statt {} etwas anderes", "{} nicht benutzen",
    ],
    "entrenar llama 3.1 8b en 8 H100, {}": [
        "sin {}", "no uses {}", "no queremos usar {}", "no podemos usar {}", "evita {}", "evitemos {}",
        "{} no está permitido", "{} está prohibido", "nada de {}", "en vez de {} otra cosa", "no quiero {}",
        "prescindir de {}",
    ],
    "entraîner llama 3.1 8b sur 8 H100, {}": [
        "sans {}", "pas de {}", "n'utilise pas {}", "on ne peut pas utiliser {}", "évite {}", "surtout pas de {}",
        "{} est interdit", "{} n'est pas permis", "au lieu de {} autre chose", "je ne veux pas de {}",
        "plutôt que {} autre chose", "ne pas activer {}",
    ],
    "用8张H100训练llama 3.1 8b，{}": [
        "不用{}", "不要用{}", "不能用{}", "别用{}", "避免使用{}", "禁止使用{}", "没有{}", "不使用{}", "不想用{}",
        "{}不行", "不允许用{}", "请勿使用{}",
    ],
    "llama 3.1 8bを8枚のH100で学習、{}": [
        "{}なしで", "{}は使わない", "{}は使わないで", "{}を使わずに", "{}は禁止", "{}は使えない", "{}は避けて",
        "{}は不要", "{}を使いたくない", "{}ではなく他のもの", "{}は使えません", "{}抜きで",
    ],
}  # fmt: skip


@pytest.mark.parametrize("sentence", WAYS)
def test_what_is_refused_is_not_switched_on(sentence: str) -> None:
    inverted, lost = [], []
    for feature, (name, value) in FEATURES.items():
        for way in WAYS[sentence]:
            words = sentence.format(way.format(feature))
            edits = [edit for edit in read(words, known()).edits if edit.field == name]
            inverted += [words] if any(edit.op == "set" and edit.value == value for edit in edits) else []
            lost += [] if edits else [words]
    assert inverted == []
    assert len(lost) <= 3, lost


@pytest.mark.parametrize(("feature", "field", "value"), [(one, *of) for one, of in FEATURES.items()])
def test_what_is_asked_for_is_switched_on(feature: str, field: str, value: object) -> None:
    for way in ("with {}", "use {}", "{} please", "and {}", "mit {}", "con {}", "avec {}", "用{}"):
        words = f"fine-tune llama 3.1 8b on 8 h100, {way.format(feature)}"
        assert value in read(words, known()).values(field), words
