"""Files of the program, by the table of its fields."""

from __future__ import annotations

from launchers.reading.mapped import mapped_format

FORMATS = (mapped_format("gpt_neox"),)
