"""Training of trauger2023sequence."""
