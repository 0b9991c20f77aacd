"""What a question that was asked back can be answered with: a list to choose from; typing answers it as well."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message
from textual.widgets import OptionList


class Choices(OptionList):
    class Chosen(Message):
        """One of the answers was picked."""

        def __init__(self, choices: Choices, answer: str) -> None:
            super().__init__()
            self.choices = choices
            self.answer = answer

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__(*answers, markup=False)
        self.answers = list(answers)

    def choose(self) -> bool:
        """It has the focus."""
        return bool(self.is_attached and self.focus())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Chosen(self, self.answers[event.option_index]))
