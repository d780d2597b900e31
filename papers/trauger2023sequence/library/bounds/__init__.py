"""Bounds of trauger2023sequence."""
