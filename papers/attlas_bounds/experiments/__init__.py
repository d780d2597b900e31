"""Experiments on bounds that are non-vacuous for trained Transformers."""
