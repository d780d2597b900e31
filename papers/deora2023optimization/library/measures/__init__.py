"""Margins, NTK margins and attention masses of multi-head models."""
