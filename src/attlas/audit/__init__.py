"""All bounds and measurements of one trained attention layer."""
