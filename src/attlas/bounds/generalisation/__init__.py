"""Bounds on the gap between training and test risk, and the samples they need."""
