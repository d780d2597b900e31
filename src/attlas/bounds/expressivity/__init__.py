"""Bounds on what a model can represent: the number of its linear regions."""
