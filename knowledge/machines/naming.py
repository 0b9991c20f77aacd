"""Reading names of accelerators: words and numbers, memory sizes, form factors, profiles of virtual GPUs."""

from __future__ import annotations

import re

from knowledge.names import Form, form_of


def accelerator_form(name: str) -> Form:
    """The words and numbers of the name of an accelerator."""
    return form_of(accelerator_tokens(name))


def accelerator_tokens(name: str) -> list[str]:
    """'NVIDIA A100-SXM4-80GB' -> ['a100', 'sxm', '80gb']; 'gaudi3' -> ['gaudi', '3']."""
    text = re.sub(r"\((?:r|tm)\)", " ", name.casefold())  # as processors call themselves: Intel(R) Xeon(R)
    text = re.sub(r"\btensor[\s-]core\b", " ", text)
    if re.search(r"\bm\d\b", text):
        text = _APPLE.sub(" ", text)
    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:gib|gb|gigs?|g)\b", r"\1gb", text)
    text = _CORES.sub(" ", text)
    text = _VGPU.sub(r"\1 \2gb", text)
    text = re.sub(r"(?<=\d)(?=(sxm|pcie|nvl)\d?\b)", " ", text)
    text = re.sub(r"\bmi[\s_-]+(?=\d)", "mi", text)
    text = re.sub(r"\b([a-z])-(?=\d{2,3}\b)", r"\1", text)  # H-100
    text = re.sub(r"(?<=\d{2}90)s\b", "", text)  # two 4090s, where 4080s is the SUPER
    text = re.sub(r"(?<=\d{4})(?=(ti|super|d|xt|xtx)\b)", " ", text)
    text = re.sub(r"\b([a-z]{5,}|rtx|gtx|rx|tpu)(?=v?\d)", r"\1 ", text)
    tokens = [_looked_alike(token) for token in re.findall(r"[a-z0-9.+]+|[^\W\d_a-z]+", text)]
    return [token for token in (_ACCELERATOR_SAME.get(t, t) for t in tokens) if token not in NOISE]


_INCHES = r"1[3-6](?:\.\d)?[\s-]?(?:inch(?:es)?|in|[\"″”])?"
_APPLE = re.compile(
    rf"\b(?:{_INCHES}\s+)?i?mac\s?(?:book|mini|studio)?\s*(?:pro|air|mini|studio)?\b(?:\s*{_INCHES}(?![\w.]))?"
)
"""What a machine with an Apple chip is called, and the size of its screen: '16" MacBook Pro M3 Max'."""
_CORES = re.compile(r"\b\d{1,2}[\s-]core\b(?=.*\d+gb\b)")
"""Cores of an Apple chip whose memory tells which of them it is: 'M4 Max 40-core 128GB'."""
_VGPU = re.compile(r"\b([a-z]+\d+s?)[dxl]{0,2}-(\d{1,3})[abcq]\b")
"""A profile of a virtual GPU: the card, its memory and what it is licensed for (NVIDIA vGPU: A40-48Q, A100D-80C)."""


def _looked_alike(token: str) -> str:
    """'h1oo' -> 'h100': the letter o among digits is a zero that was mistyped."""
    if re.fullmatch(r"[a-z]*\d[\do]*", token):
        return re.sub(r"(?<=\d)o+", lambda match: "0" * len(match[0]), token)
    return token


NOISE = frozenset({
    "nvidia", "amd", "intel", "google", "aws", "amazon", "cerebras", "apple", "tesla", "geforce", "instinct", "radeon",
    "rtx", "tpu", "gpu", "gpus", "card", "chip", "chips", "tensor", "data", "center", "accelerator", "oam",
    "superchip", "the", "modded", "used", "founders", "edition", "fe", "oc", "vf", "infiniband", "ethernet",
    "roce", "nvlink", "tuf", "rog", "gaming", "trio", "suprim", "ventus", "aorus", "windforce", "asus", "msi",
    "gigabyte", "zotac", "pny", "palit", "gainward", "evga", "supermicro", "dell", "platinum", "generation", "cloud",
    "tenstorrent", "groq", "sambanova", "with", "unified", "memory", "vram", "ram", "grid", "colab", "kaggle",
    "graphics", "base",
})  # fmt: skip
_ACCELERATOR_SAME = {
    "sxm2": "sxm", "sxm3": "sxm", "sxm4": "sxm", "sxm5": "sxm", "sxm6": "sxm", "hgx": "sxm", "dgx": "sxm",
    "mobile": "laptop", "notebook": "laptop",
}  # fmt: skip
