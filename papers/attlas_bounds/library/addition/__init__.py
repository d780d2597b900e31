"""Addition of attlas_bounds."""
