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
        "we do not want {}", "instead of {} something else", "i'd rather not use {}", "{} is out", "leave out {}",
        "leave {} out", "turn off {}",
        "turn {} off", "switch off {}", "get rid of {}", "everything but {}", "anything except {}", "rather than {}",
        "anything else than {}", "drop {}", "lose the {}", "{} disabled", "{} off", "no more {}", "stay away from {}",
        "not using {}", "we aren't using {}", "it must not use {}", "unless it is {}", "exclude {}", "minus {}",
        "{} is forbidden", "under no circumstances {}", "{} must be off", "remove {}", "i refuse to use {}",
        "forget about {}", "{} is a no go", "by no means {}", "all but {}", "free of {}", "ban {}",
    ],
    "llama 3.1 8b auf 8 H100 trainieren, {}": [
        "ohne {}", "kein {}", "bitte kein {} verwenden", "wir dürfen {} nicht verwenden", "{} ist nicht erlaubt",
        "{} ist verboten", "vermeide {}", "auf {} verzichten", "nicht mit {}", "{} kommt nicht in Frage",
        "statt {} etwas anderes", "{} nicht benutzen", "auf keinen Fall {}", "lieber nicht {}", "alles außer {}",
        "{} weglassen", "{} abschalten", "{} ausschalten", "verzichte auf {}", "{} soll aus sein", "niemals {}",
        "{} brauchen wir nicht", "schalte {} aus",
    ],
    "entrenar llama 3.1 8b en 8 H100, {}": [
        "sin {}", "no uses {}", "no queremos usar {}", "no podemos usar {}", "evita {}", "evitemos {}",
        "{} no está permitido", "{} está prohibido", "nada de {}", "en vez de {} otra cosa", "no quiero {}",
        "prescindir de {}", "cualquier cosa menos {}", "todo menos {}", "desactiva {}", "quita {}", "excepto {}",
        "en lugar de {}", "{} desactivado", "nunca {}", "jamás {}", "descarta {}",
    ],
    "entraîner llama 3.1 8b sur 8 H100, {}": [
        "sans {}", "pas de {}", "n'utilise pas {}", "on ne peut pas utiliser {}", "évite {}", "surtout pas de {}",
        "{} est interdit", "{} n'est pas permis", "au lieu de {} autre chose", "je ne veux pas de {}",
        "plutôt que {} autre chose", "ne pas activer {}", "désactive {}", "tout sauf {}", "n'importe quoi sauf {}",
        "enlève {}", "jamais {}", "{} désactivé", "hors de question d'utiliser {}", "on se passe de {}", "aucun {}",
        "n'active pas {}",
    ],
    "用8张H100训练llama 3.1 8b，{}": [
        "不用{}", "不要用{}", "不能用{}", "别用{}", "避免使用{}", "禁止使用{}", "没有{}", "不使用{}", "不想用{}",
        "{}不行", "不允许用{}", "请勿使用{}", "不要{}", "关掉{}", "关闭{}", "禁用{}", "除了{}都可以", "别开{}",
        "不开{}", "去掉{}", "把{}关掉", "{}就算了", "不考虑{}", "不启用{}",
    ],
    "llama 3.1 8bを8枚のH100で学習、{}": [
        "{}なしで", "{}は使わない", "{}は使わないで", "{}を使わずに", "{}は禁止", "{}は使えない", "{}は避けて",
        "{}は不要", "{}を使いたくない", "{}ではなく他のもの", "{}は使えません", "{}抜きで", "{}オフ", "{}はオフ",
        "{}無効", "{}を無効にして",
        "{}以外で", "{}なし", "{}はなし", "{}使わない", "{}をやめて", "{}は除外", "{}を外して", "{}をオフにして",
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
    assert len(lost) <= len(FEATURES) * len(WAYS[sentence]) // 50, lost


@pytest.mark.parametrize(("feature", "field", "value"), [(one, *of) for one, of in FEATURES.items()])
def test_what_is_asked_for_is_switched_on(feature: str, field: str, value: object) -> None:
    for way in ("with {}", "use {}", "{} please", "and {}", "mit {}", "con {}", "avec {}", "用{}"):
        words = f"fine-tune llama 3.1 8b on 8 h100, {way.format(feature)}"
        assert value in read(words, known()).values(field), words


PAIRS = [
    ("method", "lora", "full"), ("method", "qlora", "dora"), ("framework", "fsdp", "deepspeed"),
    ("framework", "megatron", "torchtitan"), ("precision", "fp8", "bf16"), ("optimizer", "adamw", "muon"),
]  # fmt: skip
INSTEAD = ("not {} but {}", "{1} instead of {0}", "{1} rather than {0}", "no {}, use {}", "{1}, not {0}",
           "nicht {} sondern {}", "{1} statt {0}", "no {} sino {}", "{1} en vez de {0}", "pas {} mais {}",
           "{1} au lieu de {0}", "不用{}，用{}", "{}ではなく{}")  # fmt: skip


@pytest.mark.parametrize(("field", "refused", "taken"), PAIRS)
def test_one_is_taken_in_the_place_of_the_other(field: str, refused: str, taken: str) -> None:
    meant = read(f"fine-tune llama 3.1 8b on 8 h100 with {taken}", known()).values(field)
    for way in INSTEAD:
        text = f"fine-tune llama 3.1 8b on 8 h100, {way.format(refused, taken)}"
        assert read(text, known()).values(field) == meant, text
