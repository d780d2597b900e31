"""Experiments of trauger2023sequence: bounds with numbers, next to what they bound."""
