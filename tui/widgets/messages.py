"""What is said in the conversation: the person's words, the answer, and notices."""

from __future__ import annotations

from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from tui.clean import clean


class Question(Static):
    def __init__(self, text: str) -> None:
        super().__init__(clean(text), markup=False)


class Notice(Static):
    """Something about the conversation: stopped, went offline, failed."""

    def __init__(self, text: str, *, bad: bool = False) -> None:
        super().__init__(clean(text), markup=False, classes="-bad" if bad else "")


class Answer(Markdown):
    """An answer that grows while it arrives. `source_text` is the Markdown as it came."""

    def __init__(self) -> None:
        super().__init__()
        self.source_text = ""
        self._stream: MarkdownStream | None = None

    async def add(self, text: str) -> None:
        text = clean(text)
        self.source_text += text
        if self._stream is None:
            self._stream = Markdown.get_stream(self)
        await self._stream.write(text)

    async def finish(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.stop()

    async def replace(self, text: str) -> None:
        """The text whose numbers were checked, where it differs from what was streamed."""
        await self.finish()
        self.source_text = clean(text)
        await self.update(self.source_text)
