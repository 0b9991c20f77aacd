"""What is in force: every setting, its value, where that is from, and another value for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from agent import settings
from pages.blocks import Block, Figures, Headline, Note
from tui.screens.dialogs import Ask
from tui.screens.listing import Column, Listing, text
from tui.screens.table_screen import TableScreen

COLUMNS = (
    text("SETTING", "key"),
    Column("VALUE", lambda row: row.value if row.value != "" else None, str),
    text("FROM", "source"),
    text("MEANING", "meaning"),
)


@dataclass(frozen=True)
class SettingRow:
    key: str
    value: Any
    source: str
    meaning: str
    setting: settings.Option


class SettingsScreen(TableScreen):
    heading = "Settings"
    placeholder = "Search; Enter gives the setting another value"
    key = "key"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("d,delete", "back", "Back to its default")]

    def __init__(self, plan: Mapping[str, Any]) -> None:
        super().__init__(plan, Listing(COLUMNS))

    def load(self) -> Sequence[SettingRow]:
        return [
            SettingRow(each.setting.key, each.value, each.source, each.setting.meaning, each.setting)
            for each in settings.in_force()
        ]

    def details(self, row: SettingRow) -> Sequence[Block]:
        setting = row.setting
        key = settings.key_variable()
        return [
            Headline(setting.key),
            Note("", [setting.meaning]),
            Figures([
                ("value", str(row.value) or "–"), ("from", row.source),
                ("default", str(setting.default) or "–"), ("variable", setting.variable),
                *([("values", ", ".join(setting.valid))] if setting.valid else []),
                ("file", str(settings.settings_file())),
                ("Gemini's key", f"from {key}" if key else "none: the offline planner answers"),
            ]),
            Note("When", ["A change counts from the next session on; the theme at once."], quiet=True),
        ]  # fmt: skip

    def choose(self, row: SettingRow) -> None:
        setting = row.setting
        values = f" ({', '.join(setting.valid)})" if setting.valid else ""

        def answered(text: str | None) -> None:
            if text is not None:
                self.do(lambda: settings.set_value(setting.key, text), lambda _: self._changed(setting.key), "keeping")

        self.app.push_screen(Ask(f"{setting.key}: {setting.meaning}{values}", str(row.value)), answered)

    def action_back(self) -> None:
        row = self.row
        if row is not None:
            key = row.key
            self.do(lambda: settings.unset(key), lambda _: self._changed(key), "keeping")

    def _changed(self, key: str) -> None:
        self.reload()
        if key == "theme":
            self.do(lambda: settings.value("theme"), self._dress, "looking", group="theme")

    def _dress(self, theme: Any) -> None:
        if theme in self.app.available_themes:
            self.app.theme = theme
        elif theme:
            self.failed(f"There is no theme {theme!r}: {', '.join(sorted(self.app.available_themes))}")
