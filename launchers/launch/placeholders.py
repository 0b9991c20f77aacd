"""What stands in a file where only the user knows the value; each is among the needs of its set."""

from __future__ import annotations

MARK = "SET_ME"
MODEL = "SET_ME_MODEL"
CHECKPOINT = "SET_ME_CHECKPOINT"
DRAFT_MODEL = "SET_ME_DRAFT_MODEL"
TOKENIZER = "SET_ME_TOKENIZER"
DATASET = "SET_ME_DATASET"
REWARD = "SET_ME_REWARD"
REWARDS = "SET_ME_REWARDS"
NAMESPACE = "SET_ME_NAMESPACE"
ENGINE_HOST = "SET_ME_VLLM_HOST"
