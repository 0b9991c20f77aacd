"""FLOP that a model needs for a token, apart from any layout: what makes measured speeds comparable as MFU."""

from __future__ import annotations

import numpy as np

from estimator.kernels.attention import core_flop, keys_seen
from estimator.model.architecture import Architecture

# FLOP per parameter and token: two forward, twice as many backward (Chowdhery et al. 2022, appendix B).
_PER_PARAMETER = 6.0


def model_flop_per_token(architecture: Architecture, seq_len: int) -> float:
    """FLOP of training on one token of a sequence of `seq_len`, all weights trained.

    PaLM's convention (Chowdhery et al. 2022, appendix B): six per active parameter that is multiplied, embedding
    look-ups left out, and causal attention by the half that is needed, once forward and twice backward.
    """
    looked_up = architecture.position_parameters + (0 if architecture.tied else architecture.embedding_parameters)
    scores = 0.0
    for kind, block in enumerate(architecture.blocks):
        if block.heads:
            keys = np.array([block.heads * keys_seen(block, float(seq_len))])
            scores += architecture.pattern.count(kind) * float(core_flop(block, keys)[0][0])
    return _PER_PARAMETER * (architecture.active_parameters - looked_up) + 3.0 * scores
