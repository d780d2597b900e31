"""Training of deora2023optimization."""
