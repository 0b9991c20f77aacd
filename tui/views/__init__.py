"""Results of tools as pages of the command line: figures are picked and written, never computed."""
