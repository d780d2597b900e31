"""Bounds of attlas_bounds."""
