"""Step: optimisers as optax transformations."""
