"""YAML of LLM-Training, which starts Lightning's command line. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.mapped import mapped_format

FORMATS = (mapped_format("llm_training"),)
