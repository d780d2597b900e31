"""Sides in 60 digits: the program of a claim with mpmath numbers, to confirm a violation."""
