"""Bounds on one attention layer from its margins, in norm balls and by PAC-Bayes."""
