"""Masked words of sentences, and unit sequences that do or do not have a centre."""
