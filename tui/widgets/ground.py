"""Containers that show nothing of their own, drawn as one line many times.

Textual makes every line of a container anew when its size changes; of an answer that grows, that is most of a picture.
"""

from __future__ import annotations

from textual.containers import Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


def ground(widget: Widget, crop: Region) -> list[Strip]:
    """The background of a widget without border, for Widget.render_lines. (Textual's BLANK minds no NO_COLOR.)"""
    strip = Strip.blank(crop.width, widget.visual_style.rich_style)
    for line_filter in widget.get_line_filters():
        strip = strip.apply_filter(line_filter, widget.background_colors[1])
    return [strip] * crop.height


class Ground(Vertical):
    def render_lines(self, crop: Region) -> list[Strip]:
        return ground(self, crop)
