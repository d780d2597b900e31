"""Film reviews as sequences of words."""
