"""What is in force: every setting, its value, where that is from, and another value for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from agent import settings
from pages.blocks import Block, Facts, Notes, Verdict
from tui.screens.dialogs import Ask
from tui.screens.listing import Column, Data, Listing, text
from tui.screens.table_screen import TableScreen

COLUMNS = (
    text("SETTING", "key"),
    Column("VALUE", lambda row: row["value"] if row["value"] != "" else None, str),
    text("FROM", "source"),
    text("MEANING", "meaning"),
)


class SettingsScreen(TableScreen):
    heading = "Settings"
    placeholder = "Search; Enter gives the setting another value"
    key = "key"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("d,delete", "back", "Back to its default")]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan, Listing(COLUMNS))

    def load(self) -> Sequence[Data]:
        return [
            {"key": each.setting.key, "value": each.value, "source": each.source, "meaning": each.setting.meaning,
             "setting": each.setting}
            for each in settings.in_force()
        ]  # fmt: skip

    def details(self, row: Data) -> Sequence[Block]:
        setting: settings.Setting = row["setting"]
        key = settings.key_variable()
        return [
            Verdict(setting.key),
            Notes("", [setting.meaning]),
            Facts([
                ("value", str(row["value"]) or "–"), ("from", row["source"]),
                ("default", str(setting.default) or "–"), ("variable", setting.variable),
                *([("values", ", ".join(setting.valid))] if setting.valid else []),
                ("file", str(settings.settings_file())),
                ("Gemini's key", f"from {key}" if key else "none: the offline planner thinks"),
            ]),
            Notes("When", ["A change counts from the next session on; the theme at once."], quiet=True),
        ]  # fmt: skip

    def choose(self, row: Data) -> None:
        setting: settings.Setting = row["setting"]
        values = f" ({', '.join(setting.valid)})" if setting.valid else ""

        def answered(text: str | None) -> None:
            if text is not None:
                self.do(lambda: settings.set_value(setting.key, text), lambda _: self._changed(setting.key), "keeping")

        self.app.push_screen(Ask(f"{setting.key}: {setting.meaning}{values}", str(row["value"])), answered)

    def action_back(self) -> None:
        row = self.row
        if row is not None:
            key = row["key"]
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
