"""Training on masked words, and the bounds at the trained weights."""
