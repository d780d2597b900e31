"""Training of attlas_bounds."""
