"""Sparse majority of trauger2023sequence."""
