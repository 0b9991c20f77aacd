"""Arguments of the tools' own, and what is said of prices: what no Plan holds."""
