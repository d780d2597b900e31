"""Claims of bounds that can be non-vacuous: held-out sets, codes, PAC-Bayes, tokens."""
