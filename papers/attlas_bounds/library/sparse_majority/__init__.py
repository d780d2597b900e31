"""Sparse majority of attlas_bounds."""
