"""Which tools a turn calls, with which arguments, and in which order."""
