"""Container images whose entry point is known."""

from __future__ import annotations

import re

# Programs that images start where no command is named.
_IMAGES = (
    (re.compile(r"vllm"), ("vllm", "serve")),
    (re.compile(r"llama\.cpp.*server|llama-server"), ("llama-server",)),
)


def image_starts(image: str) -> tuple[str, ...]:
    """The words that the entry point of a container image stands for; () where that is not known. A tag says what else
    is in it."""
    name = re.sub(r"(@|:[^/]*$).*", "", image)
    return next((words for pattern, words in _IMAGES if pattern.search(name)), ())
