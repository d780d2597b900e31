"""What julistiono2024optimizing alone is made of."""
