"""What the offline chat says, each part a function from a tool's result to blocks. Every figure comes from a result,
and every table is that of pages.results."""
