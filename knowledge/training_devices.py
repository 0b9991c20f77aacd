"""Devices that no training framework of the catalogue runs on, with the reason.

Sources: AWS Neuron documentation ("Amazon EC2 Inf2 and Trn1: training is supported on Trainium"), the vendors' product
pages for the rest. CPUs run PyTorch, but nobody rents them to train language models, so they are tried only by name.
"""

from __future__ import annotations

from estimator.hardware import Accelerator

_VENDORS = {
    "Cerebras": "its models are trained with Cerebras' own software, which is not estimated",
    "SambaNova": "its models are trained with SambaNova's own software, which is not estimated",
    "Groq": "it is built for inference alone",
    "Tenstorrent": "none of the training frameworks that are estimated runs on it",
}
_FAMILIES = {"Inferentia": "it is built for inference alone"}


def no_training(accelerator: Accelerator) -> str | None:
    """Why language models cannot be trained on it with any framework that is estimated; None where they can."""
    return _VENDORS.get(accelerator.vendor) or _FAMILIES.get(accelerator.family)
