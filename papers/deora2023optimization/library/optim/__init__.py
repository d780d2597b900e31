"""Optim of deora2023optimization."""
