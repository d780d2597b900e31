"""Models of deora2023optimization."""
