"""Bounds of deora2023optimization."""
