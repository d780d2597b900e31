"""Bounds beside measured errors of trained sparse-majority classifiers."""
