"""What an empty conversation shows: what this is for, and three questions to start from."""

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
    "Pretrain Llama-2-7B on 8 H100s with DP 8 and 4k sequences: does it fit, and how fast is it?",
    "Pretrain Llama-3.1-70B on 64 H100s for 100B tokens: which TP, PP and DP is best?",
    "Pretrain Mixtral-8x7B on 32 H100s with expert parallelism: does EP 8 fit, and how fast is it?",
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
