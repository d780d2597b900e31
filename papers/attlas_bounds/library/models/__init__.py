"""Models of attlas_bounds."""
