"""Measures of trauger2023sequence."""
