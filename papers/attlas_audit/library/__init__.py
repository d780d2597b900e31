"""What attlas_audit alone is made of."""
