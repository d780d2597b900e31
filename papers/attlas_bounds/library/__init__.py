"""What attlas_bounds alone is made of."""
