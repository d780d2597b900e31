"""Training on sparse majority (Section 6) and the bounds at the trained norms."""
