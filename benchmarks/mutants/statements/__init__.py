"""Stronger statements: mutants of the formulas that stand in claim files alone."""
