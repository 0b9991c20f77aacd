"""Keys, tokens and passwords in what people write and in their files: known by their form, or by what they are called.
They are left out before anything is kept, shown or sent to a model; no plan needs one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Stands in a shell line, in YAML and in JSON as a word does.
LEFT_OUT = "key-left-out"
# As their issuers write them: OpenAI and Anthropic, Hugging Face, Google, GitHub, GitLab, NVIDIA, Slack, AWS, JSON Web
# Tokens; then what stands behind Bearer, and a password in an address.
_FORM = re.compile(
    r"\b(?:sk-[\w-]{12,}|hf_[A-Za-z0-9]{16,}(?!\w)|AIza[\w-]{20,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|nvapi-[\w-]{20,}|xox[abprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)"
    r"|(?<=[Bb]earer )[\w.~+/=-]{8,}"
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"
)
_NAME = (
    r"(?:[\w.-]*[_.-])?(?:(?:api|access|secret|private)[_ -]?key(?:[_-]?id)?|secret|password|passwd"
    r"|(?:hf|hub|hugging_?face|wandb|auth|access|api|bearer|github|gitlab|ngc|session)[_-]?token)"
)
_CALLED = re.compile(_NAME, re.IGNORECASE)
# 'hub_token: …', 'WANDB_API_KEY=…', '--api-key …': not what only says where one is ($HF_TOKEN, <your key>).
_GIVEN = re.compile(
    rf"(?<![\w.-])(--{_NAME}[ =]\s*[\"']?|{_NAME}[\"']?\s*[=:]\s*[\"']?)"
    r"(?![$<{\[]|[+-]?--)([\w.~+/=-]{8,})",
    re.IGNORECASE,
)
_LEAST = 8


def without_credentials(text: str) -> str:
    """The text with a word in place of each."""
    return _GIVEN.sub(lambda match: f"{match[1]}{LEFT_OUT}", _FORM.sub(LEFT_OUT, text))


def value_without(name: str, value: Any) -> Any:
    """A value that a file gives `name`, whatever it holds."""
    if isinstance(value, str):
        called = _CALLED.fullmatch(name.rpartition(" ")[2].lstrip("-"))
        if called and len(value) >= _LEAST and value[0] not in "$<{[":
            return LEFT_OUT
        return without_credentials(value)
    if isinstance(value, Mapping):
        return {key: value_without(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [value_without(name, each) for each in value]
    return value
