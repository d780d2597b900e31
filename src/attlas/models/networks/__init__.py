"""Whole networks: Transformers, translators, classifiers and two-layer networks."""
