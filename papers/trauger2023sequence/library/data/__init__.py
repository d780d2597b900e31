"""Data of trauger2023sequence."""
