"""What an empty conversation shows: what this is for, and one question of each kind to start from."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, Static

_HEADING = "What do you want to train, fine-tune or serve?"
_ABOUT = (
    "Name the model, the accelerators and what is to be done. You get memory, speed and cost with "
    "their intervals, the best layout, and launch files."
)
EXAMPLES = (
    "Fine-tune Llama-3.1-8B with LoRA on one H100, 100M tokens: how long, what does it cost?",
    "Pretrain Llama-3.1-70B on 64 H100s for 100B tokens: which TP, PP and DP is best?",
    "Serve Llama-3.3-70B to 64 users with first tokens under 1 s: which GPUs, how many?",
    "GRPO on Qwen2.5-7B with 8 H100s: does it fit, and how fast is it?",
    'Check for Llama-3.1-8B on 8 H100s: {"zero_optimization": {"stage": 3}, '
    '"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}}',
)


class Welcome(Vertical):
    class Chosen(Message):
        """One of the example questions was picked."""

        def __init__(self, question: str) -> None:
            super().__init__()
            self.question = question

    def compose(self) -> ComposeResult:
        yield Static(_HEADING, classes="heading", markup=False)
        yield Static(_ABOUT, markup=False)
        yield Static("For example (Tab, then Enter):", classes="hint", markup=False)
        yield OptionList(*EXAMPLES, markup=False, id="examples")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Chosen(EXAMPLES[event.option_index]))
