"""Certificates of one attention layer: what holds for every text, or at the tokens at hand."""
