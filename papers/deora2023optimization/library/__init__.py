"""What deora2023optimization alone is made of."""
