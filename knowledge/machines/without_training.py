"""Devices that no training framework of the catalogue runs on, with the reason.

Sources: AWS Neuron documentation, PyTorch Neuron setup (PyTorch NeuronX for training on Trn1 and Trn2, for inference on
Inf2, Trn1 and Trn2; PyTorch Neuron for inference on Inf1) and What is AWS Neuron (Inferentia: for inference);
Cerebras/modelzoo README and training-docs.cerebras.ai; SambaFlow documentation (docs.sambanova.ai, Architecture and
workflows); tenstorrent/tt-forge README (models are compiled by TT-XLA, trained with TT-Blacksmith's recipes). Groq: no
page of the maker says it, only others' do (zubnet.ai/wiki/en/Groq). CPUs run PyTorch, but are tried only by name.
"""

from __future__ import annotations

from estimator.machine.hardware import Accelerator

_VENDORS = {
    "Cerebras": "its models are trained with Cerebras' own software, which is not estimated",
    "SambaNova": "its models are trained with SambaNova's own software, which is not estimated",
    "Groq": "it is built for inference alone",
    "Tenstorrent": "its models are trained through Tenstorrent's own compilers, which are not estimated",
}
_FAMILIES = {"Inferentia": "it is built for inference alone"}


def no_training(accelerator: Accelerator) -> str | None:
    """Why language models cannot be trained on it with any framework that is estimated; None where they can."""
    return _VENDORS.get(accelerator.vendor) or _FAMILIES.get(accelerator.family)
