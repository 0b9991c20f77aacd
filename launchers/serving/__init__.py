"""Targets that serve: commands and configs of inference engines and their harnesses."""
