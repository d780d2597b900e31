"""Models of trauger2023sequence."""
