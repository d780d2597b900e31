"""Distances between the law of samples and the law of data."""
