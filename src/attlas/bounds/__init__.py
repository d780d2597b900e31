"""Bound: pure formulas, numbers in, number out."""
