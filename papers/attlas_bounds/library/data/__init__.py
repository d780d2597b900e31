"""Data of attlas_bounds."""
