"""Answers in Markdown, each part a function from a tool's result to blocks. Every figure comes from a result."""
