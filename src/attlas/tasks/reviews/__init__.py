"""Sentiment of reviews: word classifiers of four kinds, in variants."""
