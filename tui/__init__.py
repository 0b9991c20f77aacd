"""The faces a person sees: the command line and the terminal app. They format and ask; they compute nothing."""
