"""Guarantees on a model from its predictions, in files that evaluation tools write."""
