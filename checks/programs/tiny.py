"""Each question is a folder; a tiny model and its data are made there.

The model is a Llama of two layers with random weights and a tokenizer of whole words, so that nothing is downloaded.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


def answer(question: dict) -> dict:
    folder = Path(question["folder"])
    vocabulary = {word: index for index, word in enumerate(["<unk>", "<s>", "</s>", "<pad>", *WORDS])}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    (folder / "data").mkdir()
    rows = [{"text": " ".join(WORDS[(start + step) % 8] for step in range(32))} for start in range(64)]
    (folder / "data" / "train.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return {"parameters": sum(1 for _ in (folder / "model").iterdir())}
