"""Tasks: each trains one thing, from its loss to what is measured of the trained models."""
