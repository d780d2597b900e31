"""The bounds on Transformer classes side by side, for given weights."""
