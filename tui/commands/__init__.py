"""One module per command; each has `run(arguments) -> exit code` and is imported only when its command is used."""
